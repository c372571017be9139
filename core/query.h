// What one can ask of a world without stepping it: kinematics, joint forces, mass matrix, errors of constraints, distances. Each with its adjoint.
#pragma once
#include "ops/distance.h"
#include "ops/settle.h"
#include "step.h"

CS_BEGIN

// poses: body position and quaternion [nb, 7] in world, body velocity [nb, 6] (angular, linear of the body's origin; world
// axes), and S of each dof [nv, 6] about its own body's origin
template <class T>
CS_OP void poses(const Tree& t, const Params<T>& th, const Trace<T>& tr, const T* q, const T* v, T* pose, T* velocities, T* S) {
  normalise(t, q, tr.q);
  kinematics(t, th, tr);
  velocity(t, tr, v);
  auto about = [](Motion<T> m, Vec3<T> p, T* out) {
    Vec3<T> lin = m.v + cross(m.w, p);
    out[0] = m.w.x, out[1] = m.w.y, out[2] = m.w.z, out[3] = lin.x, out[4] = lin.y, out[5] = lin.z;
  };
  for (int b = 0; b < t.nb; b++) {
    Vec3<T> x = tr.origin[t.root[b]] + tr.p[b];
    pose[7 * b] = x.x, pose[7 * b + 1] = x.y, pose[7 * b + 2] = x.z;
    store_quat(pose + 7 * b + 3, tr.quat[b]);
    about(tr.v[b], tr.p[b], velocities + 6 * b);
  }
  for (int d = 0; d < t.nv; d++) about(tr.S[d], tr.p[t.dof_body[d]], S + 6 * d);
}
// adjoint: undo `about`, then the poses, then velocity and kinematics.   q_bar is tangent
template <class T> CS_OP void poses_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const T* v, const T* pose_bar,
                                        const T* velocities_bar, const T* S_bar, const Bars<T>& bar, const Params<T>& th_bar,
                                        T* q_bar, T* v_bar) {
  bars_clear(t, bar);
  // m_bar of lin = m.v + m.w x p, and p's share, a point of body b
  auto about_adj = [&](Motion<T> m, int b, const T* o) {
    Vec3<T> n = {o[0], o[1], o[2]}, f = {o[3], o[4], o[5]}, p = tr.p[b], p_bar = cross(f, m.w);
    bar.X[b] += Force<T>{cross(p, p_bar), p_bar};
    return Force<T>{n + cross(p, f), f};
  };
  for (int d = 0; d < t.nv; d++) bar.S[d] += about_adj(tr.S[d], t.dof_body[d], S_bar + 6 * d);
  for (int b = 0; b < t.nb; b++) {
    bar.v[b] += about_adj(tr.v[b], b, velocities_bar + 6 * b);
    const T* g = pose_bar + 7 * b;
    Vec3<T> x_bar = {g[0], g[1], g[2]}, m = mul(tr.R[b], tangent_bar(tr.quat[b], load_quat(g + 3)));
    bar.X[b] += Force<T>{m + cross(tr.p[b], x_bar), x_bar};
  }
  velocity_adj(t, tr, v, bar, v_bar);
  kinematics_adj(t, th, tr, bar, th_bar);
  for (int d = 0; d < t.nv; d++) q_bar[d] += bar.q[d];
}

// joint_forces: tau of the motion (q, v, qdd), passive forces and armature included
template <class T>
CS_OP void joint_forces(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in, const T* qdd, T* tau) {
  normalise(t, in.q, tr.q);
  kinematics(t, th, tr);
  velocity(t, tr, in.v);
  inertia(t, th, tr);
  inverse_dynamics(t, th, tr, in.v, qdd, in.external, tau);
  passive(t, th, th.damping, tr.q, in.v, tau);
  for (int d = 0; d < t.nv; d++) tau[d] = fma(th.armature[d], qdd[d], tau[d]);
}
template <class T> CS_OP void joint_forces_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in,
                                               const T* qdd, const T* tau_bar, const Bars<T>& bar, const Params<T>& th_bar,
                                               InputBars<T>& in_bar, T* qdd_bar) {
  bars_clear(t, bar);
  for (int d = 0; d < t.nv; d++) {
    qdd_bar[d] = fma(th.armature[d], tau_bar[d], qdd_bar[d]);
    if (th_bar.armature) th_bar.armature[d] = fma(qdd[d], tau_bar[d], th_bar.armature[d]);
  }
  passive_adj(t, th, th.damping, tr.q, in.v, tau_bar, th_bar, bar.D, bar.q, in_bar.v);
  if (th_bar.damping)
    for (int d = 0; d < t.nv; d++) th_bar.damping[d] += bar.D[d];
  inverse_dynamics_adj(t, th, tr, in.v, qdd, in.external, tau_bar, bar, th_bar, in_bar.v, qdd_bar, in_bar.external);
  inertia_adj(t, th, tr, bar, th_bar);
  velocity_adj(t, tr, in.v, bar, in_bar.v);
  kinematics_adj(t, th, tr, bar, th_bar);
  for (int d = 0; d < t.nv; d++) in_bar.q[d] += bar.q[d];
}

// mass_matrix: dense [nv, nv], armature included
template <class T> CS_OP void mass_matrix(const Tree& t, const Params<T>& th, const Trace<T>& tr, const T* q, T* M) {
  normalise(t, q, tr.q);
  kinematics(t, th, tr);
  inertia(t, th, tr);
  composite(t, tr);
  mass_rows(t, th, tr, M);
}
template <class T> CS_OP void mass_matrix_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const T* M_bar,
                                              const Bars<T>& bar, const Params<T>& th_bar, T* q_bar) {
  bars_clear(t, bar);
  mass_rows_adj(t, tr, M_bar, bar, th_bar);
  composite_adj(t, bar);
  inertia_adj(t, th, tr, bar, th_bar);
  kinematics_adj(t, th, tr, bar, th_bar);
  for (int d = 0; d < t.nv; d++) q_bar[d] += bar.q[d];
}

CS_END
