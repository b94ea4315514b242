#include "config/metadata_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace mq::config {
namespace {

constexpr std::string_view kScheme = "zookeeper://";
constexpr std::size_t kChrootBytesMax = 200;  // leaves room for the longest path below it
constexpr std::size_t kServersMax = 32;

/// Why it is no place for a tree of nodes; empty for a good one.
std::string check_chroot(std::string_view path) {
  if (path.size() > kChrootBytesMax)
    return fmt::format("the path is longer than {} bytes", kChrootBytesMax);
  if (path == "/zookeeper" || path.starts_with("/zookeeper/"))
    return "/zookeeper is ZooKeeper's own; take another path, such as \"/mq\"";
  if (path.ends_with('/')) return "the path ends with \"/\"; leave it out";
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto part = path.substr(0, path.find('/'));
    if (part.empty()) return "the path has an empty part";
    if (part == "." || part == "..") return fmt::format("the path has a part \"{}\"", part);
    const bool plain = std::ranges::all_of(part, [](char c) {
      return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
    });
    if (!plain) return "the path has bytes that are no visible ASCII characters";
    path.remove_prefix(part.size());
  }
  return {};
}

std::string add_server(std::string_view text, std::vector<base::Endpoint>& servers) {
  if (text.find('@') != std::string_view::npos)
    return "this release does not authenticate towards ZooKeeper";
  if (text.empty()) return "a server is missing; write \"zookeeper://zk1:2181,zk2:2181/mq\"";
  auto parsed = base::parse_endpoint(text, kDefaultZooKeeperPort);
  if (!parsed.endpoint)
    return fmt::format("server \"{}\": {}", base::printable(text, 200), parsed.error);
  if (std::ranges::count(servers, *parsed.endpoint) > 0)
    return fmt::format("server {} is named twice", parsed.endpoint->text());
  if (servers.size() == kServersMax) return fmt::format("more than {} servers", kServersMax);
  servers.push_back(std::move(*parsed.endpoint));
  return {};
}

}  // namespace

MetadataPlace parse_metadata(std::string_view text) {
  MetadataPlace place;
  if (text == "local") {
    place.zookeeper.emplace();
    return place;
  }
  for (const auto* scheme : {"zookeepers://", "zookeeper+tls://", "zookeeper+ssl://"}) {
    if (!text.starts_with(scheme)) continue;
    place.error =
        "this release has no TLS towards ZooKeeper; write \"zookeeper://...\", on a private "
        "network";
    return place;
  }
  if (!text.starts_with(kScheme)) {
    place.error =
        fmt::format("expected \"local\" or \"zookeeper://zk1:2181,zk2:2181/mq\", got \"{}\"",
                    base::printable(text, 200));
    return place;
  }
  text.remove_prefix(kScheme.size());
  const auto slash = std::min(text.find('/'), text.size());
  ZooKeeperConfig config;
  config.chroot = text.substr(slash);
  if (config.chroot == "/") config.chroot.clear();
  place.error = check_chroot(config.chroot);
  std::string_view rest = text.substr(0, slash);
  for (bool more = true; more && place.error.empty();) {
    const auto comma = rest.find(',');
    more = comma != std::string_view::npos;
    place.error = add_server(rest.substr(0, comma), config.servers);
    if (more) rest.remove_prefix(comma + 1);
  }
  if (place.error.empty()) place.zookeeper = std::move(config);
  return place;
}

}  // namespace mq::config
