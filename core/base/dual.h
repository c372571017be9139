// Dual: a number and its derivative along one direction. Tests only: the oracle for every adjoint.
//
//   x = value + eps tangent,  eps^2 = 0.   f(x) = f(value) + eps f'(value) tangent
#pragma once
#include "scalar.h"

CS_BEGIN

template <class E> struct Dual {
  E value, tangent;

  Dual() = default;
  CS_FN Dual(E v, E t = E(0)) : value(v), tangent(t) {}

  friend CS_FN Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.tangent + b.tangent}; }
  friend CS_FN Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.tangent - b.tangent}; }
  friend CS_FN Dual operator-(Dual a) { return {-a.value, -a.tangent}; }
  friend CS_FN Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.tangent * b.value + a.value * b.tangent}; }
  friend CS_FN Dual operator/(Dual a, Dual b) {
    E y = a.value / b.value;
    return {y, (a.tangent - y * b.tangent) / b.value};
  }
  CS_FN Dual& operator+=(Dual b) { return *this = *this + b; }
  CS_FN Dual& operator-=(Dual b) { return *this = *this - b; }
  CS_FN Dual& operator*=(Dual b) { return *this = *this * b; }

  friend CS_FN bool operator<(Dual a, Dual b) { return a.value < b.value; }
  friend CS_FN bool operator>(Dual a, Dual b) { return a.value > b.value; }
  friend CS_FN bool operator==(Dual a, Dual b) { return a.value == b.value; }
  friend CS_FN Dual select(bool m, Dual a, Dual b) { return m ? a : b; }
  friend CS_FN bool finite(Dual a) { return finite(a.value) && finite(a.tangent); }

  friend CS_FN Dual fma(Dual a, Dual b, Dual c) { return a * b + c; }
  friend CS_FN Dual fnma(Dual a, Dual b, Dual c) { return c - a * b; }
  friend CS_FN Dual sqrt(Dual a) {
    E y = sqrt(a.value);
    return {y, a.tangent / (E(2) * y)};
  }
};

template <class E> struct ScalarTraits<Dual<E>> {
  using Element = E;
  static constexpr int lanes = 1;
};

template <class E> CS_FN E lane(Dual<E> x, int) { return x.value; }
template <class E> CS_FN void set_lane(Dual<E>& x, int, E s) { x = Dual<E>(s); }

CS_END
