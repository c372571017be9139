// equality: the numbers of all equality rows (J, error, softness), their factor, and the velocity that they alone lead to.
//
//   target = beta phi / full,   R = beta softness / (h full) + floor,   full: the whole step, of which h may be a part;   J v+ + target + R lambda = 0
//   v** = v* + H^-1 J^T lambda,   lambda = -A^-1 (J v* + target),   A = J H^-1 J^T + R
// The other rows see v** and H^-1 - H^-1 J^T A^-1 J H^-1 (ops/delassus.h). softness: static error per force; beta: recovery.
// saves: F_a, F_b, phi, b, softness, floor, J, Y, W, L, lam.   kinks: those of ties
#pragma once
#include "equality_factor.h"
#include "lightness.h"
#include "ties.h"

CS_BEGIN

// no adjoint: gathers arguments.   from frame a to frame b of tie k
template <class T> CS_FN Vec3<T> tie_gap(const Tree& t, const Trace<T>& tr, const Ties<T>& e, int k) {
  return e.p[2 * k + 1] - (e.p[2 * k] + tie_shift(t, tr, k));
}

// tie_rows: errors and wrenches of tie k, rows from r0
template <class T>
CS_OP void tie_rows(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Ties<T>& e, int k, int r0, int n) {
  Vec3<T> d = tie_gap(t, tr, e, k), x_b = e.p[2 * k + 1], x_a = x_b - tie_shift(t, tr, k);
  for (int r = r0; r < r0 + n; r++) {
    LockRow<T> y = lock_row(th, e, k, t.lock[r], d);
    bool turns = t.lock[r] >= kLockTurn;
    e.phi[r] = y.phi;
    e.F_a[r] = turns ? Force<T>{y.axis, zero3<T>()} : Force<T>{cross(x_a, y.axis), y.axis};
    e.F_b[r] = turns ? Force<T>{y.axis, zero3<T>()} : Force<T>{cross(x_b, y.axis), y.axis};
  }
}
// adjoint: V_a, V_b: bars of the wrenches, [n]; phi_bar from row r0 on
template <class T> CS_OP void tie_rows_adj(const Tree& t, const Trace<T>& tr, const Ties<T>& e, int k, int r0, int n,
                                           const Motion<T>* V_a, const Motion<T>* V_b, const T* phi_bar, Force<T>* frame_bar,
                                           const Params<T>& th_bar) {
  Vec3<T> d = tie_gap(t, tr, e, k), x_b = e.p[2 * k + 1], x_a = x_b - tie_shift(t, tr, k);
  for (int r = r0; r < r0 + n; r++) {
    bool turns = t.lock[r] >= kLockTurn;
    Vec3<T> c = turns ? e.F_b[r].n : e.F_b[r].f, c_bar, x_bar = zero3<T>();
    Motion<T> A = V_a[r - r0], B = V_b[r - r0];
    c_bar = turns ? A.w + B.w : A.v + B.v + cross(A.w, x_a) + cross(B.w, x_b);
    if (!turns) x_bar = cross(c, A.w + B.w);
    lock_row_adj(e, k, t.lock[r], d, LockRow<T>{e.phi[r], c}, phi_bar[r], c_bar, x_bar, frame_bar[2 * k], frame_bar[2 * k + 1],
                 th_bar.tie_length);
  }
}

// coupling_row: error and its slope by the second coordinate.   phi = q1 - c0 - c1 q2 - .. - c4 q2^4
template <class T> CS_FN void coupling_row(const Tree& t, const Params<T>& th, const T* q, int k, T& phi, T& slope) {
  const T* c = th.coupling[k].c;
  int q2 = t.coupling_q[2 * k + 1];
  T x = q2 < 0 ? T(0) : q[q2], p = c[4], dp = T(0);
  for (int i = 3; i >= 0; i--) dp = fma(dp, x, p), p = fma(p, x, c[i]);
  phi = q[t.coupling_q[2 * k]] - p, slope = -dp;
}
template <class T> CS_FN void coupling_row_adj(const Tree& t, const Params<T>& th, const T* q, int k, T phi_bar, T slope_bar,
                                               T* q_bar, const Params<T>& th_bar) {
  const T* c = th.coupling[k].c;
  int q2 = t.coupling_q[2 * k + 1], d2 = t.coupling_dof[2 * k + 1];
  T x = q2 < 0 ? T(0) : q[q2], dp = T(0), ddp = T(0), power = T(1), before = T(0);
  for (int i = 4; i >= 1; i--) dp = fma(dp, x, T(i) * c[i]);
  for (int i = 4; i >= 2; i--) ddp = fma(ddp, x, T(i * (i - 1)) * c[i]);
  q_bar[t.coupling_dof[2 * k]] += phi_bar;
  if (d2 >= 0) q_bar[d2] -= fma(dp, phi_bar, ddp * slope_bar);
  if (!th_bar.coupling) return;
  for (int i = 0; i < 5; i++) {
    th_bar.coupling[k].c[i] -= fma(power, phi_bar, T(i) * before * slope_bar);
    before = power, power = power * x;
  }
}

// item_J: J of item i.   slope: of a coupling's second coordinate. What slides does not turn, what only turns does not push: half of a dot is known to be zero
template <class T> CS_OP void item_J(const Tree& t, const Trace<T>& tr, const Equality<T>& e, int i, T slope) {
  Item it = item_at(t, i);
  const int* sign = t.item_sign + t.item_list_adr[i];
  int c = t.item[i] - t.n_tie;
  for (int k = 0; k < it.m; k++) {
    int d = it.list[k];
    bool turning = dof_turns(t, d);
    const Force<T>* F = (sign[k] > 0 ? e.now.F_b : e.now.F_a) + it.row;
    Motion<T> S = tr.S[d];
    if (sign[k] < 0) S = {-S.w, -S.v};
    for (int r = 0; r < it.n; r++) {
      T J = T(0);
      if (sign[k] && turning) J = t.lock[it.row + r] >= kLockTurn ? dot(S.w, F[r].n) : dot(S, F[r]);
      if (sign[k] && !turning && t.lock[it.row + r] < kLockTurn) J = dot(S.v, F[r].f);
      e.J[it.J + r * it.m + k] = J;
    }
    if (c >= 0 && d == t.coupling_dof[2 * c]) e.J[it.J + k] += T(1);
    if (c >= 0 && d == t.coupling_dof[2 * c + 1]) e.J[it.J + k] += slope;
  }
}
// adjoint: S_bar; V_a, V_b: bars of the wrenches; returns slope_bar
template <class T> CS_OP T item_J_adj(const Tree& t, const Trace<T>& tr, const Equality<T>& e, int i, const T* J_bar,
                                      const Bars<T>& bar, Motion<T>* V_a, Motion<T>* V_b) {
  Item it = item_at(t, i);
  const int* sign = t.item_sign + t.item_list_adr[i];
  int c = t.item[i] - t.n_tie;
  T slope_bar = T(0);
  for (int r = 0; r < it.n; r++) V_a[r] = V_b[r] = zero_motion<T>();
  for (int k = 0; k < it.m; k++) {
    int d = it.list[k];
    if (c >= 0 && d == t.coupling_dof[2 * c + 1]) slope_bar += J_bar[it.J + k];
    if (!sign[k]) continue;
    for (int r = 0; r < it.n; r++) {
      T g = J_bar[it.J + r * it.m + k];
      if (sign[k] > 0)
        V_b[r] = fma(g, tr.S[d], V_b[r]), bar.S[d] = fma(g, e.now.F_b[it.row + r], bar.S[d]);
      else
        V_a[r] = fma(-g, tr.S[d], V_a[r]), bar.S[d] = fma(-g, e.now.F_a[it.row + r], bar.S[d]);
    }
  }
  return slope_bar;
}

// no adjoint: a part of equality and of project.   errors of all rows, and the slopes of couplings
template <class T>
CS_OP void equality_errors(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Ties<T>& e, T* slopes) {
  ties(t, th, tr, e);
  for (int i = 0; i < t.n_item; i++) {
    int id = t.item[i], r = t.item_row[i];
    if (id < t.n_tie)
      tie_rows(t, th, tr, e, id, r, t.item_row[i + 1] - r);
    else
      coupling_row(t, th, tr.q, id - t.n_tie, e.phi[r], slopes[r]);
  }
}

// no adjoint: a part of equality and equality_adj.   lightness of the rows of item i that push, or that turn
template <class T> CS_FN T item_lightness(const Tree& t, const Params<T>& th, int i, bool turns) {
  int k = t.item[i], c = k - t.n_tie;
  if (c < 0) return pair_lightness(th, t.tie_a[k], t.tie_b[k], turns);
  return dof_lightness(t, th, t.coupling_dof[2 * c]) + dof_lightness(t, th, t.coupling_dof[2 * c + 1]);
}

// no adjoint: a part of equality.   errors, J, softness (R per softness: soft) and the factor
template <class T> CS_OP void equality_setup(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Equality<T>& e, T soft,
                                             const Options& o) {
  using E = ElementOf<T>;
  equality_errors(t, th, tr, e.now, e.y);
  for (int i = 0; i < t.n_item; i++) {
    int k = t.item[i], c = k - t.n_tie;
    item_J(t, tr, e, i, c < 0 ? T(0) : e.y[t.item_row[i]]);
    T floor[2], softness = soft * (c < 0 ? th.tie_softness[k] : th.coupling_softness[c]);
    for (int turns = 0; turns < 2; turns++)
      floor[turns] = fma(T(E(o.relative_softness)), item_lightness(t, th, i, turns), T(E(o.absolute_softness)));
    for (int r = t.item_row[i]; r < t.item_row[i + 1]; r++) e.softness[r] = softness, e.floor[r] = floor[t.lock[r] >= kLockTurn];
  }
  equality_factor(t, tr, e);
}

// equality: v_star becomes v**, dv what was added
template <class T> CS_OP void equality(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Equality<T>& e, T h, T full,
                                       const Options& o, T* v_star, T* dv) {
  T rate = T(ElementOf<T>(o.recovery)) / full;
  equality_setup(t, th, tr, e, rate / h, o);
  equality_J(t, e, v_star, e.b);
  for (int r = 0; r < t.ne; r++) e.b[r] = fma(rate, e.now.phi[r], e.b[r]), e.lam[r] = -e.b[r];
  equality_solve(t, e, e.lam);
  equality_response(t, tr, e, e.lam, dv);
  for (int d = 0; d < t.nv; d++) v_star[d] += dv[d];
}
// adjoint: eb.J, eb.w and eb.R are complete (constrain_adj); adds to eb.frame, bar.q and bar.S
template <class T> CS_OP void equality_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Equality<T>& e, T h,
                                           T full, const Options& o, const EqualityBars<T>& eb, const Bars<T>& bar,
                                           const Params<T>& th_bar, T& h_bar, T& full_bar) {
  using E = ElementOf<T>;
  T rate = T(E(o.recovery)) / full, inv = T(1) / h, inv_full = T(1) / full;
  for (int i = 0; i < t.n_item; i++) {
    int k = t.item[i], c = k - t.n_tie, r0 = t.item_row[i], n = t.item_row[i + 1] - r0;
    T soft_bar = T(0);
    for (int r = r0; r < r0 + n; r++) {
      // target = beta phi / full,  R = beta softness / (h full) + floor
      eb.phi[r] = -rate * eb.w[r];
      h_bar = fnma(inv * e.softness[r], eb.R[r], h_bar);
      full_bar += inv_full * fnma(e.softness[r], eb.R[r], rate * eb.w[r] * e.now.phi[r]);
      soft_bar = fma(rate * inv, eb.R[r], soft_bar);
      T floor_bar = T(E(o.relative_softness)) * eb.R[r];
      if (c < 0) {
        pair_lightness_adj(th, t.tie_a[k], t.tie_b[k], t.lock[r] >= kLockTurn, floor_bar, th_bar);
      } else {
        dof_lightness_adj(t, th, t.coupling_dof[2 * c], floor_bar, th_bar);
        dof_lightness_adj(t, th, t.coupling_dof[2 * c + 1], floor_bar, th_bar);
      }
    }
    Motion<T> V_a[6], V_b[6];
    T slope_bar = item_J_adj(t, tr, e, i, eb.J, bar, V_a, V_b);
    if (c < 0) {
      if (th_bar.tie_softness) th_bar.tie_softness[k] += soft_bar;
      tie_rows_adj(t, tr, e.now, k, r0, n, V_a, V_b, eb.phi, eb.frame, th_bar);
    } else {
      if (th_bar.coupling_softness) th_bar.coupling_softness[c] += soft_bar;
      coupling_row_adj(t, th, tr.q, c, eb.phi[r0], slope_bar, bar.q, th_bar);
    }
  }
}

CS_END
