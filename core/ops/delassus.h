// delassus: A = J H^-1 J^T + R, island by island, from two halves:  A_rs = Y_r . W_s  over the dofs both have.
//
//   sparse form:      H = L^T D L,  Y = L^-T J^T on the ancestors of the row's dofs,  W = D^-1 Y
//   articulated form: Y = J^T,  W = H^-1 J^T
// no adjoint in this file: step_adj takes J_bar and H_bar from A_bar directly (ops/relax.h, ops/constrain.h)
#pragma once
#include "rows.h"
#include "solve.h"

CS_BEGIN

// no adjoint: see above.   L^T y = J^T for N rows of a block at once, on its list; sums stay in registers.  chain: the list is one chain
// of ancestors, the k-th dof at depth k
template <int N, class T>
CS_OP void half_solve(const Tree& t, const Trace<T>& tr, const int* list, int m, const T* J, T* Y, T* W) {
  bool chain = t.dof_depth[list[m - 1]] == m - 1;
  for (int k = m - 1; k >= 0; k--) {
    int d = list[k], depth = t.dof_depth[d];
    T y[N];
    for (int j = 0; j < N; j++) y[j] = J[j * t.nv + d];
    for (int c = k + 1; c < m; c++) {
      int e = list[c];
      if (!chain && (t.dof_depth[e] <= depth || t.row_dof[t.row_adr[e] + depth] != d)) continue;
      T L = tr.L[t.row_adr[e] + depth];
      for (int j = 0; j < N; j++) y[j] = fnma(L, Y[j * t.nv + e], y[j]);
    }
    for (int j = 0; j < N; j++) Y[j * t.nv + d] = y[j], W[j * t.nv + d] = y[j] * tr.D_inv[d];
  }
}

// no adjoint: see above.   Y and W of block i
template <class T> CS_OP void block_halves(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i) {
  const int* list = rw.list + i * t.nv;
  int n = rw.kind[i] == kContactRows ? 3 : 1, m = rw.list_n[i], r = rw.first_row[i] * t.nv;
  T *J = rw.J + r, *Y = rw.Y + r, *W = rw.W + r;
  if (t.form == kSparse) {
    n == 3 ? half_solve<3>(t, tr, list, m, J, Y, W) : half_solve<1>(t, tr, list, m, J, Y, W);
    return;
  }
  for (int j = 0; j < n; j++, J += t.nv, Y += t.nv, W += t.nv) {
    for (int d = 0; d < t.nv; d++) W[d] = T(0);
    for (int k = 0; k < m; k++) Y[list[k]] = W[list[k]] = J[list[k]];
    solve(t, tr, W);
  }
}

// no adjoint: see above.   the dofs that blocks i and j share
template <class T> CS_FN int common_dofs(const Tree& t, const Rows<T>& rw, int i, int j, int* out) {
  const int *a = rw.list + i * t.nv, *b = rw.list + j * t.nv;
  int n = 0, na = rw.list_n[i], nb = rw.list_n[j];
  for (int x = 0, y = 0; x < na && y < nb;) {
    if (a[x] == b[y])
      out[n++] = a[x], x++, y++;
    else if (a[x] < b[y])
      x++;
    else
      y++;
  }
  return n;
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
  T s[NI][NJ];
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++) s[i][j] = T(0);
  for (int k = 0; k < m; k++) {
    int d = dofs[k];
    T w[NJ];
    for (int j = 0; j < NJ; j++) w[j] = W[j * t.nv + d];
    for (int i = 0; i < NI; i++) {
      T y = Y[i * t.nv + d];
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
        int m = common_dofs(t, rw, i, j, rw.mark);
        const T *Y = rw.Y + a * t.nv, *W = rw.W + b * t.nv;
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

// no adjoint: linear in lam.   dv = H^-1 J^T lam of blocks first to last, on `dofs`, which hold all that these blocks move
template <class T> CS_OP void impulse_response(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int first, int last,
                                               const T* lam, const int* dofs, int n, T* dv) {
  for (int k = 0; k < n; k++) dv[dofs[k]] = T(0);
  for (int i = first; i < last; i++) {
    const int* list = rw.list + i * t.nv;
    for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++)
      for (int k = 0; k < rw.list_n[i]; k++) dv[list[k]] = fma(rw.W[r * t.nv + list[k]], lam[r], dv[list[k]]);
  }
  if (t.form != kSparse) return;
  for (int k = 0; k < n; k++) {
    int d = dofs[k];
    const int* row = t.row_dof + t.row_adr[d];
    const T* L = tr.L + t.row_adr[d];
    T x = dv[d];
    for (int j = 0; j < t.dof_depth[d]; j++) x = fnma(L[j], dv[row[j]], x);
    dv[d] = x;
  }
}

CS_END
