#include "support/zookeeper_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace mq::testing {
namespace {

constexpr const char* kJar = "/usr/share/java/zookeeper.jar";
constexpr std::chrono::seconds kStartLimit{60};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

ZooKeeperServer::ZooKeeperServer() : port_(free_port()) {
  if (!std::filesystem::exists(kJar))
    throw std::runtime_error("no ZooKeeper server here; run tools/dev setup");
  std::ofstream(folder_ / "zoo.cfg") << fmt::format(
      "tickTime=200\ndataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\n"
      "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n",
      folder_ / "data", port_);
  std::filesystem::create_directory(folder_ / "data");
  start();
}

ZooKeeperServer::~ZooKeeperServer() { stop(); }

ZooKeeperServer& ZooKeeperServer::shared() {
  static ZooKeeperServer server;
  return server;
}

void ZooKeeperServer::start() {
  const std::string config = folder_ / "zoo.cfg";
  const std::string log = folder_ / "server.log";
  const std::string classes = fmt::format("{}:/usr/share/java/slf4j-simple.jar", kJar);
  // No sync of its log to the disk: this tests our side, and a test run starts no second machine.
  const char* const arguments[] = {"java",
                                   "-Xmx96m",
                                   "-XX:+UseSerialGC",
                                   "-XX:TieredStopAtLevel=1",
                                   "-Dzookeeper.forceSync=no",
                                   "-cp",
                                   classes.c_str(),
                                   "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                                   config.c_str(),
                                   nullptr};
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execvp("java", const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  const auto limit = std::chrono::steady_clock::now() + kStartLimit;
  while (ask("srvr").find("Mode:") == std::string::npos) {
    const bool gone = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    if (gone || std::chrono::steady_clock::now() > limit) {
      if (gone) pid_ = 0;
      throw std::runtime_error("ZooKeeper does not start:\n" + file_text(log));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void ZooKeeperServer::stop() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void ZooKeeperServer::pause() const { ::kill(pid_, SIGSTOP); }
void ZooKeeperServer::resume() const { ::kill(pid_, SIGCONT); }

std::string ZooKeeperServer::ask(const std::string& word) const {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port_);
  // A server that has just begun to listen may never answer.
  const timeval limit{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(fd, word.data(), word.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(word.size())) {
    char buffer[4096];
    ssize_t got = 0;
    while ((got = ::recv(fd, buffer, sizeof buffer, 0)) > 0)
      answer.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return answer;
}

bool ZooKeeperServer::has_session(std::uint64_t session) const {
  const std::string sessions = ask("dump");
  return sessions.find("Session Sets") == std::string::npos ||
         sessions.find(fmt::format("0x{:x}", session)) != std::string::npos;
}

}  // namespace mq::testing
