// collide: every pair that is near -> candidates: gap, contact frame, point, and the coefficients of the pair.
//
// Features are chosen first, without derivative; then distances are differentiated given the features (docs/maths/collision).
// saves: cand_pair, cand_point, feature, gap, frame, point, shift, mu, e, soft.   kinks: those of the pairs; a pair rule with equal sides
#pragma once
#include "broadphase.h"
#include "collide/chosen.h"
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

// touch: point k of pair p, of shapes in packs: round ones, and those whose points touch a plane
template <class T> CS_FN Touch<T> touch(const Tree& t, const Params<T>& th, const Rows<T>& rw, int p, int k, Vec3<T> shift) {
  int a = t.pair_a[p], b = t.pair_b[p];
  if (pair_kind(t, p) == kPointsOnPlane)
    return point_plane(rw.shape_p[a] + shift, rw.shape_R[a], shape_point(t, th, rw, b, k), shape_radius(t, th, b),
                       shape_spread<T>(t, b));
  return segments(segment(t, th, rw, a, shift), segment(t, th, rw, b, zero3<T>()), k);
}
template <class T> CS_FN void touch_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, int p, int k, Vec3<T> shift,
                                        const Touch<T>& y, const Touch<T>& y_bar, const RowBars<T>& rb, const Params<T>& th_bar) {
  int a = t.pair_a[p], b = t.pair_b[p];
  T zero = T(0);
  if (pair_kind(t, p) == kPointsOnPlane) {
    Vec3<T> x = shape_point(t, th, rw, b, k), x_bar = zero3<T>();
    Force<T> F = zero_force<T>();
    T r = shape_radius(t, th, b), r_bar = zero;
    point_plane_adj(y, rw.shape_p[a] + shift, x, r, shape_spread<T>(t, b), y_bar, x_bar, F, r_bar);
    rb.shape[a] += Force<T>{F.n + cross(rw.shape_p[a], F.f), F.f};
    shape_point_adj(t, th, rw, b, k, x_bar, rb, th_bar);
    if (th_bar.shape_size && shape_round(t.shape_type[b])) th_bar.shape_size[b].x += r_bar;
    return;
  }
  Segment<T> a_bar = {zero3<T>(), zero3<T>(), zero}, b_bar = a_bar;
  segments_adj(segment(t, th, rw, a, shift), segment(t, th, rw, b, zero3<T>()), k, y, y_bar, a_bar, b_bar);
  segment_adj(t, th, rw, a, a_bar, rb, th_bar);
  segment_adj(t, th, rw, b, b_bar, rb, th_bar);
}

// no adjoint: calls pair_rule.   coefficients of candidate c, a point of pair p
template <class T> CS_FN void coefficients(const Tree& t, const Params<T>& th, const Rows<T>& rw, int p, int c) {
  int a = t.pair_a[p], b = t.pair_b[p];
  rw.mu[c] = t.pair_dim[p] < 3 ? T(0) : pair_rule(t.friction_rule, th.friction[a], th.friction[b]);
  rw.e[c] = pair_rule(t.restitution_rule, th.restitution[a], th.restitution[b]);
  rw.soft[c] = th.softness[a] + th.softness[b];
  rw.lightness[c] = pair_lightness(th, t.shape_body[a], t.shape_body[b], false);
}

#ifndef CS_FIXED_ROWS
// no adjoint: memory and integers.   candidate c is the k-th point of pair p
template <class T> CS_FN void put_candidate(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int c, int p, int k) {
  rw.cand_pair[c] = p, rw.cand_point[c] = k, rw.shift[c] = offset(t, tr, t.pair_a[p], t.shape_body[t.pair_b[p]]);
}

// no adjoint: memory and integers.   a new candidate, the k-th point of pair p; false: there is no room
template <class T> CS_FN bool new_candidate(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int p, int k) {
  int c = rw.count[6];
  if (c == t.max_cand) return rw.count[7] = 1, false;
  rw.count[6]++;
  return put_candidate(t, tr, rw, c, p, k), true;
}

// no adjoint: chooses.   the candidates of pair p.   reach: gaps that matter, beyond that nothing is looked for
template <class T>
CS_OP void pair_candidates(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, int p, int bits, T reach) {
  int a = t.pair_a[p], b = t.pair_b[p], points = pair_points(t.shape_type[a], t.shape_type[b]);
  if (pair_chosen(t, p)) points = choose(t, th, rw, p, bits, offset(t, tr, a, t.shape_body[b]), reach, t.max_cand - rw.count[6]);
  CS_FOR (int k = 0; k < points && new_candidate(t, tr, rw, p, k);) k++;
}

// no adjoint: calls touch and chosen_touch.   where candidate c touches
template <class T> CS_OP void collide_candidate(const Tree& t, const Params<T>& th, const Rows<T>& rw, int c) {
  int p = rw.cand_pair[c];
  Touch<T> y = pair_chosen(t, p) ? chosen_touch(t, th, rw, c) : touch(t, th, rw, p, rw.cand_point[c], rw.shift[c]);
  rw.gap[c] = y.gap, rw.frame[c] = y.frame, rw.point[c] = y.x;
  coefficients(t, th, rw, p, c);
}

// no adjoint: calls touch and chosen_touch.   one pair
template <class T>
CS_OP void collide_pair(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, int p, int bits, T reach) {
  int first = rw.count[6];
  pair_candidates(t, th, tr, rw, p, bits, reach);
  share(rw.count[6] - first, [&](int k) { collide_candidate(t, th, rw, first + k); });
}

// no adjoint: chooses.   the candidates of all pairs that are near, by a team, where no features are chosen: a pair has as many points as its shapes
template <class T> CS_OP void candidates_together(const Tree& t, const Trace<T>& tr, const Rows<T>& rw) {
  constexpr int kBitsOfPoints = 4;  // a box has eight
  int found = 0, near = rw.count[5];
  CS_SHORT (int first = 0; first < near; first += kTeam) {
    int i = first + team_rank(), p = rw.near[i < near ? i : 0], c = found, part;
    int points = i < near ? pair_points(t.shape_type[t.pair_a[p]], t.shape_type[t.pair_b[p]]) : 0;
    CS_STRIP (int bit = 0; bit < kBitsOfPoints; bit++) found += how_many(points >> bit & 1, part) << bit, c += part << bit;
    CS_SHORT (int k = 0; k < points && c < t.max_cand; k++, c++) put_candidate(t, tr, rw, c, p, k);
  }
  if (found > t.max_cand) rw.count[7] = 1, found = t.max_cand;
  rw.count[6] = found;
}

template <class T> CS_OP void collide(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                      const RowInputs<T>& in, const Options& o) {
  near_pairs(t, th, tr, rw, in, o);
  rw.count[6] = 0;
  bool together = kTeam > 1 && !(t.pair_kinds & kChosenPair);
  if (together) candidates_together(t, tr, rw);
  CS_FOR (int i = 0; !together && i < rw.count[5]; i++) {
    int p = rw.near[i];
    pair_candidates(t, th, tr, rw, p, rw.near_bits[i], rw.grow[t.pair_a[p]] + rw.grow[t.pair_b[p]]);
  }
  share(rw.count[6], [&](int c) { collide_candidate(t, th, rw, c); });
}
#else
// few pairs, all of which are looked at
template <class T> CS_OP void collide(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                      const RowInputs<T>&, const Options&) {
  CS_FOR (int c = 0; c < t.nk; c++) {
    int p = rw.cand_pair[c];
    rw.shift[c] = offset(t, tr, t.pair_a[p], t.shape_body[t.pair_b[p]]);
    Touch<T> y = touch(t, th, rw, p, rw.cand_point[c], rw.shift[c]);
    rw.gap[c] = y.gap, rw.frame[c] = y.frame, rw.point[c] = y.x;
    coefficients(t, th, rw, p, c);
  }
  rw.count[7] = 0;
}
#endif
// adjoint: candidates without rows in any lane have no bars (`used`, by contact_slots) and cost nothing
template <class T>
CS_OP void collide_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, const RowBars<T>& rb, const Params<T>& th_bar) {
  CS_FOR (int c = 0; c < rw.count[6]; c++) {
    if (!rw.used[c]) continue;
    int p = rw.cand_pair[c], a = t.pair_a[p], b = t.pair_b[p];
    Touch<T> y = {rw.gap[c], rw.frame[c], rw.point[c]}, y_bar = {rb.gap[c], rb.frame[c], rb.point[c]};
    if (pair_chosen(t, p))
      chosen_touch_adj(t, th, rw, c, y, y_bar, rb, th_bar);
    else
      touch_adj(t, th, rw, p, rw.cand_point[c], rw.shift[c], y, y_bar, rb, th_bar);
    if (!th_bar.friction) continue;
    if (t.pair_dim[p] >= 3)
      pair_rule_adj(t.friction_rule, th.friction[a], th.friction[b], rb.mu[c], th_bar.friction[a], th_bar.friction[b]);
    pair_rule_adj(t.restitution_rule, th.restitution[a], th.restitution[b], rb.e[c], th_bar.restitution[a],
                  th_bar.restitution[b]);
    th_bar.softness[a] += rb.soft[c], th_bar.softness[b] += rb.soft[c];
    pair_lightness_adj(th, t.shape_body[a], t.shape_body[b], false, rb.lightness[c], th_bar);
  }
}

CS_END
