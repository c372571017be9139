// Revolute joint: turn by q about `axis` through `anchor`, both in the body frame.   nq = nv = 1
#pragma once
#include "frame.h"

CS_BEGIN

// place: quat = quat_pre (cos q/2, axis sin q/2)
template <class T>
CS_FN void revolute_place(const JointFrame<T>& pre, const JointArgs<T>& j, Quat<T>& quat, Mat3<T>& R, Vec3<T>& p) {
  T s, c;
  sincos(T(0.5) * j.q[0], s, c);
  Vec3<T> u = s * j.axis;
  quat = mul(pre.quat, Quat<T>{c, u.x, u.y, u.z});
  R = matrix(quat);
  p = anchored(pre, j.anchor, zero3<T>(), R);
}
// adjoint: d_theta (body axes) = axis dq + sin q d_axis - (1 - cos q) axis x d_axis, about the anchor; d_axis normal to axis
template <class T> CS_FN void revolute_place_adj(const JointFrame<T>& pre, const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p,
                                                 Force<T> X, JointBars<T>& bar, Force<T>& X_pre) {
  T s, c;
  sincos(T(0.5) * j.q[0], s, c);
  Vec3<T> m = anchor_moment(R, p, j.anchor, X);
  bar.q[0] += dot(j.axis, m);
  bar.axis += fma((s + s) * c, m, ((s + s) * s) * cross(j.axis, m));
  anchored_adj(pre, R, X, bar.anchor);
  X_pre += X;
}

// subspace: the axis in world, through the anchor point
template <class T> CS_FN void revolute_subspace(const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p, Motion<T>* S) {
  S[0] = turning(mul(R, j.axis), p + mul(R, j.anchor));
}
template <class T> CS_FN void revolute_subspace_adj(const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p, const Motion<T>* S,
                                                    const Force<T>* S_bar, JointBars<T>& bar, Force<T>& X) {
  bar.axis += anchor_moment(R, p, j.anchor, S_bar[0]);
  turning_adj(R, S[0], S_bar[0], bar.anchor);
  X += cross(S[0], S_bar[0]);
}

CS_END
