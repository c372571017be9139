// Free joint, of a root body: q = world position, unit quaternion; v = velocity of the body's origin in world axes,
// angular velocity in body axes.   nq = 7, nv = 6.   Joint frame and anchor play no part
#pragma once
#include "frame.h"

CS_BEGIN

// place: q is the pose
template <class T> CS_FN void free_place(const JointArgs<T>& j, Quat<T>& quat, Mat3<T>& R, Vec3<T>& p) {
  p = {j.q[0], j.q[1], j.q[2]};
  quat = {j.q[3], j.q[4], j.q[5], j.q[6]};
  R = matrix(quat);
}
template <class T> CS_FN void free_place_adj(const Mat3<T>& R, Vec3<T> p, Force<T> X, JointBars<T>& bar) {
  Vec3<T> m = anchor_moment(R, p, zero3<T>(), X);
  bar.q[0] += X.f.x, bar.q[1] += X.f.y, bar.q[2] += X.f.z;
  bar.q[3] += m.x, bar.q[4] += m.y, bar.q[5] += m.z;
}

// subspace: the world axes, then the body axes through the body's origin
template <class T> CS_FN void free_subspace(const Mat3<T>& R, Vec3<T> p, Motion<T>* S) {
  Vec3<T> o = zero3<T>(), e[3];
  T one = T(1), zero = T(0);
  S[0] = {o, {one, zero, zero}};
  S[1] = {o, {zero, one, zero}};
  S[2] = {o, {zero, zero, one}};
  columns(R, e[0], e[1], e[2]);
  for (int k = 0; k < 3; k++) S[3 + k] = turning(e[k], p);
}
// adjoint: the world axes are constants
template <class T> CS_FN void free_subspace_adj(const Motion<T>* S, const Force<T>* S_bar, Force<T>& X) {
  for (int k = 3; k < 6; k++) X += cross(S[k], S_bar[k]);
}

CS_END
