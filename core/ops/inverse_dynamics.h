// inverse_dynamics: the joint forces that a motion needs (Luh, Walker, Paul 1980), without passive joint forces.
//
//   a_b = a_parent + sum_d S_d qdd_d + v_parent x v_b + slide x turn,     a_world = -gravity
//   f_b = I_b a_b + v_b x* I_b v_b - external_b + sum over children f;    tau_d = S_d . f_b
// slide x turn: free and planar joints slide along axes fixed in the parent and turn about axes fixed in the body.
// With qdd null this is the bias c(q, v).   saves: tr.a, tr.f.   smooth everywhere
#pragma once
#include "tree_together.h"

CS_BEGIN

// external_force: (torque, force at the centre of mass) in world axes -> about the tree's origin
template <class T> CS_FN Force<T> external_force(const Params<T>& th, const Trace<T>& tr, const T* w, int b) {
  Vec3<T> n = {w[0], w[1], w[2]}, f = {w[3], w[4], w[5]};
  Vec3<T> c = tr.p[b] + mul(tr.R[b], th.com[b]);
  return {n + cross(c, f), f};
}
// adjoint: undo n + c x f, then c, a point of the body
template <class T> CS_FN void external_force_adj(const Params<T>& th, const Trace<T>& tr, const T* w, int b, Motion<T> F_bar,
                                                 const Bars<T>& bar, const Params<T>& th_bar, T* w_bar) {
  Vec3<T> f = {w[3], w[4], w[5]};
  Vec3<T> c = tr.p[b] + mul(tr.R[b], th.com[b]);
  Vec3<T> c_bar = cross(f, F_bar.w), f_bar = F_bar.v + cross(F_bar.w, c);
  bar.X[b] += Force<T>{cross(c, c_bar), c_bar};
  if (th_bar.com) th_bar.com[b] += tmul(tr.R[b], c_bar);
  if (!w_bar) return;
  w_bar[0] += F_bar.w.x, w_bar[1] += F_bar.w.y, w_bar[2] += F_bar.w.z;
  w_bar[3] += f_bar.x, w_bar[4] += f_bar.y, w_bar[5] += f_bar.z;
}

// no adjoint: undone inside inverse_dynamics_adj.   the sliding and the turning part of a free or planar joint's own velocity
template <class T>
CS_FN void slide_and_turn(const Tree& t, const Trace<T>& tr, const T* v, int b, Motion<T>& slide, Motion<T>& turn) {
  int d = t.v_adr[b], n = joint_nv(t.joint[b]), k = joint_parent_fixed(t.joint[b]);
  slide = turn = zero_motion<T>();
  for (int i = 0; i < k; i++) slide = fma(v[d + i], tr.S[d + i], slide);
  for (int i = k; i < n; i++) turn = fma(v[d + i], tr.S[d + i], turn);
}

template <class T> CS_OP void inverse_dynamics(const Tree& t, const Params<T>& th, const Trace<T>& tr, const T* v, const T* qdd,
                                               const T* external, T* tau) {
  outwards(t, [&](int b) {
    int P = t.parent[b], d0 = t.v_adr[b], n = joint_nv(t.joint[b]);
    Motion<T> vb = tr.v[b];
    Motion<T> a = P >= 0 ? tr.a[P] + cross(tr.v[P], vb) : Motion<T>{zero3<T>(), -th.gravity[0]};
    if (qdd)
      for (int d = d0; d < d0 + n; d++) a = fma(qdd[d], tr.S[d], a);
    if (joint_parent_fixed(t.joint[b])) {
      Motion<T> slide, turn;
      slide_and_turn(t, tr, v, b, slide, turn);
      a += cross(slide, turn);
    }
    tr.a[b] = a;
  });
  // the force each body needs; each joint carries its subtree
  share(t.nb, [&](int b) {
    Motion<T> vb = tr.v[b];
    tr.f[b] = mul(tr.I[b], tr.a[b]) + cross(vb, mul(tr.I[b], vb));
    if (external) tr.f[b] -= external_force(th, tr, external + 6 * b, b);
  });
  inwards(t, tr.f);
  share(t.nv, [&](int d) { tau[d] = dot(tr.S[d], tr.f[t.dof_body[d]]); });
}
// no adjoint: a part of inverse_dynamics_adj, one body's acceleration: undo slide x turn, S qdd, and v_parent x v_b for its own part.   A = a_bar summed over the subtree
template <class T> CS_FN void body_acceleration_adj(const Tree& t, const Trace<T>& tr, const T* v, const T* qdd, int b,
                                                    Force<T> A, const Bars<T>& bar, T* v_bar, T* qdd_bar) {
  int P = t.parent[b], d0 = t.v_adr[b], n = joint_nv(t.joint[b]), k = joint_parent_fixed(t.joint[b]);
  if (k) {
    Motion<T> slide, turn;
    slide_and_turn(t, tr, v, b, slide, turn);
    Force<T> slide_bar = cross(turn, A), turn_bar = T(-1) * cross(slide, A);
    for (int i = 0; i < n; i++) {
      Force<T> m = i < k ? slide_bar : turn_bar;
      v_bar[d0 + i] += dot(tr.S[d0 + i], m);
      bar.S[d0 + i] = fma(v[d0 + i], m, bar.S[d0 + i]);
    }
  }
  for (int d = d0; d < d0 + n; d++) {
    if (qdd) bar.S[d] = fma(qdd[d], A, bar.S[d]);
    if (qdd_bar) qdd_bar[d] += dot(tr.S[d], A);
  }
  if (P >= 0) bar.v[b] -= cross(tr.v[P], A);
}
// adjoint: outwards f_bar_b = sum of S tau_bar over b and its ancestors, and what each body's own force is worth;
// inwards the accelerations.   Leaves bar.v, bar.I, bar.S, bar.X for velocity_adj, inertia_adj, kinematics_adj
template <class T> CS_OP void inverse_dynamics_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const T* v,
                                                   const T* qdd, const T* external, const T* tau_bar, const Bars<T>& bar,
                                                   const Params<T>& th_bar, T* v_bar, T* qdd_bar, T* external_bar) {
  auto force = [&](int b) {
    Motion<T> W = bar.f[b], vb = tr.v[b];
    // W . (I a) + W . (v x* I v), the second as (W x v) . I v
    const Inertia<T>& I = tr.I[b];
    Motion<T> Wv = cross(W, vb);
    bar.a[b] += mul(I, W);
    bar.v[b] += mul(I, Wv) - cross(W, mul(I, vb));
    inertia_form_adj(W, tr.a[b], bar.I[b]);
    inertia_form_adj(Wv, vb, bar.I[b]);
    if (external)
      external_force_adj(th, tr, external + 6 * b, b, T(-1) * W, bar, th_bar, external_bar ? external_bar + 6 * b : external_bar);
  };
  outwards(t, [&](int b) {
    int P = t.parent[b], d0 = t.v_adr[b], n = joint_nv(t.joint[b]);
    Motion<T> W = P >= 0 ? bar.f[P] : zero_motion<T>();
    for (int d = d0; d < d0 + n; d++) {
      W = fma(tau_bar[d], tr.S[d], W);
      bar.S[d] = fma(tau_bar[d], tr.f[b], bar.S[d]);
    }
    bar.f[b] = W;
    if constexpr (kTeam == 1) force(b);
  });
  if constexpr (kTeam > 1) share(t.nb, force);
  leaves_first(
      t, [&](int b) { body_acceleration_adj(t, tr, v, qdd, b, bar.a[b], bar, v_bar, qdd_bar); },
      [&](int c, int P) {
        bar.v[P] += cross(tr.v[c], bar.a[c]);
        bar.a[P] += bar.a[c];
      });
  for (int b = t.nb - 1; b >= 0 && th_bar.gravity; b--)
    if (t.parent[b] < 0) th_bar.gravity[0] -= bar.a[b].f;
}

CS_END
