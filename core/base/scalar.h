// The operations every scalar type offers: float and double here, Pack in pack.h, Dual in dual.h.
//
//   fma(a, b, c) = a b + c,  fnma(a, b, c) = c - a b,  sqrt, select(mask, a, b), finite(x)
//   ElementOf<T>: the number inside (float or double);  lanes<T>: how many worlds a T carries
#pragma once
#ifndef __CUDACC_RTC__  // which has them built in
#include <cmath>
#endif

#include "config.h"

CS_BEGIN

template <class T> struct ScalarTraits {
  using Element = T;
  static constexpr int lanes = 1;
};
template <class T> using ElementOf = typename ScalarTraits<T>::Element;
template <class T> constexpr int lanes = ScalarTraits<T>::lanes;

#if defined(__CUDA_ARCH__)
CS_FN double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
CS_FN float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
#elif CS_FUSED
CS_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
CS_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
CS_FN double fma(double a, double b, double c) { return a * b + c; }
CS_FN float fma(float a, float b, float c) { return a * b + c; }
#endif
CS_FN double fnma(double a, double b, double c) { return fma(-a, b, c); }
CS_FN float fnma(float a, float b, float c) { return fma(-a, b, c); }

CS_FN double sqrt(double x) { return ::sqrt(x); }
CS_FN float sqrt(float x) { return ::sqrtf(x); }

// 1 / x and 1 / sqrt(x), rounded twice, of numbers from 1e-30 to 1e36 or less their sign: there the hardware needs no branch for what is out of its range, and the
// results are those of the division and of the root. Only in teams: where each thread has a world, the compiler would leave unrolled rows in memory (a quadruped's stack:
// 17.5 kB in place of 11.6)
template <class T> CS_FN T reciprocal(T x) { return T(1) / x; }
template <class T> CS_FN T inverse_root(T x) { return T(1) / sqrt(x); }
#if defined(__CUDA_ARCH__) && CS_TEAM > 1
CS_FN float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return fma(y, -fma(y, x, -1.0f), y);
}
CS_FN float inverse_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  float root = x * y;
  return reciprocal(fma(fma(-root, root, x), 0.5f * y, root));
}
#endif

CS_FN double select(bool m, double a, double b) { return m ? a : b; }
CS_FN float select(bool m, float a, float b) { return m ? a : b; }

// x - x is 0 for finite x and NaN otherwise; survives without -ffinite-math-only
CS_FN bool finite(double x) { return x - x == 0.0; }
CS_FN bool finite(float x) { return x - x == 0.0f; }

// smaller, larger, size: of equal numbers the first, so that a kink always takes the same side
template <class T> CS_FN T min(T a, T b) { return select(b < a, b, a); }
template <class T> CS_FN T max(T a, T b) { return select(b > a, b, a); }
template <class T> CS_FN T abs(T a) { return select(a < T(0), -a, a); }

// lane access, so that drivers can load and store any T
CS_FN double lane(double x, int) { return x; }
CS_FN float lane(float x, int) { return x; }
CS_FN void set_lane(double& x, int, double s) { x = s; }
CS_FN void set_lane(float& x, int, float s) { x = s; }

CS_END
