// sin, cos and atan for every scalar type, by the same operations in the same order, so that a lane equals a scalar run.
//
//   x = k pi/2 + r, |r| <= pi/4 (Cody and Waite: pi/2 in four pieces, so that k times a piece is exact);
//   sin r, cos r by their Taylor series, whose first dropped term is below half an ulp on that range.
// Accurate to 3 ulp for |x| < 1e6 (double), 1e4 (float); beyond that the error grows with |x| but |sin|, |cos| <= 1.
// NaN and inf give NaN.
#pragma once
#include "../base/dual.h"
#include "../base/pack.h"

CS_BEGIN

template <class E> struct TrigConstants;
template <> struct TrigConstants<double> {
  static constexpr double pio2_a = 0x1.921fb544p+0, pio2_b = 0x1.0b4611a6p-34, pio2_c = 0x1.3198a2ep-69,
                          pio2_d = 0x1.b839a252049c1p-104;
  static constexpr double round = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  static constexpr int sin_terms = 8, cos_terms = 7;
};
template <> struct TrigConstants<float> {
  static constexpr float pio2_a = 0x1.92p+0f, pio2_b = 0x1.fb4p-12f, pio2_c = 0x1.444p-24f, pio2_d = 0x1.68c234p-39f;
  static constexpr float round = 12582912.0f;  // 1.5 * 2^23
  static constexpr int sin_terms = 4, cos_terms = 4;
};

// no adjoint: a step function.   the nearest whole number
template <class T> CS_FN T whole(T x) {
  const T magic = T(TrigConstants<ElementOf<T>>::round);
  return (x + magic) - magic;
}
template <class E> CS_FN Dual<E> whole(Dual<E> x) { return Dual<E>(whole(x.value)); }

// no adjoint: a helper of sincos.   1 - x/a1 (1 - x/a2 (...)), a_k = (2k + first)(2k + first + 1): both Taylor series
template <class T> CS_FN T taylor_alternating(T x, int terms, int first) {
  using E = ElementOf<T>;
  T y = T(E(1));
  for (int k = terms; k > 0; k--) y = fnma(x * T(E(1) / E((2 * k - 1 + first) * (2 * k + first))), y, T(E(1)));
  return y;
}

// sincos: s = sin x, c = cos x.   saves: nothing.   smooth everywhere
template <class T> CS_FN void sincos(T x, T& s, T& c) {
  using E = ElementOf<T>;
  using K = TrigConstants<E>;
  const T magic = T(K::round);
  T k = fma(x, T(E(0.6366197723675814)), magic) - magic;
  T r = fnma(k, T(K::pio2_d), fnma(k, T(K::pio2_c), fnma(k, T(K::pio2_b), fnma(k, T(K::pio2_a), x))));
  // beyond the accurate range r is noise: keep it small, so that sin and cos stay within 1 (NaN passes both comparisons)
  r = select(T(E(1)) < r, T(E(1)), select(r < T(E(-1)), T(E(-1)), r));
  T r2 = r * r;
  T sr = r * taylor_alternating(r2, K::sin_terms, 1), cr = taylor_alternating(r2, K::cos_terms + 1, 0);
  // quadrant j = k mod 4 in {-2, ..., 2}
  T j = fnma(T(E(4)), fma(k, T(E(0.25)), magic) - magic, k);
  auto swap = (T(E(0.5)) < j * j) & (j * j < T(E(2)));
  s = select(swap, cr, sr);
  c = select(swap, sr, cr);
  s = select((j < T(E(-0.5))) | (T(E(1.5)) < j), -s, s);
  c = select((T(E(0.5)) < j) | (j < T(E(-1.5))), -c, c);
}
template <class E> CS_FN void sincos(Dual<E> x, Dual<E>& s, Dual<E>& c) {
  E sv, cv;
  sincos(x.value, sv, cv);
  s = {sv, cv * x.tangent};
  c = {cv, -sv * x.tangent};
}
template <class T> CS_FN void sincos_adj(T s, T c, T s_bar, T c_bar, T& x_bar) { x_bar += fnma(s, c_bar, c * s_bar); }

// no adjoint: quat_log, its only caller, differentiates the logarithm in closed form
// atan_ratio: atan(t) / t as a function of y = t^2, 0 <= y <= 1.   smooth, also at 0
//   atan t = 2 atan(t / (1 + sqrt(1 + t^2))), twice, then the Taylor series for t < 0.2
template <class T> CS_FN T atan_ratio(T y) {
  using E = ElementOf<T>;
  T scale = T(E(1));
  for (int i = 0; i < 2; i++) {
    T d = T(E(1)) / (T(E(1)) + sqrt(T(E(1)) + y));
    scale = scale * (d + d);
    y = y * d * d;
  }
  T sum = T(E(1) / E(25));
  for (int k = 11; k >= 0; k--) sum = fnma(y, sum, T(E(1) / E(2 * k + 1)));
  return scale * sum;
}

CS_END
