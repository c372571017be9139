// Pack<E, N>: N worlds in one SIMD register. Lane l is world l; no operation mixes lanes.
//
// Built on the vector extension of g++ and clang; intrinsics only where the extension has no word for it (fma, sqrt).
// Branches become select(mask, a, b). A Pack is trivially constructible, so scratch memory can be carved into Packs.
#pragma once
#include "scalar.h"

CS_BEGIN

// the masks of one world are plain bools: is lane l set? is none set?
CS_FN bool test(bool m, int) { return m; }
CS_FN bool all(bool m) { return m; }

CS_END

#ifndef __CUDACC__  // device code has no vector extension: there a world is a thread, and T is float or double
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

CS_BEGIN

template <class E, int N> struct Pack {
  typedef E Vector __attribute__((vector_size(sizeof(E) * N)));
  using MaskVector = decltype(Vector{} < Vector{});
  struct Mask {
    MaskVector m;
    friend CS_FN Mask operator&(Mask a, Mask b) { return {a.m & b.m}; }
    friend CS_FN Mask operator|(Mask a, Mask b) { return {a.m | b.m}; }
  };

  Vector x;

  Pack() = default;
  CS_FN Pack(E s) : x(s - Vector{}) {}  // s - 0 keeps the sign of zero; compiles to one broadcast
  static CS_FN Pack of(Vector v) {
    Pack p;
    p.x = v;
    return p;
  }

  friend CS_FN Pack operator+(Pack a, Pack b) { return of(a.x + b.x); }
  friend CS_FN Pack operator-(Pack a, Pack b) { return of(a.x - b.x); }
  friend CS_FN Pack operator*(Pack a, Pack b) { return of(a.x * b.x); }
  friend CS_FN Pack operator/(Pack a, Pack b) { return of(a.x / b.x); }
  friend CS_FN Pack operator-(Pack a) { return of(-a.x); }
  CS_FN Pack& operator+=(Pack b) { return x += b.x, *this; }
  CS_FN Pack& operator-=(Pack b) { return x -= b.x, *this; }
  CS_FN Pack& operator*=(Pack b) { return x *= b.x, *this; }

  friend CS_FN Mask operator<(Pack a, Pack b) { return {a.x < b.x}; }
  friend CS_FN Mask operator>(Pack a, Pack b) { return {a.x > b.x}; }
  friend CS_FN Mask operator==(Pack a, Pack b) { return {a.x == b.x}; }
  friend CS_FN Pack select(Mask m, Pack a, Pack b) { return of(m.m ? a.x : b.x); }
  friend CS_FN Mask finite(Pack a) { return {a.x - a.x == Vector{}}; }

  friend CS_FN E lane(Pack a, int l) { return a.x[l]; }
  friend CS_FN void set_lane(Pack& a, int l, E s) { a.x[l] = s; }
};

template <class E, int N> struct ScalarTraits<Pack<E, N>> {
  using Element = E;
  static constexpr int lanes = N;
};

// is lane l of a mask set?
template <class M> CS_FN bool test(M m, int l) { return m.m[l] != 0; }

// is every lane of a mask set? For skipping work whose result would be thrown away in every lane
template <class M> CS_FN bool all(M m) {
  bool every = true;
  for (unsigned l = 0; l < sizeof(m.m) / sizeof(m.m[0]); l++) every &= m.m[l] != 0;
  return every;
}

// widths without an intrinsic below: unfused, and lane by lane
template <class E, int N> CS_FN Pack<E, N> fma(Pack<E, N> a, Pack<E, N> b, Pack<E, N> c) {
  if constexpr (!CS_FUSED) return a * b + c;
  Pack<E, N> r;
  for (int l = 0; l < N; l++) r.x[l] = fma(E(a.x[l]), E(b.x[l]), E(c.x[l]));
  return r;
}
template <class E, int N> CS_FN Pack<E, N> fnma(Pack<E, N> a, Pack<E, N> b, Pack<E, N> c) { return fma(-a, b, c); }
template <class E, int N> CS_FN Pack<E, N> sqrt(Pack<E, N> a) {
  Pack<E, N> r;
  for (int l = 0; l < N; l++) r.x[l] = sqrt(E(a.x[l]));
  return r;
}

#define CS_PACK_OPS(E, N, FMA, FNMA, SQRT)                                                                        \
  CS_FN Pack<E, N> fma(Pack<E, N> a, Pack<E, N> b, Pack<E, N> c) { return Pack<E, N>::of(FMA(a.x, b.x, c.x)); }   \
  CS_FN Pack<E, N> fnma(Pack<E, N> a, Pack<E, N> b, Pack<E, N> c) { return Pack<E, N>::of(FNMA(a.x, b.x, c.x)); } \
  CS_FN Pack<E, N> sqrt(Pack<E, N> a) { return Pack<E, N>::of(SQRT(a.x)); }
#ifdef __AVX512F__
CS_PACK_OPS(double, 8, _mm512_fmadd_pd, _mm512_fnmadd_pd, _mm512_sqrt_pd)
CS_PACK_OPS(float, 16, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_sqrt_ps)
#endif
#if defined(__AVX2__) && defined(__FMA__)
CS_PACK_OPS(double, 4, _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_sqrt_pd)
CS_PACK_OPS(float, 8, _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_sqrt_ps)
#endif
#undef CS_PACK_OPS

CS_END
#endif  // __CUDACC__
