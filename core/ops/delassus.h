// delassus: A = J H^-1 J^T + R, island by island, from two halves:  A_rs = Y_r . W_s  over the dofs both have.
//
//   sparse form:      H = L^T D L,  Y = L^-T J^T on the ancestors of the row's dofs,  W = D^-1 Y
//   articulated form: Y = J^T,  W = H^-1 J^T
// Equality rows are eliminated: H^-1 becomes H^-1 - H^-1 J_e^T (L D L^T)^-1 J_e H^-1, so both halves go on over the equality rows that
// the row reaches, with Z = L^-1 J_e H^-1 J^T in Y and -D^-1 Z in W.
// no adjoint in this file: step_adj takes J_bar and H_bar from A_bar directly (ops/relax.h, ops/constrain.h)
#pragma once
#include "equality_factor.h"
#include "rows.h"

CS_BEGIN

// no adjoint: see above.   L^T y = J^T for N rows of a block at once, on its list; sums stay in registers.  chain: the list is one chain
// of ancestors, the k-th dof at depth k
template <int N, class T>
CS_OP void half_solve(const Tree& t, const Trace<T>& tr, const int* list, int m, const T* J, T* Y, T* W) {
  int stride = n_halves(t);
  bool chain = t.dof_depth[list[m - 1]] == m - 1;
  for (int k = m - 1; k >= 0; k--) {
    int d = list[k], depth = t.dof_depth[d];
    T y[N];
    for (int j = 0; j < N; j++) y[j] = J[j * t.nv + d];
    for (int c = k + 1; c < m; c++) {
      int e = list[c];
      if (!chain && (t.dof_depth[e] <= depth || t.row_dof[t.row_adr[e] + depth] != d)) continue;
      T L = tr.L[t.row_adr[e] + depth];
      for (int j = 0; j < N; j++) y[j] = fnma(L, Y[j * stride + e], y[j]);
    }
    for (int j = 0; j < N; j++) Y[j * stride + d] = y[j], W[j * stride + d] = y[j] * tr.D_inv[d];
  }
}

// no adjoint: see above.   the halves of N rows of block i on equality rows, from those on dofs
template <int N, class T> CS_OP void equality_halves(const Tree& t, const Rows<T>& rw, int i) {
  const Equality<T>& e = rw.eq;
  const int *list = rw.list + i * t.nv, *reach = rw.reach + i * t.n_item;
  int n = rw.list_n[i], stride = n_halves(t), r = rw.first_row[i];
  T *W = rw.W + r * stride, *Z = rw.Y + r * stride + t.nv;
  for (int k = 0; k < rw.reach_n[i]; k++)
    for (int v = 0; v < N; v++)
      for (int j = t.item_row[reach[k]]; j < t.item_row[reach[k] + 1]; j++) Z[v * stride + j] = T(0);
  for (int k = 0; k < rw.reach_n[i]; k++) {
    Item it = item_at(t, reach[k]);
    for (int x = 0, y = 0; x < it.m && y < n;) {
      if (it.list[x] != list[y]) {
        it.list[x] < list[y] ? x++ : y++;
        continue;
      }
      T w[N];
      for (int v = 0; v < N; v++) w[v] = W[v * stride + list[y]];
      for (int j = 0; j < it.n; j++)
        for (int v = 0; v < N; v++) Z[v * stride + it.row + j] = fma(e.Y[it.J + j * it.m + x], w[v], Z[v * stride + it.row + j]);
      x++, y++;
    }
    equality_forward<N>(t, e, reach[k], Z, stride);
    for (int j = it.row; j < it.row + it.n; j++)
      for (int v = 0; v < N; v++) W[v * stride + t.nv + j] = -Z[v * stride + j] * equality_D_inv(t, e, reach[k], j);
  }
}

// no adjoint: see above.   Y and W of block i
template <class T> CS_OP void block_halves(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i) {
  const int* list = rw.list + i * t.nv;
  int n = rw.kind[i] == kContactRows ? 3 : 1, m = rw.list_n[i], r = rw.first_row[i], stride = n_halves(t);
  T *J = rw.J + r * t.nv, *Y = rw.Y + r * stride, *W = rw.W + r * stride;
  if (t.form == kSparse) {
    n == 3 ? half_solve<3>(t, tr, list, m, J, Y, W) : half_solve<1>(t, tr, list, m, J, Y, W);
  } else {
    for (int j = 0; j < n; j++, J += t.nv, Y += stride, W += stride) {
      for (int d = 0; d < t.nv; d++) W[d] = T(0);
      for (int k = 0; k < m; k++) Y[list[k]] = W[list[k]] = J[list[k]];
      solve(t, tr, W);
    }
  }
  if (t.ne) n == 3 ? equality_halves<3>(t, rw, i) : equality_halves<1>(t, rw, i);
}

// no adjoint: integers.   what two ascending lists share; `out` gets it or, with first, the numbers from first[x] to first[x + 1] for each
CS_FN int common(const int* a, int na, const int* b, int nb, const int* first, int offset, int* out) {
  int n = 0;
  for (int x = 0, y = 0; x < na && y < nb;) {
    if (a[x] != b[y]) {
      a[x] < b[y] ? x++ : y++;
      continue;
    }
    if (!first) out[n++] = a[x];
    for (int k = first ? first[a[x]] : 0; first && k < first[a[x] + 1]; k++) out[n++] = offset + k;
    x++, y++;
  }
  return n;
}

// no adjoint: see above.   the dofs that blocks i and j share, and behind them nv + r for the equality rows that both reach
template <class T> CS_FN int common_halves(const Tree& t, const Rows<T>& rw, int i, int j, int* out) {
  int n = common(rw.list + i * t.nv, rw.list_n[i], rw.list + j * t.nv, rw.list_n[j], nullptr, 0, out);
  return n + common(rw.reach + i * t.n_item, rw.reach_n[i], rw.reach + j * t.n_item, rw.reach_n[j], t.item_row, t.nv, out + n);
}

// no adjoint: see above.   adds R to the diagonal; rho of block i
template <class T> CS_FN void block_rho(const Rows<T>& rw, int i, T* A, int stride, int r0) {
  int r = rw.first_row[i], n = rw.kind[i] == kContactRows ? 3 : 1;
  auto valid = rw.valid[i] > T(0.5);
  for (int j = 0; j < n; j++) {
    T& a = A[(r + j - r0) * (stride + 1)];
    a = select(valid, a + rw.R[r + j], T(1));
    rw.rho[r + j] = T(1) / a, rw.inv_rho[r + j] = a;
  }
  if (n == 1) return;
  // the tangents take one step size: 1 / a bound of the largest eigenvalue of their 2 x 2 block
  const T* B = A + (r + 1 - r0) * (stride + 1);
  rw.inv_rho[r + 1] = rw.inv_rho[r + 2] = max(B[0], B[stride + 1]) + abs(B[1]);
  rw.rho[r + 1] = rw.rho[r + 2] = T(1) / rw.inv_rho[r + 1];
  const T *a0 = A + (r - r0) * (stride + 1), *a1 = a0 + stride, *a2 = a1 + stride;
  rw.B_inv[i] = inverse(Sym3<T>{a0[0], a1[1], a2[2], a1[0], a2[0], a2[1]});
}

// no adjoint: see above.   Y_i . W_j of two blocks, NI x NJ numbers at once
template <int NI, int NJ, class T>
CS_OP void block_product(const Tree& t, const T* Y, const T* W, const int* dofs, int m, T* A, int n) {
  int stride = n_halves(t);
  T s[NI][NJ];
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++) s[i][j] = T(0);
  for (int k = 0; k < m; k++) {
    int d = dofs[k];
    T w[NJ];
    for (int j = 0; j < NJ; j++) w[j] = W[j * stride + d];
    for (int i = 0; i < NI; i++) {
      T y = Y[i * stride + d];
      for (int j = 0; j < NJ; j++) s[i][j] = fma(y, w[j], s[i][j]);
    }
  }
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++) A[i * n + j] = s[i][j];
}

// no adjoint: see above
template <class T> CS_OP void delassus(const Tree& t, const Trace<T>& tr, const Rows<T>& rw) {
  for (int i = 0; i < rw.count[0]; i++) block_halves(t, tr, rw, i);
  for (int s = 0; s < rw.count[2]; s++) {
    int first = rw.island_block[s], last = rw.island_block[s + 1], r0 = rw.first_row[first], n = rw.first_row[last] - r0;
    T* A = rw.A + rw.island_A[s];
    for (int i = first; i < last; i++)
      for (int j = first; j <= i; j++) {
        int a = rw.first_row[i], b = rw.first_row[j], ni = rw.first_row[i + 1] - a, nj = rw.first_row[j + 1] - b;
        int m = common_halves(t, rw, i, j, rw.mark);
        const T *Y = rw.Y + a * n_halves(t), *W = rw.W + b * n_halves(t);
        T *to = A + (a - r0) * n + b - r0, *across = A + (b - r0) * n + a - r0;
        if (ni == 3)
          nj == 3 ? block_product<3, 3>(t, Y, W, rw.mark, m, to, n) : block_product<3, 1>(t, Y, W, rw.mark, m, to, n);
        else
          nj == 3 ? block_product<1, 3>(t, Y, W, rw.mark, m, to, n) : block_product<1, 1>(t, Y, W, rw.mark, m, to, n);
        for (int x = 0; x < ni; x++)
          for (int y = 0; y < (i == j ? x : nj); y++) across[y * n + x] = to[x * n + y];
      }
    for (int i = first; i < last; i++) block_rho(rw, i, A, n, r0);
  }
}

// no adjoint: linear in lam.   dv = H^-1 J^T lam of blocks first to last, on `dofs`, which hold all that these blocks move; equality rows
// answer with impulses that are left in rw.eq.y
template <class T> CS_OP void impulse_response(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int first, int last,
                                               const T* lam, const int* dofs, int n, T* dv) {
  int stride = n_halves(t);
  T* y = rw.eq.y;
  for (int k = 0; k < n; k++) dv[dofs[k]] = T(0);
  for (int r = 0; r < t.ne; r++) y[r] = T(0);
  for (int i = first; i < last; i++) {
    const int *list = rw.list + i * t.nv, *reach = rw.reach + i * t.n_item;
    for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++) {
      const T* W = rw.W + r * stride;
      for (int k = 0; k < rw.list_n[i]; k++) dv[list[k]] = fma(W[list[k]], lam[r], dv[list[k]]);
      for (int k = 0; k < rw.reach_n[i]; k++)
        for (int j = t.item_row[reach[k]]; j < t.item_row[reach[k] + 1]; j++) y[j] = fma(W[t.nv + j], lam[r], y[j]);
    }
  }
  if (t.ne) {
    equality_backward(t, rw.eq, y);
    equality_W(t, rw.eq, y, dv);
  }
  second_half(t, tr, dofs, n, dv);
}

CS_END
