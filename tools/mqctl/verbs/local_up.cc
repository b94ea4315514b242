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

void write_config(const LocalProcess& broker, const std::string& metadata,
                  const std::string& address) {
  write_local_file(broker.config(),
                   fmt::format("# written by mqctl local up\n"
                               "[broker]\nid = {}\nmetadata = \"{}\"\n"
                               "[[storage.disk]]\npath = {}\n"
                               "[listener.clients]\nbind = \"{}\"\n",
                               broker.broker, metadata, to_json(broker.data().string()), address));
}

/// Spawns it at this port, without waiting.
LocalProcess launch_broker(const Context& context, LocalProcess broker, const std::string& metadata,
                           std::uint16_t port) {
  broker.make_folder();
  broker.address = fmt::format("127.0.0.1:{}", port);
  write_config(broker, metadata, broker.address);
  broker.process_id =
      spawn({find_mqbroker(context.console), "--config", broker.config().string()}, broker.log());
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
    const auto port = static_cast<std::uint16_t>(
        *base::parse_unsigned(broker.address.substr(broker.address.rfind(':') + 1)));
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

/// How the other commands find it: nothing to add when a broker has the port that they look at.
std::string brokers_flag(const std::vector<LocalProcess>& brokers) {
  std::vector<std::string> addresses;
  for (const auto& broker : brokers) {
    if (broker.is_zookeeper()) continue;
    if (broker.address.ends_with(fmt::format(":{}", kFirstPort))) return "";
    addresses.push_back(broker.address);
  }
  return fmt::format(" -b {}", fmt::join(addresses, ","));
}

void next_commands(Report& report, const std::vector<LocalProcess>& processes, int partitions) {
  const auto flag = brokers_flag(processes);
  report.text(
      fmt::format("  mqctl{} topic create orders --partitions {}\n"
                  "  printf 'k1:v1\\nk2:v2\\n' | mqctl{} produce orders -K :\n",
                  flag, partitions, flag));
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
  next_commands(report, {broker}, 3);
  context.notice("one broker keeps one copy of each record: for trying things out");
  return report.finish();
}

/// What is there already stays; the rest is started, also after one of it was killed.
Exit up_cluster(Context& context, const LocalState& state, std::int32_t count) {
  const auto running = state.running();
  if (running.size() == 1 && running[0].folder == state.folder())
    throw_other_kind("a broker of its own", "mqctl local down ends it; its data stays");
  std::vector<LocalProcess> processes;
  std::vector<bool> was_up;
  const auto find = [&](std::int32_t broker) {
    return std::ranges::find(running, broker, &LocalProcess::broker);
  };
  const auto add = [&](LocalProcess process, bool before) {
    processes.push_back(std::move(process));
    was_up.push_back(before);
    // Whatever comes next: local down finds what is up.
    auto known = processes;
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
  const auto metadata = fmt::format("zookeeper://{}/mq", processes[0].address);
  // All at once.
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
  for (std::size_t i = 1; i < processes.size(); ++i) {
    if (!was_up[i]) processes[i] = await_broker(context, processes[i], metadata);
  }
  state.record(processes);
  Report report(context);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    report.item(item_of(processes[i], was_up[i]));
    report.text(fmt::format("{} {} at {} (pid {})\n", processes[i].name(),
                            was_up[i] ? "was up already" : "is up", processes[i].address,
                            processes[i].process_id));
  }
  report.text(fmt::format("data and logs in {}\n", state.cluster().string()));
  next_commands(report, processes, 6);
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
  return {.path = "local up",
          .summary = "Starts brokers of your own on this machine, without root",
          .details =
              "They go on until mqctl local down. Data, logs and configurations are in "
              "$XDG_STATE_HOME/mq\n(~/.local/state/mq). Brokers take ports from 9500 on, those "
              "that are free. One broker needs nothing\nelse; several have a ZooKeeper, which is "
              "started beside them (packages libzookeeper-java and\ndefault-jre-headless). What "
              "was killed comes back with the same command.",
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
