// Planar joint: slide by (x, y) in the joint frame's plane, then turn about its z axis through `anchor`.   nq = nv = 3
#pragma once
#include "frame.h"

CS_BEGIN

// place: quat = quat_pre (cos angle/2, 0, 0, sin angle/2)
template <class T>
CS_FN void planar_place(const JointFrame<T>& pre, const JointArgs<T>& j, Quat<T>& quat, Mat3<T>& R, Vec3<T>& p) {
  T s, c;
  sincos(T(0.5) * j.q[2], s, c);
  quat = mul(pre.quat, Quat<T>{c, T(0), T(0), s});
  R = matrix(quat);
  p = anchored(pre, j.anchor, Vec3<T>{j.q[0], j.q[1], T(0)}, R);
}
template <class T> CS_FN void planar_place_adj(const JointFrame<T>& pre, const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p,
                                               Force<T> X, JointBars<T>& bar, Force<T>& X_pre) {
  Vec3<T> f = rotate(conj(pre.quat), X.f);
  bar.q[0] += f.x, bar.q[1] += f.y;
  bar.q[2] += anchor_moment(R, p, j.anchor, X).z;
  anchored_adj(pre, R, X, bar.anchor);
  X_pre += X;
}

// subspace: x and y are fixed in the joint frame, z turns with the body
template <class T>
CS_FN void planar_subspace(const JointFrame<T>& pre, const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p, Motion<T>* S) {
  Vec3<T> x, y, z;
  columns(matrix(pre.quat), x, y, z);
  S[0] = {zero3<T>(), x};
  S[1] = {zero3<T>(), y};
  S[2] = turning(z, p + mul(R, j.anchor));
}
template <class T> CS_FN void planar_subspace_adj(const Mat3<T>& R, const Motion<T>* S, const Force<T>* S_bar, JointBars<T>& bar,
                                                  Force<T>& X, Force<T>& X_pre) {
  X_pre += cross(S[0], S_bar[0]) + cross(S[1], S_bar[1]);
  turning_adj(R, S[2], S_bar[2], bar.anchor);
  X += cross(S[2], S_bar[2]);
}

CS_END
