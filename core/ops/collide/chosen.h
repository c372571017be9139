// chosen: pairs whose features are chosen lane by lane, then differentiated: all but round ones against each other, and points against a plane.
//
// choose takes every lane's world apart into numbers, finds its features (convex.h, plane_solid.h, field.h), and keeps them in rw.feature;
// chosen_touch makes gap, frame and point of them (feature.h). A lane that has fewer points than another has kNoFeature there.
// kinks: another feature is chosen
#pragma once
#include "convex.h"
#include "feature.h"
#include "field.h"
#include "plane_solid.h"
#include "polygon.h"
#include "vertices.h"

CS_BEGIN

// One world of T: itself, or what a lane of a pack holds
template <class T, int L> struct LaneType {
  using Type = ElementOf<T>;
};
template <class T> struct LaneType<T, 1> {
  using Type = T;
};
template <class T> using LaneOf = typename LaneType<T, lanes<T>>::Type;

// no adjoint: linear.   lane l of a number, or of a struct of numbers
template <class T> CS_FN LaneOf<T> lane_of(const T& a, int l) {
  if constexpr (lanes<T> == 1)
    return a;
  else
    return lane(a, l);
}
// no adjoint: linear
template <template <class> class S, class T> CS_FN S<LaneOf<T>> lane_of(const S<T>& a, int l) {
  if constexpr (lanes<T> == 1) {
    return a;
  } else {
    S<LaneOf<T>> y;
    for (int i = 0; i < int(sizeof(a) / sizeof(T)); i++)
      reinterpret_cast<LaneOf<T>*>(&y)[i] = reinterpret_cast<const LaneOf<T>*>(&a)[i * lanes<T> + l];
    return y;
  }
}
// no adjoint: linear.   sets lane l of a struct of numbers
template <template <class> class S, class T> CS_FN void put_lane(S<T>& a, int l, const S<LaneOf<T>>& x) {
  if constexpr (lanes<T> == 1)
    a = x;
  else
    for (int i = 0; i < int(sizeof(a) / sizeof(T)); i++)
      reinterpret_cast<LaneOf<T>*>(&a)[i * lanes<T> + l] = reinterpret_cast<const LaneOf<T>*>(&x)[i];
}
// no adjoint: linear.   x in lane l, zero in all others
template <class T> CS_FN T lane_only(LaneOf<T> x, int l) {
  if constexpr (lanes<T> == 1) {
    return x;
  } else {
    T y = T(0);
    set_lane(y, l, x);
    return y;
  }
}
// no adjoint: linear
template <class T> CS_FN Vec3<T> lane_only(Vec3<LaneOf<T>> a, int l) {
  return {lane_only<T>(a.x, l), lane_only<T>(a.y, l), lane_only<T>(a.z, l)};
}

// Relative error of poses in float: a few roundings of a quaternion and its matrix
constexpr double kFloatRounding = 5e-7;

// no adjoint: gathers arguments.   lane l of shape s as numbers, its vertices in x [kMaxVertices], shifted into another tree's frame
template <class T>
CS_FN Solid solid(const Tree& t, const Params<T>& th, const Rows<T>& rw, int s, int l, Vec3<T> shift, Vec3<double>* x) {
  auto number = [&](Vec3<T> a) { return Vec3<double>{double(lane(a.x, l)), double(lane(a.y, l)), double(lane(a.z, l))}; };
  const Mat3<T>& R = rw.shape_R[s];
  int type = t.shape_type[s], n = t.solid_n[3 * s];
  const int* at = t.solid_adr + 4 * s;
  Solid g = {type,
             n,
             0.0,
             number(rw.shape_p[s] + shift),
             number(th.shape_size[s]),
             {number(R.r0), number(R.r1), number(R.r2)},
             x,
             t.solid_n[3 * s + 1],
             t.solid_n[3 * s + 2],
             t.solid + at[0],
             t.solid + at[1],
             t.solid + at[2],
             t.solid + at[3]};
  if (shape_round(type)) g.r = g.size.x;
  if (sizeof(ElementOf<T>) == 4) g.rounding = kFloatRounding;
  for (int v = 0; v < n; v++) x[v] = g.p + mul(g.R, number(shape_vertex(t, th, s, v)));
  return g;
}

// no adjoint: chooses.   a number that is finite if the pose and the sizes are
CS_FN double pose_sum(const Solid& g) {
  Vec3<double> sum = g.p + g.size + (g.R.r0 + g.R.r1 + g.R.r2);
  return sum.x + sum.y + sum.z;
}

// no adjoint: chooses.   features of one lane; returns how many
template <class T> CS_FN int choose_lane(const Tree& t, const Params<T>& th, const Rows<T>& rw, int p, int l, Vec3<T> shift,
                                         double reach, Feature* out) {
  Vec3<double> x_a[kMaxVertices], x_b[kMaxVertices];
  int a = t.pair_a[p], b = t.pair_b[p], kind = pair_kind(t, p);
  Solid g_b = solid(t, th, rw, b, l, zero3<T>(), x_b);
  Solid g_a = solid(t, th, rw, a, l, shift, x_a);
  // a world that went wrong has no features: where NaN is, nothing could be looked up
  if (!finite(pose_sum(g_a) + pose_sum(g_b) + reach)) return 0;
  if (kind == kSolidOnPlane) return t.planar ? choose_line(g_a, g_b, reach, out) : choose_plane(g_a, g_b, reach, out);
  if (kind == kOnField) {
    const T* heights = th.height + t.height_adr[a];
    auto height = [&](int id) { return double(lane(heights[id], l)); };
    return choose_field(FieldGrid{t.field_nx[a], t.field_ny[a], g_a.size, g_a.p, g_a.R}, height, g_b, reach, out);
  }
  return t.planar ? choose_polygon(g_a, g_b, reach, out) : choose_convex(g_a, g_b, reach, out);
}

// no adjoint: chooses.   features of the next candidates, in lanes where the pair is near; returns how many points the fullest lane has, at most `room`
template <class T>
CS_OP int choose(const Tree& t, const Params<T>& th, const Rows<T>& rw, int p, int bits, Vec3<T> shift, T reach, int room) {
  int L = lanes<T>, most = 0, points_of = pair_points(t.shape_type[t.pair_a[p]], t.shape_type[t.pair_b[p]]),
      n = room < points_of ? room : points_of;
  Feature found[kFieldPoints];
  Feature* to = rw.feature + rw.count[6] * L;
  for (int i = 0; i < n * L; i++) to[i].kind = kNoFeature;
  for (int l = 0; l < L; l++) {
    if (!(bits >> l & 1)) continue;
    int points = choose_lane(t, th, rw, p, l, shift, double(lane(reach, l)), found);
    if (points > n) points = n, rw.count[7] = 1;
    most = points > most ? points : most;
    for (int k = 0; k < points; k++) to[k * L + l] = found[k];
  }
  return most;
}

// One lane of a candidate: its vertices, radii, and whether it touches on its own surface
template <class E> struct Places {
  Vec3<E> x[7];
  E r_a, r_b;
  bool on_shape;
};

// no adjoint: integers.   whether size.x of shape s is the radius of a feature: of spheres, capsules, and the rim of a cylinder
CS_FN bool has_radius(const Tree& t, const Feature& f, int s) {
  return shape_round(t.shape_type[s]) || (f.kind == kRim && t.shape_type[s] == kCylinder);
}

// no adjoint: gathers arguments
template <class T>
CS_FN Places<LaneOf<T>> places(const Tree& t, const Params<T>& th, const Rows<T>& rw, const Feature& f, int c, int l) {
  using E = LaneOf<T>;
  Places<E> g;
  int shape[2] = {t.pair_a[rw.cand_pair[c]], t.pair_b[rw.cand_pair[c]]};
  for (int k = 0; k < 7; k++) {
    int side = feature_side(f, k);
    g.x[k] = zero3<E>();
    if (side < 0) continue;
    Vec3<T> x = rw.shape_p[shape[side]] + mul(rw.shape_R[shape[side]], shape_vertex(t, th, shape[side], f.v[k]));
    if (side == 0) x += rw.shift[c];
    g.x[k] = lane_of(x, l);
  }
  auto radius = [&](int s) { return has_radius(t, f, s) ? lane_of(th.shape_size[s].x, l) : E(0); };
  g.r_a = radius(shape[0]), g.r_b = radius(shape[1]);
  g.on_shape = t.shape_type[shape[f.swap ? 0 : 1]] == kSphere;
  return g;
}

template <class T> CS_OP Touch<T> chosen_touch(const Tree& t, const Params<T>& th, const Rows<T>& rw, int c) {
  Touch<T> y;
  for (int l = 0; l < lanes<T>; l++) {
    const Feature& f = rw.feature[c * lanes<T> + l];
    Places<LaneOf<T>> g = places(t, th, rw, f, c, l);
    put_lane(y, l, feature_touch(f, g.x, g.r_a, g.r_b, g.on_shape));
  }
  return y;
}
// adjoint: places of vertices are those of shapes, and of vertices within them
template <class T> CS_OP void chosen_touch_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, int c, const Touch<T>& y,
                                               const Touch<T>& y_bar, const RowBars<T>& rb, const Params<T>& th_bar) {
  using E = LaneOf<T>;
  int shape[2] = {t.pair_a[rw.cand_pair[c]], t.pair_b[rw.cand_pair[c]]};
  for (int l = 0; l < lanes<T>; l++) {
    const Feature& f = rw.feature[c * lanes<T> + l];
    if (f.kind == kNoFeature || !(rw.used[c] >> l & 1)) continue;
    Places<E> g = places(t, th, rw, f, c, l);
    Vec3<E> x_bar[7];
    for (Vec3<E>& x : x_bar) x = zero3<E>();
    E r_bar[2] = {E(0), E(0)};
    feature_touch_adj(f, g.x, g.r_a, g.r_b, g.on_shape, lane_of(y, l), lane_of(y_bar, l), x_bar, r_bar[0], r_bar[1]);
    for (int k = 0; k < 7; k++) {
      int side = feature_side(f, k);
      if (side < 0) continue;
      int s = shape[side];
      Vec3<T> to = lane_only<T>(x_bar[k], l), x = rw.shape_p[s] + mul(rw.shape_R[s], shape_vertex(t, th, s, f.v[k]));
      rb.shape[s] += Force<T>{cross(x, to), to};
      if (th_bar.shape_size) shape_vertex_adj(t, th, s, f.v[k], tmul(rw.shape_R[s], to), th_bar);
    }
    for (int side = 0; side < 2 && th_bar.shape_size; side++)
      if (has_radius(t, f, shape[side])) th_bar.shape_size[shape[side]].x += lane_only<T>(r_bar[side], l);
  }
}

CS_END
