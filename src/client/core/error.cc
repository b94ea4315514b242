#include "client/core/error.h"

#include <fmt/format.h>

#include "model/error.h"
#include "protocol/wire_error.h"

namespace mq::client {
namespace {

std::string_view base_reason(base::BaseErrc code) {
  using base::BaseErrc;
  switch (code) {
    case BaseErrc::connection_refused:
      return "connection refused";
    case BaseErrc::timed_out:
      return "no answer in time";
    case BaseErrc::not_found:
      return "the name does not resolve";
    case BaseErrc::end_of_stream:
      return "the connection was closed by the other side";
    case BaseErrc::connection_lost:
      return "the connection broke";
    case BaseErrc::closed:
      return "the connection was closed on this side";
    case BaseErrc::io_failed:
    case BaseErrc::no_space:
    case BaseErrc::already_exists:
    case BaseErrc::would_block:
    case BaseErrc::locked:
    case BaseErrc::malformed:
    case BaseErrc::too_large:
    case BaseErrc::address_in_use:
    case BaseErrc::not_permitted:
      return "the network failed";
  }
  return "the network failed";
}

std::string reason(const base::Error& error) {
  if (error.category() == base::base_category())
    return std::string(base_reason(static_cast<base::BaseErrc>(error.value())));
  return error.message();
}

Errc transport_code(const base::Error& error) {
  if (error == base::BaseErrc::timed_out) return Errc::timed_out;
  if (error == net::ConnectionErrc::not_mq) return Errc::not_mq;
  if (error.category() == net::connection_category() ||
      error.category() == protocol::frame_category() || error == base::BaseErrc::malformed) {
    return Errc::protocol_violation;
  }
  return Errc::connection_lost;
}

}  // namespace

Error make_error(Errc code, std::string message, std::string where) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  error.where = std::move(where);
  if (const auto info = protocol::find_error(static_cast<std::int32_t>(code))) {
    error.hint = info->advice;
    error.retriable = info->flags.retriable;
    error.fatal = info->flags.fatal;
    error.maybe_applied = info->flags.maybe_applied;
    if (error.message.empty()) error.message = info->sentence;
  }
  return error;
}

Error from_status(const protocol::Status& status, const std::string& where) {
  Error error = make_error(static_cast<Errc>(status.code), status.text, where);
  error.retriable = status.advice.retriable;
  error.fatal = status.advice.fatal;
  error.maybe_applied = status.advice.maybe_applied;
  if (error.message.empty()) error.message = fmt::format("error {} without a text", status.code);
  return error;
}

Error from_transport(const base::Error& error, const std::string& where) {
  return make_error(transport_code(error), reason(error), where);
}

Error from_connect_failure(const net::ConnectFailure& failure, const std::string& what) {
  if (failure.error == net::ConnectionErrc::hello_refused)
    return from_status(failure.refusal, what);
  const std::string detail = failure.detail.empty() ? reason(failure.error) : failure.detail;
  const Errc code = failure.error == net::ConnectionErrc::not_mq ? Errc::not_mq : Errc::unreachable;
  if (code == Errc::not_mq)
    return make_error(code, fmt::format("{} is not an mq broker: {}", what, detail));
  return make_error(code, fmt::format("cannot reach {}: {}", what, detail));
}

}  // namespace mq::client
