#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/verbs/local_state.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

namespace fs = std::filesystem;
constexpr std::uint16_t kFirstPort = 9500;
constexpr std::uint16_t kLastPort = 9599;

bool is_free(std::uint16_t port) {
  const base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::uint16_t free_port(std::uint16_t from) {
  for (std::uint16_t port = from; port <= kLastPort; ++port)
    if (is_free(port)) return port;
  throw Failed(make_failure(protocol::WireError::port_in_use, "no local broker was started",
                            fmt::format("ports {} to {} are all taken", kFirstPort, kLastPort)));
}

/// Beside this program, as built and as installed, or in the PATH.
fs::path find_mqbroker(const Console& console) {
  std::error_code error;
  const auto self = fs::read_symlink("/proc/self/exe", error);
  std::vector<fs::path> places = {self.parent_path(), self.parent_path().parent_path() / "sbin"};
  const auto path = console.variable("PATH").value_or("");
  for (const auto part : base::split(path, ':')) places.emplace_back(part);
  for (const auto& place : places) {
    auto program = place / "mqbroker";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  throw Failed(make_failure(protocol::WireError::file_unreadable, "no local broker was started",
                            "mqbroker is neither beside mqctl nor in the PATH",
                            "build or install mqbroker"));
}

class SpawnActions {
 public:
  SpawnActions(const std::string& log) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
    ::posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
    sigset_t defaults;
    ::sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&defaults, signal);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// In a session of its own: it outlives this program and the terminal.
pid_t spawn(const fs::path& program, const LocalState& state) {
  const SpawnActions how(state.log().string());
  std::string name = program.string();
  std::string flag = "--config";
  std::string config = state.config().string();
  char* const arguments[] = {name.data(), flag.data(), config.data(), nullptr};
  pid_t process = 0;
  const int error =
      ::posix_spawn(&process, program.c_str(), how.actions(), how.attributes(), arguments, environ);
  if (error != 0)
    throw Failed(make_failure(
        protocol::WireError::file_unreadable, "no local broker was started",
        fmt::format("{}: {}", program.string(), std::generic_category().message(error))));
  return process;
}

bool answers(const Context& context, const std::string& address) {
  ClientConfig config = client_config(context);
  config.bootstrap = {address};
  config.connect_timeout = config.request_timeout = Duration(1000);
  return Admin::create(std::move(config)).has_value();
}

enum class Started { ready, ended, silent };

Started wait_until_ready(const Context& context, pid_t process, const std::string& address) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < deadline && !context.console.interrupted()) {
    int status = 0;
    if (::waitpid(process, &status, WNOHANG) == process) return Started::ended;
    if (answers(context, address)) return Started::ready;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(process, SIGTERM);
  ::waitpid(process, nullptr, 0);
  return Started::silent;
}

LocalBroker start(const Context& context, const LocalState& state) {
  const auto program = find_mqbroker(context.console);
  for (std::uint16_t port = free_port(kFirstPort);; port = free_port(port + 1)) {
    const auto address = fmt::format("127.0.0.1:{}", port);
    state.write_config(address);
    const auto process = spawn(program, state);
    const auto started = wait_until_ready(context, process, address);
    if (started == Started::ready) return {process, address};
    // Somebody may have taken the port between the look and the broker's start.
    if (started == Started::ended && !is_free(port)) continue;
    throw Failed(make_failure(protocol::WireError::unreachable, "the local broker did not start",
                              started == Started::ended
                                  ? state.log_tail()
                                  : "it did not answer within 20 s and was ended",
                              fmt::format("the whole log: {}", state.log().string())));
  }
}

Exit answer(Context& context, const LocalState& state, const LocalBroker& broker, bool was_up) {
  Report report(context);
  report.item(Value::object()
                  .set("state", was_up ? "already_up" : "up")
                  .set("address", broker.address)
                  .set("process_id", broker.process_id)
                  .set("folder", state.folder().string())
                  .set("log", state.log().string()));
  const auto flag = broker.address.ends_with(fmt::format(":{}", kFirstPort))
                        ? std::string()
                        : fmt::format(" -b {}", broker.address);
  report.text(fmt::format("broker 1 {} at {} (pid {}); data and log in {}\n",
                          was_up ? "was up already" : "is up", broker.address, broker.process_id,
                          state.folder().string()));
  report.text(
      fmt::format("  mqctl{} topic create orders --partitions 3\n"
                  "  printf 'k1:v1\\nk2:v2\\n' | mqctl{} produce orders -K :\n",
                  flag, flag));
  context.notice("one broker keeps one copy of each record: for trying things out");
  return report.finish();
}

Exit up(Context& context) {
  if (context.args.number("count") != 1)
    throw Failed(make_failure(protocol::WireError::not_available,
                              "local up -n above 1 is not in this release",
                              "several brokers need a metadata store that they share"));
  const LocalState state(context.console);
  state.make_folder();
  if (const auto running = state.running()) return answer(context, state, *running, true);
  const auto broker = start(context, state);
  state.record(broker);
  return answer(context, state, broker, false);
}

}  // namespace

Command local_up_command() {
  return {.path = "local up",
          .summary = "Starts a broker of your own on this machine, without root",
          .details =
              "It goes on until mqctl local down. Its data, log and configuration are in "
              "$XDG_STATE_HOME/mq\n(~/.local/state/mq). It takes port 9500 or the next "
              "free one.",
          .examples = {"mqctl local up"},
          .flags = {{.name = "count",
                     .letter = 'n',
                     .kind = Kind::number,
                     .value = "N",
                     .help = "how many brokers",
                     .fallback = "1",
                     .least = 1}},
          .item_shape = R"({"state":"up|already_up","address":"string","process_id":"int",)"
                        R"("folder":"string","log":"string"})",
          .changes = true,
          .run = up};
}

}  // namespace mq::mqctl
