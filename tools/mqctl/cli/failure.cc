#include "mqctl/cli/failure.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "mq/result.h"

namespace mq::mqctl {
namespace {

using protocol::WireError;

std::optional<Exit> exit_by_code(WireError code) {
  switch (code) {
    case WireError::usage:
    case WireError::not_available:
    case WireError::invalid_argument:
    case WireError::invalid_client_config:
    case WireError::invalid_topic_name:
    case WireError::invalid_config:
    case WireError::invalid_partitions:
    case WireError::invalid_replicas:
      return Exit::usage;
    case WireError::unknown_topic:
    case WireError::unknown_topic_id:
    case WireError::unknown_partition:
      return Exit::not_found;
    case WireError::topic_exists:
      return Exit::already_exists;
    case WireError::declined:
      return Exit::refused;
    case WireError::log_damaged:
      return Exit::unhealthy;
    case WireError::interrupted:
      return Exit::interrupted;
    default:
      return std::nullopt;
  }
}

/// The id in "broker 2 (hdd-02:9500)".
std::optional<std::int32_t> broker_of(std::string_view where) {
  constexpr std::string_view kBroker = "broker ";
  if (!where.starts_with(kBroker)) return std::nullopt;
  where.remove_prefix(kBroker.size());
  const auto id = base::parse_unsigned(where.substr(0, where.find(' ')));
  if (!id || *id > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(*id);
}

}  // namespace

Failure make_failure(WireError code, std::string what, std::string why, std::string hint) {
  const auto& info = protocol::error_info(code);
  Failure failure{.code = std::string(info.name),
                  .what = std::move(what),
                  .why = std::move(why),
                  .hint = std::move(hint),
                  .item = {},
                  .broker = std::nullopt,
                  .advice = info.flags};
  if (failure.why.empty()) failure.why = info.sentence;
  if (failure.hint.empty()) failure.hint = info.advice;
  return failure;
}

Failure usage_failure(std::string what, std::string why, std::string hint) {
  return make_failure(WireError::usage, std::move(what), std::move(why), std::move(hint));
}

Failure client_failure(const Error& error, std::string what, std::string item) {
  const auto known = protocol::find_error(static_cast<std::int32_t>(error.code));
  Failure failure;
  failure.code = known ? std::string(known->name)
                       : fmt::format("ERROR_{}", static_cast<std::int32_t>(error.code));
  failure.what = std::move(what);
  failure.why = error.where.empty()     ? error.message
                : error.message.empty() ? error.where
                                        : fmt::format("{}: {}", error.where, error.message);
  if (failure.why.empty() && known) failure.why = known->sentence;
  failure.hint = error.hint.empty() && known ? std::string(known->advice) : error.hint;
  failure.item = std::move(item);
  failure.broker = broker_of(error.where);
  failure.advice = {.retriable = error.retriable,
                    .refresh_metadata = false,
                    .fatal = error.fatal,
                    .maybe_applied = error.maybe_applied};
  return failure;
}

Exit exit_of(const Failure& failure, bool changes) {
  if (const auto known = protocol::find_error(failure.code))
    if (const auto exit = exit_by_code(known->code)) return *exit;
  if (failure.advice.maybe_applied && changes) return Exit::outcome_unknown;
  if (failure.advice.retriable) return Exit::not_applied;
  return Exit::failed;
}

std::string failure_text(const Failure& failure, bool color) {
  std::string text = fmt::format("{}error:{} {} [{}]\n", color ? "\x1b[31;1m" : "",
                                 color ? "\x1b[0m" : "", failure.what, failure.code);
  if (!failure.why.empty()) text += fmt::format("  why:  {}\n", failure.why);
  if (!failure.hint.empty()) text += fmt::format("  try:  {}\n", failure.hint);
  return text;
}

Value failure_value(const Failure& failure, bool changes) {
  const bool unknown = changes && failure.advice.maybe_applied;
  Value value = Value::object();
  value.set("code", failure.code)
      .set("item", failure.item.empty() ? Value() : Value(failure.item))
      .set("message", failure.what)
      .set("why", failure.why)
      .set("hint", failure.hint)
      .set("broker", failure.broker ? Value(*failure.broker) : Value())
      .set("retriable", failure.advice.retriable)
      .set("applied", unknown ? "unknown" : "no");
  return value;
}

}  // namespace mq::mqctl
