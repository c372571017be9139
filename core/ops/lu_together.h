// lu_together: as lu.h, where a team of threads steps a world (base/team.h).
//
// Rows at their bounds are the identity's: they change no others, and are left out, and so are their columns where what they are multiplied with is zero. Each
// thread has one of the other rows, or every kTeam-th: what it needs of another one it is told by that one's thread. The same operations in the same order as in
// lu.h, number by number.
#pragma once
#include "lu.h"

CS_BEGIN

// K of an island: number j of its k-th row is K[j * count + k]; the j-th column is that of row cols[j] of the island, the k-th row that of column rows[k]
template <class T> struct Together {
  T* K;
  const int *cols, *rows;
  int n, count;  // columns, rows
};

// What thread i of those that have the rows from `first` on knows of its own
template <class T> struct OwnRow {
  int k;      // in rows
  bool mine;  // there is one
  T* K;       // its numbers, `count` apart
};
// no adjoint: memory
template <class T> CS_FN OwnRow<T> own_row(const Together<T>& a, int first) {
  int k = first + team_rank();
  return {k, k < a.count, a.K + (k < a.count ? k : a.count - 1)};
}

// no adjoint: a part of factor_together.   rows less what up to three do to them, whose numbers are those from p on. told: these are among the rows from
// `first` on, whose threads say what they are; else they are done. Rows that are not below one take nothing of it
template <bool told, class T> CS_FN void eliminate_together(const Together<T>& a, int p, int many, int first) {
  int c = a.count, n = a.n, r0 = a.rows[p], r1 = many > 1 ? a.rows[p + 1] : n, r2 = many > 2 ? a.rows[p + 2] : n, k = p - first;
  OwnRow<T> own = own_row(a, first);
  // a number of the row p + v; x: that of the own row, there: those of row p
  auto of = [&](T x, const T* there, int v) { return told ? of_rank(x, k + v) : there[v]; };
  auto inverse = [&](T x, const T* there, int v) { return told ? pivot(of_rank(x, k + v)) : there[v]; };
  auto below = [&](int v, T x) { return own.k > p + v ? x : T(0); };
  T m0 = T(0), m1 = m0, m2 = m0, *K = a.K + p, *own0 = own.K + r0 * c, *own1 = own.K + r1 * c, *own2 = own.K + r2 * c;
  {
    T x = *own0, d = inverse(x, K + r0 * c, 0);
    m0 = below(0, x * d);
    if (own.mine) *own0 = own.k > p ? m0 : own.k == p ? d : x;
  }
  if (many > 1) {
    const T* there = K + r1 * c;
    T x = *own1;
    x = fnma(m0, of(x, there, 0), x);
    T d = inverse(x, there, 1);
    m1 = below(1, x * d);
    if (own.mine) *own1 = own.k > p + 1 ? m1 : own.k == p + 1 ? d : x;
  }
  if (many > 2) {
    const T* there = K + r2 * c;
    T x = *own2;
    x = fnma(m0, of(x, there, 0), x), x = fnma(m1, of(x, there, 1), x);
    T d = inverse(x, there, 2);
    m2 = below(2, x * d);
    if (own.mine) *own2 = own.k > p + 2 ? m2 : own.k == p + 2 ? d : x;
  }
  // columns that the first `by` of the rows reach
  auto columns = [&](auto by, int from, int to) {
    constexpr int strip = 8;  // read before any of them is written
    T* at = own.K + from * c;
    const T* there = K + from * c;
    CS_SHORT (int j = from; j < to; j += strip, at += strip * c, there += strip * c) {
      T x[strip];
      int of_v[strip];
      CS_STRIP (int v = 0; v < strip; v++) of_v[v] = (j + v < to ? v : 0) * c, x[v] = at[of_v[v]];
      CS_STRIP (int row = 0; row < decltype(by)::n; row++) {
        T u[strip];
        CS_STRIP (int v = 0; v < strip; v++) u[v] = of(x[v], there + of_v[v], row);
        CS_STRIP (int v = 0; v < strip; v++) x[v] = fnma(row == 0 ? m0 : row == 1 ? m1 : m2, u[v], x[v]);
      }
      CS_STRIP (int v = 0; v < strip; v++)
        if (own.mine && j + v < to) at[of_v[v]] = x[v];
    }
  };
  columns(Size<1>{}, r0 + 1, r1);
  if (many > 1) columns(Size<2>{}, r1 + 1, r2);
  if (many > 2) columns(Size<3>{}, r2 + 1, n);
}

// no adjoint: a factorisation.   K = L U in place, U's diagonal inverted
template <class T> CS_OP void factor_together(const Together<T>& a) {
  CS_SHORT (int first = 0; first < a.count; first += kTeam) {
    int end = first + kTeam < a.count ? first + kTeam : a.count;
    CS_SHORT (int p = first; p < end; p += 3) {
      int many = end - p < 3 ? end - p : 3;
      eliminate_together<true>(a, p, many, first);
      if (end == a.count) continue;
      team_wait();
      CS_SHORT (int next = end; next < a.count; next += kTeam) eliminate_together<false>(a, p, many, next);
    }
  }
  team_wait();
}

// solve_together: x = K^-1 x of the island's rows
template <class T> CS_OP void solve_together(const Together<T>& a, T* x) {
  int c = a.count;
  CS_SHORT (int first = 0; first < c; first += kTeam) {
    OwnRow<T> own = own_row(a, first);
    int row = a.rows[own.mine ? own.k : c - 1], end = first + kTeam < c ? first + kTeam : c, j = 0, r = a.rows[0];
    T y = x[a.cols[row]], m = own.K[r * c];
    CS_SHORT (int k = 0; k < end; k++) {
      int next = a.rows[k + 1 < end ? k + 1 : k];
      T then = own.K[next * c];
      CS_SHORT (; j < r; j++) y = j < row ? fnma(x[a.cols[j]], own.K[j * c], y) : y;  // the identity's
      T by = k < first ? x[a.cols[r]] : of_rank(y, k - first);
      y = own.k > k ? fnma(by, m, y) : y;
      j++, r = next, m = then;
    }
    if (own.mine) x[a.cols[row]] = y;
    team_wait();
  }
  CS_SHORT (int first = c > 0 ? (c - 1) / kTeam * kTeam : -1; first >= 0; first -= kTeam) {
    OwnRow<T> own = own_row(a, first);
    int row = a.rows[own.mine ? own.k : c - 1], j = a.n - 1, r = a.rows[c - 1];
    T y = x[a.cols[row]], m = own.K[r * c];
    CS_SHORT (int k = c - 1; k >= first; k--) {
      int next = a.rows[k > first ? k - 1 : k];
      T then = own.K[next * c];
      CS_SHORT (; j > r; j--) y = j > row ? fnma(x[a.cols[j]], own.K[j * c], y) : y;
      T by = k < first + kTeam ? of_rank(y * m, k - first) : x[a.cols[r]];
      y = own.k < k ? fnma(by, m, y) : own.k == k ? by : y;
      j--, r = next, m = then;
    }
    if (own.mine) x[a.cols[row]] = y;
    team_wait();
  }
}
// adjoint: x = K^-T x; only if no column was left out
template <class T> CS_OP void solve_together_adj(const Together<T>& a, T* x) {
  int c = a.count;
  CS_SHORT (int k = 0; k < c; k++) {
    int r = a.rows[k];
    T by = x[r] * a.K[r * c + k];
    x[r] = by;
    share(a.n - r - 1, [&](int i) { x[r + 1 + i] = fnma(by, a.K[(r + 1 + i) * c + k], x[r + 1 + i]); });
  }
  CS_SHORT (int k = c - 1; k >= 0; k--) {
    int r = a.rows[k];
    T by = x[r];
    share(r, [&](int i) { x[i] = fnma(by, a.K[i * c + k], x[i]); });
  }
}

CS_END
