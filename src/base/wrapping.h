// Integers of tensors: their sums and products wrap around on every device, where a signed overflow
// in C++ is undefined.
#pragma once

#include <compare>
#include <type_traits>

namespace netcl {

template <class V>
class Wrapping {
 public:
  Wrapping() = default;  // any value, as of an integer
  template <class N>
  constexpr explicit Wrapping(N value) : value_(static_cast<V>(value)) {}
  constexpr explicit operator V() const { return value_; }

  friend constexpr auto operator<=>(Wrapping, Wrapping) = default;
  friend constexpr Wrapping operator+(Wrapping a, Wrapping b) {
    return Wrapping(a.bits() + b.bits());
  }
  friend constexpr Wrapping operator-(Wrapping a, Wrapping b) {
    return Wrapping(a.bits() - b.bits());
  }
  friend constexpr Wrapping operator*(Wrapping a, Wrapping b) {
    return Wrapping(a.bits() * b.bits());
  }
  friend constexpr Wrapping operator-(Wrapping a) { return Wrapping(V(0)) - a; }
  // The divisor is neither 0 nor -1.
  friend constexpr Wrapping operator/(Wrapping a, Wrapping b) {
    return Wrapping(a.value_ / b.value_);
  }

 private:
  static_assert(sizeof(V) >= sizeof(int), "smaller ones become int before they are added");
  constexpr std::make_unsigned_t<V> bits() const {
    return static_cast<std::make_unsigned_t<V>>(value_);
  }

  V value_;
};

}  // namespace netcl
