#include "mqctl/verbs/local_zookeeper.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "mqctl/verbs/local_process.h"

namespace mq::mqctl {
namespace {

namespace fs = std::filesystem;
constexpr std::uint16_t kFirstPort = 2181;
constexpr std::uint16_t kLastPort = 2280;
constexpr std::chrono::seconds kStartLimit{60};

[[noreturn]] void throw_missing(const std::string& what) {
  throw Failed(make_failure(
      protocol::WireError::file_unreadable, "no local cluster was started",
      fmt::format("several brokers need a ZooKeeper, and {}", what),
      "apt install --no-install-recommends libzookeeper-java default-jre-headless; mqctl local up "
      "without -n needs neither"));
}

fs::path find_java(const Console& console) {
  if (const auto home = console.variable("JAVA_HOME")) {
    auto program = fs::path(*home) / "bin" / "java";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  auto program = find_program(console, "java");
  if (program.empty()) throw_missing("there is no java in the PATH");
  return program;
}

/// The folder of Debian's Java libraries; MQ_ZOOKEEPER_JARS names another one.
std::string class_path(const Console& console) {
  const fs::path folder = console.variable("MQ_ZOOKEEPER_JARS").value_or("/usr/share/java");
  const auto server = folder / "zookeeper.jar";
  if (::access(server.c_str(), R_OK) != 0)
    throw_missing(fmt::format("{} is not there", server.string()));
  return fmt::format("{}:{}", server.string(), (folder / "slf4j-simple.jar").string());
}

/// The port that it had, which running brokers go on asking; else the first free one.
std::uint16_t port_of(const LocalProcess& zookeeper) {
  constexpr std::string_view kKey = "clientPort=";
  std::ifstream file(zookeeper.config());
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    const auto port = base::parse_unsigned(std::string_view(line).substr(kKey.size()));
    if (port && *port >= kFirstPort && *port <= kLastPort &&
        is_free(static_cast<std::uint16_t>(*port)))
      return static_cast<std::uint16_t>(*port);
  }
  return free_port(kFirstPort, kLastPort);
}

std::string config_text(const LocalProcess& zookeeper, std::uint16_t port) {
  return fmt::format(
      "# written by mqctl local up\ntickTime=500\ndataDir={}\nclientPortAddress=127.0.0.1\n"
      "clientPort={}\nautopurge.snapRetainCount=3\nautopurge.purgeInterval=1\n"
      "4lw.commands.whitelist=srvr\nadmin.enableServer=false\n",
      zookeeper.data().string(), port);
}

/// It says "Mode: standalone" once it serves.
bool serves(std::uint16_t port) {
  const base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit = {.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return false;
  if (::send(fd.get(), "srvr", 4, MSG_NOSIGNAL) != 4) return false;
  std::string answer;
  std::array<char, 4096> piece;
  for (ssize_t got = 1; got > 0 && answer.size() < 65536;) {
    got = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (got > 0) answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  return answer.find("Mode:") != std::string::npos;
}

}  // namespace

LocalProcess start_zookeeper(const Context& context, LocalProcess zookeeper) {
  const auto java = find_java(context.console);
  const auto jars = class_path(context.console);
  zookeeper.make_folder();
  for (auto port = port_of(zookeeper); port != 0;
       port = free_port(static_cast<std::uint16_t>(port + 1), kLastPort)) {
    write_local_file(zookeeper.config(), config_text(zookeeper, port));
    const auto process =
        spawn({java.string(), "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-Dzookeeper.preAllocSize=1024", "-cp", jars,
               "org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper.config().string()},
              zookeeper.log());
    const auto started =
        wait_until_ready(context, process, kStartLimit, [port] { return serves(port); });
    if (started == Started::ready) {
      zookeeper.process_id = process;
      zookeeper.address = fmt::format("127.0.0.1:{}", port);
      return zookeeper;
    }
    if (started == Started::ended && !is_free(port)) continue;  // somebody was faster
    throw Failed(make_failure(
        protocol::WireError::unreachable, "ZooKeeper did not start",
        started == Started::ended
            ? zookeeper.log_tail()
            : fmt::format("it did not serve within {} s and was ended", kStartLimit.count()),
        fmt::format("the whole log: {}", zookeeper.log().string())));
  }
  throw Failed(make_failure(protocol::WireError::port_in_use, "no local cluster was started",
                            fmt::format("ports {} to {} are all taken", kFirstPort, kLastPort)));
}

}  // namespace mq::mqctl
