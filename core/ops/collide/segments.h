// segments: two segments with radii (capsules; a sphere is a segment of length zero).
//
//   closest points c_a = p_a + s e_a, c_b = p_b + t e_b, s and t in [-1, 1];  d = c_b - c_a
//   phi = |d| - r_a - r_b,  n = d/|d|,  x = c_a + (r_a + phi/2) n
// First half: which of s, t is free and which at an end (Ericson 2005, 5.1.9). Second half: given that, differentiate; a free
// parameter obeys e_a . d = 0 or e_b . d = 0. Parallel segments touch at both ends of their overlap: point 0 and point 1; nearly parallel ones where they are
// closest, and at the end of the overlap that is farther from there; others only at point 0, and point 1 is far away.
// kinks: an end becomes free; segments become parallel; |d| = 0: normal z, no derivative
#pragma once
#include "point_plane.h"

CS_BEGIN

template <class T> struct Segment {
  Vec3<T> p, e;  // middle, half of the segment
  T r;
};

// Squared sine below which two segments touch at a second point, and below which they are parallel: their closest points are lost in rounding by then
constexpr double kAlong = 1e-6;
template <class E> constexpr E kParallel = sizeof(E) == 8 ? E(1e-16) : E(1e-9);
constexpr double kNoLength2 = 1e-20;
constexpr double kNowhere = 1e10;  // gap of a point that does not exist

// tangent_frame: rows n, t1, t2 (Duff et al. 2017).   kink: n.z = 0, where the tangents jump; nothing isotropic notices
template <class T> CS_FN Mat3<T> tangent_frame(Vec3<T> n) {
  T sign = select(n.z < T(0), T(-1), T(1)), a = T(-1) / (sign + n.z), b = n.x * n.y * a;
  return {n, {fma(sign * n.x * n.x, a, T(1)), sign * b, -sign * n.x}, {b, fma(n.y * n.y, a, sign), -n.y}};
}
// adjoint: undo the tangents, then b, then a
template <class T> CS_FN void tangent_frame_adj(Vec3<T> n, const Mat3<T>& C_bar, Vec3<T>& n_bar) {
  T sign = select(n.z < T(0), T(-1), T(1)), a = T(-1) / (sign + n.z);
  const Vec3<T>&u = C_bar.r1, &v = C_bar.r2;
  T b_bar = fma(sign, u.y, v.x), a_bar = fma(sign * n.x * n.x, u.x, fma(n.y * n.y, v.y, n.x * n.y * b_bar));
  n_bar += C_bar.r0;
  n_bar.x += fma(T(2) * sign * n.x * a, u.x, fnma(sign, u.z, n.y * a * b_bar));
  n_bar.y += fma(T(2) * n.y * a, v.y, fma(n.x * a, b_bar, -v.z));
  n_bar.z = fma(a * a, a_bar, n_bar.z);
}

// Which points are closest, and what may still move
template <class T> struct Closest {
  T s, t;
  T s_free, t_free;  // 1 or 0
  T exists;          // 1 or 0
};

// no adjoint: chooses features.   their derivative is in segments_adj.   point: 0 or 1
template <class T> CS_FN Closest<T> closest(const Segment<T>& a, const Segment<T>& b, int point) {
  Vec3<T> w = b.p - a.p;
  T A = dot(a.e, a.e), B = dot(a.e, b.e), C = dot(b.e, b.e), D = dot(a.e, w), E = dot(b.e, w);
  // A C - B^2 and D C - B E, as cross products: nothing of them is lost where the segments are nearly parallel
  Vec3<T> across = cross(a.e, b.e);
  T det = dot(across, across), one = T(1), zero = T(0), tiny = T(ElementOf<T>(kNoLength2));
  auto long_a = A > tiny, long_b = C > tiny, skew = det > T(kParallel<ElementOf<T>>) * A * C;
  auto both = long_a & long_b & skew;
  auto along = long_a & long_b & !(det > T(ElementOf<T>(kAlong)) * A * C);
  T A_ = select(long_a, A, one), C_ = select(long_b, C, one);
  auto clamp = [&](T x) { return min(max(x, -one), one); };
  T s = clamp(select(both, dot(cross(w, b.e), across) / select(both, det, one), D / A_));
  // an end of the overlap: in direction `side` along a, the end of a or that of b comes first. The second point is at the end that the closest one is
  // farther from
  T side = point ? select(both & (s > zero), -one, one) : -one, same_way = select(B < zero, -one, one);
  auto end_of_a = !(A > fma(side, D, abs(B)));
  auto at_end = along & ((!skew) | (T(point) > T(0.5)));
  auto at_a = at_end & end_of_a, at_b = at_end & !end_of_a;
  s = select(at_a, side, s);
  T t = select(at_b, side * same_way, select(long_b, clamp((s * B - E) / C_), zero));
  s = select(at_a, side, select(long_a, clamp(fma(t, B, D) / A_), zero));
  auto inside = [&](T x) { return (x < one) & (x > -one); };
  T s_free = select(long_a & inside(s) & !at_a, one, zero), t_free = select(long_b & inside(t) & !at_b, one, zero);
  return {s, t, s_free, t_free, point == 0 ? one : select(along, one, zero)};
}

template <class T> CS_FN Touch<T> segments(const Segment<T>& a, const Segment<T>& b, int point) {
  Closest<T> f = closest(a, b, point);
  Vec3<T> c_a = fma(f.s, a.e, a.p), d = fma(f.t, b.e, b.p) - c_a;
  T d2 = dot(d, d);
  auto apart = d2 > T(ElementOf<T>(kNoLength2));
  T length = select(apart, sqrt(select(apart, d2, T(1))), T(0)), inv = T(1) / select(apart, length, T(1));
  Vec3<T> n = {select(apart, inv * d.x, T(0)), select(apart, inv * d.y, T(0)), select(apart, inv * d.z, T(1))};
  T gap = select(f.exists > T(0.5), length - a.r - b.r, T(ElementOf<T>(kNowhere)));
  return {gap, tangent_frame(n), fma(fma(T(0.5), gap, a.r), n, c_a)};
}
// adjoint: bars of middles, halves and radii
template <class T> CS_FN void segments_adj(const Segment<T>& a, const Segment<T>& b, int point, const Touch<T>& y, Touch<T> y_bar,
                                           Segment<T>& a_bar, Segment<T>& b_bar) {
  Closest<T> f = closest(a, b, point);
  Vec3<T> n = y.frame.r0, d = fma(f.t, b.e, b.p) - fma(f.s, a.e, a.p), n_bar = zero3<T>();
  // x, frame
  T k = dot(n, y_bar.x), gap_bar = fma(T(0.5), k, y_bar.gap);
  a_bar.r += k - gap_bar, b_bar.r -= gap_bar;
  tangent_frame_adj(n, y_bar.frame, n_bar);
  n_bar += fma(T(0.5), y.gap, a.r) * y_bar.x;
  // d
  T d2 = dot(d, d);
  auto apart = d2 > T(ElementOf<T>(kNoLength2));
  T inv = select(apart, T(1) / sqrt(select(apart, d2, T(1))), T(0));
  Vec3<T> d_bar = select(apart, gap_bar, T(0)) * n + inv * (n_bar - dot(n, n_bar) * n), c_a_bar = y_bar.x - d_bar;
  // s and t: solve the transposed 2 x 2 system of the free ones; a fixed one has a row of the identity
  T A = dot(a.e, a.e), B = f.s_free * f.t_free * dot(a.e, b.e), C = dot(b.e, b.e), one = T(1);
  T s_bar = f.s_free * dot(a.e, c_a_bar), t_bar = f.t_free * dot(b.e, d_bar);
  A = select(f.s_free > T(0.5), A, one), C = select(f.t_free > T(0.5), C, one);
  Vec3<T> across = cross(a.e, b.e);
  T det_inv = T(-1) / select(f.s_free * f.t_free > T(0.5), dot(across, across), A * C), m_s = det_inv * fma(C, s_bar, B * t_bar),
    m_t = -det_inv * fma(A, t_bar, B * s_bar);
  Vec3<T> m = m_s * a.e + m_t * b.e;
  // d at fixed s, t: shares of the condition and of d itself
  d_bar -= m, c_a_bar += m;
  a_bar.p += c_a_bar, b_bar.p += d_bar;
  a_bar.e += f.s * c_a_bar - m_s * d;
  b_bar.e += f.t * d_bar - m_t * d;
}

CS_END
