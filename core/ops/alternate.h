// alternate: lambda by passes over two easy halves in turn, all rows without bounds and each block alone (Douglas and Rachford; ADMM), and its adjoint.
//
//   z = Pi(p),   x = (A + D)^-1 (D (2 z - p) - b),   p += o (x - z);   D = d / rho
// Where it comes to rest x = z and p = z - D^-1 (A z + b): z is its own projection from there, as in the natural map, whatever D is. Many contacts that hold each
// other, more than there are dofs, make sweeps crawl and let Newton steps go astray; here they only cost passes. So Newton steps that start here mostly need
// one to three. A pass is a product with a matrix, which is inverted once. Pi takes cones at its own normal, not at the one before, as sweeps do.
// kinks: those of Pi, at bounds and at rims of cones
#pragma once
#include "passes.h"

CS_BEGIN

// project_block: z = Pi(p) of block i; of a row against turning after its contact
template <class T> CS_FN void project_block(const Rows<T>& rw, const Options& o, int i, const T* p, T* z) {
  int r = rw.first_row[i];
  T lo, hi;
  row_bounds(rw, i, z, lo, hi);
  T x = z[r] = min(max(p[r], lo), hi);
  if (rw.kind[i] != kContactRows) return;
  T x1 = p[r + 1], x2 = third(rw, p + r);
  cone_project(o, x1, x2, rw.block_mu[i] * max(x, T(0)));
  z[r + 1] = x1;
  if (rw.width == 3) z[r + 2] = x2;
}
// adjoint: p_bar += that of z_bar; of a row against turning before its contact, to whose z_bar it adds
template <class T> CS_FN void project_block_adj(const Rows<T>& rw, const Options& o, int i, const T* p, const T* z, T* z_bar,
                                                const RowBars<T>& rb, T* p_bar) {
  int r = rw.first_row[i];
  T zero = T(0), g = z_bar[r], lo, hi;
  if (rw.kind[i] == kContactRows) {
    T n = max(z[r], zero), g1 = z_bar[r + 1], g2 = third(rw, z_bar + r);
    Cone<T> c = cone_slope(o, p[r + 1], third(rw, p + r), rw.block_mu[i] * n);
    T size_bar = fma(c.cx, g1, c.cy * g2);
    rb.block_mu[i] = fma(n, size_bar, rb.block_mu[i]);
    g = fma(rw.block_mu[i], size_bar, g);
    p_bar[r + 1] += fma(c.Pxx, g1, c.Pxy * g2);
    if (rw.width == 3) p_bar[r + 2] += fma(c.Pxy, g1, c.Pyy * g2);
  }
  row_bounds(rw, i, z, lo, hi);
  // a row whose bounds are one (a motor on a tie) is always at them
  auto high = p[r] > hi;
  auto low = (p[r] < lo) | (!(high | (lo < hi)));
  row_bounds_adj(rw, i, z, select(low, g, zero), select(high, g, zero), rb, z_bar);
  p_bar[r] += select(low | high, zero, g);
}

// no adjoint: alternate_adj knows that dG = -G dA G.   G = (A + D)^-1 of all islands, for all rounds
template <class T> CS_OP void alternate_matrix(const Rows<T>& rw) {
  T d = T(ElementOf<T>(kStiff));
  if (rw.is_held) return;  // its first passes begin with that
  for (int s = 0; s < rw.count[2]; s++) {
    int first, last, r0, n;
    island_rows(rw, s, first, last, r0, n);
    const T* A = rw.A + rw.island_A[s];
    T* G = rw.G + rw.island_A[s];
    auto diagonal = [&](int k) { return d * rw.inv_rho[r0 + k]; };
    set_rows(G, n * n, [&](int k) { return A[k]; });
    invert(G, n, rw.pivots, diagonal);
  }
}

// What a round works on: an island, and the numbers of its rows
template <class T> struct Alternate {
  int s, first, last, r0, n;  // island, its blocks and rows
  T d;
  const T* G;
  T *p, *q;  // [rows] all islands'; z is rw.lam
};
// no adjoint: alternate_adj has it.   island s, and where a round starts there: p = lambda - D^-1 y
template <class T> CS_FN Alternate<T> alternate_start(const Rows<T>& rw, int s) {
  Alternate<T> x;
  x.s = s, x.d = T(ElementOf<T>(kStiff)), x.p = rw.start, x.q = rw.delta, x.G = rw.G + rw.island_A[s];
  island_rows(rw, s, x.first, x.last, x.r0, x.n);
  T inv = T(1) / x.d;
  share(x.n, [&](int k) { x.p[x.r0 + k] = fnma(inv * rw.rho[x.r0 + k], rw.y[x.r0 + k], rw.lam[x.r0 + k]); });
  return x;
}

// no adjoint: alternate_adj has it.   z = Pi(p), and what A + D is solved for: q = D (2 z - p) - b
template <class T>
CS_OP void alternate_project(const Tree& t, const Rows<T>& rw, const Options& o, const Alternate<T>& x, const T* p) {
  auto block = [&](int i) {
    project_block(rw, o, i, p, rw.lam);
    for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++)
      x.q[r] = fma(x.d * rw.inv_rho[r], rw.lam[r] + (rw.lam[r] - p[r]), -rw.b[r]);
  };
  share(x.last - x.first, [&](int i) {
    if (rw.kind[x.first + i] != kTurnRow) block(x.first + i);
  });
  CS_IF(Tree, t, turns) {
    share(x.last - x.first, [&](int i) {
      if (rw.kind[x.first + i] == kTurnRow) block(x.first + i);
    });
  }
}

// alternate: a round of passes from rw.lam, in lanes that are `moving`
template <class T, class M> CS_OP void alternate(const Tree& t, const Rows<T>& rw, const Options& o, int round, M moving) {
  using E = ElementOf<T>;
  int rows = rw.count[1], passes = passes_of<E>(round);
  T over = T(E(over_of<E>(round)));
  set_rows(rw.before, rows, [&](int r) { return rw.lam[r]; });
  if (round == 0)  // lambda is zero
    set_rows(rw.y, rows, [&](int r) { return rw.b[r]; });
  else
    natural_velocity(rw);
  for (int s = 0; s < rw.count[2]; s++) {
    Alternate<T> x = alternate_start(rw, s);
    if constexpr (kMayHold<T>)
      if (rw.is_held) return held_passes(rw, o, x.p, over, passes, round == 0);
    CS_SHORT (int k = 0; k < passes; k++) {
      alternate_project(t, rw, o, x, x.p);
      island_times(rw, s, x.G, x.q + x.r0, x.n,
                   [&](int j, T y) { x.p[x.r0 + j] = pass_on(over, x.p[x.r0 + j], y, rw.lam[x.r0 + j]); });
    }
    alternate_project(t, rw, o, x, x.p);
  }
  set_rows(rw.lam, rows, [&](int r) { return select(moving, rw.lam[r], rw.before[r]); });
}

// Going back from a solution the bar shrinks: Newton steps forget where they began, and passes between convex cones do not make it larger. Where it has become this
// much larger again passes had wandered, and what has grown is rounding: a solution does not depend on it
constexpr double kGrown = 1e3;
// no adjoint: a part of adjoints.   the square of a bar's length, of n rows from r0 on, in the measure of D
template <class T> CS_FN T bar_size(const Rows<T>& rw, const T* bar, int r0, int n) {
  T sum = T(0);
  for (int r = r0; r < r0 + n; r++) sum = fma(rw.rho[r] * bar[r], bar[r], sum);
  return sum;
}
// no adjoint: a part of adjoints.   the bar is zero from here on in lanes that are solved, where it has grown; least: of the sizes that it had
template <class T> CS_FN void cut_grown(const Rows<T>& rw, T* bar, int r0, int n, T least) {
  T most = T(ElementOf<T>(kGrown * kGrown)) * least;
  auto grown = (rw.status->solved > T(0.5)) & (bar_size(rw, bar, r0, n) > most);
  if (any(grown)) share(n, [&](int k) { bar[r0 + k] = select(grown, T(0), bar[r0 + k]); });
}

// no adjoint: a part of adjoints.   A -= y x^T, n x n: threads of a team take a column each
template <class T> CS_FN void minus_product(T* A, const T* y, const T* x, int n) {
  if constexpr (kTeam > 1) {
    share(n, [&](int j) {
      for (int i = 0; i < n; i++) A[i * n + j] = fnma(y[i], x[j], A[i * n + j]);
    });
  } else {
    for (int i = 0; i < n; i++) minus(A + i * n, y[i], x, n);
  }
}

// adjoint, in place on rb.lam; rw.lam holds lambda before it, took: 1 in lanes that moved. The passes are run again, and p is kept of each: x is z, and what it
// changes by over o. With q_bar = G x_bar the bars of A and D are those of -q_bar . (A + D) x.   least: see cut_grown
template <class T>
CS_OP void alternate_adj(const Tree& t, const Rows<T>& rw, const Options& o, int round, T took, const RowBars<T>& rb, T least) {
  using E = ElementOf<T>;
  int rows = rw.count[1], passes = passes_of<E>(round);
  T zero = T(0), over = T(E(over_of<E>(round))), *p_bar = rw.Ad, *z_bar = rw.trial, *q_bar = rw.stalled, *x = rb.z,
    *before = rw.before;
  auto moved = took > T(0.5);
  set_rows(before, rows, [&](int r) { return rw.lam[r]; });
  natural_velocity(rw);
  for (int s = 0; s < rw.count[2]; s++) {
    Alternate<T> at = alternate_start(rw, s);
    int n = at.n, r0 = at.r0;
    T *A_bar = rb.A + rw.island_A[s], d = at.d, *q = at.q + r0, *z = rw.lam + r0;
    const T* A = rw.A + rw.island_A[s];
    auto kept = [&](int k) { return rw.passed + k * rows; };
    share(n, [&](int j) { kept(0)[r0 + j] = at.p[r0 + j]; });
    for (int k = 0; k < passes; k++) {
      alternate_project(t, rw, o, at, kept(k));
      island_times(rw, s, at.G, q, n, [&](int j, T y) { kept(k + 1)[r0 + j] = pass_on(over, kept(k)[r0 + j], y, z[j]); });
    }
    auto project_adj = [&](int k) {  // z_bar to p_bar
      for (int i = at.last - 1; i >= at.first && t.turns; i--)
        if (rw.kind[i] == kTurnRow) project_block_adj(rw, o, i, kept(k), rw.lam, z_bar, rb, p_bar);
      share(at.last - at.first, [&](int i) {
        if (rw.kind[at.first + i] != kTurnRow) project_block_adj(rw, o, at.first + i, kept(k), rw.lam, z_bar, rb, p_bar);
      });
    };
    auto D_bar = [&](int j, T by) {  // D = d / rho
      rb.rho[r0 + j] = fnma(d * rw.inv_rho[r0 + j] * rw.inv_rho[r0 + j], by, rb.rho[r0 + j]);
    };
    alternate_project(t, rw, o, at, kept(passes));
    share(n, [&](int j) { z_bar[r0 + j] = select(moved, rb.lam[r0 + j], zero), p_bar[r0 + j] = zero; });
    project_adj(passes);
    for (int k = passes - 1; k >= 0; k--) {
      cut_grown(rw, p_bar, r0, n, least);
      const T *p = kept(k) + r0, *next = kept(k + 1) + r0;
      alternate_project(t, rw, o, at, kept(k));
      island_times(rw, s, at.G, p_bar + r0, n, [&](int j, T y) { q_bar[r0 + j] = over * y; });
      share(n, [&](int j) { x[r0 + j] = (next[j] - p[j]) / over + z[j]; });
      minus_product(A_bar, q_bar + r0, x + r0, n);
      share(n, [&](int j) {
        T D = d * rw.inv_rho[r0 + j], by = q_bar[r0 + j];
        D_bar(j, by * (z[j] + (z[j] - p[j]) - x[r0 + j]));
        rb.b[r0 + j] -= by;
        z_bar[r0 + j] = fma(D + D, by, -over * p_bar[r0 + j]), p_bar[r0 + j] = fnma(D, by, p_bar[r0 + j]);
      });
      project_adj(k);
    }
    // p = lambda - D^-1 y,  y = A lambda + b
    T* y_bar = q_bar + r0;
    share(n, [&](int j) {
      T rho = rw.rho[r0 + j] / d;
      y_bar[j] = -rho * p_bar[r0 + j];
      D_bar(j, rho * rho * rw.y[r0 + j] * p_bar[r0 + j]);
      rb.b[r0 + j] += y_bar[j];
      rb.lam[r0 + j] = select(moved, p_bar[r0 + j], rb.lam[r0 + j]);
      before[r0 + j] = -before[r0 + j];  // what y_bar is worth to A is added
    });
    minus_product(A_bar, y_bar, before + r0, n);
    island_times(rw, s, A, y_bar, n, [&](int j, T y) { rb.lam[r0 + j] += y; });
  }
}

CS_END
