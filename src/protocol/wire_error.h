#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mq::protocol {

/// The errors of include/mq/errors.def, as they are on the wire.
enum class WireError : std::int32_t {
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) enumerator = number,
#include "mq/errors.def"
};

/// What a client may do about an error; sent with it, so that old clients handle new errors.
struct ErrorAdvice {
  bool retriable = false;
  bool refresh_metadata = false;
  bool fatal = false;
  bool maybe_applied = false;
  friend bool operator==(const ErrorAdvice&, const ErrorAdvice&) = default;
};

struct ErrorInfo {
  WireError code;
  std::string_view name;      ///< "UNKNOWN_TOPIC"
  std::string_view sentence;  ///< "there is no topic of this name"
  std::string_view advice;
  ErrorAdvice flags;
};

/// Nothing for a number this release does not know.
std::optional<ErrorInfo> find_error(std::int32_t number);
std::optional<ErrorInfo> find_error(std::string_view name);
const ErrorInfo& error_info(WireError code);

}  // namespace mq::protocol
