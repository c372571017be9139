// broadphase: which pairs may touch in this step, from boxes around their shapes.
//
//   near:  in every axis  |c_a - c_b| <= e_a + e_b + margin + h (speed_a + speed_b),  c, e of the boxes in world axes, speed of any point of the shape
// A pair that is not near in a lane has no rows there: its gap cannot close within the step. Few pairs are tested one by one; many by sweep and prune
// along the axis in which the shapes lie furthest apart (only in models that run world by world, since the order is a lane's own).
// no adjoint in this file: it chooses, and differentiates nothing
#pragma once
#include "collide/segments.h"
#include "collide/vertices.h"
#include "flight.h"

CS_BEGIN

constexpr int kFewPairs = 256;        // up to here testing all is faster than sorting
constexpr double kBoundSlack = 1e-5;  // relative, for rounding: boxes are in the world, gaps between trees

// no adjoint: chooses.   half extents of the box around shape s, about bound_p
template <class T> CS_FN void shape_bound(const Tree& t, const Params<T>& th, const Rows<T>& rw, int s) {
  const Mat3<T>& R = rw.shape_R[s];
  Vec3<T> size = th.shape_size[s], x, y, z, o = zero3<T>();
  columns(R, x, y, z);
  auto most = [](Vec3<T> a, T k) { return Vec3<T>{abs(a.x) * k, abs(a.y) * k, abs(a.z) * k}; };
  switch (t.shape_type[s]) {
    case kSphere: rw.bound[s] = {size.x, size.x, size.x}; return;
    case kCapsule:
    case kCylinder: rw.bound[s] = most(z, size.y) + Vec3<T>{size.x, size.x, size.x}; return;
    case kBox: rw.bound[s] = most(x, size.x) + most(y, size.y) + most(z, size.z); return;
    case kRectangle: rw.bound[s] = most(x, size.x) + most(y, size.y); return;
    case kPolygon:
    case kHull: {
      Vec3<T> low = o, high = o;
      for (int v = 0; v < t.solid_n[3 * s]; v++) {
        Vec3<T> p = mul(R, shape_vertex(t, th, s, v));
        if (v == 0) low = high = p;
        low = {min(low.x, p.x), min(low.y, p.y), min(low.z, p.z)}, high = {max(high.x, p.x), max(high.y, p.y), max(high.z, p.z)};
      }
      rw.bound[s] = T(0.5) * (high - low), rw.bound_p[s] += T(0.5) * (high + low);
      return;
    }
    default: {  // planes and fields have no bound: everything is near them that is near the plane, or lies in the field
      T far = T(ElementOf<T>(kNowhere));
      rw.bound[s] = {far, far, far};
    }
  }
}

// no adjoint: chooses
template <class T> CS_OP void bounds(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                     const RowInputs<T>& in, const Options& o) {
  using E = ElementOf<T>;
  share(t.ns, [&](int s) {
    int b = t.shape_body[s];
    bool endless = t.shape_type[s] == kPlane || t.shape_type[s] == kField;
    rw.bound_p[s] = rw.shape_p[s];
    shape_bound(t, th, rw, s);
    Vec3<T> c = rw.bound_p[s], e = rw.bound[s];
    T speed = T(0), size = endless ? T(0) : max(e.x, max(e.y, e.z));
    if (b >= 0) {
      Vec3<T> v = tr.v[b].v + cross(tr.v[b].w, c);
      speed = sqrt(dot(v, v)) + sqrt(dot(tr.v[b].w, tr.v[b].w) * dot(e, e));
      if (in.split) {
        // times of impact are looked for along the whole way, which begins with the impacts that have just been
        for (int end = 0; end < 2; end++) {
          Motion<T> m = end ? body_later(t, tr, rw, in, b) : body_motion(t, tr, in.after, b);
          v = m.v + cross(m.w, c);
          speed = max(speed, sqrt(dot(v, v)) + sqrt(dot(m.w, m.w) * dot(e, e)));
        }
      }
      c = rw.bound_p[s] = c + tr.origin[t.root[b]];
    }
    T slack = T(E(kBoundSlack)) * (max(abs(c.x), max(abs(c.y), abs(c.z))) + size);
    rw.grow[s] = T(E(0.5 * o.margin)) + fma(in.split ? in.reach : in.h, speed, slack);
    rw.bound[s] += Vec3<T>{rw.grow[s], rw.grow[s], rw.grow[s]};
  });
}

// no adjoint: chooses.   are the boxes of a and b apart?
template <class T> CS_FN auto boxes_apart(const Rows<T>& rw, int a, int b) {
  Vec3<T> d = rw.bound_p[b] - rw.bound_p[a], e = rw.bound[a] + rw.bound[b];
  return (abs(d.x) > e.x) | (abs(d.y) > e.y) | (abs(d.z) > e.z);
}

// no adjoint: chooses.   lanes in which pair p is near, as bits.   a plane is as far as the box's nearest corner
template <class T> CS_FN int near_lanes(const Tree& t, const Rows<T>& rw, int p) {
  int a = t.pair_a[p], b = t.pair_b[p];
  if (t.shape_type[a] != kPlane) return int(lane_bits(!boxes_apart(rw, a, b)));
  Vec3<T> d = rw.bound_p[b] - rw.bound_p[a], e = rw.bound[b], x, y, z;
  columns(rw.shape_R[a], x, y, z);
  T low = dot(z, d) - fma(abs(z.x), e.x, fma(abs(z.y), e.y, abs(z.z) * e.z));
  return int(lane_bits(!(low > rw.grow[a])));
}

// no adjoint: integers.   the pair of shapes i and j, -1 none
CS_FN int pair_of(const Tree& t, int i, int j) {
  int first = i < j ? i : j, second = i < j ? j : i, lo = t.partner_adr[first], hi = t.partner_adr[first + 1];
  while (lo < hi) {
    int mid = (lo + hi) / 2, p = t.partner[mid], other = t.pair_a[p] == first ? t.pair_b[p] : t.pair_a[p];
    if (other == second) return p;
    other < second ? lo = mid + 1 : hi = mid;
  }
  return -1;
}

// no adjoint: integers.   heap sort of n integers by key
template <class Key> CS_FN void sort_by(int* a, int n, const Key& key) {
  auto sink = [&](int i, int end) {
    for (int child; (child = 2 * i + 1) < end; i = child) {
      if (child + 1 < end && key(a[child]) < key(a[child + 1])) child++;
      if (!(key(a[i]) < key(a[child]))) return;
      int keep = a[i];
      a[i] = a[child], a[child] = keep;
    }
  };
  for (int i = n / 2 - 1; i >= 0; i--) sink(i, n);
  for (int end = n - 1; end > 0; end--) {
    int keep = a[0];
    a[0] = a[end], a[end] = keep;
    sink(0, end);
  }
}

// no adjoint: chooses.   one world: sweep and prune.   Shapes without bounds are tested against all of their partners
template <class T> CS_OP void sweep_and_prune(const Tree& t, const Rows<T>& rw) {
  int n = 0, *order = rw.order, &found = rw.count[5];
  auto add = [&](int p) {
    if (!near_lanes(t, rw, p)) return;
    if (found < t.max_near)
      rw.near[found++] = p;
    else
      rw.count[7] = 1;
  };
  Vec3<T> sum = zero3<T>(), square = sum;
  for (int s = 0; s < t.ns; s++) {
    if (t.shape_type[s] == kPlane || t.shape_type[s] == kField) continue;
    Vec3<T> c = rw.bound_p[s];
    order[n++] = s, sum += c, square += Vec3<T>{c.x * c.x, c.y * c.y, c.z * c.z};
  }
  Vec3<T> spread = T(double(n)) * square - Vec3<T>{sum.x * sum.x, sum.y * sum.y, sum.z * sum.z};
  bool along_x = all((!(spread.x < spread.y)) & (!(spread.x < spread.z))), along_y = !along_x && all(!(spread.y < spread.z));
  auto axis = [&](Vec3<T> a) { return along_x ? a.x : along_y ? a.y : a.z; };
  for (int i = 0; i < n; i++) rw.low[order[i]] = axis(rw.bound_p[order[i]]) - axis(rw.bound[order[i]]);
  sort_by(order, n, [&](int s) { return rw.low[s]; });
  for (int i = 0; i < n; i++) {
    int a = order[i];
    T end = axis(rw.bound_p[a]) + axis(rw.bound[a]);
    for (int j = i + 1; j < n && !any(rw.low[order[j]] > end); j++) {
      if (all(boxes_apart(rw, a, order[j]))) continue;
      int p = pair_of(t, a, order[j]);
      if (p >= 0) add(p);
    }
  }
  for (int s = 0; s < t.ns; s++) {
    if (t.shape_type[s] != kPlane && t.shape_type[s] != kField) continue;
    for (int o = 0; o < t.ns; o++) {
      int p = pair_of(t, s, o);
      if (p >= 0) add(p);
    }
  }
  sort_by(rw.near, found, [](int p) { return p; });
  for (int i = 0; i < found; i++) rw.near_bits[i] = 1;
}

// no adjoint: chooses
template <class T> CS_OP void near_pairs(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                         const RowInputs<T>& in, const Options& o) {
  rw.count[5] = rw.count[7] = 0;
  bounds(t, th, tr, rw, in, o);
  if constexpr (lanes<T> == 1)
    if (t.large && t.np > kFewPairs) return sweep_and_prune(t, rw);
  int found = 0;
  CS_SHORT (int first = 0; first < t.np; first += kTeam) {
    int p = first + team_rank(), bits = kTeam == 1 || p < t.np ? near_lanes(t, rw, p) : 0, before;
    int more = how_many(bits != 0, before), at = found + before;
    if (bits && at < t.max_near) rw.near[at] = p, rw.near_bits[at] = bits;
    found += more;
    if (found > t.max_near) break;
  }
  team_wait();
  rw.count[7] = found > t.max_near, rw.count[5] = found > t.max_near ? t.max_near : found;
}

CS_END
