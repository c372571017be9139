// Fixed joint: the body is welded to its joint frame.   nq = nv = 0
#pragma once
#include "frame.h"

CS_BEGIN

// place: the joint frame itself
template <class T> CS_FN void fixed_place(const JointFrame<T>& pre, Quat<T>& quat, Mat3<T>& R, Vec3<T>& p) {
  quat = pre.quat;
  R = matrix(quat);
  p = pre.p;
}
template <class T> CS_FN void fixed_place_adj(Force<T> X, Force<T>& X_pre) { X_pre += X; }

CS_END
