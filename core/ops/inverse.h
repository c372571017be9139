// inverse: K^-1 of a positive definite matrix, in place, pivot by pivot (Gauss and Jordan; "sweeping" in statistics).
//
//   pivot p:   g_i = K_ip / sqrt(K_pp),   K_ij -= g_i g_j,   K_ip = g_i / sqrt(K_pp),   K_pp = -1 / K_pp;   after all of them K is -K^-1, and it is symmetric all the way
// With row and column p zero, and g_p = -1 / sqrt(K_pp), one sum does it for all numbers: K_ij -= g_i g_j, the same bits on both sides of the diagonal, of which only
// one is computed here. Three pivots are taken at a time, so that every number is read and written once for them; what a later one of them sets is not touched by
// those before.
#pragma once
#include "../data/rows.h"
#include "lu.h"

CS_BEGIN

// no adjoint: a part of invert.   1 / sqrt of a pivot
template <class T> CS_FN T root_pivot(T p) {
  T least = T(ElementOf<T>(kLeastPivot));
  return inverse_root(select(p < least, least, p));
}

// no adjoint: a part of invert.   factors g of up to three pivots from p on, and their rows and columns zero.   row, col: from one number to the next below it, and to
// the right
template <class T, class F>
CS_FN void sweep_factors(T* K, int n, int row, int col, int p, int many, Pivots<T>* g, const F& diagonal) {
  // the number that row k has in column v, below the diagonal: here, and after the pivots before v
  auto number = [&](int k, int v) -> T& { return k < v ? K[v * row + k * col] : K[k * row + v * col]; };
  auto after = [&](int k, int v) {
    T x = number(k, v);
    CS_STRIP (int u = 0; u < kPivots - 1; u++)
      if (p + u < v) x = fnma(g[k].at[u], g[v].at[u], k == p + u ? T(0) : x);
    return x;
  };
  CS_SHORT (int v = 0; v < many; v++) {
    T root = root_pivot(after(p + v, p + v) + diagonal(p + v));
    share(n, [&](int k) { g[k].at[v] = k == p + v ? -root : after(k, p + v) * root; });
  }
  share(n, [&](int k) {
    for (int v = 0; v < many; v++) number(k, p + v) = T(0);
    for (int v = 0; k < p + many && v < k - p; v++) g[k].at[v] = T(0);
  });
}

// no adjoint: a part of invert.   a row, from its first number at x on, as far as `end`, above the diagonal where nobody looks; own: its factors
template <int many, class T> CS_FN void sweep_row(T* x, int col, int end, const Pivots<T>* g, const Pivots<T> own) {
  auto some = [&](auto size) {  // read before any of them is written
    T y[decltype(size)::n];
    CS_STRIP (int k = 0; k < decltype(size)::n; k++) y[k] = x[k * col];
    CS_STRIP (int k = 0; k < decltype(size)::n; k++) {
      const Pivots<T> by = g[k];
      CS_STRIP (int v = 0; v < many; v++) y[k] = fnma(own.at[v], by.at[v], y[k]);
    }
    CS_STRIP (int k = 0; k < decltype(size)::n; k++) x[k * col] = y[k];
    x += decltype(size)::n * col, g += decltype(size)::n;
  };
  int j = 0;
  CS_SHORT (; j + 4 <= end; j += 4) some(Size<4>{});
  CS_SHORT (; j < end; j++) some(Size<1>{});
}

// no adjoint: alternate_adj knows that dG = -G dK G.   K: n x n, without diagonal(k), which is added to its diagonal; g: [n] scratch.   Threads of a team take a row each, and their rows are neighbours
template <class T, class F> CS_OP void invert(T* K, int n, Pivots<T>* g, const F& diagonal) {
  int row = kTeam > 1 ? 1 : n, col = kTeam > 1 ? n : 1;
  CS_SHORT (int p = 0; p < n; p += kPivots) {
    int many = n - p < kPivots ? n - p : kPivots;
    sweep_factors(K, n, row, col, p, many, g, diagonal);
    CS_SHORT (int first = 0; first < n; first += kTeam) {
      int i = first + team_rank(), end = first + kTeam < n ? first + kTeam : n;
      if (i >= end) continue;
      if (many == 3) sweep_row<3>(K + i * row, col, end, g, g[i]);
      if (many == 2) sweep_row<2>(K + i * row, col, end, g, g[i]);
      if (many == 1) sweep_row<1>(K + i * row, col, end, g, g[i]);
    }
    team_wait();
  }
  share(n, [&](int i) {
    for (int j = 0; j <= i; j++) K[i * n + j] = K[j * n + i] = -K[i * row + j * col];
  });
}

CS_END
