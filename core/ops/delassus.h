// delassus: A = J H^-1 J^T + R, island by island, from two halves:  A_rs = Y_r . W_s  over the dofs both have.
//
//   sparse form:      H = L^T D L,  Y = L^-T J^T on the ancestors of the row's dofs,  W = D^-1 Y
//   articulated form, and all large models: Y = J^T,  W = H^-1 J^T
// Equality rows are eliminated: H^-1 becomes H^-1 - H^-1 J_e^T (L D L^T)^-1 J_e H^-1, so both halves go on over the equality rows that
// the row reaches, with Z = L^-1 J_e H^-1 J^T in Y and -D^-1 Z in W.
// no adjoint in this file: step_adj takes J_bar and H_bar from A_bar directly (ops/relax.h, ops/constrain.h)
#pragma once
#include "../math/array.h"
#include "delassus_together.h"
#include "equality_factor.h"
#include "turn_rows.h"

CS_BEGIN

// no adjoint: see above.   L^T y = J^T for N rows of a block at once, on its dofs; sums stay in registers.  chain: the list is one chain
// of ancestors, the k-th dof at depth k
template <int N, class T> CS_OP void half_solve(const Tree& t, const Trace<T>& tr, const Span& s, const T* J, T* Y, T* W) {
  const int* list = s.col;
  int m = s.m;
  bool chain = t.dof_depth[list[m - 1]] == m - 1;
  CS_FOR (int k = m - 1; k >= 0; k--) {
    int d = list[k], depth = chain ? k : t.dof_depth[d];
    T y[N];
    CS_FOR (int j = 0; j < N; j++) y[j] = J[j * m + k];
    auto take = [&](int c) {
      T L = tr.L[t.row_adr[list[c]] + depth];
      CS_FOR (int j = 0; j < N; j++) y[j] = fnma(L, Y[j * s.s + c], y[j]);
    };
    if (chain) {
      CS_FOR (int c = k + 1; c < m; c++) take(c);
    } else {
      CS_FOR (int c = k + 1; c < m; c++)
        if (t.dof_depth[list[c]] > depth && t.row_dof[t.row_adr[list[c]] + depth] == d) take(c);
    }
    CS_FOR (int j = 0; j < N; j++) Y[j * s.s + k] = y[j], W[j * s.s + k] = y[j] * tr.D_inv[d];
  }
}

// no adjoint: see above.   L x = y of N rows: the other half of H^-1, on dofs that hold all ancestors of each of them
template <int N, class T> CS_OP void other_half(const Tree& t, const Trace<T>& tr, const Span& s, T* W) {
  const int* list = s.col;
  bool chain = t.dof_depth[list[s.m - 1]] == s.m - 1;
  CS_FOR (int k = 0; k < s.m; k++) {
    int d = list[k];
    CS_FOR (int c = 0; c < k; c++) {
      int e = list[c], depth = t.dof_depth[e];
      if (!chain && (depth >= t.dof_depth[d] || t.row_dof[t.row_adr[d] + depth] != e)) continue;
      T L = tr.L[t.row_adr[d] + depth];
      CS_FOR (int j = 0; j < N; j++) W[j * s.s + k] = fnma(L, W[j * s.s + c], W[j * s.s + k]);
    }
  }
}

// no adjoint: see above.   the halves of N rows of block i on equality rows, from those on dofs
template <int N, class T> CS_OP void equality_halves(const Tree& t, const Rows<T>& rw, int i) {
  const Equality<T>& e = rw.eq;
  Span s = span(rw, i);
  const int* reach = rw.reach + i * t.n_item;
  T *Y = rw.Y + s.Y, *W = rw.W + s.Y, *Z = rw.wide;  // N rows of ne numbers
  CS_FOR (int k = s.m; k < s.s; k++)
    CS_FOR (int v = 0; v < N; v++) Z[v * t.ne + s.col[k] - t.nv] = T(0);
  CS_FOR (int k = 0, at = s.m; k < rw.reach_n[i]; k++) {
    Item it = item_at(t, reach[k]);
    for (int x = 0, y = 0; x < it.m && y < s.m;) {
      if (it.list[x] != s.col[y]) {
        it.list[x] < s.col[y] ? x++ : y++;
        continue;
      }
      T w[N];
      CS_FOR (int v = 0; v < N; v++) w[v] = W[v * s.s + y];
      CS_FOR (int j = 0; j < it.n; j++)
        CS_FOR (int v = 0; v < N; v++) Z[v * t.ne + it.row + j] = fma(e.Y[it.J + j * it.m + x], w[v], Z[v * t.ne + it.row + j]);
      x++, y++;
    }
    equality_forward<N>(t, e, reach[k], Z, t.ne);
    CS_FOR (int j = it.row; j < it.row + it.n; j++, at++)
      CS_FOR (int v = 0; v < N; v++) {
        Y[v * s.s + at] = Z[v * t.ne + j];
        W[v * s.s + at] = -Z[v * t.ne + j] * equality_D_inv(t, e, reach[k], j);
      }
  }
}

// no adjoint: see above.   Y = J, W = H^-1 J^T of block i, one row after the other
template <class T> CS_OP void full_halves(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i) {
  Span s = span(rw, i);
  const T* J = rw.J + s.J;
  T *Y = rw.Y + s.Y, *W = rw.W + s.Y, *x = rw.wide;
  CS_FOR (int j = 0; j < s.n; j++, J += s.m, Y += s.s, W += s.s) {
    CS_FOR (int d = 0; d < t.nv; d++) x[d] = T(0);
    CS_FOR (int k = 0; k < s.m; k++) Y[k] = x[s.col[k]] = J[k];
    solve(t, tr, x);
    CS_FOR (int k = 0; k < s.m; k++) W[k] = x[s.col[k]];
  }
}

// no adjoint: linear.   N rows x become H^-1 x, in place, on dofs of whole trees
template <int N, class T>
CS_OP void tree_solve(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const Span& s, const T* x, T* y) {
  half_solve<N>(t, tr, s, x, rw.wide, y);
  other_half<N>(t, tr, s, y);
}

// no adjoint: linear.   of all rows of a block
template <class T> CS_OP void tree_solves(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const Span& s, const T* x, T* y) {
  s.n == 3 ? tree_solve<3>(t, tr, rw, s, x, y) : s.n == 2 ? tree_solve<2>(t, tr, rw, s, x, y) : tree_solve<1>(t, tr, rw, s, x, y);
}

// no adjoint: see above.   Y and W of block i
template <class T> CS_OP void block_halves(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i) {
  Span s = span(rw, i);
  T *J = rw.J + s.J, *Y = rw.Y + s.Y, *W = rw.W + s.Y;
  if (t.form != kSparse)
    full_halves(t, tr, rw, i);
  else if (t.large)
    tree_solves(t, tr, rw, s, J, W);
  else
    s.n == 3 ? half_solve<3>(t, tr, s, J, Y, W) : s.n == 2 ? half_solve<2>(t, tr, s, J, Y, W) : half_solve<1>(t, tr, s, J, Y, W);
  if (t.ne) s.n == 3 ? equality_halves<3>(t, rw, i) : s.n == 2 ? equality_halves<2>(t, rw, i) : equality_halves<1>(t, rw, i);
}

// no adjoint: integers.   the columns that two blocks share: their places in both
CS_FN int common(const Span& a, const Span& b, int* in_a, int* in_b) {
  int n = 0;
  // what is above both, of two chains all that they share
  for (; n < a.s && n < b.s && a.col[n] == b.col[n]; n++) in_a[n] = in_b[n] = n;
  for (int x = n, y = n; x < a.s && y < b.s;) {
    if (a.col[x] == b.col[y])
      in_a[n] = x++, in_b[n++] = y++;
    else
      a.col[x] < b.col[y] ? x++ : y++;
  }
  return n;
}

// no adjoint: see above.   adds R to the diagonal; rho of block i
template <class T> CS_FN void block_rho(const Rows<T>& rw, int i, T* A, int stride, int r0) {
  int r = rw.first_row[i], n = rw.kind[i] == kContactRows ? rw.width : 1;
  auto valid = rw.valid[i] > T(0.5);
  CS_FOR (int j = 0; j < n; j++) {
    T& a = A[(r + j - r0) * (stride + 1)];
    a = select(valid, a + rw.R[r + j], T(1));
    rw.rho[r + j] = T(1) / a, rw.inv_rho[r + j] = a;
  }
  if (n == 1) return;
  if (n == 2) {
    const T *a = A + (r - r0) * (stride + 1), *b = a + stride;
    T inv = T(1) / fnma(b[0], b[0], a[0] * b[1]), zero = T(0);
    rw.B_inv[i] = {b[1] * inv, a[0] * inv, zero, -b[0] * inv, zero, zero};
    return;
  }
  // the tangents take one step size: 1 / a bound of the largest eigenvalue of their 2 x 2 block
  const T* B = A + (r + 1 - r0) * (stride + 1);
  rw.inv_rho[r + 1] = rw.inv_rho[r + 2] = max(B[0], B[stride + 1]) + abs(B[1]);
  rw.rho[r + 1] = rw.rho[r + 2] = T(1) / rw.inv_rho[r + 1];
  const T *a0 = A + (r - r0) * (stride + 1), *a1 = a0 + stride, *a2 = a1 + stride;
  rw.B_inv[i] = inverse(Sym3<T>{a0[0], a1[1], a2[2], a1[0], a2[0], a2[1]});
}

// no adjoint: see above.   Y_i . W_j of two blocks, NI x NJ numbers at once, over m columns that both have; to A, and mirrored to `across`. own: of one block
template <int NI, int NJ, class T> CS_OP void block_product(const Rows<T>& rw, const Span& a, const Span& b, const int* in_a,
                                                            const int* in_b, int m, T* A, T* across, bool own, int n) {
  const T *Y = rw.Y + a.Y, *W = rw.W + b.Y;
  T s[NI][NJ];
  CS_FOR (int i = 0; i < NI; i++)
    CS_FOR (int j = 0; j < NJ; j++) s[i][j] = T(0);
  CS_FOR (int k = 0; k < m; k++) {
    T w[NJ];
    CS_FOR (int j = 0; j < NJ; j++) w[j] = W[j * b.s + in_b[k]];
    CS_FOR (int i = 0; i < NI; i++) {
      T y = Y[i * a.s + in_a[k]];
      CS_FOR (int j = 0; j < NJ; j++) s[i][j] = fma(y, w[j], s[i][j]);
    }
  }
  CS_FOR (int i = 0; i < NI; i++)
    CS_FOR (int j = 0; j < NJ; j++) A[i * n + j] = s[i][j];
  CS_FOR (int i = 0; i < NI; i++)
    CS_FOR (int j = 0; j < (own ? i : NJ); j++) across[j * n + i] = s[i][j];
}

// no adjoint: see above.   block (i, j) of A of an island that begins with row r0 and has n rows, and its mirror image
template <class T> CS_OP void block_pair(const Tree& t, const Rows<T>& rw, int i, int j, T* A, int r0, int n) {
  Span a = span(rw, i), b = span(rw, j);
#ifdef CS_FIXED_ROWS
  int at = FixedRows::common_adr[i * (i + 1) / 2 + j], m = FixedRows::common_adr[i * (i + 1) / 2 + j + 1] - at;
  const int *in_a = FixedRows::common_a + at, *in_b = FixedRows::common_b + at;
#elif CS_TEAM > 1 && defined(CS_MODEL)
  int in_a[Tree::nv + Tree::ne], in_b[Tree::nv + Tree::ne], m = common(a, b, in_a, in_b);  // every thread has another pair
#else
  int *in_a = rw.mark, *in_b = rw.mark + n_halves(t), m = common(a, b, in_a, in_b);
#endif
  T *to = A + (a.r - r0) * n + b.r - r0, *across = A + (b.r - r0) * n + a.r - r0;
  auto product = [&](auto rows, auto others) {
    block_product<decltype(rows)::n, decltype(others)::n>(rw, a, b, in_a, in_b, m, to, across, i == j, n);
  };
  if (a.n == 3)
    b.n == 3 ? product(Size<3>{}, Size<3>{}) : product(Size<3>{}, Size<1>{});
  else if (a.n == 2)
    b.n == 2 ? product(Size<2>{}, Size<2>{}) : product(Size<2>{}, Size<1>{});
  else if (b.n == 1)
    product(Size<1>{}, Size<1>{});
  else
    b.n == 3 ? product(Size<1>{}, Size<3>{}) : product(Size<1>{}, Size<2>{});
}

// no adjoint: see above.   in large models only each block's own part of A is formed
template <class T> CS_OP void delassus(const Tree& t, const Trace<T>& tr, const Rows<T>& rw) {
  if constexpr (kBits > 0) {
    halves_together(t, tr, rw, rw.mark);
  } else if (kTeam > 1 && t.form == kSparse && !t.ne && !t.large) {
    share(rw.count[0], [&](int i) { block_halves(t, tr, rw, i); });  // those of others have scratch in rw
  } else {
    CS_FOR (int i = 0; i < rw.count[0]; i++) block_halves(t, tr, rw, i);
  }
  CS_FOR (int i = 0; t.large && i < rw.count[0]; i++) {
    Span s = span(rw, i);
    block_pair(t, rw, i, i, rw.A + 9 * i, s.r, s.n);
    block_rho(rw, i, rw.A + 9 * i, s.n, s.r);
  }
  CS_FOR (int s = 0; !t.large && s < rw.count[2]; s++) {
    int first = rw.island_block[s], last = rw.island_block[s + 1], r0 = rw.first_row[first], n = rw.first_row[last] - r0;
    T* A = rw.A + rw.island_A[s];
    if constexpr (kTeam > 1) {
      team_wait();
      for (int i = first, j = first + team_rank(); i < last; j += kTeam) {
        while (j > i && i < last) j -= ++i - first;
        if (i >= last) break;
        if constexpr (kBits > 0)
          pair_together(rw, i, j, rw.mark, A, r0, n);
        else
          block_pair(t, rw, i, j, A, r0, n);
      }
      team_wait();
      share(last - first, [&](int i) { block_rho(rw, first + i, A, n, r0); });
      continue;
    }
    CS_FOR (int i = first; i < last; i++)
      CS_FOR (int j = first; j <= i; j++) block_pair(t, rw, i, j, A, r0, n);
    CS_FOR (int i = first; i < last; i++) block_rho(rw, i, A, n, r0);
  }
}

// no adjoint: linear.   g += W lam of a block with N rows, on its first m columns
template <int N, class T> CS_FN void add_some(const Span& s, int m, const T* W, const T* lam, T* g) {
  auto place = [&](int k) { return s.col[k]; };
  set_rows(g, m, place, [&](int k) {
    T sum = g[s.col[k]];
    CS_STRIP (int j = 0; j < N; j++) sum = fma(W[j * s.s + k], lam[j], sum);
    return sum;
  });
}
// no adjoint: linear.   of any block
template <class T> CS_FN void add_rows(const Span& s, int m, const T* W, const T* lam, T* g) {
  s.n == 3 ? add_some<3>(s, m, W, lam, g) : s.n == 2 ? add_some<2>(s, m, W, lam, g) : add_some<1>(s, m, W, lam, g);
}

// no adjoint: linear in lam.   dv = H^-1 J^T lam of blocks first to last, on n `dofs`, which hold all that these blocks move (null: all dofs); equality
// rows answer with impulses that are left in rw.eq.y
template <class T> CS_OP void impulse_response(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int first, int last,
                                               const T* lam, const int* dofs, int n, T* dv) {
  if constexpr (kBits > 0) {
    if (!dofs) return response_together(t, tr, rw, first, last, lam, dv);
  }
  T* y = rw.eq.y;
  CS_FOR (int k = 0; k < n; k++) dv[dofs ? dofs[k] : k] = T(0);
  CS_FOR (int r = 0; r < t.ne; r++) y[r] = T(0);
  CS_FOR (int i = first; i < last; i++) {
    Span s = span(rw, i);
    const T *W = rw.W + s.Y, *l = lam + s.r;
    add_rows(s, s.m, W, l, dv);
    CS_FOR (int j = 0; j < s.n; j++)
      CS_FOR (int k = s.m; k < s.s; k++) y[s.col[k] - t.nv] = fma(W[j * s.s + k], l[j], y[s.col[k] - t.nv]);
  }
  if (t.ne) {
    equality_backward(t, rw.eq, y);
    equality_W(t, rw.eq, y, dv);
  }
  if (!t.large) second_half(t, tr, dofs, n, dv);
}

CS_END
