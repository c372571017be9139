// collide: every candidate -> gap, contact frame, point, and the coefficients of the pair.
//
// Features are chosen first, without derivative; then distances are differentiated given the features (docs/maths/contact).
// saves: gap, frame, point, mu, e, soft.   kinks: those of the pairs; a pair rule with equal sides
#pragma once
#include "collide/segments.h"
#include "lightness.h"

CS_BEGIN

// pair_rule: two coefficients become one
template <class T> CS_FN T pair_rule(int rule, T a, T b) {
  switch (rule) {
    case kMaximum: return max(a, b);
    case kMinimum: return min(a, b);
    case kMean: return T(0.5) * (a + b);
    case kProduct: return a * b;
    default: {
      T ab = a * b;
      auto some = ab > T(0);
      return select(some, sqrt(select(some, ab, T(1))), T(0));
    }
  }
}
// adjoint: of equal coefficients the first counts; the geometric mean of something and zero has no slope (it would be infinite)
template <class T> CS_FN void pair_rule_adj(int rule, T a, T b, T y_bar, T& a_bar, T& b_bar) {
  T zero = T(0), half = T(0.5) * y_bar;
  switch (rule) {
    case kMaximum: a_bar += select(b > a, zero, y_bar), b_bar += select(b > a, y_bar, zero); break;
    case kMinimum: a_bar += select(b < a, zero, y_bar), b_bar += select(b < a, y_bar, zero); break;
    case kMean: a_bar += half, b_bar += half; break;
    case kProduct: a_bar = fma(b, y_bar, a_bar), b_bar = fma(a, y_bar, b_bar); break;
    default: {
      T ab = a * b;
      auto some = ab > zero;
      T s = select(some, half / sqrt(select(some, ab, T(1))), zero);
      a_bar = fma(b, s, a_bar), b_bar = fma(a, s, b_bar);
    }
  }
}

// no adjoint: gathers arguments.   a sphere or capsule, shifted into another tree's frame
template <class T> CS_FN Segment<T> segment(const Tree& t, const Params<T>& th, const Rows<T>& rw, int s, Vec3<T> shift) {
  Vec3<T> x, y, z;
  columns(rw.shape_R[s], x, y, z);
  T half = t.shape_type[s] == kCapsule ? th.shape_size[s].y : T(0);
  return {rw.shape_p[s] + shift, half * z, th.shape_size[s].x};
}
// no adjoint: a part of touch_adj: a segment is fixed in its shape; p counts from the shape's own origin
template <class T> CS_FN void segment_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, int s, const Segment<T>& g_bar,
                                          const RowBars<T>& rb, const Params<T>& th_bar) {
  Segment<T> g = segment(t, th, rw, s, zero3<T>());
  rb.shape[s] += Force<T>{cross(g.p, g_bar.p) + cross(g.e, g_bar.e), g_bar.p};
  if (!th_bar.shape_size) return;
  th_bar.shape_size[s].x += g_bar.r;
  Vec3<T> x, y, z;
  columns(rw.shape_R[s], x, y, z);
  if (t.shape_type[s] == kCapsule) th_bar.shape_size[s].y += dot(z, g_bar.e);
}

// touch: candidate k
template <class T> CS_FN Touch<T> touch(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, int k) {
  int a = t.touch_a[k], b = t.touch_b[k];
  Vec3<T> shift = offset(t, tr, a, t.shape_body[b]);
  if (t.shape_type[a] == kPlane)
    return point_plane(rw.shape_p[a] + shift, rw.shape_R[a], shape_point(t, th, rw, b, t.touch_point[k]), shape_radius(t, th, b),
                       shape_spread<T>(t, b));
  return segments(segment(t, th, rw, a, shift), segment(t, th, rw, b, zero3<T>()), t.touch_point[k]);
}
template <class T> CS_FN void touch_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, int k,
                                        const Touch<T>& y_bar, const RowBars<T>& rb, const Params<T>& th_bar) {
  int a = t.touch_a[k], b = t.touch_b[k], j = t.touch_point[k];
  Vec3<T> shift = offset(t, tr, a, t.shape_body[b]);
  Touch<T> y = {rw.gap[k], rw.frame[k], rw.point[k]};
  T zero = T(0);
  if (t.shape_type[a] == kPlane) {
    Vec3<T> p = shape_point(t, th, rw, b, j), p_bar = zero3<T>();
    Force<T> F = zero_force<T>();
    T r = shape_radius(t, th, b), r_bar = zero;
    point_plane_adj(y, rw.shape_p[a] + shift, p, r, shape_spread<T>(t, b), y_bar, p_bar, F, r_bar);
    rb.shape[a] += Force<T>{F.n + cross(rw.shape_p[a], F.f), F.f};
    shape_point_adj(t, th, rw, b, j, p_bar, rb, th_bar);
    if (th_bar.shape_size && t.shape_type[b] != kBox) th_bar.shape_size[b].x += r_bar;
    return;
  }
  Segment<T> a_bar = {zero3<T>(), zero3<T>(), zero}, b_bar = a_bar;
  segments_adj(segment(t, th, rw, a, shift), segment(t, th, rw, b, zero3<T>()), j, y, y_bar, a_bar, b_bar);
  segment_adj(t, th, rw, a, a_bar, rb, th_bar);
  segment_adj(t, th, rw, b, b_bar, rb, th_bar);
}

template <class T> CS_OP void collide(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw) {
  for (int k = 0; k < t.nk; k++) {
    int a = t.touch_a[k], b = t.touch_b[k];
    Touch<T> y = touch(t, th, tr, rw, k);
    rw.gap[k] = y.gap, rw.frame[k] = y.frame, rw.point[k] = y.x;
    rw.mu[k] = pair_rule(t.friction_rule, th.friction[a], th.friction[b]);
    rw.e[k] = pair_rule(t.restitution_rule, th.restitution[a], th.restitution[b]);
    rw.soft[k] = th.softness[a] + th.softness[b];
    rw.lightness[k] = pair_lightness(th, t.shape_body[a], t.shape_body[b], false);
  }
}
// adjoint: candidates without rows in any lane have no bars (`used`, by contact_slots) and cost nothing
template <class T> CS_OP void collide_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                          const int* used, const RowBars<T>& rb, const Params<T>& th_bar) {
  for (int k = 0; k < t.nk; k++) {
    if (!used[k]) continue;
    touch_adj(t, th, tr, rw, k, Touch<T>{rb.gap[k], rb.frame[k], rb.point[k]}, rb, th_bar);
    if (!th_bar.friction) continue;
    int a = t.touch_a[k], b = t.touch_b[k];
    pair_rule_adj(t.friction_rule, th.friction[a], th.friction[b], rb.mu[k], th_bar.friction[a], th_bar.friction[b]);
    pair_rule_adj(t.restitution_rule, th.restitution[a], th.restitution[b], rb.e[k], th_bar.restitution[a],
                  th_bar.restitution[b]);
    th_bar.softness[a] += rb.soft[k], th_bar.softness[b] += rb.soft[k];
    pair_lightness_adj(th, t.shape_body[a], t.shape_body[b], false, rb.lightness[k], th_bar);
  }
}

CS_END
