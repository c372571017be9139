// Ball joint: turn by the unit quaternion q about `anchor`; v is the angular velocity in body axes.   nq = 4, nv = 3
#pragma once
#include "frame.h"

CS_BEGIN

// place: quat = quat_pre q
template <class T> CS_FN void ball_place(const JointFrame<T>& pre, const JointArgs<T>& j, Quat<T>& quat, Mat3<T>& R, Vec3<T>& p) {
  quat = mul(pre.quat, Quat<T>{j.q[0], j.q[1], j.q[2], j.q[3]});
  R = matrix(quat);
  p = anchored(pre, j.anchor, zero3<T>(), R);
}
template <class T> CS_FN void ball_place_adj(const JointFrame<T>& pre, const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p,
                                             Force<T> X, JointBars<T>& bar, Force<T>& X_pre) {
  Vec3<T> m = anchor_moment(R, p, j.anchor, X);
  bar.q[0] += m.x, bar.q[1] += m.y, bar.q[2] += m.z;
  anchored_adj(pre, R, X, bar.anchor);
  X_pre += X;
}

// subspace: the three body axes, through the anchor point
template <class T> CS_FN void ball_subspace(const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p, Motion<T>* S) {
  Vec3<T> e[3], p_a = p + mul(R, j.anchor);
  columns(R, e[0], e[1], e[2]);
  for (int k = 0; k < 3; k++) S[k] = turning(e[k], p_a);
}
template <class T>
CS_FN void ball_subspace_adj(const Mat3<T>& R, const Motion<T>* S, const Force<T>* S_bar, JointBars<T>& bar, Force<T>& X) {
  for (int k = 0; k < 3; k++) {
    turning_adj(R, S[k], S_bar[k], bar.anchor);
    X += cross(S[k], S_bar[k]);
  }
}

CS_END
