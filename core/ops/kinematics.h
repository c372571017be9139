// kinematics: q -> pose of every body, motion subspace S of every dof.
//
//   X_pb = T(joint_pos) R(joint_quat) T(anchor) X_joint(q) T(-anchor)
// saves: quat, R, p, origin, S.   smooth everywhere
#pragma once
#include "joint/ball.h"
#include "joint/fixed.h"
#include "joint/free.h"
#include "joint/planar.h"
#include "joint/prismatic.h"
#include "joint/revolute.h"
#include "tree_together.h"

CS_BEGIN

// joint_frame: where joint b starts from. For a root body relative to its origin, which is zero until it is known
template <class T> CS_FN JointFrame<T> joint_frame(const Tree& t, const Params<T>& th, const Trace<T>& tr, int b) {
  int P = t.parent[b];
  if (P < 0) return {th.joint_quat[b], th.joint_pos[b] - tr.origin[b]};
  return {mul(tr.quat[P], th.joint_quat[b]), tr.p[P] + mul(tr.R[P], th.joint_pos[b])};
}
// adjoint: X_pre moves the frame, and the parent as much; joint_pos shifts it, joint_quat turns it about its own origin
template <class T> CS_FN void joint_frame_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, int b,
                                              const JointFrame<T>& pre, Force<T> X_pre, const Params<T>& th_bar) {
  int P = t.parent[b];
  if (!th_bar.joint_pos) return;
  th_bar.joint_pos[b] += P >= 0 ? tmul(tr.R[P], X_pre.f) : X_pre.f;
  Vec3<T> m = rotate(conj(pre.quat), X_pre.n - cross(pre.p, X_pre.f));
  quat_normalise_adj(th.joint_quat[b], m, th_bar.joint_quat[b]);
}

// no adjoint: gathers arguments
template <class T> CS_FN JointArgs<T> joint_args(const Tree& t, const Params<T>& th, const Trace<T>& tr, int b) {
  return {th.joint_anchor[b], th.joint_axis[b], tr.q + t.q_adr[b]};
}

template <class T> CS_OP void kinematics(const Tree& t, const Params<T>& th, const Trace<T>& tr) {
  outwards(t, [&](int b) {
    bool root = t.parent[b] < 0;
    if (root) tr.origin[b] = zero3<T>();
    JointFrame<T> pre = joint_frame(t, th, tr, b);
    JointArgs<T> j = joint_args(t, th, tr, b);
    Quat<T> quat;
    Mat3<T> R;
    Vec3<T> p;
    switch (t.joint[b]) {
      case kFixed: fixed_place(pre, quat, R, p); break;
      case kRevolute: revolute_place(pre, j, quat, R, p); break;
      case kPrismatic: prismatic_place(pre, j, quat, R, p); break;
      case kBall: ball_place(pre, j, quat, R, p); break;
      case kFree: free_place(j, quat, R, p); break;
      default: planar_place(pre, j, quat, R, p); break;
    }
    if (root) tr.origin[b] = p, p = zero3<T>();
    tr.quat[b] = quat;
    tr.p[b] = p;
    tr.R[b] = R;
    Motion<T>* S = tr.S + t.v_adr[b];
    switch (t.joint[b]) {
      case kFixed: break;
      case kRevolute: revolute_subspace(j, R, p, S); break;
      case kPrismatic: prismatic_subspace(j, R, S); break;
      case kBall: ball_subspace(j, R, p, S); break;
      case kFree: free_subspace(R, p, S); break;
      default: planar_subspace(pre, j, R, p, S); break;
    }
  });
}
// adjoint, from the leaves inwards: S_bar -> X of the body -> q, axis, anchor, joint frame -> X of the parent
// Displacing a root moves its origin too; both count from the same instant's origin, so the sum over the tree is right.
// bar.a, which has been used by now, holds what bodies give their parents
template <class T>
CS_OP void kinematics_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Bars<T>& bar, const Params<T>& th_bar) {
  auto own = [&](int b) {
    JointFrame<T> pre = joint_frame(t, th, tr, b);
    JointArgs<T> j = joint_args(t, th, tr, b);
    JointBars<T> jb = {zero3<T>(), zero3<T>(), bar.q + t.v_adr[b]};
    const Mat3<T> R = tr.R[b];
    Vec3<T> p = tr.p[b];
    const Motion<T>* S = tr.S + t.v_adr[b];
    const Force<T>* S_bar = bar.S + t.v_adr[b];
    Force<T> X = bar.X[b], X_pre = zero_force<T>();
    switch (t.joint[b]) {
      case kFixed: fixed_place_adj(X, X_pre); break;
      case kRevolute:
        revolute_subspace_adj(j, R, p, S, S_bar, jb, X);
        revolute_place_adj(pre, j, R, p, X, jb, X_pre);
        break;
      case kPrismatic:
        prismatic_subspace_adj(R, S, S_bar, jb, X);
        prismatic_place_adj(j, R, X, jb, X_pre);
        break;
      case kBall:
        ball_subspace_adj(R, S, S_bar, jb, X);
        ball_place_adj(pre, j, R, p, X, jb, X_pre);
        break;
      case kFree:
        free_subspace_adj(S, S_bar, X);
        free_place_adj(R, p, X, jb);
        break;
      default:
        planar_subspace_adj(R, S, S_bar, jb, X, X_pre);
        planar_place_adj(pre, j, R, p, X, jb, X_pre);
        break;
    }
    if (th_bar.joint_axis) th_bar.joint_axis[b] += jb.axis, th_bar.joint_anchor[b] += jb.anchor;
    bar.a[b] = X_pre;
    if constexpr (kTeam == 1) joint_frame_adj(t, th, tr, b, pre, X_pre, th_bar);
  };
  leaves_first(t, own, [&](int c, int P) { bar.X[P] += bar.a[c]; });
  if constexpr (kTeam > 1)
    share(t.nb, [&](int b) { joint_frame_adj(t, th, tr, b, joint_frame(t, th, tr, b), bar.a[b], th_bar); });
}

CS_END
