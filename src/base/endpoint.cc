#include <fmt/format.h>

#include <boost/asio/ip/address_v6.hpp>

#include "base/network.h"
#include "base/strings.h"

namespace mq::base {
namespace {

EndpointParse failed(std::string why) { return {std::nullopt, std::move(why)}; }

bool is_ipv6_text(std::string_view host) {
  if (host.find_first_of("[] \t") != std::string_view::npos) return false;
  const std::string address(host.substr(0, host.find('%')));  // what follows names an interface
  boost::system::error_code not_one;
  (void)boost::asio::ip::make_address_v6(address, not_one);
  return !not_one;
}

std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
  const auto port = parse_unsigned(text);
  if (!port || *port == 0 || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

EndpointParse with_port(std::string_view host, std::string_view port_text) {
  const auto port = parse_port(port_text);
  if (!port) return failed(fmt::format("port \"{}\" is not a number from 1 to 65535", port_text));
  return {Endpoint{std::string(host), *port}, {}};
}

EndpointParse parse_bracketed(std::string_view text, std::uint16_t default_port) {
  const auto end = text.find(']');
  if (end == std::string_view::npos)
    return failed(fmt::format("\"{}\" has no closing bracket", text));
  const auto host = text.substr(1, end - 1);
  if (!is_ipv6_text(host))
    return failed(fmt::format("\"{}\" in brackets is not an IPv6 address", host));
  const auto rest = text.substr(end + 1);
  if (rest.empty()) return {Endpoint{std::string(host), default_port}, {}};
  if (rest.front() != ':')
    return failed(fmt::format("\"{}\" follows the closing bracket; expected :port", rest));
  return with_port(host, rest.substr(1));
}

bool is_host_name(std::string_view host) noexcept {
  if (host.empty() || host.size() > 253) return false;
  for (const char c : host) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '-' && c != '.' && c != '_') return false;
  }
  return true;
}

}  // namespace

std::string Endpoint::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

EndpointParse parse_endpoint(std::string_view text, std::uint16_t default_port) {
  text = trim(text);
  if (text.empty()) return failed("the address is empty");
  if (text.front() == '[') return parse_bracketed(text, default_port);
  const auto colon = text.find(':');
  if (colon != text.rfind(':')) {
    if (is_ipv6_text(text)) return {Endpoint{std::string(text), default_port}, {}};
    return failed(
        fmt::format("\"{}\" has several colons; write an IPv6 address as [address]:port", text));
  }
  const auto host = text.substr(0, colon);
  if (!is_host_name(host)) return failed(fmt::format("\"{}\" is not a host name or address", host));
  if (colon == std::string_view::npos) return {Endpoint{std::string(host), default_port}, {}};
  return with_port(host, text.substr(colon + 1));
}

}  // namespace mq::base
