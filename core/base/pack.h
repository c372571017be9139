// Pack<E, N>: N worlds in one SIMD register. Lane l is world l; no operation mixes lanes.
//
// Built on the vector extension of g++ and clang; intrinsics only where the extension has no word for it (fma, sqrt).
// Branches become select(mask, a, b). A Pack is trivially constructible, so scratch memory can be carved into Packs.
#pragma once
#include "scalar.h"

CS_BEGIN

// the masks of one world are plain bools (ints once & or | has joined two): is lane l set? are all set? is any?
CS_FN bool test(bool m, int) { return m; }
CS_FN bool all(bool m) { return m; }
CS_FN bool any(bool m) { return m; }
CS_FN bool test(int m, int) { return m; }
CS_FN bool all(int m) { return m; }
CS_FN bool any(int m) { return m; }
CS_FN unsigned lane_bits(bool m) { return m; }
CS_FN unsigned lane_bits(int m) { return m != 0; }

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
    friend CS_FN Mask operator!(Mask a) { return {~a.m}; }
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

// a mask as one bit per lane
template <class V> CS_FN unsigned mask_bits(V m) {
#ifdef __AVX512DQ__
  if constexpr (sizeof(V) == 64 && sizeof(m[0]) == 8) return _mm512_movepi64_mask(reinterpret_cast<__m512i>(m));
  if constexpr (sizeof(V) == 64 && sizeof(m[0]) == 4) return _mm512_movepi32_mask(reinterpret_cast<__m512i>(m));
#endif
#ifdef __AVX2__
  if constexpr (sizeof(V) == 32 && sizeof(m[0]) == 8) return unsigned(_mm256_movemask_pd(reinterpret_cast<__m256d>(m)));
  if constexpr (sizeof(V) == 32 && sizeof(m[0]) == 4) return unsigned(_mm256_movemask_ps(reinterpret_cast<__m256>(m)));
#endif
  unsigned bits = 0;
  for (unsigned l = 0; l < sizeof(V) / sizeof(m[0]); l++) bits |= unsigned(m[l] != 0) << l;
  return bits;
}

template <class M> CS_FN unsigned lane_bits(M m) { return mask_bits(m.m); }

// is lane l of a mask set?
template <class M> CS_FN bool test(M m, int l) { return mask_bits(m.m) >> l & 1; }

// is every lane of a mask set, is any? For skipping work whose result would be thrown away in every lane
template <class M> CS_FN bool all(M m) { return mask_bits(m.m) == (1u << (sizeof(m.m) / sizeof(m.m[0]))) - 1; }
template <class M> CS_FN bool any(M m) { return mask_bits(m.m) != 0; }

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
