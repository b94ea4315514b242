#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace mq::model {

/// An integer that only its own kind can be mixed with. -1 means "not known yet" in every protocol
/// field.
template <class Tag, std::signed_integral Rep>
class StrongInt {
 public:
  using Representation = Rep;
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep value) noexcept : value_(value) {}
  [[nodiscard]] constexpr Rep value() const noexcept { return value_; }
  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;

 private:
  Rep value_{-1};
};

}  // namespace mq::model
