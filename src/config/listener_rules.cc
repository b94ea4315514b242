#include "config/listener_rules.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace mq::config {

base::EndpointParse parse_bind(std::string_view text) {
  text = base::trim(text);
  // Only here may a port be 0, so it is taken off before the common rules look at the rest.
  if (!text.ends_with(":0") || text.ends_with("::0"))
    return base::parse_endpoint(text, kDefaultPort);
  auto parsed =
      base::parse_endpoint(fmt::format("{}:1", text.substr(0, text.size() - 2)), kDefaultPort);
  if (parsed.endpoint) parsed.endpoint->port = 0;
  return parsed;
}

base::EndpointParse parse_advertised(std::string_view text, std::uint16_t default_port) {
  text = base::trim(text);
  auto parsed = base::parse_endpoint(text, default_port);
  if (!parsed.endpoint) return parsed;
  if (parsed.endpoint->host.find(':') != std::string::npos && !text.starts_with('[')) {
    parsed.error = fmt::format("write an IPv6 address in brackets: \"[{}]:{}\"", text,
                               default_port == 0 ? kDefaultPort : default_port);
    parsed.endpoint.reset();
  } else if (is_wildcard(parsed.endpoint->host)) {
    parsed.error = fmt::format(
        "clients cannot connect to {}; name this machine as they see it, such as \"hdd-01:{}\"",
        parsed.endpoint->host, kDefaultPort);
    parsed.endpoint.reset();
  }
  return parsed;
}

bool is_wildcard(std::string_view host) {
  return host.find_first_not_of("0.") == std::string_view::npos ||
         host.find_first_not_of("0:") == std::string_view::npos;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

std::vector<std::string> listener_warnings(const ListenerConfig& listener) {
  std::vector<std::string> warnings;
  if (is_loopback(listener.bind.host)) return warnings;
  warnings.push_back(fmt::format(
      "the listener {} can be reached from other machines and asks for no authentication",
      listener.bind.text()));
  if (is_loopback(listener.advertised.host))
    warnings.push_back(
        fmt::format("clients on other machines are told to connect to {}, which is "
                    "their own machine; set listener.clients.advertised",
                    listener.advertised.text()));
  return warnings;
}

}  // namespace mq::config
