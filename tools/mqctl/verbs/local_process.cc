#include "mqctl/verbs/local_process.h"

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
#include <chrono>
#include <system_error>
#include <thread>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace mq::mqctl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

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

}  // namespace

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

std::uint16_t free_port(std::uint16_t first, std::uint16_t last) {
  for (std::uint16_t port = first; port <= last; ++port)
    if (is_free(port)) return port;
  return 0;
}

fs::path find_program(const Console& console, const std::string& name) {
  std::error_code error;
  const auto self = fs::read_symlink("/proc/self/exe", error);
  std::vector<fs::path> places = {self.parent_path(), self.parent_path().parent_path() / "sbin"};
  const auto path = console.variable("PATH").value_or("");
  for (const auto part : base::split(path, ':')) places.emplace_back(part);
  for (const auto& place : places) {
    auto program = place / name;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

pid_t spawn(const std::vector<std::string>& words, const fs::path& log) {
  const SpawnActions how(log.string());
  std::vector<std::string> texts = words;
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (auto& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, words[0].c_str(), how.actions(), how.attributes(),
                                  arguments.data(), environ);
  if (error != 0)
    throw Failed(
        make_failure(protocol::WireError::file_unreadable, "nothing was started",
                     fmt::format("{}: {}", words[0], std::generic_category().message(error))));
  return process;
}

Started wait_until_ready(const Context& context, pid_t process, std::chrono::seconds limit,
                         const std::function<bool()>& ready) {
  const auto deadline = Clock::now() + limit;
  while (Clock::now() < deadline && !context.console.interrupted()) {
    int status = 0;
    if (::waitpid(process, &status, WNOHANG) == process) return Started::ended;
    if (ready()) return Started::ready;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(process, SIGTERM);
  ::waitpid(process, nullptr, 0);
  return Started::silent;
}

bool end_process(const Context& context, pid_t process, const std::string& name,
                 std::chrono::seconds limit, const std::function<bool()>& gone) {
  ::kill(process, SIGTERM);
  const auto start = Clock::now();
  bool told = false;
  while (!gone()) {
    const auto now = Clock::now();
    if (now - start > limit || context.console.interrupted()) return false;
    if (!told && now - start > std::chrono::seconds(3)) {
      told = true;
      context.notice(fmt::format("waiting for {} (process {}) to stop", name, process));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    (void)::waitpid(process, nullptr, WNOHANG);  // a child of ours stays until it is reaped
  }
  return true;
}

}  // namespace mq::mqctl
