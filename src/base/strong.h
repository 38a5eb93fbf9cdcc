// Strong<Tag, T>: a number with a meaning. Ids, indexes and counts of different kinds never convert
// into each other.
#pragma once

#include <compare>

namespace kvferry::base {

template <typename Tag, typename T>
class Strong {
 public:
  constexpr Strong() = default;
  constexpr explicit Strong(T value) noexcept : value_(value) {}
  constexpr T get() const noexcept { return value_; }
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

 private:
  T value_{};
};

}  // namespace kvferry::base
