// point_plane: a point with a radius against a plane, n the plane's z.
//
//   phi = n . (p - p_plane) - r;   x = p - (r + spread phi) n;   tangents: the plane's x and y
// spread 0: x on the shape, the true lever arm of a ball that is still above the plane. spread 1: x on the plane, for shapes with several points.
// There the velocities of a rigid body at several points of one plane agree with each other exactly,
// so that a box that sticks with four corners is redundant and not contradictory.
// smooth everywhere
#pragma once
#include "../shapes.h"

CS_BEGIN

// What collision knows of two features, in the frame of b's tree
template <class T> struct Touch {
  T gap;
  Mat3<T> frame;  // rows: normal a -> b, tangents
  Vec3<T> x;
};

template <class T> CS_FN Touch<T> point_plane(Vec3<T> p_plane, const Mat3<T>& R, Vec3<T> p, T r, T spread) {
  Mat3<T> C;
  columns(R, C.r1, C.r2, C.r0);
  T gap = dot(C.r0, p - p_plane) - r;
  return {gap, C, p - fma(spread, gap, r) * C.r0};
}
// adjoint: p_bar; plane_bar: (turn of the plane about its own origin, shift); r_bar
template <class T> CS_FN void point_plane_adj(const Touch<T>& y, Vec3<T> p_plane, Vec3<T> p, T r, T spread, Touch<T> y_bar,
                                              Vec3<T>& p_bar, Force<T>& plane_bar, T& r_bar) {
  Vec3<T> n = y.frame.r0, n_bar = y_bar.frame.r0;
  // x
  T k = -dot(n, y_bar.x);
  p_bar += y_bar.x;
  r_bar += k;
  T gap_bar = fma(spread, k, y_bar.gap);
  n_bar -= fma(spread, y.gap, r) * y_bar.x;
  // gap
  n_bar += gap_bar * (p - p_plane);
  p_bar += gap_bar * n;
  r_bar -= gap_bar;
  plane_bar.f -= gap_bar * n;
  // frame: three axes that turn together
  plane_bar.n += cross(n, n_bar) + cross(y.frame.r1, y_bar.frame.r1) + cross(y.frame.r2, y_bar.frame.r2);
}

CS_END
