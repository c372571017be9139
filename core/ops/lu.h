// lu: K = L U of the rows of an island, and K^-1 x.
//
// Without pivoting: the free part of K is a scaled positive definite matrix (a vanishing pivot is kept from being zero). Every number is the result of the same
// operations in the same order however many are computed at once, and by however many threads (ops/lu_together.h).
#pragma once
#include "../math/array.h"

CS_BEGIN

constexpr double kLeastPivot = 1e-12;

// no adjoint: linear.   y -= a x, x with `stride` numbers from one to the next
template <class T> CS_FN void minus(T* y, T a, const T* x, int n, int stride = 1) {
  set_rows(y, n, [&](int k) { return fnma(a, x[k * stride], y[k]); });
}

// no adjoint: a part of factorisations.   1 / a number on the diagonal
template <class T> CS_FN T pivot(T p) {
  T least = T(ElementOf<T>(kLeastPivot));
  return reciprocal(select(abs(p) < least, least, p));
}

#ifdef CS_FIXED_ROWS
// no adjoint: a factorisation.   K = L U in place, U's diagonal inverted
template <class T> CS_OP void lu_factor(T* K, int n) {
  CS_FOR (int k = 0; k < n; k++) {
    T inv = K[k * n + k] = pivot(K[k * n + k]);
    CS_FOR (int i = k + 1; i < n; i++) {
      T m = K[i * n + k] * inv;
      K[i * n + k] = m;
      CS_FOR (int j = k + 1; j < n; j++) K[i * n + j] = fnma(m, K[k * n + j], K[i * n + j]);
    }
  }
}
#else
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
