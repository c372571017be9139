// Mat3 (rows) and Sym3 (a symmetric matrix as xx, yy, zz, xy, xz, yz).
//
// The bar of a Sym3 holds the derivatives by its six stored numbers: xy counts for both places of the matrix.
#pragma once
#include "vec3.h"

CS_BEGIN

template <class T> struct Mat3 {
  Vec3<T> r0, r1, r2;
  CS_FN Mat3& operator+=(const Mat3& b) { return r0 += b.r0, r1 += b.r1, r2 += b.r2, *this; }
};

template <class T> struct Sym3 {
  T xx, yy, zz, xy, xz, yz;
  CS_FN Sym3& operator+=(Sym3 b) { return xx += b.xx, yy += b.yy, zz += b.zz, xy += b.xy, xz += b.xz, yz += b.yz, *this; }
};

// no adjoint: linear in each argument;  y = R x
template <class T> CS_FN Vec3<T> mul(const Mat3<T>& R, Vec3<T> x) { return {dot(R.r0, x), dot(R.r1, x), dot(R.r2, x)}; }
// no adjoint: linear in each argument;  y = R^T x
template <class T> CS_FN Vec3<T> tmul(const Mat3<T>& R, Vec3<T> x) { return fma(x.x, R.r0, fma(x.y, R.r1, x.z * R.r2)); }
// no adjoint: linear in each argument;  y = S x
template <class T> CS_FN Vec3<T> mul(const Sym3<T>& S, Vec3<T> x) {
  return {fma(S.xx, x.x, fma(S.xy, x.y, S.xz * x.z)), fma(S.xy, x.x, fma(S.yy, x.y, S.yz * x.z)),
          fma(S.xz, x.x, fma(S.yz, x.y, S.zz * x.z))};
}

// no adjoint: the transpose of a permutation, columns of R
template <class T> CS_FN void columns(const Mat3<T>& R, Vec3<T>& x, Vec3<T>& y, Vec3<T>& z) {
  x = {R.r0.x, R.r1.x, R.r2.x};
  y = {R.r0.y, R.r1.y, R.r2.y};
  z = {R.r0.z, R.r1.z, R.r2.z};
}

// no adjoint: its caller differentiates S x = y instead.   of a positive definite matrix
template <class T> CS_FN Sym3<T> inverse(const Sym3<T>& S) {
  T xx = fnma(S.yz, S.yz, S.yy * S.zz), xy = fnma(S.xy, S.zz, S.xz * S.yz), xz = fnma(S.xz, S.yy, S.xy * S.yz);
  T k = T(1) / fma(S.xx, xx, fma(S.xy, xy, S.xz * xz));
  return {k * xx, k * fnma(S.xz, S.xz, S.xx * S.zz), k * fnma(S.xy, S.xy, S.xx * S.yy), k * xy,
          k * xz, k * fnma(S.xx, S.yz, S.xy * S.xz)};
}

// no adjoint: used on bars; the bar of x^T S y by S is sym_outer(x, y) in stored numbers
template <class T> CS_FN Sym3<T> sym_outer(Vec3<T> x, Vec3<T> y) {
  return {x.x * y.x, x.y * y.y, x.z * y.z, fma(x.x, y.y, x.y * y.x), fma(x.x, y.z, x.z * y.x), fma(x.y, y.z, x.z * y.y)};
}

// no adjoint: inertia_rotate's pair is written out where it is used, with the rotation's tangent
// conjugate: R S R^T
template <class T> CS_FN Sym3<T> conjugate(const Mat3<T>& R, const Sym3<T>& S) {
  Vec3<T> a = mul(S, R.r0), b = mul(S, R.r1), c = mul(S, R.r2);
  return {dot(R.r0, a), dot(R.r1, b), dot(R.r2, c), dot(R.r1, a), dot(R.r2, a), dot(R.r2, b)};
}

CS_END
