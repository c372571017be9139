// large: rows of models with so many contacts that A is never formed: sweeps alone, half-solved, and the adjoint of those sweeps.
//
//   g = sum_s W_s lambda_s,   y_r = b_r + J_r . g + R_r lambda_r,   W = H^-1 J^T on whole trees: cost and memory grow with the contacts
// Such models run world by world (Tree::large). No Newton steps, so a pile ends as well as its sweeps leave it, and the adjoint is always the exact one:
//   back through an update of lambda_s by d:   W_bar_s += d g_bar,   lambda_bar_s += W_s . g_bar   (after it; minus that before it)
//   back through y_r:                          J_bar_r += y_bar g,   g_bar += y_bar J_r,   R_bar_r += y_bar lambda_r
// kinks: those of the sweeps (ops/relax.h)
#pragma once
#include "mass_form.h"
#include "polish.h"

CS_BEGIN

// no adjoint: undone with the sweeps.   y of all rows at rw.lam; leaves g
template <class T> CS_OP void large_velocity(const Tree& t, const Rows<T>& rw, T* g) {
  half_state(t, rw, rw.lam, g);
  for (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    for (int r = s.r; r < s.r + s.n; r++)
      rw.y[r] = rw.b[r] + fma(rw.R[r], rw.lam[r], col_dot(s, rw.Y + s.Y + (r - s.r) * s.s, g));
  }
}

// no adjoint: a part of relax_large_adj.   back through one update of block i, from lam_bar after it to lam_bar before it.   all: lambda of all rows before it, g: of these; d: by how much lambda changed
template <class T> CS_OP void undo_update(const Rows<T>& rw, const Options& o, int i, const T* all, const T* d, const T* lam_bar,
                                          const T* g, const RowBars<T>& rb, T* y_bar, T* own) {
  Span s = span(rw, i);
  const T* before = all + s.r;
  T y[3] = {T(0), T(0), T(0)}, zero = T(0);
  for (int j = 0; j < s.n; j++) y[j] = rw.b[s.r + j] + fma(rw.R[s.r + j], before[j], col_dot(s, rw.Y + s.Y + j * s.s, g));
  if (s.n == 1) {
    T rho = rw.rho[s.r], x = fnma(rho, y[0], before[0]), lo, hi;
    row_bounds(rw, i, all, lo, hi);
    auto high = x > hi;
    auto low = (x < lo) | (!(high | (lo < hi)));
    row_bounds_adj(rw, i, all, select(low, lam_bar[0], zero), select(high, lam_bar[0], zero), rb, rb.lam);
    own[0] = select(low | high, zero, lam_bar[0]);
    rb.rho[s.r] = fnma(y[0], own[0], rb.rho[s.r]);
    y_bar[0] = -rho * own[0];
    return;
  }
  const T* A = rw.A + 9 * i;
  T* A_bar = rb.A + 9 * i;
  Vec3<T> at = {y[0], y[1], y[2]}, bar = {lam_bar[0], lam_bar[1], third(rw, lam_bar)}, to_y, to_own;
  ContactUpdate<T> u = contact_update(rw, o, i, A, before, at);
  contact_update_adj(rw, o, i, A, before, at, u, bar, rb, A_bar, to_y, to_own);
  y_bar[0] = to_y.x, y_bar[1] = to_y.y, y_bar[2] = to_y.z;
  auto stick = u.stick > T(0.5);
  own[0] = select(stick, bar.x, to_own.x), own[1] = select(stick, bar.y, to_own.y), own[2] = select(stick, bar.z, to_own.z);
  // sticking: d = -B^-1 y with B the block's own part of A
  for (int j = 0; j < s.n; j++)
    for (int k = 0; k < s.n; k++) A_bar[s.n * j + k] += select(stick, y_bar[j] * d[k], zero);
}

// no adjoint: a part of relax_large_adj.   rho and B^-1 come from the block's own part of A,  A_jk = J_j . W_k (+ R): its bar to J, W and R
template <class T> CS_OP void own_adj(const Rows<T>& rw, const RowBars<T>& rb) {
  for (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    T* A_bar = rb.A + 9 * i;
    own_rho_adj(rw, rb, i, rw.A + 9 * i, s.n, A_bar);
    for (int j = 0; j < s.n; j++) {
      rb.R[s.r + j] += A_bar[j * s.n + j];
      for (int v = 0; v < s.n; v++)
        for (int k = 0; k < s.m; k++) {
          int to = s.J + j * s.m + k, from = s.J + v * s.m + k;
          rb.J[to] = fma(A_bar[j * s.n + v], rw.W[s.Y + v * s.s + k], rb.J[to]);
          rb.W[from] = fma(A_bar[j * s.n + v], rw.J[to], rb.W[from]);
        }
    }
  }
}

// no adjoint: relax_large_adj.   lambda of all rows
template <class T> CS_OP void relax_large(const Tree& t, const Rows<T>& rw, const Options& o) {
  using E = ElementOf<T>;
  T tol = T(E(o.tolerance)), sweeps = T(0), *g = rw.sigma;
  int n = rw.count[1], events = 0;
  auto live = tol == tol;
  for (int r = 0; r < n; r++) rw.lam[r] = T(0);
  for (; events < o.iterations && any(live); events++) {
    T change = T(0);
    for (int r = 0; rw.history && r < n; r++) rw.history[events * n + r] = rw.lam[r];
    if (rw.history) rw.took[events] = select(live, T(1), T(0)), rw.event[events] = 1;
    sweep_half_solved(t, rw, o, live, change, g);
    sweeps += select(live, T(1), T(0));
    if (any(change > tol)) continue;
    // what one row leaves another may undo: only the residual tells
    large_velocity(t, rw, g);
    live = live & (residual_of(rw, o, rw.lam, rw.y) > tol);
  }
  for (int r = 0; rw.history && r < n; r++) rw.history[events * n + r] = rw.lam[r];
  if (rw.history) rw.event[events] = 0;
  large_velocity(t, rw, g);
  T res = residual_of(rw, o, rw.lam, rw.y);
  rw.status->residual = res, rw.status->sweeps = sweeps, rw.status->solved = select(res > tol, T(0), T(1));
}
// adjoint: from rb.lam to rb.w, rb.R, bounds and mu, rb.J (a part of it) and rb.W
template <class T> CS_OP void relax_large_adj(const Tree& t, const Rows<T>& rw, const Options& o, const RowBars<T>& rb) {
  int n = rw.count[1], events = 0, blocks = rw.count[0];
  T zero = T(0), *g = rw.sigma, *g_bar = rw.wide;
  while (rw.event[events]) events++;
  for (int r = 0; r < n; r++) rb.b[r] = rb.R[r] = rb.lo[r] = rb.hi[r] = rb.rho[r] = zero;
  for (int i = 0; i < blocks; i++) rb.block_mu[i] = zero;
  for (int k = 0; k < rw.J_adr[blocks]; k++) rb.J[k] = rb.W[k] = zero;
  for (int k = 0; k < 9 * blocks; k++) rb.A[k] = zero;
  for (int d = 0; d < t.nv; d++) g_bar[d] = zero;
  half_state(t, rw, rw.lam, g);
  for (int e = events - 1; e >= 0; e--) {
    const T *before = rw.history + e * n, *after = before + n;
    if (e < events - 1) half_state(t, rw, after, g);
    for (int i = blocks - 1; i >= 0; i--) {
      Span s = span(rw, i);
      T d[3] = {zero, zero, zero}, y_bar[3], own[3], lam_bar[3], moved[3];
      for (int j = 0; j < s.n; j++) {
        const T* W = rw.W + s.Y + j * s.s;
        d[j] = after[s.r + j] - before[s.r + j], moved[j] = col_dot(s, W, g_bar), lam_bar[j] = rb.lam[s.r + j] + moved[j];
        for (int k = 0; k < s.m; k++) rb.W[s.J + j * s.m + k] = fma(d[j], g_bar[s.col[k]], rb.W[s.J + j * s.m + k]);
      }
      T back[3] = {-d[0], -d[1], -d[2]};
      add_rows(s, s.s, rw.W + s.Y, back, g);
      undo_update(rw, o, i, before, d, lam_bar, g, rb, y_bar, own);
      for (int j = 0; j < s.n; j++) {
        int r = s.r + j;
        const T* J = rw.J + s.J + j * s.m;
        rb.b[r] += y_bar[j], rb.R[r] = fma(y_bar[j], before[r], rb.R[r]);
        rb.lam[r] = fma(rw.R[r], y_bar[j], own[j] - moved[j]);
        for (int k = 0; k < s.m; k++) {
          rb.J[s.J + j * s.m + k] = fma(y_bar[j], g[s.col[k]], rb.J[s.J + j * s.m + k]);
          g_bar[s.col[k]] = fma(y_bar[j], J[k], g_bar[s.col[k]]);
        }
      }
    }
  }
  for (int r = 0; r < n; r++) rb.w[r] = -rb.b[r];
  own_adj(rw, rb);
  // A~ = A_bar + w lambda^T: one more y_bar = w at the end
  half_state(t, rw, rw.lam, g);
  for (int d = 0; d < t.nv; d++) g_bar[d] = zero;
  for (int i = 0; i < blocks; i++) {
    Span s = span(rw, i);
    for (int j = 0; j < s.n; j++)
      for (int k = 0; k < s.m; k++) {
        T w = rb.w[s.r + j];
        rb.J[s.J + j * s.m + k] = fma(w, g[s.col[k]], rb.J[s.J + j * s.m + k]);
        g_bar[s.col[k]] = fma(w, rw.J[s.J + j * s.m + k], g_bar[s.col[k]]);
      }
  }
  for (int i = 0; i < blocks; i++) {
    Span s = span(rw, i);
    for (int j = 0; j < s.n; j++)
      for (int k = 0; k < s.m; k++) {
        T& W_bar = rb.W[s.J + j * s.m + k];
        W_bar = fma(rw.lam[s.r + j], g_bar[s.col[k]], W_bar);
      }
  }
}

// no adjoint: a part of constrain_adj.   W = H^-1 J^T:  with u = H^-1 W_bar  J_bar += u,  H_bar = -sum u W^T. Uses up rb.W
template <class T> CS_OP void large_adj(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, T h, const RowBars<T>& rb,
                                        const Bars<T>& bar, const Params<T>& th_bar) {
  T *x = rw.wide, *y = rw.wide + t.nv;
  for (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    T* U = rb.W + s.J;
    int trees[2], *bodies = rw.mark, n = 0, a, b;
    block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
    trees[0] = a < 0 ? -1 : t.root[a], trees[1] = b < 0 || (a >= 0 && t.root[b] == t.root[a]) ? -1 : t.root[b];
    for (int side = 0; side < 2; side++)
      for (int k = trees[side] < 0 ? 0 : t.tree_body_adr[trees[side]]; trees[side] >= 0 && k < t.tree_body_adr[trees[side] + 1];
           k++)
        bodies[n++] = t.tree_body[k];
    if (t.form == kSparse) tree_solves(t, tr, rw, s, U, U);
    for (int j = 0; j < s.n; j++, U += s.m) {
      if (t.form != kSparse) {
        for (int d = 0; d < t.nv; d++) x[d] = T(0);
        for (int k = 0; k < s.m; k++) x[s.col[k]] = U[k];
        solve(t, tr, x);
        for (int k = 0; k < s.m; k++) U[k] = x[s.col[k]];
      }
      for (int k = 0; k < s.m; k++) {
        int d = s.col[k];
        x[d] = -U[k], y[d] = rw.W[s.Y + j * s.s + k];
        rb.J[s.J + j * s.m + k] += U[k];
        diagonal_adj(t, tr, d, x[d] * y[d], h, rb, bar, th_bar);
      }
      mass_form_adj(t, tr, x, y, bodies, n, rb, bar);
    }
  }
}

CS_END
