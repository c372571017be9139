// polish: Newton steps on the natural map  F(lambda) = lambda - Pi(lambda - rho (A lambda + b)),  and its adjoint in both modes.
//
//   K = dF/dlambda = I - P + rho P A - C:  a free row is rho A, a row at its bound the identity, a sliding pair has P and c of its cone
// One Newton step solves the rows that are off their bounds directly. Where that does not help, a part of it may, or one that is damped as
// Levenberg and Marquardt do it: K of A + sigma diag(A), with which rows that contradict each other do not run away.
#pragma once
#include "lu.h"
#include "relax.h"

CS_BEGIN

// no adjoint: linear.   y += A lam, island by island
template <class T> CS_OP void add_A(const Rows<T>& rw, const T* lam, T* y) {
  int first, last, r0, n;
  CS_FOR (int s = 0; s < rw.count[2]; s++) {
    island_rows(rw, s, first, last, r0, n);
    const T* A = rw.A + rw.island_A[s];
    if constexpr (kTeam > 1) {
      // A is symmetric: threads that take a row each read neighbours where they go along a column
      share(n, [&](int k) { y[r0 + k] += dense_dot(rw, s, A + k, lam + r0, n, n); });
      continue;
    }
    int k = 0;
#ifndef CS_FIXED_ROWS
    for (; k + 3 <= n; k += 3) {
      Vec3<T> by = dense_dots(rw, s, A + k * n, lam + r0, n);
      y[r0 + k] += by.x, y[r0 + k + 1] += by.y, y[r0 + k + 2] += by.z;
    }
#endif
    CS_FOR (; k < n; k++) y[r0 + k] += dense_dot(rw, s, A + k * n, lam + r0, n);
  }
}

// no adjoint: undone with K itself.   natural residual of a block at lam, whose y is known, in m/s
template <class T> CS_FN T block_residual(const Rows<T>& rw, const Options& o, int i, const T* lam, const T* y) {
  int r = rw.first_row[i];
  T lo, hi;
  row_bounds(rw, i, lam, lo, hi);
  T x = min(max(fnma(rw.rho[r], y[r], lam[r]), lo), hi), res = abs(x - lam[r]) * rw.inv_rho[r];
  if (rw.kind[i] != kContactRows) return res;
  T p = fnma(rw.rho[r + 1], y[r + 1], lam[r + 1]), q = fnma(rw.rho[r + 1], third(rw, y + r), third(rw, lam + r));
  cone_project(o, p, q, rw.block_mu[i] * max(lam[r], T(0)));
  return max(res, max(abs(p - lam[r + 1]), abs(q - third(rw, lam + r))) * rw.inv_rho[r + 1]);
}
// no adjoint: undone with K itself.   the largest of all blocks
template <class T> CS_OP T residual_of(const Rows<T>& rw, const Options& o, const T* lam, const T* y) {
  T worst = T(0);
  CS_FOR (int i = team_rank(); i < rw.count[0]; i += kTeam) worst = max(worst, block_residual(rw, o, i, lam, y));
  return largest(worst);
}

// no adjoint: undone with K itself.   y = A lambda + b, and the largest natural residual
template <class T> CS_APART T natural_residual(const Rows<T>& rw, const Options& o) {
  set_rows(rw.y, rw.count[1], [&](int r) { return rw.b[r]; });
  add_A(rw, rw.lam, rw.y);
  return residual_of(rw, o, rw.lam, rw.y);
}

// inside: lambda moved to its bounds and into its cones, in lanes where `open`.   Newton steps know neither
template <class T, class M> CS_OP void inside(const Rows<T>& rw, const Options& o, M open) {
  for (int i = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i];
    T *lam = rw.lam + r, lo, hi;
    row_bounds(rw, i, rw.lam, lo, hi);
    lam[0] = select(open, min(max(lam[0], lo), hi), lam[0]);
    if (rw.kind[i] != kContactRows) continue;
    T p = lam[1], q = third(rw, lam);
    cone_project(o, p, q, rw.block_mu[i] * lam[0]);
    lam[1] = select(open, p, lam[1]);
    if (rw.width == 3) lam[2] = select(open, q, lam[2]);
  }
}
// adjoint, in place on rb.lam.   before: lambda before it; took: 1 where it was done
template <class T> CS_OP void inside_adj(const Rows<T>& rw, const Options& o, const T* before, T took, const RowBars<T>& rb) {
  auto done = took > T(0);
  T zero = T(0);
  for (int i = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i];
    const T* lam = before + r;
    T* g = rb.lam + r;
    if (rw.kind[i] == kContactRows) {
      T n = max(lam[0], zero), g2 = third(rw, g);
      Cone<T> c = cone_slope(o, lam[1], third(rw, lam), rw.block_mu[i] * n);
      T size_bar = select(done, fma(c.cx, g[1], c.cy * g2), zero), x = fma(c.Pxx, g[1], c.Pxy * g2),
        y = fma(c.Pxy, g[1], c.Pyy * g2);
      rb.block_mu[i] = fma(n, size_bar, rb.block_mu[i]);
      g[0] = fma(rw.block_mu[i], size_bar, g[0]);
      g[1] = select(done, x, g[1]);
      if (rw.width == 3) g[2] = select(done, y, g2);
    }
    T lo, hi;
    row_bounds(rw, i, before, lo, hi);
    auto low = done & (lam[0] < lo), high = done & (lam[0] > hi);
    row_bounds_adj(rw, i, before, select(low, g[0], zero), select(high, g[0], zero), rb, rb.lam);
    g[0] = select(low | high, zero, g[0]);
  }
}

// let_go: the block with the largest residual is left without impulse, in lanes where `astray`; rw.y is that of rw.lam. Returns 1 + this
// block, or 0; it is chosen like a feature
template <class T, class M> CS_OP T let_go(const Rows<T>& rw, const Options& o, M astray) {
  T most = T(0), which = T(0);
  CS_FOR (int i = 0; i < rw.count[0]; i++) {
    T res = block_residual(rw, o, i, rw.lam, rw.y);
    auto more = astray & (res > most);
    most = select(more, res, most), which = select(more, T(i + 1), which);
  }
  CS_FOR (int i = 0; i < rw.count[0]; i++)
    CS_FOR (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++) rw.lam[r] = select(which == T(i + 1), T(0), rw.lam[r]);
  return which;
}
// adjoint, in place on rb.lam
template <class T> CS_OP void let_go_adj(const Rows<T>& rw, T which, const RowBars<T>& rb) {
  for (int i = 0; i < rw.count[0]; i++)
    for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++) rb.lam[r] = select(which == T(i + 1), T(0), rb.lam[r]);
}

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
// no adjoint: copies.   that of the k-th thread
template <class T> CS_FN BlockSlope<T> of_rank(const BlockSlope<T>& x, int k, bool contact) {
  if constexpr (kTeam == 1) return x;
  BlockSlope<T> y;
  y.at = {of_rank(x.at.free, k), of_rank(x.at.x, k), of_rank(x.at.low, k), of_rank(x.at.high, k)};
  if (!contact) return y;
  const Cone<T>& c = x.z.c;
  y.z = {{of_rank(c.x, k), of_rank(c.y, k), of_rank(c.Pxx, k), of_rank(c.Pxy, k), of_rank(c.Pyy, k), of_rank(c.cx, k),
          of_rank(c.cy, k), of_rank(c.outside, k)},
         of_rank(x.z.size, k)};
  return y;
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
  if (kTeam > 1 && three) {
    share(n, [&](int j) {
      T a0 = A0[j], a1 = A1[j], a2 = A2[j];
      K0[j] = scale * a0, K1[j] = fma(xx, a1, xy * a2), K2[j] = fma(xy, a1, yy * a2);
    });
  } else {
    set_rows(K0, n, [&](int j) { return scale * A0[j]; });
    if (three) set_rows(K1, n, [&](int j) { return fma(xx, A1[j], xy * A2[j]); });
    if (three) set_rows(K2, n, [&](int j) { return fma(xy, A1[j], yy * A2[j]); });
  }
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

// no adjoint: integers.   which rows of a block are not the identity's
template <class T> CS_FN void mark_active(const Rows<T>& rw, int i, const BlockSlope<T>& x) {
  int r = rw.first_row[i];
  rw.mark[r] = any(x.at.free > T(0)) || rw.kind[i] == kTurnRow;
  if (rw.kind[i] != kContactRows) return;
  const Cone<T>& c = x.z.c;
  rw.mark[r + 1] = any(!((c.Pxx == T(0)) & (c.Pxy == T(0)) & (c.cx * x.z.size == T(0))));
  if (rw.width == 3) rw.mark[r + 2] = any(!((c.Pyy == T(0)) & (c.Pxy == T(0)) & (c.cy * x.z.size == T(0))));
}
// no adjoint: integers.   their numbers in place of the marks of n rows; returns how many there are
CS_FN int active_rows(int* mark, int n) {
  int found = 0;
  CS_SHORT (int first = 0; first < n; first += kTeam) {
    int k = first + team_rank(), before;
    bool active = k < n && mark[k];
    int more = how_many(active, before);
    if (active) mark[found + before] = k;
    found += more;
    team_wait();
  }
  return found;
}

// no adjoint: a derivative itself.   K of island s at rw.lam, rw.y, with A + sigma diag(A); F into rw.delta. Every thread of a team finds what one block
// needs, and which of its rows are active; then they fill the rows of these blocks together
template <class T> CS_OP void natural_slope(const Rows<T>& rw, const Options& o, int s, T sigma) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  CS_FOR (int i = first; i < last; i += kTeam) {
    BlockSlope<T> own;
    if (kTeam == 1 || i + team_rank() < last) own = block_slope(rw, o, i + team_rank());
    if (kTeam > 1 && i + team_rank() < last) mark_active(rw, i + team_rank(), own);
    for (int k = 0; k < kTeam && i + k < last; k++)
      slope_rows(rw, i + k, r0, n, rw.A + rw.island_A[s], rw.K + rw.island_A[s], of_rank(own, k, rw.kind[i + k] == kContactRows),
                 sigma);
  }
}

// no adjoint: a factorisation.   K of island s, right after natural_slope
template <class T> CS_FN void factor_slope(const Rows<T>& rw, int s) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  T* K = rw.K + rw.island_A[s];
  if constexpr (kTeam > 1) {
    int* active = rw.mark + r0;
    factor_together(K, n, active, active_rows(active, n));
  } else {
    lu_factor(K, n);
  }
}

// newton: rw.delta = -K^-1 F at rw.lam, rw.y
template <class T> CS_OP void newton(const Rows<T>& rw, const Options& o, T sigma) {
  int first, last, r0, n;
  CS_FOR (int s = 0; s < rw.count[2]; s++) {
    natural_slope(rw, o, s, sigma);
    factor_slope(rw, s);
    island_rows(rw, s, first, last, r0, n);
    lu_solve(rw.K + rw.island_A[s], n, rw.delta + r0);
    T* delta = rw.delta + r0;
    set_rows(delta, n, [&](int k) { return -delta[k]; });
  }
}
// adjoint of after = before + alpha delta, island s, in place on rb.lam; rw.lam, rw.y hold lambda before and its y; K is factored there.
// With z = alpha K^-T lam_bar the derivative is that of -z . (F + K delta), delta fixed. Its first-order part by lambda is
// -(K - S)^T z = S^T z - alpha lam_bar, S what sigma adds to K. alpha is zero in lanes that did not move; both are chosen like features
template <class T>
CS_OP void newton_adj(const Rows<T>& rw, const Options& o, int s, const T* after, T alpha, T sigma, const RowBars<T>& rb) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  auto moved = alpha > T(0);
  const T* A = rw.A + rw.island_A[s];
  T *A_bar = rb.A + rw.island_A[s], *z = rb.z + r0, *lam_bar = rb.lam + r0, zero = T(0), *full = rw.before + r0;
  T inv = select(moved, T(1) / select(moved, alpha, T(1)), zero);
  share(n, [&](int k) { z[k] = alpha * lam_bar[k], lam_bar[k] -= z[k]; });
  lu_solve_adj(rw.K + rw.island_A[s], n, z);
  share(n, [&](int k) {
    rw.delta[r0 + k] = inv * (after[r0 + k] - rw.lam[r0 + k]);
    full[k] = rw.lam[r0 + k] + rw.delta[r0 + k];
  });
  const T *lam = rw.lam + r0, *delta = rw.delta + r0;
  for (int i = first; i < last; i++) {
    int r = rw.first_row[i], k = r - r0;
    // rho (b + A (lambda + delta) + sigma A_kk delta_k) where free, lambda + delta - bound else
    Hold<T> hold = row_hold(rw, i);
    T f = hold.free, at = zero - f * rw.rho[r] * z[k], damped = sigma * delta[k];
    rb.b[r] += at;
    T y = fma(damped, A[k * n + k], rw.b[r]);
    for (int j = 0; j < n; j++) y = fma(A[k * n + j], full[j], y);
    share(n, [&](int j) { A_bar[k * n + j] = fma(at, full[j], A_bar[k * n + j]); });
    A_bar[k * n + k] = fma(at, damped, A_bar[k * n + k]);
    lam_bar[k] = fnma(at * sigma, A[k * n + k], lam_bar[k]);
    rb.rho[r] = fnma(f * z[k], y, rb.rho[r]);
    if (rw.kind[i] == kTurnRow) {
      // its bound is that at lambda + delta; what lambda does to it is a part of K
      int over = rw.first_row[rw.over[i]] - r0;
      rb.block_mu[i] += select(lam[over] > zero, full[over], zero) * (hold.high - hold.low) * z[k];
    } else {
      rb.lo[r] += hold.low * z[k], rb.hi[r] += hold.high * z[k];
    }
    if (rw.kind[i] != kContactRows) continue;
    // z . (Pi + P dp + c dr),  p = lam_t - rho y_t,  dp = delta_t - rho (A delta)_t,  r = mu lam_n,  dr = mu delta_n
    Slide<T> t = slide(rw, o, i);
    bool two = rw.width == 3;  // tangents
    T rho = rw.rho[r + 1], z1 = z[k + 1], z2 = third(rw, z + k), on = select(lam[k] > zero, T(1), zero);
    T A11 = A[(k + 1) * (n + 1)], A22 = two ? A[(k + 2) * (n + 1)] : zero, d1 = sigma * delta[k + 1],
      d2 = sigma * third(rw, delta + k);
    T Ad1 = fma(A11, d1, dense_dot(rw, s, A + (k + 1) * n, delta, n)),
      Ad2 = two ? fma(A22, d2, dense_dot(rw, s, A + (k + 2) * n, delta, n)) : zero;
    T p1 = fma(t.c.Pxx, z1, t.c.Pxy * z2), p2 = fma(t.c.Pxy, z1, t.c.Pyy * z2), c = fma(t.c.cx, z1, t.c.cy * z2);
    T q1 = zero, q2 = zero, r_bar = zero;
    cone_curvature(o, fnma(rho, rw.y[r + 1], lam[k + 1]), fnma(rho, third(rw, rw.y + r), third(rw, lam + k)),
                   rw.block_mu[i] * max(lam[k], zero), z1, z2, fnma(rho, Ad1, delta[k + 1]), fnma(rho, Ad2, third(rw, delta + k)),
                   t.size * delta[k], q1, q2, r_bar);
    auto bent = moved & (t.c.outside > T(0.5));
    q1 = select(bent, q1, zero), q2 = select(bent, q2, zero), r_bar = select(bent, r_bar, zero);
    T y1 = -rho * (p1 + q1), y2 = -rho * (p2 + q2);
    rb.b[r + 1] += y1;
    rb.rho[r + 1] -= fma(rw.y[r + 1], p1 + q1, Ad1 * p1);
    A_bar[(k + 1) * (n + 1)] = fnma(rho * p1, d1, A_bar[(k + 1) * (n + 1)]);
    lam_bar[k + 1] = fma(rho * p1 * sigma, A11, lam_bar[k + 1]);
    share(n, [&](int j) { A_bar[(k + 1) * n + j] += fnma(rho * p1, delta[j], y1 * lam[j]); });
    rb.block_mu[i] += on * fma(c, delta[k], (c + r_bar) * lam[k]);
    lam_bar[k + 1] += q1, lam_bar[k] = fma(t.size, r_bar, lam_bar[k]);
    if (!two) continue;
    rb.b[r + 2] += y2;
    rb.rho[r + 2] -= fma(rw.y[r + 2], p2 + q2, Ad2 * p2);
    share(n, [&](int j) {
      A_bar[(k + 2) * n + j] += fnma(rho * p2, delta[j], y2 * lam[j]);
      lam_bar[j] -= rho * fma(A[(k + 1) * n + j], q1, A[(k + 2) * n + j] * q2);
    });
    A_bar[(k + 2) * (n + 1)] = fnma(rho * p2, d2, A_bar[(k + 2) * (n + 1)]);
    lam_bar[k + 2] = q2 + fma(rho * p2 * sigma, A22, lam_bar[k + 2]);
  }
}

// no adjoint: the implicit adjoint itself.   valid where the residual is small. rb.z holds lam_bar: w = rho P z into rb.w, bars of bounds and mu added
template <class T> CS_OP void natural_adj(const Rows<T>& rw, const Options& o, int s, const RowBars<T>& rb) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  T *z = rb.z, zero = T(0);
  lu_solve_adj(rw.K + rw.island_A[s], n, z + r0);
  CS_FOR (int i = first; i < last; i++) {
    int r = rw.first_row[i];
    Hold<T> at = row_hold(rw, i);
    rb.w[r] = at.free * rw.rho[r] * z[r];
    row_bounds_adj(rw, i, rw.lam, at.low * z[r], at.high * z[r], rb, static_cast<T*>(nullptr));
    if (rw.kind[i] != kContactRows) continue;
    Slide<T> t = slide(rw, o, i);
    T z1 = z[r + 1], z2 = third(rw, z + r);
    rb.w[r + 1] = rw.rho[r + 1] * fma(t.c.Pxx, z1, t.c.Pxy * z2);
    if (rw.width == 3) rb.w[r + 2] = rw.rho[r + 1] * fma(t.c.Pxy, z1, t.c.Pyy * z2);
    rb.block_mu[i] = fma(max(rw.lam[r], zero), fma(t.c.cx, z1, t.c.cy * z2), rb.block_mu[i]);
  }
}

CS_END
