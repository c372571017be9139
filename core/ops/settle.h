// settle: one Newton step of the positions towards the equality constraints; errors: how far off they are.
//
//   q' = q (+) delta,   delta = H^-1 J^T mu,   (J H^-1 J^T + R) mu = -phi(q),   H = M + armature, everything at q
// Rows with softness of their own count for nothing. Repeated, it puts together a mechanism whose parts were given roughly.
#pragma once
#include "project.h"

CS_BEGIN

// R per softness: so large that a soft row holds nothing
constexpr double kLetGo = 1e30;

// no adjoint: constants.   as much softness as redundant rows need
template <class T> CS_FN Options settle_options() {
  bool wide = sizeof(ElementOf<T>) == 8;
  Options o{};
  o.recovery = 1, o.relative_softness = wide ? 1e-9 : 1e-5, o.absolute_softness = wide ? 1e-10 : 1e-7;
  return o;
}

// errors: phi [ne] in the users' order
template <class T>
CS_OP void errors(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Equality<T>& e, const T* q, T* out) {
  normalise(t, q, tr.q);
  kinematics(t, th, tr);
  equality_errors(t, th, tr, e.now, e.y);
  for (int r = 0; r < t.ne; r++) out[t.shown_row[r]] = e.now.phi[r];
}
// adjoint: q_bar is tangent
template <class T> CS_OP void errors_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Equality<T>& e,
                                         const T* out_bar, const EqualityBars<T>& eb, const Bars<T>& bar, const Params<T>& th_bar,
                                         T* q_bar) {
  bars_clear(t, bar);
  for (int r = 0; r < t.ne; r++) eb.phi[r] = out_bar[t.shown_row[r]];
  errors_to_frames(t, th, tr, e.now, eb, bar, th_bar);
  ties_adj(t, th, tr, e.now, eb.frame, bar, th_bar);
  kinematics_adj(t, th, tr, bar, th_bar);
  for (int d = 0; d < t.nv; d++) q_bar[d] += bar.q[d];
}

template <class T>
CS_OP void settle(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, const T* q, T* delta, T* out) {
  const Equality<T>& e = rw.eq;
  normalise(t, q, tr.q);
  for (int d = 0; d < t.nv; d++) delta[d] = tr.D[d] = T(0);
  if (t.ne) {
    kinematics(t, th, tr);
    inertia(t, th, tr);
    factor(t, th, tr, T(0));
    equality_setup(t, th, tr, e, T(ElementOf<T>(kLetGo)), settle_options<T>());
    for (int r = 0; r < t.ne; r++) e.lam[r] = -e.now.phi[r];
    equality_solve(t, e, e.lam);
    equality_response(t, tr, e, e.lam, delta);
  }
  integrate(t, tr.q, T(1), delta, out);
}
// adjoint, after the forward on the same trace.   out_bar is tangent; q_bar, tangent, is set
template <class T> CS_OP void settle_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                         const T* delta, const T* out_bar, const RowBars<T>& rb, const Bars<T>& bar,
                                         const Params<T>& th_bar, T* q_bar) {
  const Equality<T>& e = rw.eq;
  const EqualityBars<T>& eb = rb.eq;
  T h_bar = T(0), *u = bar.u;
  bars_clear(t, bar);
  for (int d = 0; d < t.nv; d++) u[d] = T(0);
  integrate_adj(t, T(1), delta, out_bar, bar.q, h_bar, u);
  if (t.ne) {
    equality_bars_clear(t, eb);
    constrained_solve(t, tr, rw, u, eb.w);
    equality_bars(t, eb, e.lam, eb.w, u, delta);
    for (int d = 0; d < t.nv; d++) {
      if (th_bar.armature) th_bar.armature[d] = fnma(u[d], delta[d], th_bar.armature[d]);
      u[d] = -u[d];
    }
    mass_form_adj(t, tr, u, delta, static_cast<const int*>(nullptr), t.nb, rb, bar);
    for (int f = 0; f < 2 * t.n_tie; f++) eb.frame[f] = zero_force<T>();
    Params<T> counted = th_bar;  // softness only says which rows count
    counted.tie_softness = counted.coupling_softness = nullptr;
    equality_adj(t, th, tr, e, T(1), T(1), settle_options<T>(), eb, bar, counted, h_bar, h_bar);
    ties_adj(t, th, tr, e.now, eb.frame, bar, th_bar);
    inertia_adj(t, th, tr, bar, th_bar);
    kinematics_adj(t, th, tr, bar, th_bar);
  }
  for (int d = 0; d < t.nv; d++) q_bar[d] = bar.q[d];
}

CS_END
