#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mq::mqctl {

/// A JSON value whose keys keep their order. Whole numbers of 64 bits stay exact.
class Value {
 public:
  using Array = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Object = std::vector<Member>;

  Value() = default;  ///< null
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(std::int32_t value) : data_(std::int64_t{value}) {}
  Value(std::uint64_t value) : data_(value) {}
  Value(std::uint32_t value) : data_(std::uint64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(Array value) : data_(std::move(value)) {}
  Value(Object value) : data_(std::move(value)) {}

  static Value array() { return Value(Array{}); }
  static Value object() { return Value(Object{}); }

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  [[nodiscard]] const auto& data() const { return data_; }

  /// Appends a member; the value must be an object. Returns *this, so that calls chain.
  Value& set(std::string key, Value value);
  /// Appends an element; the value must be an array.
  Value& add(Value value);
  /// A member of an object, or nothing.
  [[nodiscard]] const Value* find(std::string_view key) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      data_;
};

/// One line, without blanks. Bytes that are not UTF-8 become U+FFFD: values that may be binary are
/// encoded by the caller.
std::string to_json(const Value& value);

struct JsonParse {
  std::optional<Value> value;
  std::string error;
};
JsonParse parse_json(std::string_view text);

/// Keeps the members that `path` names ("name", "partitions.leader"); arrays are walked. False when
/// no member of this name is there.
bool keep_fields(Value& object, const std::vector<std::string>& paths, std::string& unknown);

}  // namespace mq::mqctl
