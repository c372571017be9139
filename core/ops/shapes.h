// shapes: where every shape is.   p = p_body + R_body shape_pos,  R = R_body R(shape_quat); on the world without the body
// saves: shape_p, shape_R.   smooth everywhere
#pragma once
#include "../base/team.h"
#include "../data/rows.h"

CS_BEGIN

template <class T> CS_OP void shapes(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw) {
  share(t.ns, [&](int s) {
    int b = t.shape_body[s];
    rw.shape_p[s] = b < 0 ? th.shape_pos[s] : tr.p[b] + mul(tr.R[b], th.shape_pos[s]);
    rw.shape_R[s] = matrix(b < 0 ? th.shape_quat[s] : mul(tr.quat[b], th.shape_quat[s]));
  });
}
// adjoint: a displacement of the body displaces the shape; shape_pos shifts it, shape_quat turns it about its own centre
template <class T> CS_OP void shapes_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                         const RowBars<T>& rb, const Bars<T>& bar, const Params<T>& th_bar) {
  if constexpr (kTeam > 1) {
    share(t.nb, [&](int b) {
      CS_SHORT (int s = 0; s < t.ns; s++)
        if (t.shape_body[s] == b) bar.X[b] += rb.shape[s];
    });
  }
  share(t.ns, [&](int s) {
    int b = t.shape_body[s];
    Force<T> F = rb.shape[s];
    if (kTeam == 1 && b >= 0) bar.X[b] += F;
    if (!th_bar.shape_pos) return;
    th_bar.shape_pos[s] += b < 0 ? F.f : tmul(tr.R[b], F.f);
    Vec3<T> m = tmul(rw.shape_R[s], F.n - cross(rw.shape_p[s], F.f));
    quat_normalise_adj(th.shape_quat[s], m, th_bar.shape_quat[s]);
  });
}

// no adjoint: bars are rigid displacements, counted from origins that stay where they are
// offset: what leads from coordinates of shape s to those of the tree of body b
template <class T> CS_FN Vec3<T> offset(const Tree& t, const Trace<T>& tr, int s, int b) {
  int a = t.shape_body[s];
  if (a >= 0 && b >= 0 && t.root[a] == t.root[b]) return zero3<T>();
  Vec3<T> from = a < 0 ? zero3<T>() : tr.origin[t.root[a]], to = b < 0 ? zero3<T>() : tr.origin[t.root[b]];
  return from - to;
}
// shape_point: a point of shape s that can touch a plane: centre, end or corner
template <class T> CS_FN Vec3<T> shape_point(const Tree& t, const Params<T>& th, const Rows<T>& rw, int s, int k) {
  Vec3<T> size = th.shape_size[s];
  T up = T(k & 1 ? -1 : 1);
  if (t.shape_type[s] == kSphere) return rw.shape_p[s];
  if (t.shape_type[s] == kCapsule) return rw.shape_p[s] + mul(rw.shape_R[s], Vec3<T>{T(0), T(0), up * size.y});
  if (t.shape_type[s] == kRectangle) up = T(k == 1 || k == 2 ? -1 : 1), size.z = T(0);
  return rw.shape_p[s] + mul(rw.shape_R[s], Vec3<T>{up * size.x, T(k & 2 ? -1 : 1) * size.y, T(k & 4 ? -1 : 1) * size.z});
}
// adjoint: a point fixed in the shape, and its sizes
template <class T> CS_FN void shape_point_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, int s, int k, Vec3<T> p_bar,
                                              const RowBars<T>& rb, const Params<T>& th_bar) {
  rb.shape[s] += Force<T>{cross(shape_point(t, th, rw, s, k), p_bar), p_bar};
  if (!th_bar.shape_size || t.shape_type[s] == kSphere) return;
  Vec3<T> m = tmul(rw.shape_R[s], p_bar), &size_bar = th_bar.shape_size[s];
  T up = T(k & 1 ? -1 : 1);
  if (t.shape_type[s] == kRectangle) up = T(k == 1 || k == 2 ? -1 : 1), m.z = T(0);
  if (t.shape_type[s] == kCapsule)
    size_bar.y = fma(up, m.z, size_bar.y);
  else
    size_bar += Vec3<T>{up * m.x, T(k & 2 ? -1 : 1) * m.y, T(k & 4 ? -1 : 1) * m.z};
}

// no adjoint: a choice of the model.   where contacts with a plane act: see collide/point_plane.h
template <class T> CS_FN T shape_spread(const Tree& t, int s) { return T(shape_points(t.shape_type[s]) > 1 ? 1 : 0); }

// no adjoint: a size, or nothing
template <class T> CS_FN T shape_radius(const Tree& t, const Params<T>& th, int s) {
  return t.shape_type[s] == kSphere || t.shape_type[s] == kCapsule ? th.shape_size[s].x : T(0);
}

CS_END
