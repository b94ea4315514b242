#include "client/core/admin_items.h"

#include <fmt/format.h>

#include "base/log.h"
#include "client/core/error.h"
#include "protocol/utf8.h"

namespace mq::client {
namespace {

/// Longer than any topic's, shorter than what a request would cut off.
constexpr std::size_t kNameBytesMax = 1000;

}  // namespace

Error left_out(const std::string& name) {
  Error error = make_error(Errc::protocol_violation,
                           fmt::format("the broker's answer does not mention '{}'", name));
  error.maybe_applied = true;
  return error;
}

bool sendable(const std::string& name) {
  return name.size() <= kNameBytesMax && protocol::valid_utf8(name);
}

Error no_such_topic(const std::string& name) {
  return make_error(Errc::unknown_topic,
                    fmt::format("there is no topic \"{}\"", base::printable(name, 260)));
}

std::string broker_place(const ClientCore& core, std::int32_t broker) {
  return broker < 0 ? std::string() : core.pool.name(broker);
}

}  // namespace mq::client
