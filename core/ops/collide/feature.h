// feature: gap, frame and point of two features: the second half of collision, smooth given which features they are.
//
//   vertex against face   n = (x3 - x2) x (x4 - x2)/|.|,  phi = n . (p - x2) - r,  x = p - (phi + r) n, of a sphere x = p - r n
//                         p = x0, or where the edge (x0, x1) is cut by the side of the face through its edge (x5, x6):
//                         m = (x6 - x5) x n,  p = x0 + s (x1 - x0),  s = m . (x5 - x0)/m . (x1 - x0)
//   rim against plane     a = (x0 - x1)/|.|,  u = -(n - (n . a) a)/|.|,  p = x0 + r_c u,  then as a vertex without radius
//   edges                 c = (x1 - x0) x (x3 - x2),  n = +-c/|c|,  d = x2 - x0,
//                         c_a = x0 + s (x1 - x0),  s = (d x (x3 - x2)) . c/c^2,  c_b = x2 + t (x3 - x2),  t = (d x (x1 - x0)) . c/c^2,
//                         phi = n . (c_b - c_a) - r_a - r_b,  x = c_a + (r_a + phi/2) n
//   segments              as segments.h: closest points that are apart
// x0 .. x6 are the places of the vertices v[0] .. v[6] of a Feature (data/feature.h); whose they are says feature_side. Which features
// these are is chosen by convex.h, plane_solid.h and field.h. Normals point from a to b.
// kinks: none of its own; segments: see there. Degenerate features, which nobody chooses, have normal z and no derivative
#pragma once
#include "../../data/feature.h"
#include "segments.h"

CS_BEGIN

// no adjoint: integers.   which shape vertex v[k] belongs to: 0 a, 1 b, -1 none
CS_FN int feature_side(const Feature& f, int k) {
  bool one_on_face = f.kind == kVertexFace || f.kind == kRim;
  int used = f.kind == kVertexFace ? 7 : f.kind == kRim ? 5 : f.kind == kNoFeature ? 0 : 4;
  if (k >= used || f.v[k] < 0) return -1;
  if (one_on_face) return (k < 2) == (f.swap == 0) ? 1 : 0;
  return k < 2 ? 0 : 1;
}

// no adjoint: a unit vector y = k a has a_bar = k (y_bar - (y . y_bar) y), see normal_part
// 1/|a|, 0 for nothing. Divided by its largest component first: squares of areas of small and large bodies leave the range of float
template <class T> CS_FN T inverse_length(Vec3<T> a) {
  T largest = max(abs(a.x), max(abs(a.y), abs(a.z)));
  auto some = largest > T(ElementOf<T>(1e-36));
  T k = T(1) / select(some, largest, T(1));
  Vec3<T> b = k * a;
  return select(some, k / sqrt(select(some, dot(b, b), T(1))), T(0));
}
// no adjoint: used on bars
template <class T> CS_FN Vec3<T> normal_part(Vec3<T> y, Vec3<T> y_bar) { return y_bar - dot(y, y_bar) * y; }

// face_normal: outward normal of the face (x0, x1, x2), counterclockwise seen from outside
template <class T> CS_FN Vec3<T> face_normal(const Vec3<T>* x) {
  Vec3<T> c = cross(x[1] - x[0], x[2] - x[0]);
  T k = inverse_length(c);
  return {k * c.x, k * c.y, select(k > T(0), k * c.z, T(1))};
}
// adjoint: the normal's length, then the product
template <class T> CS_FN void face_normal_adj(const Vec3<T>* x, Vec3<T> n_bar, Vec3<T>* x_bar) {
  Vec3<T> a = x[1] - x[0], b = x[2] - x[0], c = cross(a, b);
  T k = inverse_length(c);
  Vec3<T> c_bar = k * normal_part(k * c, n_bar), a_bar = cross(b, c_bar), b_bar = cross(c_bar, a);
  x_bar[0] -= a_bar + b_bar, x_bar[1] += a_bar, x_bar[2] += b_bar;
}

// edge_cut: where the edge (x0, x1) meets the plane through the edge (x5, x6) that stands on a face with normal n
template <class T> CS_FN Vec3<T> edge_cut(const Vec3<T>* x, Vec3<T> n) {
  Vec3<T> m = cross(x[6] - x[5], n), d = x[1] - x[0];
  T den = dot(m, d);
  auto meets = !(den == T(0));
  return fma(select(meets, dot(m, x[5] - x[0]) / select(meets, den, T(1)), T(0)), d, x[0]);
}
// adjoint: s = num/den, then both products with m
template <class T> CS_FN void edge_cut_adj(const Vec3<T>* x, Vec3<T> n, Vec3<T> p_bar, Vec3<T>* x_bar, Vec3<T>& n_bar) {
  Vec3<T> e = x[6] - x[5], m = cross(e, n), d = x[1] - x[0], w = x[5] - x[0];
  T den = dot(m, d);
  auto meets = !(den == T(0));
  T inv = select(meets, T(1) / select(meets, den, T(1)), T(0)), s = inv * dot(m, w);
  T num_bar = inv * dot(d, p_bar), den_bar = -s * num_bar;
  Vec3<T> m_bar = fma(num_bar, w, den_bar * d), w_bar = num_bar * m, d_bar = fma(s, p_bar, den_bar * m);
  Vec3<T> e_bar = cross(n, m_bar);
  n_bar += cross(m_bar, e);
  x_bar[0] += p_bar - w_bar - d_bar, x_bar[1] += d_bar;
  x_bar[5] += w_bar - e_bar, x_bar[6] += e_bar;
}

// no adjoint: the same as w/|w|.   w across the axis a, k = 1/|w|. Of an almost upright axis w is small, and what rounding leaves of it
// along a would lift the rim's point by its radius times rounding/|w|: take that away once more
template <class T> CS_FN Vec3<T> across(Vec3<T> w, T k, Vec3<T> a) {
  Vec3<T> u = k * w;
  u -= dot(u, a) * a;
  return inverse_length(u) * u;
}

// rim_point: the point of a rim (centre x0, radius r, on the axis from x1 to x0) that lies deepest against n
template <class T> CS_FN Vec3<T> rim_point(const Vec3<T>* x, Vec3<T> n, T r) {
  Vec3<T> d = x[0] - x[1], a = inverse_length(d) * d, w = dot(n, a) * a - n;
  return fma(r, across(w, inverse_length(w), a), x[0]);
}
// adjoint: u, then w = (n . a) a - n, then the axis
template <class T>
CS_FN void rim_point_adj(const Vec3<T>* x, Vec3<T> n, T r, Vec3<T> p_bar, Vec3<T>* x_bar, Vec3<T>& n_bar, T& r_bar) {
  Vec3<T> d = x[0] - x[1];
  T k = inverse_length(d);
  Vec3<T> a = k * d, w = dot(n, a) * a - n;
  T k_w = inverse_length(w);
  Vec3<T> u = across(w, k_w, a), w_bar = (r * k_w) * normal_part(u, p_bar);
  r_bar += dot(u, p_bar);
  T c_bar = dot(a, w_bar);
  n_bar += fma(c_bar, a, -w_bar);
  Vec3<T> d_bar = k * normal_part(a, fma(c_bar, n, dot(n, a) * w_bar));
  x_bar[0] += p_bar + d_bar, x_bar[1] -= d_bar;
}

// on_face: a point with a radius against the plane through x_f with normal n; side -1: the face belongs to b
template <class T> CS_FN Touch<T> on_face(Vec3<T> x_f, Vec3<T> n, Vec3<T> p, T r, T side, bool on_shape) {
  T gap = dot(n, p - x_f) - r;
  return {gap, tangent_frame(side * n), p - (on_shape ? r : gap + r) * n};
}
// adjoint: x and frame, then the gap
template <class T> CS_FN void on_face_adj(Vec3<T> x_f, Vec3<T> n, Vec3<T> p, T r, T side, bool on_shape, const Touch<T>& y_bar,
                                          Vec3<T>& x_f_bar, Vec3<T>& n_bar, Vec3<T>& p_bar, T& r_bar) {
  T gap = dot(n, p - x_f) - r, k = -dot(n, y_bar.x), gap_bar = y_bar.gap + (on_shape ? T(0) : k);
  Vec3<T> side_bar = zero3<T>();
  tangent_frame_adj(side * n, y_bar.frame, side_bar);
  n_bar += side * side_bar - (on_shape ? r : gap + r) * y_bar.x;
  n_bar += gap_bar * (p - x_f);
  p_bar += fma(gap_bar, n, y_bar.x);
  x_f_bar -= gap_bar * n;
  r_bar += k - gap_bar;
}

// edges_touch: two lines through their common perpendicular, of which `sign` says which way leads from a to b. The gap is measured between
// the closest points c_a, c_b: of almost parallel edges n is less than exact, and an error of n counts with the distance it is applied to
template <class T> CS_FN Touch<T> edges_touch(const Vec3<T>* x, T sign, T r_a, T r_b) {
  Vec3<T> e_a = x[1] - x[0], e_b = x[3] - x[2], d = x[2] - x[0], c = cross(e_a, e_b);
  T k = inverse_length(c);
  Vec3<T> q = {k * c.x, k * c.y, select(k > T(0), k * c.z, T(1))}, n = sign * q;
  T s = k * dot(cross(d, e_b), q), t = k * dot(cross(d, e_a), q);
  Vec3<T> c_a = fma(s, e_a, x[0]), c_b = fma(t, e_b, x[2]);
  T gap = dot(n, c_b - c_a) - r_a - r_b;
  return {gap, tangent_frame(n), fma(fma(T(0.5), gap, r_a), n, c_a)};
}
// adjoint: x and frame; the gap, to which only a shift of c_a and c_b along n counts; s = k g . q with g = d x e_b; the perpendicular q = k c
template <class T> CS_FN void edges_touch_adj(const Vec3<T>* x, T sign, T r_a, const Touch<T>& y, const Touch<T>& y_bar,
                                              Vec3<T>* x_bar, T& r_a_bar, T& r_b_bar) {
  Vec3<T> e_a = x[1] - x[0], e_b = x[3] - x[2], d = x[2] - x[0], c = cross(e_a, e_b), n = y.frame.r0, n_bar = zero3<T>();
  T k = inverse_length(c), k_n = dot(n, y_bar.x), gap_bar = fma(T(0.5), k_n, y_bar.gap);
  r_a_bar += k_n - gap_bar, r_b_bar -= gap_bar;
  tangent_frame_adj(n, y_bar.frame, n_bar);
  n_bar += fma(T(0.5), y.gap, r_a) * y_bar.x;
  Vec3<T> q = sign * n, g = cross(d, e_b), c_b_bar = gap_bar * n, c_a_bar = y_bar.x - c_b_bar;
  T s = k * dot(g, q), t = k * dot(cross(d, e_a), q), s_bar = k * dot(e_a, y_bar.x);  // s_bar: already times k
  Vec3<T> g_bar = s_bar * q, q_bar = fma(s_bar, g, sign * n_bar), c_bar = k * normal_part(q, q_bar) - (s * s_bar) * q;
  Vec3<T> d_bar = cross(e_b, g_bar), e_a_bar = fma(s, c_a_bar, cross(e_b, c_bar));
  Vec3<T> e_b_bar = fma(t, c_b_bar, cross(g_bar, d) + cross(c_bar, e_a));
  x_bar[0] += c_a_bar - d_bar - e_a_bar, x_bar[1] += e_a_bar;
  x_bar[2] += c_b_bar + d_bar - e_b_bar, x_bar[3] += e_b_bar;
}

// feature_segment: the segment from x0 to x1, or the vertex x0 alone
template <class T> CS_FN Segment<T> feature_segment(const Vec3<T>* x, const int* v, T r) {
  if (v[1] < 0 || v[1] == v[0]) return {x[0], zero3<T>(), r};
  return {fma(T(0.5), x[1] - x[0], x[0]), T(0.5) * (x[1] - x[0]), r};
}
// adjoint: linear
template <class T> CS_FN void feature_segment_adj(const int* v, const Segment<T>& y_bar, Vec3<T>* x_bar, T& r_bar) {
  r_bar += y_bar.r;
  if (v[1] < 0 || v[1] == v[0]) {
    x_bar[0] += y_bar.p;
    return;
  }
  x_bar[0] += T(0.5) * (y_bar.p - y_bar.e), x_bar[1] += T(0.5) * (y_bar.p + y_bar.e);
}

// feature_touch: x [7] the places of v[0..6] in the frame of b's tree, where unused anything finite; r_a, r_b the radii around them (of a
// rim: the cylinder's); on_shape: the point's shape is a sphere, see point_plane.h
template <class T> CS_OP Touch<T> feature_touch(const Feature& f, const Vec3<T>* x, T r_a, T r_b, bool on_shape) {
  if (f.kind == kVertexFace || f.kind == kRim) {
    Vec3<T> n = face_normal(x + 2);
    T r = f.swap ? r_a : r_b, side = T(f.swap ? -1 : 1);
    if (f.kind == kRim) return on_face(x[2], n, rim_point(x, n, r), T(0), side, false);
    return on_face(x[2], n, f.v[1] >= 0 ? edge_cut(x, n) : x[0], r, side, on_shape);
  }
  if (f.kind == kSegments) return segments(feature_segment(x, f.v, r_a), feature_segment(x + 2, f.v + 2, r_b), 0);
  if (f.kind == kEdges) return edges_touch(x, T(f.v[4]), r_a, r_b);
  return {T(ElementOf<T>(kNowhere)), tangent_frame(Vec3<T>{T(0), T(0), T(1)}), zero3<T>()};
}
// adjoint: x_bar [7]; what is not used stays as it is
template <class T> CS_OP void feature_touch_adj(const Feature& f, const Vec3<T>* x, T r_a, T r_b, bool on_shape,
                                                const Touch<T>& y, const Touch<T>& y_bar, Vec3<T>* x_bar, T& r_a_bar,
                                                T& r_b_bar) {
  if (f.kind == kVertexFace || f.kind == kRim) {
    Vec3<T> n = face_normal(x + 2), n_bar = zero3<T>(), p_bar = zero3<T>();
    T r = f.swap ? r_a : r_b, side = T(f.swap ? -1 : 1), none_bar = T(0), &r_bar = f.swap ? r_a_bar : r_b_bar;
    if (f.kind == kRim) {
      on_face_adj(x[2], n, rim_point(x, n, r), T(0), side, false, y_bar, x_bar[2], n_bar, p_bar, none_bar);
      rim_point_adj(x, n, r, p_bar, x_bar, n_bar, r_bar);
    } else {
      bool cut = f.v[1] >= 0;
      on_face_adj(x[2], n, cut ? edge_cut(x, n) : x[0], r, side, on_shape, y_bar, x_bar[2], n_bar, p_bar, r_bar);
      if (cut)
        edge_cut_adj(x, n, p_bar, x_bar, n_bar);
      else
        x_bar[0] += p_bar;
    }
    face_normal_adj(x + 2, n_bar, x_bar + 2);
  } else if (f.kind == kSegments) {
    Segment<T> a_bar = {zero3<T>(), zero3<T>(), T(0)}, b_bar = a_bar;
    segments_adj(feature_segment(x, f.v, r_a), feature_segment(x + 2, f.v + 2, r_b), 0, y, y_bar, a_bar, b_bar);
    feature_segment_adj(f.v, a_bar, x_bar, r_a_bar);
    feature_segment_adj(f.v + 2, b_bar, x_bar + 2, r_b_bar);
  } else if (f.kind == kEdges) {
    edges_touch_adj(x, T(f.v[4]), r_a, y, y_bar, x_bar, r_a_bar, r_b_bar);
  }
}

CS_END
