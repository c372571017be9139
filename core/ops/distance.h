// distance: gap, normal a -> b and closest points of one pair of shapes in one configuration.   y: gap, normal 3, point on a 3, point on b 3, world
//
// t: a Tree with this pair alone. The closest feature counts, of points on a plane the one with the smallest gap; where there is
// none (outside of a field) the gap is kNowhere.
// kinks: those of collide; two points with the same gap
#pragma once
#include "collide.h"
#include "kinematics.h"

CS_BEGIN

constexpr int kDistanceNumbers = 10;

// no adjoint: integers as numbers.   part of the gap that lies between a and the contact point of candidate c: 0 it is on a, 1 on b
template <class T> CS_FN T point_share(const Tree& t, const Rows<T>& rw, int c) {
  int p = rw.cand_pair[c], a = t.shape_type[t.pair_a[p]], b = t.shape_type[t.pair_b[p]];
  T share = T(0.5);
  if (!pair_chosen(t, p)) return a == kPlane ? T(1) - shape_spread<T>(t, t.pair_b[p]) : share;
  for (int l = 0; l < lanes<T>; l++) {
    const Feature& f = rw.feature[c * lanes<T> + l];
    if (f.kind != kVertexFace && f.kind != kRim) continue;
    bool of_b = f.swap != 0, ball = (f.swap ? a : b) == kSphere;  // on the face, but with a sphere on the sphere
    set_lane(share, l, ElementOf<T>(of_b != ball));
  }
  return share;
}

template <class T>
CS_OP void distance(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, const T* q, T* y) {
  normalise(t, q, tr.q);
  kinematics(t, th, tr);
  shapes(t, th, tr, rw);
  rw.count[6] = 0;
  T far = T(ElementOf<T>(kNowhere)), best = far + far;
  collide_pair(t, th, tr, rw, 0, (1 << lanes<T>)-1, far);
  int b = t.shape_body[t.pair_b[0]];
  Vec3<T> origin = b < 0 ? zero3<T>() : tr.origin[t.root[b]], *out = reinterpret_cast<Vec3<T>*>(y + 1);
  y[0] = far, out[0] = {T(0), T(0), T(1)}, out[1] = out[2] = zero3<T>();
  // features that are chosen begin with the closest one; further points may be measured along other normals
  bool first = pair_kind(t, 0) & (kOnField | kTwoSolids);
  for (int c = 0; c < rw.count[6]; c++) rw.used[c] = 0;
  for (int c = 0; c < (first && rw.count[6] ? 1 : rw.count[6]); c++) {
    auto better = rw.gap[c] < best;
    Vec3<T> n = rw.frame[c].r0, on_a = rw.point[c] + origin - point_share(t, rw, c) * rw.gap[c] * n, on_b = on_a + rw.gap[c] * n;
    auto pick = [&](Vec3<T> a, Vec3<T>& to) {
      to = {select(better, a.x, to.x), select(better, a.y, to.y), select(better, a.z, to.z)};
    };
    best = select(better, rw.gap[c], best), y[0] = select(better, rw.gap[c], y[0]);
    pick(n, out[0]), pick(on_a, out[1]), pick(on_b, out[2]);
    rw.used[c] = int(lane_bits(better));
    for (int k = 0; k < c; k++) rw.used[k] &= ~rw.used[c];
  }
}
// adjoint, after the forward on the same trace
template <class T> CS_OP void distance_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                           const T* y_bar, const RowBars<T>& rb, const Bars<T>& bar, const Params<T>& th_bar,
                                           T* q_bar) {
  const Vec3<T>* in = reinterpret_cast<const Vec3<T>*>(y_bar + 1);
  bars_clear(t, bar);
  for (int s = 0; s < t.ns; s++) rb.shape[s] = zero_force<T>();
  for (int c = 0; c < rw.count[6]; c++) {
    T mine = T(0);
    for (int l = 0; l < lanes<T>; l++)
      if (rw.used[c] >> l & 1 && lane(rw.gap[c], l) < ElementOf<T>(0.5 * kNowhere)) set_lane(mine, l, ElementOf<T>(1));
    // point_a = x - share gap n,  point_b = point_a + gap n
    Vec3<T> n = rw.frame[c].r0, x_bar = mine * (in[1] + in[2]);
    T to_b = mine * dot(n, in[2]), share = point_share(t, rw, c), gap = select(mine > T(0.5), rw.gap[c], T(0));
    rb.gap[c] = fma(mine, y_bar[0], fnma(share, dot(n, x_bar), to_b));
    rb.frame[c] = {mine * in[0] + gap * (in[2] - share * (in[1] + in[2])), zero3<T>(), zero3<T>()};
    rb.point[c] = x_bar;
    rb.mu[c] = rb.e[c] = rb.soft[c] = rb.lightness[c] = T(0);
  }
  collide_adj(t, th, rw, rb, th_bar);
  shapes_adj(t, th, tr, rw, rb, bar, th_bar);
  kinematics_adj(t, th, tr, bar, th_bar);
  for (int d = 0; d < t.nv; d++) q_bar[d] += bar.q[d];
}

CS_END
