#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "mqctl/cli/value.h"
#include "protocol/wire_error.h"

namespace mq {
inline namespace v1 {
struct Error;
}
}  // namespace mq

namespace mq::mqctl {

/// What scripts branch on; the numbers never change meaning.
enum class Exit : int {
  ok = 0,
  failed = 1,
  usage = 2,
  not_found = 3,
  already_exists = 4,
  not_allowed = 5,
  not_applied = 6,      ///< nothing happened, safe to repeat
  outcome_unknown = 7,  ///< sent, and no answer: repeat only what may happen twice
  refused = 8,          ///< by a safety rule, or declined
  unhealthy = 10,
  interrupted = 130,
};

/// One error, for people (three lines) and for scripts (one JSON object), with one code of
/// mq/errors.def.
struct Failure {
  std::string code;  ///< "UNKNOWN_TOPIC"
  std::string what;  ///< "orders was not deleted"
  std::string why;
  std::string hint;  ///< the next command or step
  std::string item;  ///< the topic, file or argument that it is about; may be empty
  std::optional<std::int32_t> broker;  ///< the broker that said so
  protocol::ErrorAdvice advice;
};

/// Ends a command; caught once, in run().
class Failed : public std::exception {
 public:
  explicit Failed(Failure failure) : failure_(std::move(failure)) {}
  [[nodiscard]] const Failure& failure() const noexcept { return failure_; }
  [[nodiscard]] const char* what() const noexcept override { return failure_.what.c_str(); }

 private:
  Failure failure_;
};

/// A failure of this program itself. Flags and, when empty, `why` and `hint` come from the table.
Failure make_failure(protocol::WireError code, std::string what, std::string why = {},
                     std::string hint = {});
Failure usage_failure(std::string what, std::string why = {}, std::string hint = {});
/// What the client library or a broker reported. `what` says what did not happen.
Failure client_failure(const Error& error, std::string what, std::string item = {});

/// `changes`: whether the command changes anything. A read whose answer got lost has no outcome to
/// doubt, so it may be repeated (6); a change may not (7).
Exit exit_of(const Failure& failure, bool changes);

/// "error: what [CODE]", "  why:  …", "  try:  …".
std::string failure_text(const Failure& failure, bool color);
Value failure_value(const Failure& failure, bool changes);

}  // namespace mq::mqctl
