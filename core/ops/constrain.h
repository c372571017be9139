// constrain: v+ = v* + H^-1 J^T lambda, with lambda from the complementarity problem of all rows.
//
//   Equality rows are eliminated first (ops/equality.h); the others are solved against what that leaves of H^-1.
//   What is left of A and b is solved in rounds of sweeps and Newton steps (ops/rounds.h).
#pragma once
#include "../data/inputs.h"
#include "equality.h"
#include "fall.h"
#include "first_round.h"
#include "interior.h"
#include "large.h"
#include "rounds.h"

CS_BEGIN

// no adjoint: what is shown.   how far equality rows without softness of their own are off, and by how much they are missed
template <class T> CS_FN void equality_status(const Tree& t, const Rows<T>& rw) {
  const Equality<T>& e = rw.eq;
  T drift = T(0), missed = T(0);
  CS_FOR (int r = 0; r < t.ne; r++) {
    auto hard = !(e.softness[r] > T(0));
    drift = select(hard, max(drift, abs(e.now.phi[r])), drift);
    missed = select(hard, max(missed, abs(e.floor[r] * e.lam[r])), missed);
  }
  rw.status->drift = drift, rw.status->contradiction = missed;
}

// no adjoint: a part of constrain.   what has rows; v_next = v* until they are solved
template <class T> CS_WHOLE void find_rows(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                           const RowInputs<T>& in, const Options& o, T* v_next) {
  set_rows(rw.dv, t.nv, [](int) { return T(0); });
  CS_IF(Tree, t, ne) equality(t, th, tr, rw.eq, in.h, in.full, o, rw.v_star, rw.dv);
  shapes(t, th, tr, rw);
  collide(t, th, tr, rw, in, o);
  limits(t, th, tr.q, in.v, in.h, rw);
  slots(t, tr, rw, in, o);
  set_rows(v_next, t.nv, [&](int d) { return rw.v_star[d]; });
}
// no adjoint: a part of constrain.   J, b, A
template <class T> CS_WHOLE void make_rows(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                           const RowInputs<T>& in, const Options& o) {
  if (!rw.count[0]) return;
  rows(t, th, tr, rw, in, o);
  CS_IF(Tree, t, turns) turn_rows(t, th, tr, rw, in, o);
  delassus(t, tr, rw);
}
// no adjoint: what is shown.   what a solver adds to
template <class T> CS_FN void solver_status(const Rows<T>& rw) {
  rw.status->residual = rw.status->sweeps = rw.status->steps = rw.status->impacts = T(0), rw.status->solved = T(1);
}
// no adjoint: a part of constrain.   lambda.   later: of rows that are known to need more than a round of passes, which is done (ops/first_round.h)
template <class T> CS_WHOLE void solve_rows(const Tree& t, const Rows<T>& rw, const Options& o, bool later = false) {
  if (!later) solver_status(rw);
  if (!rw.count[0]) return;
  CS_IF(Tree, t, large) relax_large(t, rw, o);
  else CS_IF(Options, o, method) interior(rw, o);
  else relax(t, rw, o, later);
}
// no adjoint: a part of constrain.   v_next, which lambda changes
template <class T> CS_WHOLE void respond(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const Options& o, T* v_next) {
  if (rw.count[0]) {
    T* by = rw.sigma;
    impulse_response(t, tr, rw, 0, rw.count[0], rw.lam, static_cast<const int*>(nullptr), t.nv, by);
    share_rows(t.nv, [&](int d) { v_next[d] += by[d], rw.dv[d] += by[d]; });
    CS_FOR (int r = 0; r < t.ne; r++) rw.eq.lam[r] += rw.eq.y[r];
  }
  CS_IF(Options, o, impacts) find_pushed(t, rw, o);
  equality_status(t, rw);
}

// constrain: v_next, from rw.v_star
template <class T> CS_WHOLE void constrain(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                           const RowInputs<T>& in, const Options& o, T* v_next) {
  find_rows(t, th, tr, rw, in, o, v_next);
  CS_ALIGN();
  make_rows(t, th, tr, rw, in, o);
  CS_ALIGN();
  solve_rows(t, rw, o);
  CS_ALIGN();
  respond(t, tr, rw, o, v_next);
}

// no adjoint: integers.   the trees of island s: their bodies and dofs, in order, and marks on the bodies
template <class T>
CS_FN void island_trees(const Tree& t, const Rows<T>& rw, int s, int* in_island, int* bodies, int& n, int* dofs, int& nd) {
  for (int b = 0; b < t.nb; b++) in_island[b] = 0;
  for (int i = rw.island_block[s]; i < rw.island_block[s + 1]; i++)
    for (int k = 0; k < rw.list_n[i]; k++) in_island[t.joined[t.dof_body[rw.col[rw.col_adr[i] + k]]]] = 1;
  n = nd = 0;
  for (int b = 0; b < t.nb; b++)
    if ((in_island[b] = in_island[t.joined[b]])) bodies[n++] = b;
  for (int d = 0; d < t.nv; d++)
    if (in_island[t.dof_body[d]]) dofs[nd++] = d;
}

// no adjoint: a part of dense_adj.   what equality rows that answer row k (of m, the first r0) are worth; x: as there
template <class T>
CS_OP void answers_adj(const Tree& t, const int* in_island, const T* A, int k, int m, int r0, const T* x, const RowBars<T>& rb) {
  const T *X_k = rb.X + (r0 + k) * t.nv, *Lambda_k = rb.Lambda + (r0 + k) * t.ne;
  for (int i = 0; i < t.n_item; i++) {
    Item it = item_at(t, i);
    if (!in_island[t.dof_body[it.list[0]]]) continue;
    for (int e = it.row; e < it.row + it.n; e++) {
      T l = T(0), *to = rb.eq.J + it.J + (e - it.row) * it.m;
      for (int j = 0; j < m; j++) l = fma(A[j * m + k], rb.Lambda[(r0 + j) * t.ne + e], l);
      rb.eq.R[e] = fma(l, Lambda_k[e], rb.eq.R[e]);
      for (int c = 0; c < it.m; c++) to[c] += fnma(Lambda_k[e], x[it.list[c]], l * X_k[it.list[c]]);
    }
  }
}

// no adjoint: a part of dense_adj.   the response of v to a unit of each row of block i, on n `dofs`, without equality rows; by one thread of a team
template <class T> CS_FN void block_responses(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i, const int* dofs, int n,
                                              const RowBars<T>& rb) {
  Span s = span(rw, i);
  for (int j = 0; j < s.n; j++) {
    T* x = rb.X + (s.r + j) * t.nv;
    for (int k = 0; k < n; k++) x[dofs[k]] = T(0);
    for (int k = 0; k < s.m; k++) x[s.col[k]] += rw.W[s.Y + j * s.s + k];
    second_half(t, tr, dofs, n, x);
  }
}

// no adjoint: a part of constrain_adj.   what A~ is worth to J and H:  J_bar += (A~ + A~^T) X,  H_bar = -sum A~_rs X_r X_s^T, with X the response
// of v to a unit of each row. Where equality rows answer with impulses Lambda:  J_e_bar += sum A~_rs (Lambda_r X_s^T + Lambda_s X_r^T),
// R_e_bar += sum A~_rs Lambda_r Lambda_s
template <class T> CS_WHOLE void dense_adj(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, T h, const RowBars<T>& rb,
                                           const Bars<T>& bar, const Params<T>& th_bar) {
  int *dofs = rw.mark, *in_island = rw.mark + t.nv, *bodies = in_island + t.nb, n, nd;
  T* x = rb.g;
  for (int s = 0; s < rw.count[2]; s++) {
    int first, last, r0, m;
    island_trees(t, rw, s, in_island, bodies, n, dofs, nd);
    island_rows(rw, s, first, last, r0, m);
    const T* A = rb.A + rw.island_A[s];
    if (kTeam > 1 && !t.ne) {
      share(last - first, [&](int i) { block_responses(t, tr, rw, first + i, dofs, nd, rb); });
    } else {
      for (int i = first; i < last; i++)
        for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++) {
          for (int j = rw.first_row[i]; j < rw.first_row[i + 1]; j++) rw.delta[j] = j == r ? T(1) : T(0);
          impulse_response(t, tr, rw, i, i + 1, rw.delta, dofs, nd, rb.X + r * t.nv);
          for (int e = 0; e < t.ne; e++) rb.Lambda[r * t.ne + e] = rw.eq.y[e];
        }
    }
    for (int i = first; i < last; i++) {
      Span p = span(rw, i);
      for (int v = 0; v < p.n; v++) {
        int k = p.r + v - r0;
        const T* X_k = rb.X + (r0 + k) * t.nv;
        T* J_bar = rb.J + p.J + v * p.m;
        share(p.m, [&](int c) {
          T to_J = T(0);
          for (int j = 0; j < m; j++) to_J = fma(A[k * m + j] + A[j * m + k], rb.X[(r0 + j) * t.nv + p.col[c]], to_J);
          J_bar[c] += to_J;
        });
        share(nd, [&](int c) {
          T to_x = T(0);
          for (int j = 0; j < m; j++) to_x = fnma(A[j * m + k], rb.X[(r0 + j) * t.nv + dofs[c]], to_x);
          x[dofs[c]] = to_x;
        });
        for (int c = 0; c < nd; c++) diagonal_adj(t, tr, dofs[c], x[dofs[c]] * X_k[dofs[c]], h, rb, bar, th_bar);
        mass_form_adj(t, tr, x, X_k, bodies, n, rb, bar);
        answers_adj(t, in_island, A, k, m, r0, x, rb);
      }
    }
  }
}

// no adjoint: linear and symmetric.   x = H^-1 x without what equality rows forbid; w: [ne] what they answer, x -= H^-1 J^T w
template <class T> CS_OP void constrained_solve(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, T* x, T* w) {
  solve_adj(t, tr, x);
  if (!t.ne) return;
  const Equality<T>& e = rw.eq;
  equality_J(t, e, x, w);
  equality_solve(t, e, w);
  equality_response(t, tr, e, w, e.x);
  CS_FOR (int d = 0; d < t.nv; d++) x[d] -= e.x[d];
}

// no adjoint: a part of constrain_adj and project_adj.   J_bar += lam u^T - w v^T,  R_bar -= w lam  of all equality rows
template <class T>
CS_OP void equality_bars(const Tree& t, const EqualityBars<T>& eb, const T* lam, const T* w, const T* u, const T* v) {
  for (int i = 0; i < t.n_item; i++) {
    Item it = item_at(t, i);
    for (int r = it.row; r < it.row + it.n; r++) {
      T* J = eb.J + it.J + (r - it.row) * it.m;
      for (int k = 0; k < it.m; k++) J[k] += fnma(w[r], v[it.list[k]], lam[r] * u[it.list[k]]);
      eb.R[r] = fnma(w[r], lam[r], eb.R[r]);
    }
  }
}

// no adjoint: a part of constrain_adj.   impacts: rows whose velocity is that right after them,  y = J (v + jump) + e J_n v,  H jump = J^T lambda.
// With u_jump = -H^-1 J^T w of these rows:  H_bar = -u_jump jump^T;  J_bar is done there
template <class T> CS_OP void impacts_adj(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in,
                                          const T* v_next, const RowBars<T>& rb, const Bars<T>& bar, const Params<T>& th_bar) {
  T *x = rb.g, *u = rb.u_jump, some = T(0);
  for (int d = 0; d < t.nv; d++) u[d] = T(0), rb.jump[d] = v_next[d] - rw.v_star[d];
  for (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    some = max(some, rw.impact[i]);
    for (int j = 0; j < s.n; j++)
      for (int k = 0; k < s.m; k++) u[s.col[k]] = fnma(rw.impact[i] * rb.w[s.r + j], rw.J[s.J + j * s.m + k], u[s.col[k]]);
  }
  if (!any(some > T(0.5))) return;
  constrained_solve(t, tr, rw, u, rb.w_jump);
  for (int d = 0; d < t.nv; d++) {
    x[d] = -u[d];
    diagonal_adj(t, tr, d, x[d] * rb.jump[d], in.h, rb, bar, th_bar);
  }
  mass_form_adj(t, tr, x, rb.jump, static_cast<const int*>(nullptr), t.nb, rb, bar);
  if (!t.ne) return;
  impulse_response(t, tr, rw, 0, rw.count[0], rw.lam, static_cast<const int*>(nullptr), t.nv, x);
  equality_bars(t, rb.eq, rw.eq.y, rb.w_jump, u, rb.jump);
}

// no adjoint: a part of constrain_adj.   J_bar = lambda u^T - w v+^T - (w dtarget/dJv) v^T;   h_bar -= u . J^T lambda / h
template <class T> CS_OP void J_bars(const Tree& t, const Rows<T>& rw, const RowInputs<T>& in, const T* v_next,
                                     const RowBars<T>& rb, const InputBars<T>& in_bar) {
  // row j of block i knows v: it is that of a normal, or an impact; and how much
  auto knows_v = [&](int i, int j) { return in.split || (j == 0 && rw.kind[i] == kContactRows); };
  auto weight = [&](int i, int j) {
    return rb.w[rw.first_row[i] + j] * (j == 0 && rw.kind[i] == kContactRows ? rw.t_v[i] : rw.impact[i]);
  };
  auto to_v = [&](const Span& s, int j, int k, T w) {
    in_bar.v[s.col[k]] = fnma(w, rw.J[s.J + j * s.m + k], in_bar.v[s.col[k]]);
  };
  T* Jl_u = rb.mu_else;
  share_rows(rw.count[0], [&](int i) {
    Span s = span(rw, i);
    T sum = T(0);
    CS_FOR (int j = 0; j < s.n; j++) {
      const T* J = rw.J + s.J + j * s.m;
      T *J_bar = rb.J + s.J + j * s.m, w = rb.w[s.r + j], lam = rw.lam[s.r + j], wv = weight(i, j), Ju = T(0);
      CS_FOR (int k = 0; k < s.m; k++) {
        int d = s.col[k];
        // large models have a part of J_bar from their sweeps already
        J_bar[k] = fnma(w, v_next[d], t.large ? fma(lam, rb.u[d], J_bar[k]) : lam * rb.u[d]);
        Ju = fma(J[k], rb.u[d], Ju);
      }
      // an impact has y = J (jump + v): its rows know the jump alone
      CS_FOR (int k = 0; k < s.m && in.split; k++)
        J_bar[k] += fma(lam, rb.u_jump[s.col[k]], w * rw.impact[i] * (v_next[s.col[k]] - rb.jump[s.col[k]]));
      CS_FOR (int k = 0; k < s.m && knows_v(i, j); k++) {
        J_bar[k] = fnma(wv, in.v[s.col[k]], J_bar[k]);
        if constexpr (kTeam == 1) to_v(s, j, k, wv);
      }
      sum = fma(lam, Ju, sum);
    }
    Jl_u[i] = sum;
  });
  CS_FOR (int i = 0; i < rw.count[0]; i++) {
    if constexpr (kTeam > 1) {
      Span s = span(rw, i);
      for (int j = 0; j < s.n; j++)
        if (knows_v(i, j)) share(s.m, [&](int k) { to_v(s, j, k, weight(i, j)); });
    }
    add_to_tree(t, rw, i, -Jl_u[i] / in.h, rb.h);
  }
}

// adjoint, after the forward on the same trace. v_bar: of v+ on entry, of v* (that is, s = v_bar+ - J^T w) on return; rb.impulse is set,
// and what rb.eq holds by the projection. rb.u = H^-1 s is what motion_adj needs next, with the accelerations (v+ - v) / h
template <class T> CS_WHOLE void constrain_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                               const RowInputs<T>& in, const Options& o, const T* v_next, T* v_bar,
                                               const RowBars<T>& rb, const Bars<T>& bar, const Params<T>& th_bar,
                                               InputBars<T>& in_bar) {
  const EqualityBars<T>& eb = rb.eq;
  share_rows(t.nv, [&](int d) { rb.g[d] = v_bar[d]; });
  if (rw.count[0]) constrained_solve(t, tr, rw, rb.g, eb.w);
  share_rows(rw.count[0], [&](int i) {
    Span s = span(rw, i);
    CS_FOR (int j = 0; j < s.n; j++) {
      rb.lam[s.r + j] = row_dot(s, rw.J + s.J + j * s.m, rb.g);
      if (rw.kind[i] == kContactRows) rb.lam[s.r + j] += dot((&rw.C[i].r0)[j], rb.impulse[i]);
    }
  });
  bool dense = false;
  CS_ALIGN();
  if (rw.count[0]) {
    CS_IF(Tree, t, large) relax_large_adj(t, rw, o, rb);
    else dense = solver_adj(t, rw, o, rb);
  }
  CS_ALIGN();
  // s and u
  auto push = [&](const Span& s, int i, int j, int k) {
    T w = in.split ? rb.w[s.r + j] * (T(1) - rw.impact[i]) : rb.w[s.r + j];
    v_bar[s.col[k]] = fnma(w, rw.J[s.J + j * s.m + k], v_bar[s.col[k]]);
  };
  CS_FOR (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    if constexpr (kTeam > 1) {
      share(s.m, [&](int k) {
        for (int j = 0; j < s.n; j++) push(s, i, j, k);
      });
    } else {
      CS_FOR (int j = 0; j < s.n; j++)
        CS_FOR (int k = 0; k < s.m; k++) push(s, i, j, k);
    }
  }
  share_rows(t.nv, [&](int d) { rb.u[d] = v_bar[d]; });
  constrained_solve(t, tr, rw, rb.u, eb.w);
  CS_FOR (int i = 0; i < t.n_item; i++) {
    Item it = item_at(t, i);
    CS_FOR (int r = 0; r < it.n; r++)
      CS_FOR (int k = 0; k < it.m; k++)
        v_bar[it.list[k]] = fnma(eb.w[it.row + r], rw.eq.J[it.J + r * it.m + k], v_bar[it.list[k]]);
  }
  if (!rw.count[0] && !t.ne) return;
  share_rows(t.nb, [&](int b) { rb.h[b] = rb.full[b] = T(0); });
  CS_IF(Options, o, impacts) {
    if (in.split) impacts_adj(t, tr, rw, in, v_next, rb, bar, th_bar);
  }
  J_bars(t, rw, in, v_next, rb, in_bar);
  CS_IF(Tree, t, ne) {
    equality_bars(t, eb, rw.eq.lam, eb.w, rb.u, v_next);
    equality_J(t, rw.eq, rb.u, rw.eq.y);
    CS_FOR (int r = 0; r < t.ne; r++) in_bar.h = fnma(rw.eq.lam[r] / in.h, rw.eq.y[r], in_bar.h);
  }
  if (dense) dense_adj(t, tr, rw, in.h, rb, bar, th_bar);
  CS_IF(Tree, t, large) {
    if (rw.count[0]) large_adj(t, tr, rw, in.h, rb, bar, th_bar);
  }
  row_bars_clear(t, rw, rb);
  CS_IF(Tree, t, turns) turn_rows_adj(t, th, tr, rw, o, rb, bar, th_bar);
  rows_adj(t, th, tr, rw, in, o, rb, bar, th_bar, in_bar.u);
  CS_FOR (int b = 0; b < t.nb; b++) in_bar.h += rb.h[b], in_bar.full += rb.full[b];
  CS_IF(Tree, t, ne) {
    equality_adj(t, th, tr, rw.eq, in.h, in.full, o, eb, bar, th_bar, in_bar.h, in_bar.full);
    ties_adj(t, th, tr, rw.eq.now, eb.frame, bar, th_bar);
  }
  limits_adj(t, tr.q, rw, rb, th_bar, bar.q);
  collide_adj(t, th, rw, rb, th_bar);
  shapes_adj(t, th, tr, rw, rb, bar, th_bar);
}

CS_END
