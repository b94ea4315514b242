#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/broker_config.h"

namespace mq::config {

/// "host:port", port 0 for any free one.
base::EndpointParse parse_bind(std::string_view text);
/// An address that clients can connect to: no wildcard, not empty, IPv6 in brackets.
base::EndpointParse parse_advertised(std::string_view text, std::uint16_t default_port);

/// 0.0.0.0, :: and their other spellings.
bool is_wildcard(std::string_view host);
bool is_loopback(std::string_view host);

/// What is allowed but worth a line.
std::vector<std::string> listener_warnings(const ListenerConfig& listener);

}  // namespace mq::config
