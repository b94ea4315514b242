#include "protocol/wire_error.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "protocol/status.h"

namespace mq::protocol {
namespace {

constexpr ErrorAdvice advice_from(std::string_view flags) noexcept {
  ErrorAdvice advice;
  advice.retriable = flags.find('R') != std::string_view::npos;
  advice.refresh_metadata = flags.find('M') != std::string_view::npos;
  advice.fatal = flags.find('F') != std::string_view::npos;
  advice.maybe_applied = flags.find('A') != std::string_view::npos;
  return advice;
}

/// PRO-4: the numbers of the table, which ascend, are what is on the wire.
constexpr auto kErrors = std::to_array<ErrorInfo>({
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) \
  {WireError::enumerator, #NAME, sentence, advice, advice_from(flags)},
#include "mq/errors.def"
});

constexpr std::int32_t number_of(const ErrorInfo& info) noexcept {
  return static_cast<std::int32_t>(info.code);
}
static_assert(std::ranges::is_sorted(kErrors, std::ranges::less_equal{}, number_of),
              "numbers rise strictly: none is used twice");

}  // namespace

std::optional<ErrorInfo> find_error(std::int32_t number) {
  const auto found = std::ranges::lower_bound(kErrors, number, {}, number_of);
  if (found == kErrors.end() || number_of(*found) != number) return std::nullopt;
  return *found;
}

std::optional<ErrorInfo> find_error(std::string_view name) {
  const auto found = std::ranges::find(kErrors, name, &ErrorInfo::name);
  if (found == kErrors.end()) return std::nullopt;
  return *found;
}

const ErrorInfo& error_info(WireError code) {
  const auto number = static_cast<std::int32_t>(code);
  const auto found = std::ranges::lower_bound(kErrors, number, {}, number_of);
  MQ_CHECK(found != kErrors.end() && found->code == code, "error {} is not in the table", number);
  return *found;
}

Status Status::of(WireError error, std::string text, std::int32_t broker) {
  Status status;
  status.code = static_cast<std::int32_t>(error);
  status.advice = error_info(error).flags;
  status.text = std::move(text);
  status.broker = broker;
  return status;
}

}  // namespace mq::protocol
