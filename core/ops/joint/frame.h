// What the six joint types share: the frame a joint starts from, and the point it turns about.
//
// Each joint file has two pairs.   place: joint frame, q -> body pose;   subspace: body pose -> S, one Motion per dof.
// Bars of poses are Forces: X . (w, v) is the change under the rigid displacement (w, v) about the tree's origin. So
// place_adj hands the body's X to q, axis, anchor and the joint frame, and subspace_adj hands S_bar to the body's X.
#pragma once
#include "../../math/quat.h"
#include "../../math/spatial.h"

CS_BEGIN

template <class T> struct JointFrame {
  Quat<T> quat;  // orientation before the joint moves
  Vec3<T> p;     // its origin, from the tree's origin
};

// The numbers of one joint, and their bars: q_bar in tangent coordinates, one per dof
template <class T> struct JointArgs {
  Vec3<T> anchor, axis;
  const T* q;
};
template <class T> struct JointBars {
  Vec3<T> anchor, axis;
  T* q;
};

// anchored: place a body that has turned to R so that its anchor stays where the joint frame has it (plus slide)
template <class T> CS_FN Vec3<T> anchored(const JointFrame<T>& pre, Vec3<T> anchor, Vec3<T> slide, const Mat3<T>& R) {
  return pre.p + rotate(pre.quat, anchor + slide) - mul(R, anchor);
}
// adjoint: the body translates by (R_pre - R) d_anchor
template <class T> CS_FN void anchored_adj(const JointFrame<T>& pre, const Mat3<T>& R, Force<T> X, Vec3<T>& anchor_bar) {
  anchor_bar += rotate(conj(pre.quat), X.f) - tmul(R, X.f);
}

// no adjoint: used on bars only.   moment of X about the anchor, in body axes
template <class T> CS_FN Vec3<T> anchor_moment(const Mat3<T>& R, Vec3<T> p, Vec3<T> anchor, Force<T> X) {
  return tmul(R, X.n - cross(p + mul(R, anchor), X.f));
}

// turning: S of an axis e (world) through the anchor point p_a
template <class T> CS_FN Motion<T> turning(Vec3<T> e, Vec3<T> p_a) { return {e, cross(p_a, e)}; }
// adjoint by the anchor: p_a moves by R d_anchor
template <class T> CS_FN void turning_adj(const Mat3<T>& R, Motion<T> S, Force<T> S_bar, Vec3<T>& anchor_bar) {
  anchor_bar += tmul(R, cross(S.w, S_bar.f));
}

CS_END
