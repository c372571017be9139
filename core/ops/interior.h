// interior: lambda of all rows by a primal-dual interior point (de Avila Belbute-Peres et al. 2018, section 3; Mehrotra
// 1992), and its adjoint.
//
//   Newton steps on the pairs of ops/interior_pairs.h, tau -> 0, until the natural residual of lambda is under the tolerance.
//   Every island is solved on its own; a lane that is done is frozen.
// With friction the problem is not monotone: now and then the path to tau = 0 turns back, and the steps stall. Then another
// path is tried, on which friction comes later or earlier (friction_weight). At the end of a path come Newton steps on the
// natural map (ops/polish.h), kept only while they lower the residual: one where lambda is solved, which puts rows onto their
// bounds and gives redundant rows the share that their softness asks for; more where it is close, and only rounding, or what
// softness decides, is in the way.   docs/maths/contact
#pragma once
#include "interior_pairs.h"

CS_BEGIN

// Weight of friction's pairs on each path (measured on heaps of boxes)
constexpr int kPaths = 4;
// no adjoint: constants
CS_FN double friction_weight(int path) { return path == 0 ? 10 : path == 1 ? 100 : path == 2 ? 1 : 1000; }
// A path is left after so many steps in a row that are shorter than this part of themselves
constexpr double kShortStep = 0.05, kPatience = 3;
// Part of the way to the nearest boundary that a step goes, at least and at most
constexpr double kLeastReach = 0.9, kMostReach = 0.9995;
// Bounds beyond this are none; rows whose bounds are closer than this part of the tolerance stay put
constexpr double kNoBound = 1e20, kPinned = 1e-3;
// Newton steps on the natural map at most; their damping, as in ops/rounds.h; the part of the tolerance below which nothing
// is left
constexpr int kLastSteps = 12;
constexpr double kLastDamping = 1e-2, kLastMore = 10, kLastNone = 1e-4, kLastWell = 1e-3;

// no adjoint: undone with K itself.   natural residual of island s, from lam and its y; enormous where a number is not finite
template <class T> CS_OP T island_residual(const Rows<T>& rw, const Options& o, int s, const T* lam, const T* y) {
  int first, last, r0, n, blocks;
  island_rows(rw, s, first, last, r0, n);
  T none = T(0);
  for (int k = r0; k < r0 + n; k++) none += y[k] - y[k];
  Rows<T> part = rw;
  blocks = last - first;
  part.count = &blocks, part.kind += first, part.first_row += first, part.block_mu += first;
  return select(none == T(0), residual_of(part, o, lam, y), T(ElementOf<T>(kUnbounded)));
}

// no adjoint: interior_adj.   lambda of island s without any effort: zero, or the bound next to it. Leaves its y, and pairs
// that say which rows are free
template <class T> CS_OP void interior_rest(const Rows<T>& rw, const Options& o, int s) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  const Interior<T>& ip = rw.ip;
  T zero = T(0), one = T(1);
  for (int k = r0; k < r0 + n; k++) rw.lam[k] = zero;
  for (int i = first; i < last; i++) rw.lam[rw.first_row[i]] = min(max(zero, rw.lo[rw.first_row[i]]), rw.hi[rw.first_row[i]]);
  island_velocity(rw, s, rw.lam, rw.b, rw.y);
  for (int i = first; i < last; i++) {
    int at = i * interior_pairs(o);
    ip.z[at] = row_free(rw, rw.first_row[i]), ip.z[at + 1] = one, ip.s[at] = ip.s[at + 1] = zero;
    for (int p = at; p < interior_end(rw, o, i); p++) ip.weight[p] = zero;
    for (int p = at + 2; p < interior_end(rw, o, i); p++) ip.z[p] = zero, ip.s[p] = one;
  }
}

// no adjoint: a part of the iteration.   where island s begins, in lanes `open`: on the central path, with impulses that can
// change the velocity of each row by v; weight: of friction
template <class T, class M> CS_OP void interior_start(const Rows<T>& rw, const Options& o, int s, M open, T v, T weight) {
  using E = ElementOf<T>;
  const Interior<T>& ip = rw.ip;
  T zero = T(0), one = T(1), tau = v * v;
  auto put = [&](T& to, T x) { to = select(open, x, to); };
  auto pair = [&](int p, auto some, T z, T none_z, T none_s, T w) {
    put(ip.z[p], select(some, z, none_z)), put(ip.s[p], select(some, w * tau / select(some, z, one), none_s));
    put(ip.weight[p], select(some, w, zero));
  };
  for (int i = rw.island_block[s]; i < rw.island_block[s + 1]; i++) {
    int r = rw.first_row[i], at = i * interior_pairs(o);
    T lo = rw.lo[r], hi = rw.hi[r], rho = rw.rho[r], wide = hi - lo, off = min(rho * v, T(0.5) * wide), far = T(E(kNoBound));
    auto valid = rw.valid[i] > T(0.5);
    auto pinned = !(valid & (wide > rho * T(E(kPinned * o.tolerance))));
    auto low = (abs(lo) < far) & !pinned, high = (abs(hi) < far) & !pinned;
    T lam = select(low, max(zero, lo + off), zero);
    lam = select(high, min(lam, hi - off), lam), lam = select(pinned, select(valid, lo, zero), lam);
    put(rw.lam[r], lam);
    pair(at, low, lam - lo, select(pinned, zero, one), zero, rho), pair(at + 1, high, hi - lam, one, zero, rho);
    if (rw.kind[i] != kContactRows) continue;
    auto rough = valid & (rw.block_mu[i] > zero);
    T beta = rw.block_mu[i] * lam * T(E(1.0 / (o.sides + 1))), w = weight * rw.rho[r + 1];
    pair(at + 2, rough, w * tau / select(rough, beta, one), zero, one, w);
    for (int k = 0; k < o.sides; k++) pair(at + kFirstCorner + k, rough, beta, zero, one, w);
    for (int j = 1; j < rw.width; j++) put(rw.lam[r + j], zero);
  }
}

// no adjoint: a part of the iteration.   one step of island s in lanes `live`, whose y is known: predictor, corrector
// (Mehrotra 1992). Returns the part of it that was taken
template <class T, class M> CS_OP T interior_step(const Rows<T>& rw, const Options& o, int s, M live) {
  using E = ElementOf<T>;
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  const Interior<T>& ip = rw.ip;
  T zero = T(0), one = T(1), least = T(E(kLeastPair));
  interior_slope(rw, o, s);
  lu_factor(rw.K + rw.island_A[s], n);
  for (int p = first * interior_pairs(o); p < last * interior_pairs(o); p++) ip.cross[p] = zero;
  interior_steps(rw, o, s, zero);
  T tau = max(interior_tau(rw, o, s, zero), least),
    ratio = min(interior_tau(rw, o, s, min(interior_reach(rw, o, s), one)) / tau, one);
  T centre = ratio * ratio * ratio;
  for (int p = first * interior_pairs(o); p < last * interior_pairs(o); p++) ip.cross[p] = ip.dz[p] * ip.ds[p];
  interior_steps(rw, o, s, centre * tau);
  T alpha = min(min(max(T(E(kLeastReach)), one - centre), T(E(kMostReach))) * interior_reach(rw, o, s), one), none = zero;
  for (int k = r0; k < r0 + n; k++) none += rw.delta[k] - rw.delta[k];
  for (int i = first; i < last; i++)
    for (int p = i * interior_pairs(o); p < interior_end(rw, o, i); p++) none += ip.dz[p] - ip.dz[p] + (ip.ds[p] - ip.ds[p]);
  // a step that is not finite is none
  auto moved = live & (none == zero);
  for (int k = r0; k < r0 + n; k++) rw.lam[k] = select(moved, fma(alpha, rw.delta[k], rw.lam[k]), rw.lam[k]);
  for (int i = first; i < last; i++)
    for (int p = i * interior_pairs(o); p < interior_end(rw, o, i); p++) {
      auto some = moved & (ip.weight[p] > zero);
      ip.z[p] = select(some, max(fma(alpha, ip.dz[p], ip.z[p]), least), ip.z[p]);
      ip.s[p] = select(some, max(fma(alpha, ip.ds[p], ip.s[p]), least), ip.s[p]);
    }
  return select(none == zero, alpha, zero);
}

// no adjoint: interior_adj.   Newton steps on the natural map of island s from rw.before, the best lambda so far, in lanes
// `open`; best: its residual
template <class T, class M> CS_OP void interior_finish(const Rows<T>& rw, const Options& o, int s, M open, T& best) {
  using E = ElementOf<T>;
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  T tol = T(E(o.tolerance)), zero = T(0), one = T(1), sigma = zero, on = select(open, one, zero), *K = rw.K + rw.island_A[s];
  for (int p = 0; p < kLastSteps && any(on > zero); p++) {
    for (int k = r0; k < r0 + n; k++) rw.lam[k] = rw.before[k];
    island_velocity(rw, s, rw.lam, rw.b, rw.y);
    natural_slope(rw, o, s, sigma);
    lu_factor(K, n);
    lu_solve(K, n, rw.delta + r0);
    // the whole step; where lambda is not solved yet, else a part of it
    T was = best, search = on, solved = select(best > tol, zero, one);
    for (double part = 1; part > 0.05 && any(search > zero); part *= 0.3) {
      for (int k = r0; k < r0 + n; k++) rw.lam[k] = fnma(T(E(part)), rw.delta[k], rw.before[k]);
      island_velocity(rw, s, rw.lam, rw.b, rw.y);
      T res = island_residual(rw, o, s, rw.lam, rw.y);
      auto better = (search > zero) & (res < best);
      for (int k = r0; k < r0 + n; k++) rw.before[k] = select(better, rw.lam[k], rw.before[k]);
      best = select(better, res, best), search = select(better | (solved > zero), zero, search);
    }
    on = select((solved > zero) | (best < T(E(kLastWell)) * tol), zero, on);
    sigma = select(best < was, sigma * T(E(1 / kLastMore)), max(T(E(kLastDamping)), sigma * T(E(kLastMore))));
    sigma = select(sigma < T(E(kLastNone)), zero, sigma);
  }
}

// no adjoint: interior_adj.   one path of island s in lanes `open`, from velocities v and with this weight of friction; what
// is better than the best lambda so far goes to rw.before
template <class T, class M>
CS_OP void interior_path(const Rows<T>& rw, const Options& o, int s, M open, T v, T weight, T& best, T& steps) {
  using E = ElementOf<T>;
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  T zero = T(0), one = T(1), stalled = zero, running = select(open, one, zero);
  interior_start(rw, o, s, open, v, weight);
  for (;;) {
    island_velocity(rw, s, rw.lam, rw.b, rw.y);
    T res = island_residual(rw, o, s, rw.lam, rw.y);
    auto better = (running > zero) & (res < best);
    for (int k = r0; k < r0 + n; k++) rw.before[k] = select(better, rw.lam[k], rw.before[k]);
    best = select(better, res, best);
    auto live = (running > zero) & (best > T(E(o.tolerance))) & (steps < T(E(o.iterations))) & (stalled < T(E(kPatience)));
    if (!any(live)) return;
    running = select(live, one, zero);
    T alpha = interior_step(rw, o, s, live);
    steps += running, stalled = select(alpha < T(E(kShortStep)), stalled + one, zero);
  }
}

// no adjoint: interior_adj.   lambda of island s; best: its residual; steps: that it took
template <class T> CS_OP void interior_island(const Rows<T>& rw, const Options& o, int s, T& best, T& steps) {
  using E = ElementOf<T>;
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  T tol = T(E(o.tolerance)), v = tol;
  interior_rest(rw, o, s);
  best = island_residual(rw, o, s, rw.lam, rw.y), steps = T(0);
  for (int k = r0; k < r0 + n; k++) v = max(v, abs(rw.y[k])), rw.before[k] = rw.lam[k];
  for (int path = 0; path < kPaths; path++) {
    auto open = (best > tol) & (steps < T(E(o.iterations)));
    if (!any(open)) break;
    interior_path(rw, o, s, open, v, T(E(friction_weight(path))), best, steps);
    interior_finish(rw, o, s, open & (best * best < tol * v), best);
  }
  for (int k = r0; k < r0 + n; k++) rw.lam[k] = rw.before[k];
}

// interior: lambda of all rows; status: residual, steps, solved
template <class T> CS_OP void interior(const Rows<T>& rw, const Options& o) {
  T worst = T(0), most = T(0), best, steps;
  for (int s = 0; s < rw.count[2]; s++) {
    interior_island(rw, o, s, best, steps);
    worst = max(worst, best), most = max(most, steps);
  }
  rw.status->residual = worst, rw.status->sweeps = most;
  rw.status->solved = select(worst > T(ElementOf<T>(o.tolerance)), T(0), T(1));
}
// adjoint: implicit, the pairs' equations differentiated where they ended (eq. 3 of the paper, with all else eliminated).
// rb.z holds lam_bar of island s and becomes z = K^-T lam_bar, K of interior_slope, factored: w = (N W)^T z into rb.w, bars
// of bounds and mu added. rw.y: that of lambda
template <class T> CS_OP void interior_adj(const Rows<T>& rw, const Options& o, int s, const RowBars<T>& rb) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  T *z = rb.z, zero = T(0);
  lu_solve_adj(rw.K + rw.island_A[s], n, z + r0);
  for (int i = first; i < last; i++) {
    int r = rw.first_row[i];
    RowSlope<T> f = interior_row(rw, o, i);
    rb.w[r] = f.free * rw.rho[r] * z[r];
    // a row that stays put moves with the bound that holds it
    auto pinned = !(f.free > zero), high = rw.y[r] < zero;
    rb.lo[r] += select(pinned, select(high, zero, z[r]), rb.w[r] * f.lo);
    rb.hi[r] += select(pinned, select(high, z[r], zero), rb.w[r] * f.hi);
    if (rw.kind[i] != kContactRows) continue;
    Section<T> c = rw.ip.section[i];
    T z1 = z[r + 1], z2 = third(rw, z + r), rho = rw.rho[r + 1], n1 = fma(c.Nxx, z1, c.Nxy * z2), n2 = fma(c.Nxy, z1, c.Nyy * z2);
    rb.w[r + 1] = rho * (z1 - n1);
    if (rw.width == 3) rb.w[r + 2] = rho * (z2 - n2);
    rb.block_mu[i] = fma(max(rw.lam[r], zero) * c.part, fma(c.x, n1, c.y * n2), rb.block_mu[i]);
  }
}

CS_END
