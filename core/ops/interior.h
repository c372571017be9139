// interior: lambda of all rows by a primal-dual interior point (de Avila Belbute-Peres et al. 2018, section 3; Mehrotra
// 1992).
//
//   Newton steps on the pairs of ops/interior_pairs.h, tau -> 0, until the natural residual of lambda is under the tolerance.
//   A lane that is done is frozen.
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

// no adjoint: undone with K itself.   natural residual of rw.lam; enormous where a number is not finite. Leaves y
template <class T> CS_OP T lambda_residual(const Rows<T>& rw, const Options& o) {
  T none = T(0), res = natural_residual(rw, o);
  for (int k = 0; k < rw.count[1]; k++) none += rw.y[k] - rw.y[k];
  return select(none == T(0), res, T(ElementOf<T>(kUnbounded)));
}

// no adjoint: see interior.   lambda of island s without any effort: zero, or the bound next to it. Leaves its y, and pairs
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
    ip.z[at] = row_hold(rw, i).free, ip.z[at + 1] = one, ip.s[at] = ip.s[at + 1] = zero;
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

// no adjoint: a part of the iteration.   one step in lanes `live`, whose y is known: predictor, corrector (Mehrotra 1992). Returns the part of it that was
// taken. All islands of a lane take the same part: which rows share an island depends on lane-mates
template <class T, class M> CS_OP T interior_step(const Rows<T>& rw, const Options& o, M live) {
  using E = ElementOf<T>;
  const Interior<T>& ip = rw.ip;
  int pairs = rw.count[0] * interior_pairs(o), rows = rw.count[1];
  T zero = T(0), one = T(1), least = T(E(kLeastPair));
  for (int p = 0; p < pairs; p++) ip.cross[p] = zero;
  for (int s = 0; s < rw.count[2]; s++) {
    int first, last, r0, n;
    island_rows(rw, s, first, last, r0, n);
    interior_slope(rw, o, s);
    lu_factor(rw.K + rw.island_A[s], n);
    interior_steps(rw, o, s, zero);
  }
  T tau = max(interior_tau(rw, o, zero), least), ratio = min(interior_tau(rw, o, min(interior_reach(rw, o), one)) / tau, one);
  T centre = ratio * ratio * ratio, none = zero;
  for (int i = 0; i < rw.count[0]; i++)
    for (int p = i * interior_pairs(o); p < interior_end(rw, o, i); p++) ip.cross[p] = ip.dz[p] * ip.ds[p];
  for (int s = 0; s < rw.count[2]; s++) interior_steps(rw, o, s, centre * tau);
  T alpha = min(min(max(T(E(kLeastReach)), one - centre), T(E(kMostReach))) * interior_reach(rw, o), one);
  for (int k = 0; k < rows; k++) none += rw.delta[k] - rw.delta[k];
  for (int i = 0; i < rw.count[0]; i++)
    for (int p = i * interior_pairs(o); p < interior_end(rw, o, i); p++) none += ip.dz[p] - ip.dz[p] + (ip.ds[p] - ip.ds[p]);
  // a step that is not finite is none
  auto moved = live & (none == zero);
  for (int k = 0; k < rows; k++) rw.lam[k] = select(moved, fma(alpha, rw.delta[k], rw.lam[k]), rw.lam[k]);
  for (int i = 0; i < rw.count[0]; i++)
    for (int p = i * interior_pairs(o); p < interior_end(rw, o, i); p++) {
      auto some = moved & (ip.weight[p] > zero);
      ip.z[p] = select(some, max(fma(alpha, ip.dz[p], ip.z[p]), least), ip.z[p]);
      ip.s[p] = select(some, max(fma(alpha, ip.ds[p], ip.s[p]), least), ip.s[p]);
    }
  return select(none == zero, alpha, zero);
}

// no adjoint: see interior.   Newton steps on the natural map from rw.before, the best lambda so far, in lanes `open`; best: its residual
template <class T, class M> CS_OP void interior_finish(const Rows<T>& rw, const Options& o, M open, T& best) {
  using E = ElementOf<T>;
  int rows = rw.count[1];
  T tol = T(E(o.tolerance)), zero = T(0), one = T(1), sigma = zero, on = select(open, one, zero);
  for (int p = 0; p < kLastSteps && any(on > zero); p++) {
    for (int k = 0; k < rows; k++) rw.lam[k] = rw.before[k];
    lambda_residual(rw, o);
    newton(rw, o, sigma);
    // the whole step; where lambda is not solved yet, else a part of it
    T was = best, search = on, solved = select(best > tol, zero, one);
    for (double part = 1; part > 0.05 && any(search > zero); part *= 0.3) {
      for (int k = 0; k < rows; k++) rw.lam[k] = fma(T(E(part)), rw.delta[k], rw.before[k]);
      T res = lambda_residual(rw, o);
      auto better = (search > zero) & (res < best);
      for (int k = 0; k < rows; k++) rw.before[k] = select(better, rw.lam[k], rw.before[k]);
      best = select(better, res, best), search = select(better | (solved > zero), zero, search);
    }
    on = select((solved > zero) | (best < T(E(kLastWell)) * tol), zero, on);
    sigma = select(best < was, sigma * T(E(1 / kLastMore)), max(T(E(kLastDamping)), sigma * T(E(kLastMore))));
    sigma = select(sigma < T(E(kLastNone)), zero, sigma);
  }
}

// no adjoint: see interior.   one path in lanes `open`, from velocities v and with this weight of friction; what is better than the best lambda so far goes
// to rw.before
template <class T, class M>
CS_OP void interior_path(const Rows<T>& rw, const Options& o, M open, T v, T weight, T& best, T& steps) {
  using E = ElementOf<T>;
  T zero = T(0), one = T(1), stalled = zero, running = select(open, one, zero);
  for (int s = 0; s < rw.count[2]; s++) interior_start(rw, o, s, open, v, weight);
  for (;;) {
    T res = lambda_residual(rw, o);
    auto better = (running > zero) & (res < best);
    for (int k = 0; k < rw.count[1]; k++) rw.before[k] = select(better, rw.lam[k], rw.before[k]);
    best = select(better, res, best);
    auto live = (running > zero) & (best > T(E(o.tolerance))) & (steps < T(E(o.iterations))) & (stalled < T(E(kPatience)));
    if (!any(live)) return;
    running = select(live, one, zero);
    T alpha = interior_step(rw, o, live);
    steps += running, stalled = select(alpha < T(E(kShortStep)), stalled + one, zero);
  }
}

// no adjoint: that of the conditions it solves, which the natural map states as well (natural_adj of ops/polish.h): eq. 3 of the paper with the pairs
// eliminated.   lambda of all rows; status: residual, steps, solved
template <class T> CS_OP void interior(const Rows<T>& rw, const Options& o) {
  using E = ElementOf<T>;
  T tol = T(E(o.tolerance)), v = tol, steps = T(0);
  interior_order(rw);
  for (int s = 0; s < rw.count[2]; s++) interior_rest(rw, o, s);
  T best = lambda_residual(rw, o);
  for (int k = 0; k < rw.count[1]; k++) v = max(v, abs(rw.y[k])), rw.before[k] = rw.lam[k];
  for (int path = 0; path < kPaths; path++) {
    auto open = (best > tol) & (steps < T(E(o.iterations)));
    if (!any(open)) break;
    interior_path(rw, o, open, v, T(E(friction_weight(path))), best, steps);
    interior_finish(rw, o, open & (best * best < tol * v), best);
  }
  for (int k = 0; k < rw.count[1]; k++) rw.lam[k] = rw.before[k];
  rw.status->residual = best, rw.status->sweeps = steps;
  rw.status->solved = select(best > tol, T(0), T(1));
}

CS_END
