// lu: K = L U of the rows of an island, and K^-1 x.
//
// Without pivoting: the free part of K is a scaled positive definite matrix (a vanishing pivot is kept from being zero). Every number is the result of the same
// operations in the same order however many are computed at once, and by however many threads.
#pragma once
#include "../math/array.h"

CS_BEGIN

constexpr double kLeastPivot = 1e-12;

// no adjoint: linear.   y -= a x, x with `stride` numbers from one to the next
template <class T> CS_FN void minus(T* y, T a, const T* x, int n, int stride = 1) {
  set_rows(y, n, [&](int k) { return fnma(a, x[k * stride], y[k]); });
}

#ifdef CS_FIXED_ROWS
// no adjoint: a factorisation.   K = L U in place, U's diagonal inverted
template <class T> CS_OP void lu_factor(T* K, int n) {
  T least = T(ElementOf<T>(kLeastPivot));
  CS_FOR (int k = 0; k < n; k++) {
    T p = K[k * n + k];
    T inv = K[k * n + k] = T(1) / select(abs(p) < least, least, p);
    CS_FOR (int i = k + 1; i < n; i++) {
      T m = K[i * n + k] * inv;
      K[i * n + k] = m;
      CS_FOR (int j = k + 1; j < n; j++) K[i * n + j] = fnma(m, K[k * n + j], K[i * n + j]);
    }
  }
}
#else
// no adjoint: a part of lu_factor.   1 / a number on the diagonal
template <class T> CS_FN T pivot(T p) {
  T least = T(ElementOf<T>(kLeastPivot));
  return T(1) / select(abs(p) < least, least, p);
}

// no adjoint: a part of factor_together.   three rows, of which every thread has the nine numbers on the diagonal: what is behind these in the rows, and what
// the rows below take of them
template <class T> CS_FN void pivots_together(T* K, int n, const int* rows, int left) {
  bool two = left > 1, three = left > 2;
  int r0 = rows[0], r1 = two ? rows[1] : n, r2 = three ? rows[2] : n;
  T *U0 = K + r0 * n, *U1 = K + r1 * n, *U2 = K + r2 * n;
  T a00 = U0[r0], a01 = T(0), a02 = T(0), a10 = T(0), a11 = T(1), a12 = T(0), a20 = T(0), a21 = T(0), a22 = T(1);
  if (two) a01 = U0[r1], a10 = U1[r0], a11 = U1[r1];
  if (three) a02 = U0[r2], a12 = U1[r2], a20 = U2[r0], a21 = U2[r1], a22 = U2[r2];
  T d0 = pivot(a00);
  a10 *= d0, a11 = fnma(a10, a01, a11), a12 = fnma(a10, a02, a12);
  T d1 = pivot(a11);
  a20 *= d0, a21 = fnma(a20, a01, a21) * d1, a22 = fnma(a21, a12, fnma(a20, a02, a22));
  T d2 = pivot(a22);
  team_wait();
  U0[r0] = d0;
  if (two) U1[r0] = a10, U1[r1] = d1;
  if (three) U1[r2] = a12, U2[r0] = a20, U2[r1] = a21, U2[r2] = d2;
  CS_SHORT (int j = r0 + 1 + team_rank(); two && j < n; j += kTeam) {
    if (j == r1 || j == r2) continue;
    T u0 = U0[j], u1 = fnma(a10, u0, U1[j]);
    U1[j] = u1;
    if (three) U2[j] = fnma(j < r1 ? T(0) : a21, u1, fnma(a20, u0, U2[j]));
  }
  CS_SHORT (int k = 3 + team_rank(); k < left; k += kTeam) {
    T* row = K + rows[k] * n;
    T m0 = row[r0] * d0, m1 = fnma(m0, a01, row[r1]) * d1, m2 = fnma(m1, a12, fnma(m0, a02, row[r2])) * d2;
    row[r0] = m0, row[r1] = m1, row[r2] = m2;
  }
  team_wait();
}

// no adjoint: a part of factor_together.   the rows below three of them, less what these do to them. Threads beside each other take eight columns, and then the next
// ones; all that two rows need is read before any of it is written
template <class T> CS_FN void eliminate_together(T* K, int n, const int* rows, int left) {
  constexpr int across = kTeam < 8 ? kTeam : 8, down = kTeam / across, strip = 4;
  int r0 = rows[0], r1 = rows[1], r2 = rows[2], from = r0 + 1 + team_rank() % across;
  const T *U0 = K + r0 * n, *U1 = K + r1 * n, *U2 = K + r2 * n;
  CS_SHORT (int k = 3 + team_rank() / across; k < left; k += 2 * down) {
    T *a = K + rows[k] * n, *b = k + down < left ? K + rows[k + down] * n : a;
    T a0 = a[r0], a1 = a[r1], a2 = a[r2], b0 = b[r0], b1 = b[r1], b2 = b[r2];
    CS_SHORT (int j = from; j < n; j += strip * across) {
      T x[strip], y[strip];
      CS_STRIP (int v = 0; v < strip; v++) {
        int c = j + v * across;
        if (c >= n) continue;
        T u0 = U0[c], u1 = c < r1 ? T(0) : U1[c], u2 = c < r2 ? T(0) : U2[c];
        x[v] = fnma(a2, u2, fnma(a1, u1, fnma(a0, u0, a[c]))), y[v] = fnma(b2, u2, fnma(b1, u1, fnma(b0, u0, b[c])));
      }
      CS_STRIP (int v = 0; v < strip; v++) {
        int c = j + v * across;
        if (c < n && c != r1 && c != r2) a[c] = x[v], b[c] = y[v];
      }
    }
  }
  team_wait();
}

// no adjoint: a factorisation.   by the threads of a team. `rows` are those that are not the identity's, in order: the others neither change nor are changed
template <class T> CS_APART void factor_together(T* K, int n, const int* rows, int count) {
  CS_SHORT (int k = 0; k < count; k += 3) {
    pivots_together(K, n, rows + k, count - k);
    if (count - k > 3) eliminate_together(K, n, rows + k, count - k);
  }
}

// no adjoint: a factorisation.   K = L U in place, U's diagonal inverted. Three rows are eliminated at a time, mostly those of a contact: every number is read
// and written once for them, and not at all where they are at their bounds, rows of the identity, which change no others
template <class T> CS_OP void lu_factor(T* K, int n) {
  for (int k = 0; k < n; k += 3) {
    T *U0 = K + k * n, *U1 = U0 + n, *U2 = U1 + n, d0 = U0[k] = pivot(U0[k]), d1 = T(0), d2 = T(0);
    int below = k + 3, from = below;
    if (k + 1 < n) {
      minus(U1 + k + 1, U1[k] *= d0, U0 + k + 1, n - k - 1);
      d1 = U1[k + 1] = pivot(U1[k + 1]);
    }
    if (k + 2 < n) {
      minus(U2 + k + 1, U2[k] *= d0, U0 + k + 1, n - k - 1), minus(U2 + k + 2, U2[k + 1] *= d1, U1 + k + 2, n - k - 2);
      d2 = U2[k + 2] = pivot(U2[k + 2]);
    }
    while (from < n && all((U0[from] == T(0)) & (U1[from] == T(0)) & (U2[from] == T(0)))) from++;
    for (int i = below; i < n; i++) {
      T* row = K + i * n;
      T m0 = row[k] * d0, m1 = fnma(m0, U0[k + 1], row[k + 1]) * d1;
      T m2 = fnma(m1, U1[k + 2], fnma(m0, U0[k + 2], row[k + 2])) * d2;
      row[k] = m0, row[k + 1] = m1, row[k + 2] = m2;
      if (all((m0 == T(0)) & (m1 == T(0)) & (m2 == T(0)))) continue;
      const T *u0 = U0 + from, *u1 = U1 + from, *u2 = U2 + from;
      row += from;
      set_rows(row, n - from, [&](int j) { return fnma(m2, u2[j], fnma(m1, u1[j], fnma(m0, u0[j], row[j]))); });
    }
  }
}
#endif
// lu_solve: x = K^-1 x, column by column, where rows have no places of their own three of them at once: each x is done as soon as those before it are
template <class T> CS_OP void lu_solve(const T* K, int n, T* x) {
#ifdef CS_FIXED_ROWS
  CS_FOR (int i = 0; i < n; i++) minus(x + i + 1, x[i], K + (i + 1) * n + i, n - i - 1, n);
  CS_FOR (int i = n - 1; i >= 0; i--) minus(x, x[i] *= K[i * n + i], K + i, i, n);
#else
  int k = 0;
  for (; k + 3 <= n; k += 3) {
    const T *a = K + k * n + k, *b = a + n, *c = b + n, *rest = c + n;
    T x0 = x[k], x1 = fnma(x0, b[0], x[k + 1]), x2 = fnma(x1, c[1], fnma(x0, c[0], x[k + 2])), *to = x + k + 3;
    x[k + 1] = x1, x[k + 2] = x2;
    set_rows(to, n - k - 3, [&](int i) {
      const T* row = rest + i * n;
      return fnma(x2, row[2], fnma(x1, row[1], fnma(x0, row[0], to[i])));
    });
  }
  for (; k < n; k++) minus(x + k + 1, x[k], K + (k + 1) * n + k, n - k - 1, n);
  for (k = n; k >= 3; k -= 3) {
    const T *a = K + (k - 3) * (n + 1), *b = a + n, *c = b + n;
    T x2 = x[k - 1] * c[2], x1 = fnma(x2, b[2], x[k - 2]) * b[1], x0 = fnma(x1, a[1], fnma(x2, a[2], x[k - 3])) * a[0];
    x[k - 1] = x2, x[k - 2] = x1, x[k - 3] = x0;
    set_rows(x, k - 3, [&](int i) {
      const T* row = K + i * n + k - 3;
      return fnma(x0, row[0], fnma(x1, row[1], fnma(x2, row[2], x[i])));
    });
  }
  for (; k > 0; k--) minus(x, x[k - 1] *= K[(k - 1) * (n + 1)], K + k - 1, k - 1, n);
#endif
}
// adjoint: x = K^-T x
template <class T> CS_OP void lu_solve_adj(const T* K, int n, T* x) {
#ifdef CS_FIXED_ROWS
  CS_FOR (int i = 0; i < n; i++) minus(x + i + 1, x[i] *= K[i * n + i], K + i * n + i + 1, n - i - 1);
  CS_FOR (int i = n - 1; i > 0; i--) minus(x, x[i], K + i * n, i);
#else
  int k = 0;
  for (; k + 3 <= n; k += 3) {
    const T *a = K + k * n + k, *b = a + n, *c = b + n;
    T x0 = x[k] * a[0], x1 = fnma(x0, a[1], x[k + 1]) * b[1], x2 = fnma(x1, b[2], fnma(x0, a[2], x[k + 2])) * c[2];
    T* to = x + k + 3;
    x[k] = x0, x[k + 1] = x1, x[k + 2] = x2;
    set_rows(to, n - k - 3, [&](int i) { return fnma(x2, c[3 + i], fnma(x1, b[3 + i], fnma(x0, a[3 + i], to[i]))); });
  }
  for (; k < n; k++) minus(x + k + 1, x[k] *= K[k * n + k], K + k * n + k + 1, n - k - 1);
  for (k = n; k >= 3; k -= 3) {
    const T *a = K + (k - 3) * n, *b = a + n, *c = b + n;
    T x2 = x[k - 1], x1 = fnma(x2, c[k - 2], x[k - 2]), x0 = fnma(x1, b[k - 3], fnma(x2, c[k - 3], x[k - 3]));
    x[k - 2] = x1, x[k - 3] = x0;
    set_rows(x, k - 3, [&](int i) { return fnma(x0, a[i], fnma(x1, b[i], fnma(x2, c[i], x[i]))); });
  }
  for (; k > 1; k--) minus(x, x[k - 1], K + (k - 1) * n, k - 1);
#endif
}

CS_END
