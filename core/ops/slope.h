// slope: K = dF/dlambda of the natural map (ops/polish.h), factored: which rows are off their bounds, which contacts stick or slide.
//
// A row at its bound is the identity's, a free one rho A; a sliding pair has P and c of its cone. Where a team of threads steps a world each has a row, and
// rows of the identity are left out (ops/lu_together.h).
#pragma once
#include "held.h"

CS_BEGIN

// A contact's tangents at lambda: the cone's slope, and what its size is worth
template <class T> struct Slide {
  Cone<T> c;
  T size;  // d r / d lambda_n
};
// no adjoint: returns derivatives.   A contact at the rim of its cone that slips more slowly than the tolerance counts as sticking: sweeps leave
// such ones behind where sticking contacts are redundant
template <class T> CS_FN Slide<T> slide(const Rows<T>& rw, const Options& o, int i) {
  int r = rw.first_row[i];
  T n = rw.lam[r], rho = rw.rho[r + 1], one = T(1), zero = T(0);
  T p = fnma(rho, rw.y[r + 1], rw.lam[r + 1]), q = fnma(rho, third(rw, rw.y + r), third(rw, rw.lam + r));
  T size = rw.block_mu[i] * max(n, zero);
  Cone<T> c = cone_slope(o, p, q, size);
  T dp = p - c.x, dq = q - c.y, slip = rho * T(ElementOf<T>(o.tolerance));
  auto still = (size > zero) & !(fma(dp, dp, dq * dq) > slip * slip);
  c = {select(still, p, c.x),     select(still, q, c.y),     select(still, one, c.Pxx), select(still, zero, c.Pxy),
       select(still, one, c.Pyy), select(still, zero, c.cx), select(still, zero, c.cy), select(still, zero, c.outside)};
  return {c, select(n > zero, rw.block_mu[i], zero)};
}

// Where the first row of a block is: off its bounds, or at one of them
template <class T> struct Hold {
  T free, x;    // 1 where it is off them; its projection
  T low, high;  // 1 where it is at this one
};
// no adjoint: returns derivatives
template <class T> CS_FN Hold<T> row_hold(const Rows<T>& rw, int i) {
  int r = rw.first_row[i];
  T x = fnma(rw.rho[r], rw.y[r], rw.lam[r]), one = T(1), zero = T(0), lo, hi;
  row_bounds(rw, i, rw.lam, lo, hi);
  auto free = (x > lo) & (x < hi);
  auto high = x > hi - (hi - lo) * T(0.5);
  return {select(free, one, zero), min(max(x, lo), hi), select(free | high, zero, one), select(high & !free, one, zero)};
}

// Both of a block
template <class T> struct BlockSlope {
  Hold<T> at;
  Slide<T> z;  // of contacts
};
// no adjoint: returns derivatives
template <class T> CS_FN BlockSlope<T> block_slope(const Rows<T>& rw, const Options& o, int i) {
  BlockSlope<T> x;
  x.at = row_hold(rw, i);
  if (rw.kind[i] == kContactRows) x.z = slide(rw, o, i);
  return x;
}

// no adjoint: a part of natural_slope.   the tangent of a planar contact: row k + 1 of K
template <class T> CS_FN void flat_slope(const Rows<T>& rw, int r, int k, int n, const T* A, T* K, const Slide<T>& z, T sigma) {
  const T* A1 = A + (k + 1) * n;
  T *K1 = K + (k + 1) * n, scale = rw.rho[r + 1] * z.c.Pxx;
  set_rows(K1, n, [&](int j) { return scale * A1[j]; });
  K1[k] -= z.c.cx * z.size;
  K1[k + 1] += fma(sigma * scale, A1[k + 1], T(1) - z.c.Pxx);
  rw.delta[r + 1] = rw.lam[r + 1] - z.c.x;
}

// no adjoint: a part of natural_slope.   the rows of block i, and then what their diagonal has besides
template <class T>
CS_FN void slope_rows(const Rows<T>& rw, int i, int r0, int n, const T* A, T* K, const BlockSlope<T>& x, T sigma) {
  int r = rw.first_row[i], k = r - r0;
  bool contact = rw.kind[i] == kContactRows, three = contact && rw.width == 3;
  const Hold<T>& at = x.at;
  const Slide<T>& z = x.z;
  T scale = at.free * rw.rho[r], one = T(1), rho = three ? rw.rho[r + 1] : T(0);
  T xx = three ? rho * z.c.Pxx : T(0), xy = three ? rho * z.c.Pxy : T(0), yy = three ? rho * z.c.Pyy : T(0);
  const T *A0 = A + k * n, *A1 = A0 + n, *A2 = A1 + n;
  T *K0 = K + k * n, *K1 = K0 + n, *K2 = K1 + n;
  set_rows(K0, n, [&](int j) { return scale * A0[j]; });
  if (three) set_rows(K1, n, [&](int j) { return fma(xx, A1[j], xy * A2[j]); });
  if (three) set_rows(K2, n, [&](int j) { return fma(xy, A1[j], yy * A2[j]); });
  K0[k] += fma(sigma * scale, A0[k], one - at.free);
  rw.delta[r] = rw.lam[r] - at.x;
  if (rw.kind[i] == kTurnRow) {
    int over = rw.first_row[rw.over[i]];
    K0[over - r0] -= select(rw.lam[over] > T(0), rw.block_mu[i] * (at.high - at.low), T(0));
  }
  if (contact && !three) flat_slope(rw, r, k, n, A, K, z, sigma);
  if (!three) return;
  K1[k] -= z.c.cx * z.size, K2[k] -= z.c.cy * z.size;
  T s1 = sigma * A1[k + 1], s2 = sigma * A2[k + 2];
  K1[k + 1] = fma(xx, s1, K1[k + 1]), K1[k + 2] = fma(xy, s2, K1[k + 2]);
  K2[k + 1] = fma(xy, s1, K2[k + 1]), K2[k + 2] = fma(yy, s2, K2[k + 2]);
  K1[k + 1] += one - z.c.Pxx, K1[k + 2] -= z.c.Pxy, K2[k + 1] -= z.c.Pxy, K2[k + 2] += one - z.c.Pyy;
  rw.delta[r + 1] = rw.lam[r + 1] - z.c.x, rw.delta[r + 2] = rw.lam[r + 2] - z.c.y;
}

// no adjoint: integers.   in rw.cols, which rows of a block are not the identity's: 1 + the block, else -1, or 0 where F is zero and not `every` column is
// wanted; F into rw.delta
template <class T> CS_FN void mark_columns(const Rows<T>& rw, int i, const BlockSlope<T>& x, bool every) {
  int r = rw.first_row[i];
  auto mark = [&](int row, bool fixed, T to) {
    T F = rw.lam[row] - to;
    rw.delta[row] = F, rw.cols[row] = !fixed ? i + 1 : every || !(F == T(0)) ? -1 : 0;
  };
  mark(r, !(x.at.free > T(0)) && rw.kind[i] != kTurnRow, x.at.x);
  if (rw.kind[i] != kContactRows) return;
  const Cone<T>& c = x.z.c;
  mark(r + 1, c.Pxx == T(0) && c.Pxy == T(0) && c.cx * x.z.size == T(0), c.x);
  if (rw.width == 3) mark(r + 2, c.Pyy == T(0) && c.Pxy == T(0) && c.cy * x.z.size == T(0), c.y);
}
// no adjoint: integers.   of n marks the columns, in their place, and those of them that are rows, with their blocks
CS_FN void list_columns(int* mark, int* rows, int* block, int n, int& n_cols, int& n_active) {
  int columns = 0, count = 0;
  CS_SHORT (int first = 0; first < n; first += kTeam) {
    int k = first + team_rank(), by = k < n ? mark[k] : 0, before, earlier;
    int more = how_many(by != 0, before), active = how_many(by > 0, earlier);
    if (by) mark[columns + before] = k;
    if (by > 0) rows[count + earlier] = columns + before, block[count + earlier] = by - 1;
    columns += more, count += active;
    team_wait();
  }
  n_cols = columns, n_active = count;
}
// no adjoint: memory.   where K of island s is, if a team has it
template <class T> CS_FN Together<T> together(const Rows<T>& rw, int s) {
  int r0 = rw.first_row[rw.island_block[s]];
  return {rw.K + rw.island_A[s], rw.cols + r0, rw.active + r0, rw.n_cols[s], rw.n_active[s]};
}
// no adjoint: a part of natural_slope.   the k-th row of K, one of block i, as slope_rows has it. A is symmetric: threads that take a row each read neighbours
// where they go along a column.   r0, n: the island's first row, and how many it has
// number(j): where its j-th number is
template <class T, class F> CS_FN void slope_row(const Rows<T>& rw, const Options& o, const Together<T>& a, int i, int k, int r0,
                                                 int n, const T* A, T sigma, const F& number) {
  BlockSlope<T> x = block_slope(rw, o, i);
  const Cone<T>& c = x.z.c;
  int r = rw.first_row[i], b = r - r0, here = a.rows[k], part = a.cols[here] - b;
  bool pair = part > 0 && rw.width == 3;
  T one = T(1), c1 = x.at.free * rw.rho[r], c2 = T(0);
  if (part) c1 = rw.rho[r + 1] * (part == 1 ? c.Pxx : c.Pxy);
  if (pair) c2 = rw.rho[r + 1] * (part == 1 ? c.Pxy : c.Pyy);
  const T *A1 = A + b + (pair ? 1 : part), *A2 = pair ? A1 + 1 : A1;
  constexpr int strip = 3 * kPivots;  // columns that are read before any is written
  CS_SHORT (int j = 0; j < a.n; j += strip) {
    T y[strip];
    CS_STRIP (int v = 0; v < strip; v++) {
      int from = a.cols[j + v < a.n ? j + v : j] * n;
      y[v] = pair ? fma(c1, A1[from], c2 * A2[from]) : c1 * A1[from];
    }
    CS_STRIP (int v = 0; v < strip; v++)
      if (j + v < a.n) number(j + v) = y[v];
  }
  // what the diagonal has besides, and what is next to it
  auto add = [&](int row, T scale, T by, T more) {
    int at = here;
    while (at > 0 && a.cols[at] > row) at--;
    while (at < a.n - 1 && a.cols[at] < row) at++;
    if (a.cols[at] == row) number(at) = fma(scale, by, number(at)) + more;
  };
  const T* corner = A + b * (n + 1);
  if (part) add(b, T(0), T(0), -((part == 1 ? c.cx : c.cy) * x.z.size));
  if (pair) {
    add(b + 1, c1, sigma * corner[n + 1], part == 1 ? one - c.Pxx : -c.Pxy);
    add(b + 2, c2, sigma * corner[2 * (n + 1)], part == 1 ? -c.Pxy : one - c.Pyy);
  } else {
    add(b + part, T(0), T(0), fma(sigma * c1, corner[part * (n + 1)], part ? one - c.Pxx : one - x.at.free));
  }
  if (rw.kind[i] != kTurnRow) return;
  int over = rw.first_row[rw.over[i]];
  add(over - r0, T(0), T(0), -(rw.lam[over] > T(0) ? rw.block_mu[i] * (x.at.high - x.at.low) : T(0)));
}

// no adjoint: a part of natural_slope.   K of island s by a team, not yet factored; by places where that is held.   every: not only K^-1 F is wanted
template <class T> CS_FN Together<T> slope_together(const Rows<T>& rw, const Options& o, int s, T sigma, bool every) {
  int first, last, r0, n, *block;
  island_rows(rw, s, first, last, r0, n);
  block = rw.active_block + r0;
  share(last - first, [&](int i) { mark_columns(rw, first + i, block_slope(rw, o, first + i), every); });
  list_columns(rw.cols + r0, rw.active + r0, block, n, rw.n_cols[s], rw.n_active[s]);
  Together<T> a = together(rw, s);
  auto rows = [&](const auto& number) {
    share(a.count, [&](int k) {
      slope_row(rw, o, a, block[k], k, r0, n, rw.A + rw.island_A[s], sigma, [&](int j) -> T& { return number(k, j); });
    });
  };
  Pivots<T>* held = held_matrix(rw, kHeldK);
  if (rw.is_held)
    rows([&](int k, int j) -> T& { return held[j / kPivots * kHeldPlaces + k].at[j % kPivots]; });
  else
    rows([&](int k, int j) -> T& { return a.K[j * a.count + k]; });
  return a;
}
// no adjoint: a derivative itself.   K of island s at rw.lam, rw.y, with A + sigma diag(A), factored; F into rw.delta
template <class T> CS_OP void natural_slope(const Rows<T>& rw, const Options& o, int s, T sigma) {
  if constexpr (kTeam > 1) return factor_together(slope_together(rw, o, s, sigma, true));
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  const T* A = rw.A + rw.island_A[s];
  T* K = rw.K + rw.island_A[s];
  CS_FOR (int i = first; i < last; i++) slope_rows(rw, i, r0, n, A, K, block_slope(rw, o, i), sigma);
  lu_factor(K, n);
}

// slope_solve: x = K^-1 x of island s, after natural_slope
template <class T> CS_FN void slope_solve(const Rows<T>& rw, int s, T* x) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  lu_solve(rw.K + rw.island_A[s], n, x);
}
// adjoint: x = K^-T x
template <class T> CS_FN void slope_solve_adj(const Rows<T>& rw, int s, T* x) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  if constexpr (kTeam > 1)
    solve_together_adj(together(rw, s), x);
  else
    lu_solve_adj(rw.K + rw.island_A[s], n, x);
}

CS_END
