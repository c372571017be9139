// polish: Newton steps on the natural map  F(lambda) = lambda - Pi(lambda - rho (A lambda + b)),  and its adjoint in both modes.
//
//   K = dF/dlambda = I - P + rho P A - C:  a free row is rho A, a row at its bound the identity, a sliding pair has P and c of its cone
// One Newton step solves the rows that are off their bounds directly. Where that does not help, a part of it may, or one that is damped as
// Levenberg and Marquardt do it: K of A + sigma diag(A), with which rows that contradict each other do not run away.
#pragma once
#include "eliminate.h"
#include "slope.h"

CS_BEGIN

// no adjoint: linear.   f(k, (M x)_k) for every row k of island s; M is symmetric.   Threads of a team take a row each, or two, and read neighbours: they go along
// columns. Of a second row that there is not they read what comes next, and forget it
template <class T, class F> CS_FN void island_times(const Rows<T>& rw, int s, const T* M, const T* x, int n, const F& f) {
  if constexpr (kTeam > 1) {
    int singles = rw.island_singles[s];
    auto rows = [&](int k, auto both) {
      const T *a = M + (k < n ? k : n - 1), *by = x;
      DenseSum<T> sum[2];
      // columns from j to before `end`, the v-th of them to the sum chain(v); they are read before any is added
      auto columns = [&](int j, int end, const auto& chain) {
        constexpr int strip = 12;
        CS_SHORT (; j < end; j += strip) {
          T there[strip], m[strip][2];
          CS_STRIP (int v = 0; v < strip; v++) {
            int c = j + v < end ? v : 0;
            there[v] = by[c];
            CS_STRIP (int u = 0; u < decltype(both)::n; u++) m[v][u] = a[c * n + u * kTeam];
          }
          CS_STRIP (int v = 0; v < strip; v++)
            if (j + v < end)
              CS_STRIP (int u = 0; u < decltype(both)::n; u++) sum[u].*chain(v) = fma(m[v][u], there[v], sum[u].*chain(v));
          a += strip * n, by += strip;
        }
        a += (end - j) * n, by += end - j;
      };
      using Sum = DenseSum<T>;
      columns(0, singles, [](int) { return &Sum::s; });
      if (rw.width == 2)
        columns(singles, n, [](int v) { return v % 2 ? &Sum::s1 : &Sum::s0; });
      else
        columns(singles, n, [](int v) { return v % 3 == 2 ? &Sum::s2 : v % 3 ? &Sum::s1 : &Sum::s0; });
      CS_STRIP (int v = 0; v < decltype(both)::n; v++)
        if (k + v * kTeam < n) f(k + v * kTeam, sum[v].all(rw.width));
    };
    team_wait();
    CS_SHORT (int first = 0; first < n; first += 2 * kTeam) {
      if (first + kTeam < n)
        rows(first + team_rank(), Size<2>{});
      else
        rows(first + team_rank(), Size<1>{});
    }
    team_wait();
    return;
  }
  int k = 0;
#ifndef CS_FIXED_ROWS
  for (; k + 3 <= n; k += 3) {
    Vec3<T> by = dense_dots(rw, s, M + k * n, x, n);
    f(k, by.x), f(k + 1, by.y), f(k + 2, by.z);
  }
#endif
  CS_FOR (; k < n; k++) f(k, dense_dot(rw, s, M + k * n, x, n));
}

// no adjoint: linear.   y += A lam, island by island
template <class T> CS_OP void add_A(const Rows<T>& rw, const T* lam, T* y) {
  if constexpr (kMayHold<T>)
    if (rw.is_held) return held_add(rw, lam, y);
  int first, last, r0, n;
  CS_FOR (int s = 0; s < rw.count[2]; s++) {
    island_rows(rw, s, first, last, r0, n);
    island_times(rw, s, rw.A + rw.island_A[s], lam + r0, n, [&](int k, T x) { y[r0 + k] += x; });
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

// no adjoint: linear.   y = A lambda + b
template <class T> CS_FN void natural_velocity(const Rows<T>& rw) {
  set_rows(rw.y, rw.count[1], [&](int r) { return rw.b[r]; });
  add_A(rw, rw.lam, rw.y);
}
// no adjoint: undone with K itself.   the same, and the largest natural residual
template <class T> CS_APART T natural_residual(const Rows<T>& rw, const Options& o) {
  natural_velocity(rw);
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

// newton: rw.delta = -K^-1 F at rw.lam, rw.y
template <class T> CS_OP void newton(const Rows<T>& rw, const Options& o, T sigma) {
  int first, last, r0, n;
  CS_FOR (int s = 0; s < rw.count[2]; s++) {
    island_rows(rw, s, first, last, r0, n);
    T* delta = rw.delta + r0;
    if constexpr (kTeam > 1) {
      Together<T> a = slope_together(rw, o, s, sigma, false);
      if (rw.is_held)
        eliminate(rw, a, delta);
      else
        factor_together(a), solve_together(a, delta);
    } else {
      natural_slope(rw, o, s, sigma);
      slope_solve(rw, s, delta);
    }
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
  slope_solve_adj(rw, s, z);
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
  slope_solve_adj(rw, s, z + r0);
  share_rows(last - first, [&](int k) {
    int i = first + k, r = rw.first_row[i];
    Hold<T> at = row_hold(rw, i);
    rb.w[r] = at.free * rw.rho[r] * z[r];
    row_bounds_adj(rw, i, rw.lam, at.low * z[r], at.high * z[r], rb, static_cast<T*>(nullptr));
    if (rw.kind[i] != kContactRows) return;
    Slide<T> t = slide(rw, o, i);
    T z1 = z[r + 1], z2 = third(rw, z + r);
    rb.w[r + 1] = rw.rho[r + 1] * fma(t.c.Pxx, z1, t.c.Pxy * z2);
    if (rw.width == 3) rb.w[r + 2] = rw.rho[r + 1] * fma(t.c.Pxy, z1, t.c.Pyy * z2);
    rb.block_mu[i] = fma(max(rw.lam[r], zero), fma(t.c.cx, z1, t.c.cy * z2), rb.block_mu[i]);
  });
}

CS_END
