// equality_factor: A = J H^-1 J^T + R of all equality rows as L D L^T, in blocks of items, along the graph of the constraints; and solves with it.
//
// Halves as in ops/delassus.h, on an item's own dofs:  A_ij = Y_i . W_j over the dofs both have. Where two items share none there is no block,
// so a chain of bodies costs as much per body as a pair does.
// no adjoint in this file: the solve is differentiated (ops/constrain.h, ops/project.h)
#pragma once
#include "../data/rows.h"
#include "solve.h"

CS_BEGIN

// An item's rows and dofs
struct Item {
  int row, n;       // first row, rows
  const int* list;  // its dofs
  int m, J;         // how many, first number of J
};
// no adjoint: integers
CS_FN Item item_at(const Tree& t, int i) {
  int a = t.item_list_adr[i];
  return {t.item_row[i], t.item_row[i + 1] - t.item_row[i], t.item_list + a, t.item_list_adr[i + 1] - a, t.item_J[i]};
}

// no adjoint: see above.   L^T y = J^T for N rows, on the item's dofs; sums stay in registers
template <int N, class T> CS_OP void item_half_solve(const Tree& t, const Trace<T>& tr, const Item& it, const T* J, T* Y, T* W) {
  int m = it.m;
  for (int k = m - 1; k >= 0; k--) {
    int d = it.list[k], depth = t.dof_depth[d];
    T y[N];
    for (int j = 0; j < N; j++) y[j] = J[j * m + k];
    for (int c = k + 1; c < m; c++) {
      int e = it.list[c];
      if (t.dof_depth[e] <= depth || t.row_dof[t.row_adr[e] + depth] != d) continue;
      T L = tr.L[t.row_adr[e] + depth];
      for (int j = 0; j < N; j++) y[j] = fnma(L, Y[j * m + c], y[j]);
    }
    for (int j = 0; j < N; j++) Y[j * m + k] = y[j], W[j * m + k] = y[j] * tr.D_inv[d];
  }
}

// no adjoint: see above.   Y and W of item i
template <class T> CS_OP void item_halves(const Tree& t, const Trace<T>& tr, const Equality<T>& e, int i) {
  Item it = item_at(t, i);
  const T* J = e.J + it.J;
  T *Y = e.Y + it.J, *W = e.W + it.J;
  if (t.form == kSparse) {
    switch (it.n) {
      case 1: return item_half_solve<1>(t, tr, it, J, Y, W);
      case 2: return item_half_solve<2>(t, tr, it, J, Y, W);
      case 3: return item_half_solve<3>(t, tr, it, J, Y, W);
      case 4: return item_half_solve<4>(t, tr, it, J, Y, W);
      case 5: return item_half_solve<5>(t, tr, it, J, Y, W);
      default: return item_half_solve<6>(t, tr, it, J, Y, W);
    }
  }
  for (int j = 0; j < it.n; j++) {
    for (int d = 0; d < t.nv; d++) e.x[d] = T(0);
    for (int k = 0; k < it.m; k++) e.x[it.list[k]] = Y[j * it.m + k] = J[j * it.m + k];
    solve(t, tr, e.x);
    for (int k = 0; k < it.m; k++) W[j * it.m + k] = e.x[it.list[k]];
  }
}

// no adjoint: see above.   C rows by c columns of block (j, i) of A from row r0 of j on: Y_j . W_i over the dofs both have
template <int R, int C, class T> CS_OP void item_tile(const Equality<T>& e, const Item& j, const Item& i, int r0, T* A) {
  T s[R][C];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) s[r][c] = T(0);
  const T *Y = e.Y + j.J + r0 * j.m, *W = e.W + i.J;
  for (int x = 0, y = 0; x < j.m && y < i.m;) {
    if (j.list[x] != i.list[y]) {
      j.list[x] < i.list[y] ? x++ : y++;
      continue;
    }
    T w[C];
    for (int c = 0; c < C; c++) w[c] = W[c * i.m + y];
    for (int r = 0; r < R; r++) {
      T a = Y[r * j.m + x];
      for (int c = 0; c < C; c++) s[r][c] = fma(a, w[c], s[r][c]);
    }
    x++, y++;
  }
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) A[(r0 + r) * C + c] = s[r][c];
}

// no adjoint: see above.   the whole block, three rows at a time
template <int C, class T> CS_OP void item_columns(const Equality<T>& e, const Item& j, const Item& i, T* A) {
  int r = 0;
  for (; r + 3 <= j.n; r += 3) item_tile<3, C>(e, j, i, r, A);
  if (r + 2 <= j.n) item_tile<2, C>(e, j, i, r, A), r += 2;
  if (r < j.n) item_tile<1, C>(e, j, i, r, A);
}

// no adjoint: see above
template <class T> CS_OP void item_block(const Equality<T>& e, const Item& j, const Item& i, T* A) {
  switch (i.n) {
    case 1: return item_columns<1>(e, j, i, A);
    case 2: return item_columns<2>(e, j, i, A);
    case 3: return item_columns<3>(e, j, i, A);
    case 4: return item_columns<4>(e, j, i, A);
    case 5: return item_columns<5>(e, j, i, A);
    default: return item_columns<6>(e, j, i, A);
  }
}

// What a pivot of a row that others already hold may be, over its A_rr: below it is rounding
template <class E> constexpr E kPivotRounding = sizeof(E) == 8 ? E(1e-14) : E(8e-6);

// no adjoint: see above.   a block on the diagonal in place: unit lower triangle, 1 / D on the diagonal. No pivot of A = B + R can be below R
template <class T> CS_OP void diag_factor(T* L, int n, const T* softness, const T* floor, const T* A_rr) {
  T rounding = T(kPivotRounding<ElementOf<T>>);
  for (int c = 0; c < n; c++) {
    T inv = T(1) / max(L[c * n + c], max(softness[c] + floor[c], rounding * A_rr[c]));
    L[c * n + c] = inv;
    for (int r = c + 1; r < n; r++) {
      T x = L[r * n + c], l = x * inv;
      for (int k = c + 1; k <= r; k++) L[r * n + k] = fnma(l, L[k * n + c], L[r * n + k]);
    }
    for (int r = c + 1; r < n; r++) L[r * n + c] *= inv;
  }
}

// no adjoint: see above.   X L^T = B in place, X into `plain`, X / D into B;  m rows
template <int N, class T> CS_OP void fill_solve(const T* L, T* B, int m, T* plain) {
  for (int r = 0; r < m; r++) {
    T x[N];
    for (int c = 0; c < N; c++) {
      x[c] = B[r * N + c];
      for (int k = 0; k < c; k++) x[c] = fnma(x[k], L[c * N + k], x[c]);
    }
    for (int c = 0; c < N; c++) plain[r * N + c] = x[c], B[r * N + c] = x[c] * L[c * (N + 1)];
  }
}

// no adjoint: see above.   C -= X Y^T, X: [m, N], Y: [l, N], C: [m, l]
template <int N, class T> CS_OP void fill_update(const T* X, int m, const T* Y, int l, T* C) {
  for (int r = 0; r < m; r++) {
    T x[N];
    for (int k = 0; k < N; k++) x[k] = X[r * N + k];
    for (int c = 0; c < l; c++) {
      T s = C[r * l + c];
      for (int k = 0; k < N; k++) s = fnma(x[k], Y[c * N + k], s);
      C[r * l + c] = s;
    }
  }
}

// no adjoint: see above.   item i with N rows: what is below it, and what that takes from the rest
template <int N, class T> CS_OP void eliminate(const Tree& t, const Equality<T>& e, int i) {
  int first = t.fill_adr[i], last = t.fill_adr[i + 1];
  const int* update = t.update + t.update_adr[i];
  auto rows = [&](int f) { return t.item_row[t.fill_item[f] + 1] - t.item_row[t.fill_item[f]]; };
  // plain X of this column, one block after the other
  T* plain = e.plain;
  for (int f = first; f < last; plain += rows(f) * N, f++)
    fill_solve<N>(e.L + t.diag_adr[i], e.L + t.fill_block[f], rows(f), plain);
  plain = e.plain;
  for (int f = first; f < last; plain += rows(f) * N, f++)
    for (int g = first; g <= f; g++) fill_update<N>(plain, rows(f), e.L + t.fill_block[g], rows(g), e.L + *update++);
}

// no adjoint: see above
template <class T> CS_OP void equality_factor(const Tree& t, const Trace<T>& tr, const Equality<T>& e) {
  if (kTeam > 1 && t.form == kSparse) {
    share(t.n_item, [&](int i) { item_halves(t, tr, e, i); });  // those of the other form have scratch in e
  } else {
    for (int i = 0; i < t.n_item; i++) item_halves(t, tr, e, i);
  }
  share(t.n_item, [&](int i) {
    Item it = item_at(t, i);
    T* A = e.L + t.diag_adr[i];
    item_block(e, it, it, A);
    for (int r = 0; r < it.n; r++) e.A_rr[it.row + r] = A[r * (it.n + 1)] += e.softness[it.row + r] + e.floor[it.row + r];
    for (int f = t.fill_adr[i]; f < t.fill_adr[i + 1]; f++) item_block(e, item_at(t, t.fill_item[f]), it, e.L + t.fill_block[f]);
  });
  for (int i = 0; i < t.n_item; i++) {
    int r = t.item_row[i], n = t.item_row[i + 1] - r;
    diag_factor(e.L + t.diag_adr[i], n, e.softness + r, e.floor + r, e.A_rr + r);
    switch (n) {
      case 1: eliminate<1>(t, e, i); break;
      case 2: eliminate<2>(t, e, i); break;
      case 3: eliminate<3>(t, e, i); break;
      case 4: eliminate<4>(t, e, i); break;
      case 5: eliminate<5>(t, e, i); break;
      default: eliminate<6>(t, e, i); break;
    }
  }
}

// no adjoint: see above.   K vectors y = L^-1 y, item i of N rows: its own, then what they take from those below.   stride: from one vector to the next
template <int N, int K, class T> CS_OP void forward_item(const Tree& t, const Equality<T>& e, int i, T* y, int stride) {
  int r0 = t.item_row[i];
  const T* L = e.L + t.diag_adr[i];
  T x[K][N];
  for (int v = 0; v < K; v++)
    for (int r = 0; r < N; r++) {
      x[v][r] = y[v * stride + r0 + r];
      for (int k = 0; k < r; k++) x[v][r] = fnma(L[r * N + k], x[v][k], x[v][r]);
    }
  for (int v = 0; v < K; v++)
    for (int r = 1; r < N; r++) y[v * stride + r0 + r] = x[v][r];
  for (int f = t.fill_adr[i]; f < t.fill_adr[i + 1]; f++) {
    int j0 = t.item_row[t.fill_item[f]], m = t.item_row[t.fill_item[f] + 1] - j0;
    const T* B = e.L + t.fill_block[f];
    for (int r = 0; r < m; r++)
      for (int v = 0; v < K; v++) {
        T s = y[v * stride + j0 + r];
        for (int k = 0; k < N; k++) s = fnma(B[r * N + k], x[v][k], s);
        y[v * stride + j0 + r] = s;
      }
  }
}
// no adjoint: see above
template <int K, class T> CS_FN void equality_forward(const Tree& t, const Equality<T>& e, int i, T* y, int stride) {
  switch (t.item_row[i + 1] - t.item_row[i]) {
    case 1: return forward_item<1, K>(t, e, i, y, stride);
    case 2: return forward_item<2, K>(t, e, i, y, stride);
    case 3: return forward_item<3, K>(t, e, i, y, stride);
    case 4: return forward_item<4, K>(t, e, i, y, stride);
    case 5: return forward_item<5, K>(t, e, i, y, stride);
    default: return forward_item<6, K>(t, e, i, y, stride);
  }
}

// no adjoint: see above.   y = L^-T y, item i of N rows
template <int N, class T> CS_OP void backward_item(const Tree& t, const Equality<T>& e, int i, T* y) {
  int r0 = t.item_row[i];
  const T* L = e.L + t.diag_adr[i];
  T x[N];
  for (int k = 0; k < N; k++) x[k] = y[r0 + k];
  for (int f = t.fill_adr[i]; f < t.fill_adr[i + 1]; f++) {
    int j0 = t.item_row[t.fill_item[f]], m = t.item_row[t.fill_item[f] + 1] - j0;
    const T* B = e.L + t.fill_block[f];
    for (int r = 0; r < m; r++) {
      T z = y[j0 + r];
      for (int k = 0; k < N; k++) x[k] = fnma(B[r * N + k], z, x[k]);
    }
  }
  for (int r = N - 1; r >= 0; r--) {
    for (int k = r + 1; k < N; k++) x[r] = fnma(L[k * N + r], x[k], x[r]);
    y[r0 + r] = x[r];
  }
}
// no adjoint: see above.   y = L^-T y
template <class T> CS_OP void equality_backward(const Tree& t, const Equality<T>& e, T* y) {
  for (int i = t.n_item - 1; i >= 0; i--) switch (t.item_row[i + 1] - t.item_row[i]) {
      case 1: backward_item<1>(t, e, i, y); break;
      case 2: backward_item<2>(t, e, i, y); break;
      case 3: backward_item<3>(t, e, i, y); break;
      case 4: backward_item<4>(t, e, i, y); break;
      case 5: backward_item<5>(t, e, i, y); break;
      default: backward_item<6>(t, e, i, y); break;
    }
}

// no adjoint: reads 1 / D of row r of item i
template <class T> CS_FN T equality_D_inv(const Tree& t, const Equality<T>& e, int i, int r) {
  int n = t.item_row[i + 1] - t.item_row[i];
  return e.L[t.diag_adr[i] + (r - t.item_row[i]) * (n + 1)];
}

// no adjoint: A is symmetric.   y = A^-1 y
template <class T> CS_OP void equality_solve(const Tree& t, const Equality<T>& e, T* y) {
  for (int i = 0; i < t.n_item; i++) equality_forward<1>(t, e, i, y, 0);
  for (int i = 0; i < t.n_item; i++)
    for (int r = t.item_row[i]; r < t.item_row[i + 1]; r++) y[r] *= equality_D_inv(t, e, i, r);
  equality_backward(t, e, y);
}

// no adjoint: linear.   y = J x
template <class T> CS_OP void equality_J(const Tree& t, const Equality<T>& e, const T* x, T* y) {
  share(t.n_item, [&](int i) {
    Item it = item_at(t, i);
    for (int r = 0; r < it.n; r++) {
      T s = T(0);
      for (int k = 0; k < it.m; k++) s = fma(e.J[it.J + r * it.m + k], x[it.list[k]], s);
      y[it.row + r] = s;
    }
  });
}

// no adjoint: linear.   x = L^-1 x in the sparse form, on dofs that hold the ancestors of each of them
template <class T> CS_FN void second_half(const Tree& t, const Trace<T>& tr, const int* dofs, int n, T* x) {
  if (t.form != kSparse) return;
  if constexpr (kBits > 0) {
    if (!dofs) {
      HeldDofs<T> y = held_dofs(t, x);
      second_half_held(t, tr, y);
      return keep_dofs(t, y, x);
    }
  }
  CS_FOR (int k = 0; k < n; k++) {
    int d = dofs ? dofs[k] : k;
    const int* row = t.row_dof + t.row_adr[d];
    const T* L = tr.L + t.row_adr[d];
    T s = x[d];
    CS_FOR (int j = 0; j < t.dof_depth[d]; j++) s = fnma(L[j], x[row[j]], s);
    x[d] = s;
  }
}

// no adjoint: linear.   x += sum of W lam over all items; with second_half it becomes H^-1 J^T lam
template <class T> CS_OP void equality_W(const Tree& t, const Equality<T>& e, const T* lam, T* x) {
  for (int i = 0; i < t.n_item; i++) {
    Item it = item_at(t, i);
    const T* W = e.W + it.J;
    for (int k = 0; k < it.m; k++) {
      T s = x[it.list[k]];
      for (int r = 0; r < it.n; r++) s = fma(W[r * it.m + k], lam[it.row + r], s);
      x[it.list[k]] = s;
    }
  }
}

// no adjoint: linear.   x = H^-1 J^T lam
template <class T> CS_OP void equality_response(const Tree& t, const Trace<T>& tr, const Equality<T>& e, const T* lam, T* x) {
  for (int d = 0; d < t.nv; d++) x[d] = T(0);
  equality_W(t, e, lam, x);
  second_half(t, tr, static_cast<const int*>(nullptr), t.nv, x);
}

CS_END
