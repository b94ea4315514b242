#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/strings.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/verbs/local_process.h"
#include "mqctl/verbs/local_state.h"
#include "mqctl/verbs/local_zookeeper.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

constexpr std::uint16_t kFirstPort = 9500;
constexpr std::uint16_t kLastPort = 9599;
constexpr std::int64_t kBrokersMax = 9;
constexpr std::chrono::seconds kStartLimit{20};

std::uint16_t port_in(const std::string& address) {
  const auto port = base::parse_unsigned(address.substr(address.rfind(':') + 1));
  return port && *port <= UINT16_MAX ? static_cast<std::uint16_t>(*port) : std::uint16_t{0};
}

std::uint16_t next_port(std::uint16_t from) {
  const auto port = free_port(from, kLastPort);
  if (port != 0) return port;
  throw Failed(make_failure(protocol::WireError::port_in_use, "no local broker was started",
                            fmt::format("ports {} to {} are all taken", kFirstPort, kLastPort)));
}

std::string find_mqbroker(const Console& console) {
  const auto program = find_program(console, "mqbroker");
  if (!program.empty()) return program.string();
  throw Failed(make_failure(protocol::WireError::file_unreadable, "no local broker was started",
                            "mqbroker is neither beside mqctl nor in the PATH",
                            "build or install mqbroker"));
}

bool answers(const Context& context, const std::string& address) {
  ClientConfig config = client_config(context);
  config.bootstrap = {address};
  config.connect_timeout = config.request_timeout = Duration(1000);
  return Admin::create(std::move(config)).has_value();
}

/// Only where there is none: it may have been edited.
void write_config(const LocalProcess& broker, const std::string& metadata) {
  std::error_code error;
  if (std::filesystem::exists(broker.config(), error)) return;
  write_local_file(
      broker.config(),
      fmt::format(
          "# Written by mqctl local up, once: what you change here stays. The places of the "
          "metadata and of the\n"
          "# listener are given by mqctl local up at each start, with --set.\n"
          "[broker]\nid = {}\nmetadata = \"{}\"\n"
          "[[storage.disk]]\npath = {}\n",
          broker.broker, metadata, to_json(broker.data().string())));
}

/// Spawns it at this port, without waiting.
LocalProcess launch_broker(const Context& context, LocalProcess broker, const std::string& metadata,
                           std::uint16_t port) {
  broker.make_folder();
  broker.address = fmt::format("127.0.0.1:{}", port);
  write_config(broker, metadata);
  broker.process_id = spawn({find_mqbroker(context.console), "--config", broker.config().string(),
                             "--set", fmt::format("broker.metadata={}", metadata), "--set",
                             fmt::format("listener.clients.bind={}", broker.address)},
                            broker.log());
  return broker;
}

/// Until it answers; again at another port when somebody has taken its own between the look and
/// the broker's start.
LocalProcess await_broker(const Context& context, LocalProcess broker,
                          const std::string& metadata) {
  while (true) {
    const auto started = wait_until_ready(context, broker.process_id, kStartLimit,
                                          [&] { return answers(context, broker.address); });
    if (started == Started::ready) return broker;
    const auto port = port_in(broker.address);
    if (started == Started::ended && !is_free(port)) {
      broker =
          launch_broker(context, broker, metadata, next_port(static_cast<std::uint16_t>(port + 1)));
      continue;
    }
    throw Failed(make_failure(
        protocol::WireError::unreachable,
        metadata == "local" ? "the local broker did not start"
                            : fmt::format("{} did not start", broker.name()),
        started == Started::ended
            ? broker.log_tail()
            : fmt::format("it did not answer within {} s and was ended", kStartLimit.count()),
        fmt::format("the whole log: {}", broker.log().string())));
  }
}

Value item_of(const LocalProcess& process, bool was_up) {
  return Value::object()
      .set("state", was_up ? "already_up" : "up")
      .set("broker", process.is_zookeeper() ? Value() : Value(process.broker))
      .set("address", process.address)
      .set("process_id", process.process_id)
      .set("folder", process.folder.string())
      .set("log", process.log().string());
}

/// The other commands look at the first port, unless they are told.
std::string brokers_flag(const LocalProcess& broker) {
  return port_in(broker.address) == kFirstPort ? "" : fmt::format(" -b {}", broker.address);
}

/// Any one of those that are named may die later.
std::string brokers_variable(const std::vector<LocalProcess>& processes) {
  std::vector<std::string> addresses;
  for (const auto& process : processes)
    if (!process.is_zookeeper()) addresses.push_back(process.address);
  return fmt::format("  export MQCTL_BROKERS={}\n", fmt::join(addresses, ","));
}

std::string next_commands(const std::string& flag, int partitions) {
  return fmt::format(
      "  mqctl{} topic create orders --partitions {}\n"
      "  printf 'k1:v1\\nk2:v2\\n' | mqctl{} produce orders -K :\n",
      flag, partitions, flag);
}

std::string metadata_of(const LocalProcess& zookeeper) {
  return fmt::format("zookeeper://{}/mq", zookeeper.address);
}

[[noreturn]] void throw_other_kind(std::string_view there, std::string_view hint) {
  throw Failed(make_failure(protocol::WireError::port_in_use, "nothing was started",
                            fmt::format("{} is up here", there), std::string(hint)));
}

Exit up_single(Context& context, const LocalState& state) {
  const auto running = state.running();
  const bool was_up = !running.empty();
  if (running.size() > 1 || (was_up && running[0].folder != state.folder()))
    throw_other_kind("a local cluster", "mqctl local down ends it");
  LocalProcess broker;
  if (was_up) {
    broker = running[0];
  } else {
    broker = launch_broker(context, state.single(), "local", next_port(kFirstPort));
    broker = await_broker(context, std::move(broker), "local");
    state.record({broker});
  }
  Report report(context);
  report.item(item_of(broker, was_up));
  report.text(fmt::format("broker 1 {} at {} (pid {}); data and log in {}\n",
                          was_up ? "was up already" : "is up", broker.address, broker.process_id,
                          state.folder().string()));
  report.text(next_commands(brokers_flag(broker), 3));
  context.notice("one broker keeps one copy of each record: for trying things out");
  return report.finish();
}

struct Launched {
  LocalProcess process;
  bool was_up = false;
};

/// What is there already stays; the rest is launched, all at once, also after one of it was killed.
/// ZooKeeper comes first and serves; the brokers are on their way.
std::vector<Launched> launch_cluster(Context& context, const LocalState& state,
                                     const std::vector<LocalProcess>& running, std::int32_t count) {
  std::vector<Launched> launched;
  const auto find = [&](std::int32_t broker) {
    return std::ranges::find(running, broker, &LocalProcess::broker);
  };
  const auto add = [&](LocalProcess process, bool before) {
    launched.push_back({std::move(process), before});
    // Whatever comes next: local down finds what is up.
    std::vector<LocalProcess> known;
    known.reserve(launched.size() + running.size());
    for (const auto& one : launched) known.push_back(one.process);
    for (const auto& other : running)
      if (std::ranges::find(known, other.broker, &LocalProcess::broker) == known.end())
        known.push_back(other);
    state.record(known);
  };
  const auto zookeeper = find(0);
  if (zookeeper != running.end()) {
    add(*zookeeper, true);
  } else {
    add(start_zookeeper(context, state.zookeeper()), false);
  }
  const auto metadata = metadata_of(launched.front().process);
  std::uint16_t port = kFirstPort;
  for (std::int32_t id = 1; id <= count; ++id) {
    const auto broker = find(id);
    if (broker != running.end()) {
      add(*broker, true);
      continue;
    }
    port = next_port(port);
    add(launch_broker(context, state.broker(id), metadata, port++), false);
  }
  for (const auto& other : running)
    if (other.broker > count) add(other, true);
  return launched;
}

Exit up_cluster(Context& context, const LocalState& state, std::int32_t count) {
  const auto running = state.running();
  if (running.size() == 1 && running[0].folder == state.folder())
    throw_other_kind("a broker of its own", "mqctl local down ends it; its data stays");
  const auto launched = launch_cluster(context, state, running, count);
  const auto metadata = metadata_of(launched.front().process);
  Report report(context);
  std::vector<LocalProcess> up;
  for (const auto& [process, was_up] : launched) {
    try {
      const bool awaited = !was_up && !process.is_zookeeper();
      up.push_back(awaited ? await_broker(context, process, metadata) : process);
    } catch (const Failed& failed) {
      report.failure(failed.failure());  // the others serve without it
      continue;
    }
    report.item(item_of(up.back(), was_up));
    report.text(fmt::format("{} {} at {} (pid {})\n", up.back().name(),
                            was_up ? "was up already" : "is up", up.back().address,
                            up.back().process_id));
  }
  state.record(up);
  report.text(fmt::format("data and logs in {}\n", state.cluster().string()));
  if (up.size() > 1) report.text(brokers_variable(up) + next_commands("", 6));
  context.notice("each record is kept by up to three of the brokers, all of them on this machine");
  return report.finish();
}

Exit up(Context& context) {
  const LocalState state(context.console);
  const auto count = static_cast<std::int32_t>(context.args.number("count"));
  return count == 1 ? up_single(context, state) : up_cluster(context, state, count);
}

}  // namespace

Command local_up_command() {
  return {
      .path = "local up",
      .summary = "Starts brokers of your own on this machine, without root",
      .details =
          "They go on until mqctl local down. Data, logs and configurations are in "
          "$XDG_STATE_HOME/mq\n(~/.local/state/mq). Brokers take ports from 9500 on, those "
          "that are free. One broker needs nothing\nelse; several have a ZooKeeper, which is "
          "started beside them (packages libzookeeper-java and\ndefault-jre-headless). What "
          "was killed comes back with the same command. A broker.toml that is there is kept as it "
          "is.",
      .examples = {"mqctl local up", "mqctl local up -n 3"},
      .flags = {{.name = "count",
                 .letter = 'n',
                 .kind = Kind::number,
                 .value = "N",
                 .help = "how many brokers",
                 .fallback = "1",
                 .least = 1,
                 .most = kBrokersMax}},
      .item_shape = R"({"state":"up|already_up","broker":"int|null","address":"string",)"
                    R"("process_id":"int","folder":"string","log":"string"})",
      .changes = true,
      .run = up};
}

}  // namespace mq::mqctl
