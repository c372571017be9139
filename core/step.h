// One step of a world, and its adjoint: the ops in order, and the same ops reversed. Start reading here.
//
//   acceleration:  H a = tau - c(q, v) - D v - K (q - rest) + external,    H = M(q) + armature + h D  (damping is implicit)
//   step:          v* = v + h a;   v+ = v* + H^-1 J^T lambda;   q+ = q (+) h v+      (semi-implicit Euler)
// lambda: impulses of equality constraints, contacts, joint limits, dry friction and servos (ops/constrain.h); project corrects v+ so that
// q+ keeps the equality constraints. CS_ALIGN: nothing on a CPU; on a GPU worlds wait for each other there (base/config.h)
#pragma once
#include "data/inputs.h"
#include "ops/actuate.h"
#include "ops/constrain.h"
#include "ops/integrate.h"
#include "ops/inverse_dynamics.h"
#include "ops/kinematics.h"
#include "ops/passive.h"
#include "ops/prepare.h"
#include "ops/project.h"
#include "ops/solve.h"
#include "ops/velocity.h"

CS_BEGIN

// motion: accelerations without contact, in tr.acc, for the configuration in tr.q and the damping in tr.D.   tau: [nv]
template <class T> CS_OP void motion(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in, const T* tau) {
  kinematics(t, th, tr);
  velocity(t, tr, in.v);
  CS_ALIGN();
  inertia(t, th, tr);
  inverse_dynamics(t, th, tr, in.v, static_cast<const T*>(nullptr), in.external, tr.acc);
  passive(t, th, tr.D, tr.q, in.v, tr.acc);
  share(t.nv, [&](int d) { tr.acc[d] = tau[d] - tr.acc[d]; });
  CS_ALIGN();
  factor(t, th, tr, in.h);
  solve(t, tr, tr.acc);
}
// adjoint: bar.u holds u = H^-1 acc_bar = tau_bar. The derivative is that of -u . [M a + armature a + c + D (v + h a) + K (q - rest)
// - tau] with a = tr.acc held fixed (design: one solve, one scalar). Adds to bar.q and bar.D, so clear first
template <class T> CS_OP void motion_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in,
                                         const Bars<T>& bar, const Params<T>& th_bar, InputBars<T>& in_bar) {
  T *u = bar.u, *w = tr.tau, *a = tr.acc;
  // the forward's a and f, now with the joints' accelerations
  inverse_dynamics(t, th, tr, in.v, a, in.external, w);
  share(t.nv, [&](int d) {
    w[d] = -u[d];
    if (th_bar.armature) th_bar.armature[d] = fma(a[d], w[d], th_bar.armature[d]);
    // D (v + h a), its part D h a
    bar.D[d] = fma(in.h, w[d] * a[d], bar.D[d]);
  });
  for (int d = 0; d < t.nv; d++) in_bar.h = fma(tr.D[d], w[d] * a[d], in_bar.h);
  CS_ALIGN();
  passive_adj(t, th, tr.D, tr.q, in.v, w, th_bar, bar.D, bar.q, in_bar.v);
  inverse_dynamics_adj(t, th, tr, in.v, a, in.external, w, bar, th_bar, in_bar.v, static_cast<T*>(nullptr), in_bar.external);
  CS_ALIGN();
  inertia_adj(t, th, tr, bar, th_bar);
  velocity_adj(t, tr, in.v, bar, in_bar.v);
  CS_ALIGN();
  kinematics_adj(t, th, tr, bar, th_bar);
}

// acceleration: without actuators and contact, for a given tau [nv]; result in tr.acc
template <class T>
CS_OP void acceleration(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in, const T* tau) {
  normalise(t, in.q, tr.q);
  for (int d = 0; d < t.nv; d++) tr.D[d] = th.damping[d];
  motion(t, th, tr, in, tau);
}
// adjoint: bar.u arrives as acc_bar, leaves as tau_bar
template <class T> CS_OP void acceleration_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Inputs<T>& in,
                                               const Bars<T>& bar, const Params<T>& th_bar, InputBars<T>& in_bar) {
  solve_adj(t, tr, bar.u);
  motion_adj(t, th, tr, in, bar, th_bar, in_bar);
  if (th_bar.damping)
    for (int d = 0; d < t.nv; d++) th_bar.damping[d] += bar.D[d];
}

// no adjoint: integers.   can this model have rows at all?
CS_FN bool constrained(const Tree& t) { return t.nk + t.ne + joint_rows(t) > 0; }

// no adjoint: a part of step.   v without rows: rw.v_star, or v_next of models that have none
template <class T> CS_WHOLE void move_freely(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                             const Inputs<T>& in, T* v_next) {
  normalise(t, in.q, tr.q);
  actuate(t, th, tr.q, in.u, in.h, tr.tau, tr.D);
  motion(t, th, tr, in, tr.tau);
  T* v_star = constrained(t) ? rw.v_star : v_next;
  share(t.nv, [&](int d) { v_star[d] = fma(in.h, tr.acc[d], in.v[d]); });
}
// no adjoint: a part of step.   where v_next leads
template <class T> CS_WHOLE void arrive(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                        const Options& o, const Inputs<T>& in, T* q_next, T* v_next) {
  CS_IF(Tree, t, ne) project(t, th, tr, rw.eq, in.h, in.split ? in.full : in.h, o.project, v_next);
  bool falls = o.impacts && constrained(t);
  CS_IF(Options, o, impacts) {
    if (falls) flight_rate(t, th, tr, rw, in, v_next);
  }
  integrate(t, tr.q, in.h, falls ? rw.rate : v_next, q_next);
}

// step: q_next [nq], v_next [nv].   rw is not touched by models without rows
template <class T> CS_WHOLE void step(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, const Options& o,
                                      const Inputs<T>& in, T* q_next, T* v_next) {
  CS_ALIGN();
  move_freely(t, th, tr, rw, in, v_next);
  CS_ALIGN();
  if (constrained(t)) constrain(t, th, tr, rw, row_inputs(in), o, v_next);
  arrive(t, th, tr, rw, o, in, q_next, v_next);
}
// adjoint, after step() has filled the trace.   q_next_bar is tangent; v_next_bar is used up.   rb.impulse: bars of the contacts' impulses
template <class T> CS_WHOLE void step_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                          const Options& o, const Inputs<T>& in, const T* v_next, const T* q_next_bar,
                                          T* v_next_bar, const Bars<T>& bar, const RowBars<T>& rb, const Params<T>& th_bar,
                                          InputBars<T>& in_bar) {
  CS_ALIGN();
  bars_clear(t, bar);
  bool falls = o.impacts && constrained(t);
  CS_IF(Options, o, impacts) {
    if (falls) flight_rate_adj(t, th, tr, rw, in, q_next_bar, bar, th_bar, in_bar);
  }
  integrate_adj(t, in.h, falls ? rw.rate : v_next, q_next_bar, bar.q, in_bar.h, v_next_bar);
  T* u = bar.u;
  CS_IF(Tree, t, ne) {
    equality_bars_clear(t, rb.eq);
    project_adj(t, th, tr, rw, in.h, in.split ? in.full : in.h, o.project, v_next_bar, rb, bar, th_bar, in_bar.h, in_bar.full);
    if (o.project) v_next = rw.eq.v;  // before the projection
  }
  if (constrained(t)) {
    constrain_adj(t, th, tr, rw, row_inputs(in), o, v_next, v_next_bar, rb, bar, th_bar, in_bar);
    // from here on a is the acceleration with contact
    share(t.nv, [&](int d) { u[d] = rb.u[d], tr.acc[d] += rw.dv[d] / in.h, rw.dv[d] = T(0); });
  } else {
    share(t.nv, [&](int d) { u[d] = v_next_bar[d]; });
    solve_adj(t, tr, u);
  }
  share(t.nv, [&](int d) { in_bar.v[d] += v_next_bar[d], u[d] = in.h * u[d]; });
  for (int d = 0; d < t.nv; d++) in_bar.h = fma(tr.acc[d], v_next_bar[d], in_bar.h);
  CS_ALIGN();
  motion_adj(t, th, tr, in, bar, th_bar, in_bar);
  actuate_adj(t, th, tr.q, in.u, in.h, bar.u, bar.D, th_bar, bar.q, in_bar.u, in_bar.h);
  share(t.nv, [&](int d) { in_bar.q[d] += bar.q[d]; });
  if (!in.split) in_bar.h += in_bar.full, in_bar.full = T(0);
}

CS_END
