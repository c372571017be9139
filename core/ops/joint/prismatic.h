// Prismatic joint: slide by q along `axis` (body frame).   nq = nv = 1.   The anchor plays no part
#pragma once
#include "frame.h"

CS_BEGIN

// place: p = p_pre + q R axis
template <class T>
CS_FN void prismatic_place(const JointFrame<T>& pre, const JointArgs<T>& j, Quat<T>& quat, Mat3<T>& R, Vec3<T>& p) {
  quat = pre.quat;
  R = matrix(quat);
  p = pre.p + mul(R, j.q[0] * j.axis);
}
template <class T>
CS_FN void prismatic_place_adj(const JointArgs<T>& j, const Mat3<T>& R, Force<T> X, JointBars<T>& bar, Force<T>& X_pre) {
  Vec3<T> f = tmul(R, X.f);
  bar.q[0] += dot(j.axis, f);
  bar.axis += j.q[0] * f;
  X_pre += X;
}

// subspace: a pure translation
template <class T> CS_FN void prismatic_subspace(const JointArgs<T>& j, const Mat3<T>& R, Motion<T>* S) {
  S[0] = {zero3<T>(), mul(R, j.axis)};
}
template <class T>
CS_FN void prismatic_subspace_adj(const Mat3<T>& R, const Motion<T>* S, const Force<T>* S_bar, JointBars<T>& bar, Force<T>& X) {
  bar.axis += tmul(R, S_bar[0].f);
  X += cross(S[0], S_bar[0]);
}

CS_END
