// One step of a world, and its adjoint: the ops in order, and the same ops reversed. Start reading here.
//
//   acceleration:  H a = tau - c(q, v) - D v - K (q - rest) + external,    H = M(q) + armature + h D  (damping is implicit)
//   step:          v+ = v + h a;   q+ = q (+) h v+                          (semi-implicit Euler)
#pragma once
#include "ops/actuate.h"
#include "ops/integrate.h"
#include "ops/inverse_dynamics.h"
#include "ops/kinematics.h"
#include "ops/passive.h"
#include "ops/prepare.h"
#include "ops/solve.h"
#include "ops/velocity.h"

CS_BEGIN

// What moves a world besides its state: one control or one tau, the step size, and wrenches on the bodies (may be null)
template <class T> struct Inputs {
  const T *q, *v, *u;  // [nq] as given, [nv], [nu] controls (of step) or [nv] joint forces (of acceleration)
  T h;                 // s
  const T* external;   // [nb, 6] torque and force at the centre of mass, world axes
};
// Bars of the same; null where nobody asks. q is tangent, [nv]
template <class T> struct InputBars {
  T *q, *v, *u;
  T h;
  T* external;
};

// acceleration: result in tr.acc.   tau: [nv]
template <class T>
CS_OP void acceleration(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in, const T* tau) {
  normalise(t, in.q, tr.q);
  kinematics(t, th, tr);
  velocity(t, tr, in.v);
  inertia(t, th, tr);
  inverse_dynamics(t, th, tr, in.v, static_cast<const T*>(nullptr), in.external, tr.acc);
  passive(t, th, tr.q, in.v, tr.acc);
  for (int d = 0; d < t.nv; d++) tr.acc[d] = tau[d] - tr.acc[d];
  factor(t, th, tr, in.h);
  solve(t, tr, tr.acc);
}
// adjoint: with u = H^-1 acc_bar the derivative is that of -u . [M a + armature a + c + D (v + h a) + K (q - rest) - tau] with
// a held fixed (design: one solve, one scalar). bar.u arrives as acc_bar, leaves as u = tau_bar. Adds to bar.q, so clear first
template <class T> CS_OP void acceleration_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in,
                                               const Bars<T>& bar, const Params<T>& th_bar, InputBars<T>& in_bar) {
  T *u = bar.u, *w = tr.tau, *a = tr.acc;
  solve_adj(t, tr, u);
  // the forward's a and f, now with the joints' accelerations
  inverse_dynamics(t, th, tr, in.v, a, in.external, w);
  for (int d = 0; d < t.nv; d++) {
    w[d] = -u[d];
    if (th_bar.armature) th_bar.armature[d] = fma(a[d], w[d], th_bar.armature[d]);
    // D (v + h a), its part D h a
    T wa = w[d] * a[d];
    if (th_bar.damping) th_bar.damping[d] = fma(in.h, wa, th_bar.damping[d]);
    in_bar.h = fma(th.damping[d], wa, in_bar.h);
  }
  passive_adj(t, th, tr.q, in.v, w, th_bar, bar.q, in_bar.v);
  inverse_dynamics_adj(t, th, tr, in.v, a, in.external, w, bar, th_bar, in_bar.v, static_cast<T*>(nullptr), in_bar.external);
  inertia_adj(t, th, tr, bar, th_bar);
  velocity_adj(t, tr, in.v, bar, in_bar.v);
  kinematics_adj(t, th, tr, bar, th_bar);
}

// step: q_next [nq], v_next [nv]
template <class T>
CS_OP void step(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in, T* q_next, T* v_next) {
  actuate(t, th, in.u, tr.tau);
  acceleration(t, th, tr, in, tr.tau);
  for (int d = 0; d < t.nv; d++) v_next[d] = fma(in.h, tr.acc[d], in.v[d]);
  integrate(t, tr.q, in.h, v_next, q_next);
}
// adjoint, after step() has filled the trace.   q_next_bar is tangent; v_next_bar is used up
template <class T> CS_OP void step_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in,
                                       const T* v_next, const T* q_next_bar, T* v_next_bar, const Bars<T>& bar,
                                       const Params<T>& th_bar, InputBars<T>& in_bar) {
  bars_clear(t, bar);
  integrate_adj(t, in.h, v_next, q_next_bar, bar.q, in_bar.h, v_next_bar);
  for (int d = 0; d < t.nv; d++) {
    in_bar.v[d] += v_next_bar[d];
    in_bar.h = fma(tr.acc[d], v_next_bar[d], in_bar.h);
    bar.u[d] = in.h * v_next_bar[d];
  }
  acceleration_adj(t, th, tr, in, bar, th_bar, in_bar);
  actuate_adj(t, th, in.u, bar.u, th_bar, in_bar.u);
  for (int d = 0; d < t.nv; d++) in_bar.q[d] += bar.q[d];
}

CS_END
