#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "mq/export.h"

namespace mq {
inline namespace v1 {

/// Every error a program of mq can show, by number (mq/errors.def has their sentences and advice).
/// Below 1000: said by a broker; from 1000: found by this library. A broker newer than this library
/// may send a number that has no name here.
enum class Errc : std::int32_t {
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) enumerator = number,
#include "mq/errors.def"
};

/// "UNKNOWN_TOPIC": stable, for scripts. "ERROR_77" for a number this release does not know.
MQ_EXPORT std::string errc_name(Errc code);
/// "there is no topic of this name"; empty for an unknown number.
MQ_EXPORT std::string_view errc_sentence(Errc code) noexcept;

/// What went wrong, for people (message, hint, where) and for code (the flags: branch on them, not
/// on lists of codes).
struct Error {
  Errc code = Errc::ok;
  std::string message;         ///< what happened, with the names and sizes involved
  std::string hint;            ///< the next step; may be empty
  std::string where;           ///< "broker 2 (hdd-02:9500)"; empty when it happened in this process
  bool retriable = false;      ///< the same call may succeed later
  bool fatal = false;          ///< this client object will not recover
  bool maybe_applied = false;  ///< it was sent and its outcome is unknown
};

/// "there is no topic 'ordres' [UNKNOWN_TOPIC] at broker 1 (127.0.0.1:9500)" on one line.
MQ_EXPORT std::string to_string(const Error& error);

MQ_EXPORT const std::error_category& error_category() noexcept;

/// What Result::value() throws.
class MQ_EXPORT Exception : public std::system_error {
 public:
  explicit Exception(Error error);
  Exception(const Exception&) = default;
  ~Exception() override;
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

namespace detail {
[[noreturn]] MQ_EXPORT void throw_error(Error error);
}  // namespace detail

/// A value or an Error, in the shape of std::expected. Reading the value of a failed result with *
/// or -> is a bug of the caller; value() throws Exception instead.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit, as std::expected
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }
  /// Only of a failed result.
  [[nodiscard]] const Error& error() const noexcept { return *std::get_if<1>(&state_); }
  T value() && {
    if (!has_value()) detail::throw_error(std::move(*std::get_if<1>(&state_)));
    return std::move(*std::get_if<0>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept {}  // not defaulted, which would zero the room for an error first
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit, as std::expected

  [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  /// Only of a failed result.
  [[nodiscard]] const Error& error() const noexcept { return *error_; }
  void value() && {
    if (error_) detail::throw_error(std::move(*error_));
  }

 private:
  std::optional<Error> error_;
};

}  // namespace v1
}  // namespace mq
