// factor and solve:  H x = r,  H = M + armature + h D, symmetric and positive definite.
//
// Two forms, chosen by the model (Tree::form):
//   sparse       H = L^T D L along each dof's ancestors (Featherstone 2008, 8.3): best for shallow trees
//   articulated  the articulated-body recursion, dof by dof (Featherstone 1983): cost linear in the dofs, for deep trees
// saves: L, D_inv, U
#pragma once
#include "../math/array.h"
#include "inertia.h"
#include "tree_together.h"

CS_BEGIN

// no adjoint: as factor_sparse.   by a team: first each thread has a dof
template <class T> CS_FN void factor_sparse_together(const Tree& t, const Params<T>& th, const Trace<T>& tr, T h) {
  share(t.nv, [&](int d) {
    Force<T> F = mul(tr.Ic[t.dof_body[d]], tr.S[d]);
    const int* row = t.row_dof + t.row_adr[d];
    T* Ld = tr.L + t.row_adr[d];
    int depth = t.dof_depth[d];
    CS_SHORT (int k = 0; k < depth; k++) Ld[k] = dot(tr.S[row[k]], F);
    Ld[depth] = dot(tr.S[d], F) + fma(h, tr.D[d], th.armature[d]);
  });
  if constexpr (kHoldsRows)
    eliminate_held(t, tr);
  else
    eliminate_shared(t, tr);
}

// no adjoint: solve_adj differentiates H x = r as an equation
// sparse: rows of H along the ancestors, then eliminate from the leaves
template <class T> CS_OP void factor_sparse(const Tree& t, const Params<T>& th, const Trace<T>& tr, T h) {
  composite(t, tr);
  if constexpr (kTeam > 1) return factor_sparse_together(t, th, tr, h);
  for (int d = 0; d < t.nv; d++) {
    Force<T> F = mul(tr.Ic[t.dof_body[d]], tr.S[d]);
    const int* row = t.row_dof + t.row_adr[d];
    T* Ld = tr.L + t.row_adr[d];
    set(Ld, t.dof_depth[d] + 1, [&](int k) { return dot(tr.S[row[k]], F); });
    Ld[t.dof_depth[d]] += fma(h, tr.D[d], th.armature[d]);
  }
  for (int d = t.nv - 1; d >= 0; d--) {
    int depth = t.dof_depth[d];
    const int* row = t.row_dof + t.row_adr[d];
    T* Ld = tr.L + t.row_adr[d];
    T D_inv = tr.D_inv[d] = T(1) / Ld[depth];
    for (int k = depth - 1; k >= 0; k--) {
      T a = Ld[k] * D_inv;
      T* Li = tr.L + t.row_adr[row[k]];
      set(Li, k + 1, [&](int m) { return fnma(a, Ld[m], Li[m]); });
      Ld[k] = a;
    }
  }
}

// no adjoint: as factor_sparse.   articulated: project each dof out of the inertia its parent feels
template <class T> CS_OP void factor_articulated(const Tree& t, const Params<T>& th, const Trace<T>& tr, T h) {
  for (int b = 0; b < t.nb; b++) tr.IA[b] = articulated(tr.I[b]);
  for (int b = t.nb - 1; b >= 0; b--) {
    int P = t.parent[b], d0 = t.v_adr[b], n = joint_nv(t.joint[b]);
    ArticulatedInertia<T> IA = tr.IA[b];
    for (int d = d0 + n - 1; d >= d0; d--) {
      Force<T> U = tr.U[d] = mul(IA, tr.S[d]);
      T D_inv = tr.D_inv[d] = T(1) / (dot(tr.S[d], U) + fma(h, tr.D[d], th.armature[d]));
      if (P >= 0 || d > d0) add_outer(IA, -D_inv, U);
    }
    if (P >= 0) add(tr.IA[P], IA);
  }
}

// no adjoint: as factor_sparse
template <class T> CS_OP void factor(const Tree& t, const Params<T>& th, const Trace<T>& tr, T h) {
  if (t.form == kSparse)
    factor_sparse(t, th, tr, h);
  else
    factor_articulated(t, th, tr, h);
}

// no adjoint: solve_adj below serves both forms.   x = H^-1 x in place:  L^T y = x, column by column from the leaves, then
// L x = D^-1 y, row by row. Each sum stays in a register: updating x dof by dof took twice as long in packs
template <class T> CS_OP void solve_sparse(const Tree& t, const Trace<T>& tr, T* x) {
  if constexpr (kBits > 0) return solve_held(t, tr, x);
  CS_FOR (int i = t.nv - 1; i >= 0; i--) {
    int n = t.dof_depth[i];
    T y = x[i];
    CS_FOR (int c = t.col_adr[i]; c < t.col_adr[i + 1]; c++) y = fnma(tr.L[t.row_adr[t.col_dof[c]] + n], x[t.col_dof[c]], y);
    x[i] = y;
  }
  CS_FOR (int i = 0; i < t.nv; i++) {
    const int* row = t.row_dof + t.row_adr[i];
    const T* Li = tr.L + t.row_adr[i];
    T xi = x[i] * tr.D_inv[i];
    CS_FOR (int k = 0; k < t.dof_depth[i]; k++) xi = fnma(Li[k], x[row[k]], xi);
    x[i] = xi;
  }
}

// no adjoint: as solve_sparse.   inwards the forces that r exerts on each body, outwards the accelerations.  Uses tr.f, tr.a
template <class T> CS_OP void solve_articulated(const Tree& t, const Trace<T>& tr, T* x) {
  for (int b = 0; b < t.nb; b++) tr.f[b] = zero_force<T>();
  for (int b = t.nb - 1; b >= 0; b--) {
    int P = t.parent[b], d0 = t.v_adr[b], n = joint_nv(t.joint[b]);
    Force<T> f = tr.f[b];
    for (int d = d0 + n - 1; d >= d0; d--) {
      x[d] = (x[d] - dot(tr.S[d], f)) * tr.D_inv[d];
      f = fma(x[d], tr.U[d], f);
    }
    if (P >= 0) tr.f[P] += f;
  }
  for (int b = 0; b < t.nb; b++) {
    int P = t.parent[b], d0 = t.v_adr[b], n = joint_nv(t.joint[b]);
    Motion<T> a = P >= 0 ? tr.a[P] : zero_motion<T>();
    for (int d = d0; d < d0 + n; d++) {
      x[d] = fnma(tr.D_inv[d], dot(a, tr.U[d]), x[d]);
      a = fma(x[d], tr.S[d], a);
    }
    tr.a[b] = a;
  }
}

// solve: x = H^-1 x in place, with the factor in the trace
template <class T> CS_OP void solve(const Tree& t, const Trace<T>& tr, T* x) {
  if (t.form == kSparse)
    solve_sparse(t, tr, x);
  else
    solve_articulated(t, tr, x);
}
// adjoint of x = H^-1 r:  r_bar = H^-1 x_bar (H is symmetric), in place.  H_bar = -r_bar x^T is never formed: motion_adj
// contracts it with dH through inverse dynamics
template <class T> CS_OP void solve_adj(const Tree& t, const Trace<T>& tr, T* x_bar) { solve(t, tr, x_bar); }

CS_END
