// polish: Newton steps on the natural map  F(lambda) = lambda - Pi(lambda - rho (A lambda + b)),  and its adjoint in both modes.
//
//   K = dF/dlambda = I - P + rho P A - C:  a free row is rho A, a row at its bound the identity, a sliding pair has P and c of its cone
// One Newton step solves the rows that are off their bounds directly. Where that does not help, a part of it may, or one that is damped as
// Levenberg and Marquardt do it: K of A + sigma diag(A), with which rows that contradict each other do not run away.
// K is factored without pivoting: its free part is a scaled positive definite matrix (a vanishing pivot is kept from being zero).
#pragma once
#include "relax.h"

CS_BEGIN

constexpr double kLeastPivot = 1e-12;

// no adjoint: linear.   y += A lam, island by island
template <class T> CS_OP void add_A(const Rows<T>& rw, const T* lam, T* y) {
  int first, last, r0, n;
  CS_FOR (int s = 0; s < rw.count[2]; s++) {
    island_rows(rw, s, first, last, r0, n);
    const T* A = rw.A + rw.island_A[s];
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
  CS_FOR (int i = 0; i < rw.count[0]; i++) worst = max(worst, block_residual(rw, o, i, lam, y));
  return worst;
}

// no adjoint: undone with K itself.   y = A lambda + b, and the largest natural residual
template <class T> CS_OP T natural_residual(const Rows<T>& rw, const Options& o) {
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

// no adjoint: a part of natural_slope.   the tangent of a planar contact: row k + 1 of K
template <class T> CS_FN void flat_slope(const Rows<T>& rw, int r, int k, int n, const T* A, T* K, const Slide<T>& z, T sigma) {
  const T* A1 = A + (k + 1) * n;
  T *K1 = K + (k + 1) * n, scale = rw.rho[r + 1] * z.c.Pxx;
  set_rows(K1, n, [&](int j) { return scale * A1[j]; });
  K1[k] -= z.c.cx * z.size;
  K1[k + 1] += fma(sigma * scale, A1[k + 1], T(1) - z.c.Pxx);
  rw.delta[r + 1] = rw.lam[r + 1] - z.c.x;
}

// no adjoint: a derivative itself.   K of island s at rw.lam, rw.y, with A + sigma diag(A); F into rw.delta
template <class T> CS_OP void natural_slope(const Rows<T>& rw, const Options& o, int s, T sigma) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  const T* A = rw.A + rw.island_A[s];
  T *K = rw.K + rw.island_A[s], one = T(1);
  CS_FOR (int i = first; i < last; i++) {
    int r = rw.first_row[i], k = r - r0;
    Hold<T> at = row_hold(rw, i);
    T scale = at.free * rw.rho[r];
    set_rows(K + k * n, n, [&](int j) { return scale * A[k * n + j]; });
    K[k * n + k] += fma(sigma * scale, A[k * n + k], one - at.free);
    rw.delta[r] = rw.lam[r] - at.x;
    if (rw.kind[i] == kTurnRow) {
      int over = rw.first_row[rw.over[i]];
      K[k * n + over - r0] -= select(rw.lam[over] > T(0), rw.block_mu[i] * (at.high - at.low), T(0));
    }
    if (rw.kind[i] != kContactRows) continue;
    Slide<T> z = slide(rw, o, i);
    if (rw.width == 2) {
      flat_slope(rw, r, k, n, A, K, z, sigma);
      continue;
    }
    T xx = rw.rho[r + 1] * z.c.Pxx, xy = rw.rho[r + 1] * z.c.Pxy, yy = rw.rho[r + 1] * z.c.Pyy;
    const T *A1 = A + (k + 1) * n, *A2 = A1 + n;
    T *K1 = K + (k + 1) * n, *K2 = K1 + n;
    set_rows(K1, n, [&](int j) { return fma(xx, A1[j], xy * A2[j]); });
    set_rows(K2, n, [&](int j) { return fma(xy, A1[j], yy * A2[j]); });
    K1[k] -= z.c.cx * z.size, K2[k] -= z.c.cy * z.size;
    T s1 = sigma * A1[k + 1], s2 = sigma * A2[k + 2];
    K1[k + 1] = fma(xx, s1, K1[k + 1]), K1[k + 2] = fma(xy, s2, K1[k + 2]);
    K2[k + 1] = fma(xy, s1, K2[k + 1]), K2[k + 2] = fma(yy, s2, K2[k + 2]);
    K1[k + 1] += one - z.c.Pxx, K1[k + 2] -= z.c.Pxy, K2[k + 1] -= z.c.Pxy, K2[k + 2] += one - z.c.Pyy;
    rw.delta[r + 1] = rw.lam[r + 1] - z.c.x, rw.delta[r + 2] = rw.lam[r + 2] - z.c.y;
  }
}

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
// no adjoint: a part of lu_factor.   its inverse in the place of a number on the diagonal
template <class T> CS_FN T pivot(T& K) {
  T least = T(ElementOf<T>(kLeastPivot)), p = K;
  return K = T(1) / select(abs(p) < least, least, p);
}

// no adjoint: a factorisation.   K = L U in place, U's diagonal inverted. Three rows are eliminated at a time, mostly those of a contact: every number is read
// and written once for them, and not at all where they are at their bounds, rows of the identity, which change no others
template <class T> CS_OP void lu_factor(T* K, int n) {
  for (int k = 0; k < n; k += 3) {
    T *U0 = K + k * n, *U1 = U0 + n, *U2 = U1 + n, d0 = pivot(U0[k]), d1 = T(0), d2 = T(0);
    int below = k + 3, from = below;
    if (k + 1 < n) {
      minus(U1 + k + 1, U1[k] *= d0, U0 + k + 1, n - k - 1);
      d1 = pivot(U1[k + 1]);
    }
    if (k + 2 < n) {
      minus(U2 + k + 1, U2[k] *= d0, U0 + k + 1, n - k - 1), minus(U2 + k + 2, U2[k + 1] *= d1, U1 + k + 2, n - k - 2);
      d2 = pivot(U2[k + 2]);
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
// lu_solve: x = K^-1 x, column by column: each x is done as soon as the one before it is
template <class T> CS_OP void lu_solve(const T* K, int n, T* x) {
  CS_FOR (int i = 0; i < n; i++) minus(x + i + 1, x[i], K + (i + 1) * n + i, n - i - 1, n);
  CS_FOR (int i = n - 1; i >= 0; i--) minus(x, x[i] *= K[i * n + i], K + i, i, n);
}
// adjoint: x = K^-T x
template <class T> CS_OP void lu_solve_adj(const T* K, int n, T* x) {
  CS_FOR (int i = 0; i < n; i++) minus(x + i + 1, x[i] *= K[i * n + i], K + i * n + i + 1, n - i - 1);
  CS_FOR (int i = n - 1; i > 0; i--) minus(x, x[i], K + i * n, i);
}

// newton: rw.delta = -K^-1 F at rw.lam, rw.y
template <class T> CS_OP void newton(const Rows<T>& rw, const Options& o, T sigma) {
  int first, last, r0, n;
  CS_FOR (int s = 0; s < rw.count[2]; s++) {
    natural_slope(rw, o, s, sigma);
    island_rows(rw, s, first, last, r0, n);
    lu_factor(rw.K + rw.island_A[s], n);
    lu_solve(rw.K + rw.island_A[s], n, rw.delta + r0);
    CS_FOR (int k = 0; k < n; k++) rw.delta[r0 + k] = -rw.delta[r0 + k];
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
  for (int k = 0; k < n; k++) z[k] = alpha * lam_bar[k], lam_bar[k] -= z[k];
  lu_solve_adj(rw.K + rw.island_A[s], n, z);
  for (int k = 0; k < n; k++) {
    rw.delta[r0 + k] = inv * (after[r0 + k] - rw.lam[r0 + k]);
    full[k] = rw.lam[r0 + k] + rw.delta[r0 + k];
  }
  const T *lam = rw.lam + r0, *delta = rw.delta + r0;
  for (int i = first; i < last; i++) {
    int r = rw.first_row[i], k = r - r0;
    // rho (b + A (lambda + delta) + sigma A_kk delta_k) where free, lambda + delta - bound else
    Hold<T> hold = row_hold(rw, i);
    T f = hold.free, at = zero - f * rw.rho[r] * z[k], damped = sigma * delta[k];
    rb.b[r] += at;
    T y = fma(damped, A[k * n + k], rw.b[r]);
    for (int j = 0; j < n; j++) {
      A_bar[k * n + j] = fma(at, full[j], A_bar[k * n + j]);
      y = fma(A[k * n + j], full[j], y);
    }
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
    for (int j = 0; j < n; j++) A_bar[(k + 1) * n + j] += fnma(rho * p1, delta[j], y1 * lam[j]);
    rb.block_mu[i] += on * fma(c, delta[k], (c + r_bar) * lam[k]);
    lam_bar[k + 1] += q1, lam_bar[k] = fma(t.size, r_bar, lam_bar[k]);
    if (!two) continue;
    rb.b[r + 2] += y2;
    rb.rho[r + 2] -= fma(rw.y[r + 2], p2 + q2, Ad2 * p2);
    for (int j = 0; j < n; j++) {
      A_bar[(k + 2) * n + j] += fnma(rho * p2, delta[j], y2 * lam[j]);
      lam_bar[j] -= rho * fma(A[(k + 1) * n + j], q1, A[(k + 2) * n + j] * q2);
    }
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
