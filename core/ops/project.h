// project: puts the end of a step back on its equality constraints, by changing v+ along the impulses of the step's own rows.
//
//   repeat: q' = q (+) h v+,  (J H^-1 J^T + R) mu = -phi(q') / h,  v+ += H^-1 J^T mu          J, H, R of the step's start
// In a short part of a step that is split, errors are undone as slowly as in kShortPart of it.
// q+ = q (+) h v+ still holds. With J of the start, as SHAKE has it (Ryckaert et al. 1977), a swinging chain keeps its energy, which a projection
// of positions alone, or along J of the end, would lose. Rows with softness of their own are left as they are.
// saves: v, mu.   kinks: those of ties; errors of kFarOff
#pragma once
#include "constrain.h"
#include "integrate.h"
#include "kinematics.h"

CS_BEGIN

// Errors above this, m or rad, are more than a step's drift: then nothing is projected, and the recovery of the next steps is left to it. A
// constraint that cannot be reached would make the projection run away
constexpr double kFarOff = 0.1;

// no adjoint: chosen like a feature.   1 where the errors, which are known, are small enough
template <class T> CS_FN T near_enough(const Tree& t, const Equality<T>& e) {
  T most = T(0);
  for (int r = 0; r < t.ne; r++) most = max(most, select(e.softness[r] > T(0), T(0), abs(e.after.phi[r])));
  return select(most < T(ElementOf<T>(kFarOff)), T(1), T(0));
}

// Part of a whole step in which an error may be undone at once: in less, its speed would be a blow
constexpr double kShortPart = 0.1;
// no adjoint: a part of project and project_adj.   1 / the time in which errors are undone
template <class T> CS_FN T undo_rate(T h, T full) { return T(1) / max(h, T(ElementOf<T>(kShortPart)) * full); }

// no adjoint: a part of project and project_adj.   errors at q (+) h v, in e.after
template <class T>
CS_OP void errors_after(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Equality<T>& e, T h, const T* v) {
  integrate(t, tr.q, h, v, e.at.q);
  kinematics(t, th, e.at);
  equality_errors(t, th, e.at, e.after, e.y);
}

// no adjoint: a part of adjoints.   eb.phi, bars of the errors at y, to eb.frame (set) and to bar.q
template <class T> CS_OP void errors_to_frames(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Ties<T>& y,
                                               const EqualityBars<T>& eb, const Bars<T>& bar, const Params<T>& th_bar) {
  Motion<T> none[6];
  for (Motion<T>& m : none) m = zero_motion<T>();
  for (int f = 0; f < 2 * t.n_tie; f++) eb.frame[f] = zero_force<T>();
  for (int i = 0; i < t.n_item; i++) {
    int k = t.item[i], r = t.item_row[i];
    if (k < t.n_tie)
      tie_rows_adj(t, tr, y, k, r, t.item_row[i + 1] - r, none, none, eb.phi, eb.frame, th_bar);
    else
      coupling_row_adj(t, th, tr.q, k - t.n_tie, eb.phi[r], T(0), bar.q, th_bar);
  }
}

template <class T> CS_OP void project(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Equality<T>& e, T h, T full,
                                      int steps, T* v_next) {
  for (int r = 0; r < t.ne; r++) e.total[r] = e.lam[r];
  for (int s = 0; s < steps; s++) {
    T *v = e.v + s * t.nv, *mu = e.mu + s * t.ne;
    for (int d = 0; d < t.nv; d++) v[d] = v_next[d];
    errors_after(t, th, tr, e, h, v);
    T rate = near_enough(t, e) * undo_rate(h, full);
    for (int r = 0; r < t.ne; r++) mu[r] = select(e.softness[r] > T(0), T(0), -rate * e.after.phi[r]);
    equality_solve(t, e, mu);
    equality_response(t, tr, e, mu, e.x);
    for (int d = 0; d < t.nv; d++) v_next[d] += e.x[d];
    for (int r = 0; r < t.ne; r++) e.total[r] += mu[r];
  }
}
// adjoint: v_bar of v+ after the projection on entry, before it on return. Adds to rb.eq.J, rb.eq.R, bar (about the start's trace), th_bar, h_bar.
// With w = A^-1 J H^-1 v_bar and u = H^-1 (v_bar - J^T w) the derivative is that of  -u . (H dv - J^T mu) - w . (J dv + R mu + phi / h)
template <class T> CS_OP void project_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, T h, T full,
                                          int steps, T* v_bar, const RowBars<T>& rb, const Bars<T>& bar, const Params<T>& th_bar,
                                          T& h_bar, T& full_bar) {
  const Equality<T>& e = rw.eq;
  const EqualityBars<T>& eb = rb.eq;
  T *u = rb.u, *dv = rb.g;
  for (int s = steps - 1; s >= 0; s--) {
    const T *v = e.v + s * t.nv, *mu = e.mu + s * t.ne;
    for (int d = 0; d < t.nv; d++) u[d] = v_bar[d];
    constrained_solve(t, tr, rw, u, eb.w);
    equality_response(t, tr, e, mu, dv);
    equality_bars(t, eb, mu, eb.w, u, dv);
    // -u . H dv
    for (int d = 0; d < t.nv; d++) {
      T wa = -u[d] * dv[d];
      if (th_bar.armature) th_bar.armature[d] += wa;
      bar.D[d] = fma(h, wa, bar.D[d]);
      h_bar = fma(tr.D[d], wa, h_bar);
      u[d] = -u[d];
    }
    mass_form_adj(t, tr, u, dv, static_cast<const int*>(nullptr), t.nb, rb, bar);
    // phi(q') / h
    errors_after(t, th, tr, e, h, v);
    bars_clear(t, eb.at);
    T inv = undo_rate(h, full), rate = near_enough(t, e) * inv, over_bar = T(0), part = T(ElementOf<T>(kShortPart));
    for (int r = 0; r < t.ne; r++) {
      T w = select(e.softness[r] > T(0), T(0), rate * eb.w[r]);
      eb.phi[r] = -w;
      over_bar = fma(w * inv, e.after.phi[r], over_bar);
    }
    auto whole = !(h < part * full);
    h_bar += select(whole, over_bar, T(0)), full_bar += select(whole, T(0), part * over_bar);
    errors_to_frames(t, th, e.at, e.after, eb, eb.at, th_bar);
    ties_adj(t, th, e.at, e.after, eb.frame, eb.at, th_bar);
    kinematics_adj(t, th, e.at, eb.at, th_bar);
    integrate_adj(t, h, v, eb.at.q, bar.q, h_bar, v_bar);
  }
}

CS_END
