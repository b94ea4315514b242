#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mq::config {

/// One value as it was given, before anybody knows what it is for.
struct ConfigValue {
  enum class Type {
    string,   ///< in quotes
    integer,  ///< without
    boolean,  ///< true or false, without
    other,    ///< fraction, date, list: nothing here takes one
    plain,    ///< from the environment or a flag, where nothing has quotes
  };
  Type type = Type::plain;
  std::string text;  ///< of a string what is between the quotes

  /// As a message quotes it: "abc", 42.
  [[nodiscard]] std::string shown() const;
};

/// Each reads a value of one kind or says in words what it expected and got.
template <class T>
struct ValueOr {
  std::optional<T> value;
  std::string refusal;
};
ValueOr<std::int64_t> read_integer(const ConfigValue& value, std::int64_t min, std::int64_t max);
ValueOr<bool> read_boolean(const ConfigValue& value);
ValueOr<std::string> read_string(const ConfigValue& value, std::string_view what);
ValueOr<std::uint64_t> read_bytes(const ConfigValue& value, std::uint64_t min, std::uint64_t max);
ValueOr<std::chrono::milliseconds> read_duration(const ConfigValue& value,
                                                 std::chrono::milliseconds min,
                                                 std::chrono::milliseconds max);

}  // namespace mq::config
