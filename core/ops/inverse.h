// inverse: K^-1 of a positive definite matrix, in place, pivot by pivot (Gauss and Jordan; "sweeping" in statistics).
//
//   pivot p:   K_ij -= K_ip K_pj / K_pp,   K_ip /= K_pp,   K_pp = -1 / K_pp;   after all of them K is -K^-1, and it is symmetric all the way
// Only numbers on and below the diagonal are computed. With row and column p zero, and factors c_p = -1, m_p = -1 / K_pp there, one sum does it for all numbers:
// K_ij -= m_i c_j. Three pivots are taken at a time, so that every number is read and written once for them; what a later one of them sets is not touched by those
// before.
#pragma once
#include "../data/rows.h"
#include "lu.h"

CS_BEGIN

// no adjoint: a part of invert.   factors of up to three pivots from p on, and their rows and columns zero.   row, col: from one number to the next below it, and to
// the right
template <class T> CS_FN void sweep_factors(T* K, int n, int row, int col, int p, int many, Pivots<T>* c, Pivots<T>* m) {
  // the number that row k has in column v, below the diagonal: here, and after the pivots before v
  auto number = [&](int k, int v) -> T& { return k < v ? K[v * row + k * col] : K[k * row + v * col]; };
  auto after = [&](int k, int v) {
    T x = number(k, v);
    CS_STRIP (int u = 0; u < kPivots - 1; u++)
      if (p + u < v) x = k == p + u ? m[v].at[u] : k > v ? fnma(m[k].at[u], c[v].at[u], x) : fnma(m[v].at[u], c[k].at[u], x);
    return x;
  };
  CS_SHORT (int v = 0; v < many; v++) {
    T d = pivot(after(p + v, p + v));
    share(n, [&](int k) {
      T x = after(k, p + v);
      c[k].at[v] = k == p + v ? T(-1) : x, m[k].at[v] = k == p + v ? -d : x * d;
    });
  }
  share(n, [&](int k) {
    for (int v = 0; v < many; v++) number(k, p + v) = T(0);
    for (int v = 0; k < p + many && v < k - p; v++) c[k].at[v] = m[k].at[v] = T(0);
  });
}

// no adjoint: a part of invert.   a row, from its first number at x on, as far as `end`, above the diagonal where nobody looks; m: its own factors
template <int many, class T> CS_FN void sweep_row(T* x, int col, int end, const Pivots<T>* c, const Pivots<T> m) {
  auto some = [&](auto size) {  // read before any of them is written
    T y[decltype(size)::n];
    CS_STRIP (int k = 0; k < decltype(size)::n; k++) y[k] = x[k * col];
    CS_STRIP (int k = 0; k < decltype(size)::n; k++) {
      const Pivots<T> by = c[k];
      CS_STRIP (int v = 0; v < many; v++) y[k] = fnma(m.at[v], by.at[v], y[k]);
    }
    CS_STRIP (int k = 0; k < decltype(size)::n; k++) x[k * col] = y[k];
    x += decltype(size)::n * col, c += decltype(size)::n;
  };
  int j = 0;
  CS_SHORT (; j + 4 <= end; j += 4) some(Size<4>{});
  CS_SHORT (; j < end; j++) some(Size<1>{});
}

// no adjoint: alternate_adj knows that dG = -G dK G.   K: n x n; c, m: [n] scratch.   Threads of a team take a row each, and their rows are neighbours
template <class T> CS_OP void invert(T* K, int n, Pivots<T>* c, Pivots<T>* m) {
  int row = kTeam > 1 ? 1 : n, col = kTeam > 1 ? n : 1;
  CS_SHORT (int p = 0; p < n; p += kPivots) {
    int many = n - p < kPivots ? n - p : kPivots;
    sweep_factors(K, n, row, col, p, many, c, m);
    CS_SHORT (int first = 0; first < n; first += kTeam) {
      int i = first + team_rank(), end = first + kTeam < n ? first + kTeam : n;
      if (i >= end) continue;
      if (many == 3) sweep_row<3>(K + i * row, col, end, c, m[i]);
      if (many == 2) sweep_row<2>(K + i * row, col, end, c, m[i]);
      if (many == 1) sweep_row<1>(K + i * row, col, end, c, m[i]);
    }
    team_wait();
  }
  share(n, [&](int i) {
    for (int j = 0; j <= i; j++) K[i * n + j] = K[j * n + i] = -K[i * row + j * col];
  });
}

CS_END
