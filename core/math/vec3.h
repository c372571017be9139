// Vec3: three numbers of type T.   x * y + z is written with fma, since contraction is off (README, reproducibility).
#pragma once
#include "../base/dual.h"
#include "../base/pack.h"

CS_BEGIN

template <class T> struct Vec3 {
  T x, y, z;
  CS_FN Vec3& operator+=(Vec3 b) { return x += b.x, y += b.y, z += b.z, *this; }
  CS_FN Vec3& operator-=(Vec3 b) { return x -= b.x, y -= b.y, z -= b.z, *this; }
};

template <class T> CS_FN Vec3<T> operator+(Vec3<T> a, Vec3<T> b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
template <class T> CS_FN Vec3<T> operator-(Vec3<T> a, Vec3<T> b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
template <class T> CS_FN Vec3<T> operator-(Vec3<T> a) { return {-a.x, -a.y, -a.z}; }
template <class T> CS_FN Vec3<T> operator*(T s, Vec3<T> a) { return {s * a.x, s * a.y, s * a.z}; }

// no adjoint: the constant zero
template <class T> CS_FN Vec3<T> zero3() { return {T(0), T(0), T(0)}; }

// no adjoint: linear in each argument, callers use the transposed product directly
template <class T> CS_FN Vec3<T> fma(T s, Vec3<T> a, Vec3<T> b) { return {fma(s, a.x, b.x), fma(s, a.y, b.y), fma(s, a.z, b.z)}; }

// no adjoint: a_bar = y_bar b, b_bar = y_bar a
template <class T> CS_FN T dot(Vec3<T> a, Vec3<T> b) { return fma(a.x, b.x, fma(a.y, b.y, a.z * b.z)); }

// no adjoint: a_bar = b x y_bar, b_bar = y_bar x a
template <class T> CS_FN Vec3<T> cross(Vec3<T> a, Vec3<T> b) {
  return {fnma(a.z, b.y, a.y * b.z), fnma(a.x, b.z, a.z * b.x), fnma(a.y, b.x, a.x * b.y)};
}

// vec_normalise: a / |a|.   a zero vector is refused by the driver before it gets here
template <class T> CS_FN Vec3<T> vec_normalise(Vec3<T> a) { return (T(1) / sqrt(dot(a, a))) * a; }
// adjoint: the part of y_bar normal to y, over |a|
template <class T> CS_FN void vec_normalise_adj(Vec3<T> a, Vec3<T> y_bar, Vec3<T>& a_bar) {
  T s = T(1) / sqrt(dot(a, a));
  Vec3<T> y = s * a;
  a_bar += s * (y_bar - dot(y, y_bar) * y);
}

CS_END
