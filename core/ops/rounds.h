// rounds: lambda of all rows that are not eliminated, from A and b, and the adjoint of that in both modes (docs/maths/contact).
//
//   rounds of kRound sweeps and up to `polish` Newton steps, until the natural residual of every lane is under the tolerance.
//   A lane that is solved is frozen. Where a Newton step does not lower the residual a part of it is tried (of robots: where it rises clearly, or twice in a
//   row); it is kept unless the residual clearly rises, and else the next one is damped.
//   Where many rows can act on a robot, rounds begin with passes over two halves in turn (ops/alternate.h) in place of sweeps.
//   Where Newton steps of robots stall, it is mostly one contact that sweeps hold although it should open: they are tried once more without that one
// Both modes give w = -b_bar and A_bar; with  A~ = A_bar + w lambda^T  everything else is shared (ops/constrain.h):
//   implicit  A~ = 0: the natural map differentiated at its solution (ops/polish.h, natural_adj)
//   exact     the sweeps, passes and Newton steps reversed one by one
#pragma once
#include "alternate.h"

CS_BEGIN

// A Newton step is kept unless the residual rises by more than this: it may pass through a worse set of active rows
constexpr double kRise = 3;
// Robots whose contacts slide in any direction are bolder: the whole step is taken up to this, but for one after a step that made the residual rise, since two could
// go to and fro. It takes fewer steps, and fewer end unsolved, where many contacts slide. Piles, and pyramids, whose slopes jump, would get lost
constexpr double kBoldRise = 10;
// Parts of a Newton step that are tried where the whole does not lower the residual, or raises it too much
constexpr double kPart = 0.3, kSmallPart = 0.1;
// sigma after a step that was not kept: at least the first, then this many times as much; after one that was, the inverse, or none below the last
constexpr double kDamping = 1e-2, kMoreDamping = 10, kNoDamping = 1e-4;
// Part of the tolerance below which the residual is that of a Newton step with the right rows, and nothing is left to do; in float32, where rounding
// is some hundredths of the tolerance, often a tenth, it does not get much lower
template <class E> constexpr double kWell = sizeof(E) == 4 ? 0.3 : 1e-3;
// Newton steps after the first passes: one in so many of those that `polish` allows; in float32 a second round finds what further ones mostly do not (measured)
template <class E> constexpr int kFirstPart = sizeof(E) == 4 ? 3 : 2;
// A Newton step that does not lower the least residual so far to this part of it is one in vain
constexpr double kLower = 0.99;
// Passes that end where those of the round before ended, to this part of the residual there, lead nowhere else the next time; in float64, where Newton steps have
// further to go, later rounds still find something (measured)
template <class E> constexpr double kCircles = sizeof(E) == 4 ? 0.05 : 0;
// Contacts that hold each other can contradict each other by so little, m/s; what a round that alternates does not bring to half of what it was, below this, stays
constexpr double kContradiction = 1e-5;
constexpr int kVain = 2;  // as many of them in a row end an attempt; not the first one of those that are bold

// no adjoint: memory.   lambda before the next event
template <class T> CS_FN void remember(const Rows<T>& rw, int events) {
  if (!rw.history) return;
  set_rows(rw.history + events * rw.count[1], rw.count[1], [&](int r) { return rw.lam[r]; });
}

// no adjoint: relax_adj and natural_adj.   at most `most` Newton steps of lanes where idle is 0, until `patience` of them in a row are in vain;
// res: the residual of rw.lam, whose y is known; done: 1 where a lane needs no more. A lane that is barely solved takes one step more: among all
// lambda of redundant rows it finds the one that their softness asks for, which is the one that has a derivative
template <class T> CS_OP void newton_steps(const Rows<T>& rw, const Options& o, bool bold, int most, int patience, T idle, T& res,
                                           T& done, int& events) {
  using E = ElementOf<T>;
  T tol = T(E(o.tolerance)), zero = T(0), sigma = zero, least = res, vain = zero, rose = zero;
  int n = rw.count[1];
  for (int p = 0; p < most; p++) {
    auto live = idle < T(0.5);
    if (!any(live)) return;
    remember(rw, events);
    rw.status->steps += select(live, T(1), zero);
    newton(rw, o, sigma);
    T *start = rw.before, *Ad = rw.Ad, alpha = T(1);
    set_rows(start, n, [&](int r) { return rw.lam[r]; });
    set_rows(rw.lam, n, [&](int r) { return start[r] + rw.delta[r]; });
    set_rows(Ad, n, [&](int) { return zero; });
    T next = natural_residual(rw, o);
    auto was_solved = !(res > tol);
    auto search = live & !was_solved & !(next < (bold ? select(rose > T(0.5), res, T(E(kBoldRise)) * res) : res));
    if (any(search)) {
      // y changes in proportion: y = y(1) - (1 - alpha) A delta
      add_A(rw, rw.delta, Ad);
      for (double part = kPart; part > 0; part = part > kSmallPart ? kSmallPart : 0) {
        T a = T(E(part)), left = T(E(1 - part));
        set_rows(rw.lam, n, [&](int r) { return fma(a, rw.delta[r], start[r]); });
        set_rows(rw.trial, n, [&](int r) { return fnma(left, Ad[r], rw.y[r]); });
        T there = residual_of(rw, o, rw.lam, rw.trial);
        auto better = search & (there < next);
        next = select(better, there, next), alpha = select(better, a, alpha);
      }
    }
    auto keep = live & (next < max(T(E(bold ? kBoldRise : kRise)) * res, tol));
    alpha = select(keep, alpha, zero);
    set_rows(rw.lam, n, [&](int r) { return select(keep, fma(alpha, rw.delta[r], start[r]), start[r]); });
    if (rw.history) rw.took[events] = alpha, rw.damped[events] = sigma, rw.event[events] = 2;
    events++;
    sigma = select(keep, sigma * T(E(1 / kMoreDamping)), max(T(E(kDamping)), sigma * T(E(kMoreDamping))));
    sigma = select(sigma < T(E(kNoDamping)), zero, sigma);
    rose = select(keep & (next > res), T(1), zero), res = select(keep, next, res);
    // y of lanes that are not where a whole step leads
    if (any(live & (alpha < T(1)))) res = select(keep, natural_residual(rw, o), res);
    auto well = live & (was_solved | (res < T(E(kWell<E>)) * tol));
    vain = select(res < T(E(kLower)) * least, zero, vain + T(1)), least = min(least, res);
    done = select(well, T(1), done), idle = select(well | !(vain < T(E(patience))), T(1), idle);
  }
}

// no adjoint: integers.   as if the lanes had not taken the events from `first` to before `end`
template <class T, class M> CS_FN void not_taken(const Rows<T>& rw, M lanes, int first, int end) {
  for (int e = first; e < end && rw.history; e++) rw.took[e] = select(lanes, T(0), rw.took[e]);
}

// no adjoint: relax_adj and natural_adj.   Newton steps; where they stall, others from the same start without the block that is most off there; where these
// do not end well, the first ones count
template <class T> CS_OP void newton_attempts(const Rows<T>& rw, const Options& o, bool bold, T& res, T& done, int& events) {
  T tol = T(ElementOf<T>(o.tolerance)), idle = done, first_res = res;
  int first = events, second = events;
  set_rows(rw.start, rw.count[1], [&](int r) { return rw.lam[r]; });
  for (int attempt = 1; attempt <= 2; attempt++) {
    newton_steps(rw, o, bold, (o.polish + 1) / 2, bold && attempt == 1 ? o.polish : kVain, idle, res, done, events);
    auto astray = (idle < T(0.5)) & (res > tol), saved = (idle < T(0.5)) & !(res > tol);
    if (attempt == 2) {
      not_taken(rw, saved, first, second), not_taken(rw, astray, second, events);
      set_rows(rw.lam, rw.count[1], [&](int r) { return select(astray, rw.stalled[r], rw.lam[r]); });
      res = select(astray, first_res, res);
      return;
    }
    if (!any(astray)) return;
    second = events, first_res = res, idle = select(astray, T(0), T(1));
    remember(rw, events);
    set_rows(rw.stalled, rw.count[1], [&](int r) { return rw.lam[r]; });
    set_rows(rw.lam, rw.count[1], [&](int r) { return select(astray, rw.start[r], rw.lam[r]); });
    natural_residual(rw, o);
    T which = let_go(rw, o, astray);
    if (rw.history) rw.took[events] = which, rw.event[events] = 4;
    events++;
    T now = natural_residual(rw, o);
    res = select(astray, now, res);
  }
}

// no adjoint: relax_adj and natural_adj.   Newton steps; where they lead away from the solution it is as if they had not been taken
template <class T> CS_OP void newton_after_passes(const Rows<T>& rw, const Options& o, int round, T& res, T& done, int& events) {
  using E = ElementOf<T>;
  T before = res;
  int first = events, n = rw.count[1];
  set_rows(rw.stalled, n, [&](int r) { return rw.lam[r]; });
  int most = round == 0 ? (o.polish + kFirstPart<E> - 1) / kFirstPart<E> : (o.polish + 3) / 4;
  newton_steps(rw, o, o.sides == 0, most, kVain + 1, done, res, done, events);
  auto astray = res > before;
  not_taken(rw, astray, first, events);
  set_rows(rw.lam, n, [&](int r) { return select(astray, rw.stalled[r], rw.lam[r]); });
  res = select(astray, before, res);
}

// no adjoint: relax_adj and natural_adj.   lambda as it was at the end of the best of rounds that alternate, in lanes that end worse. It was best after so many events;
// which round that is, is chosen like a feature: a kink where two are as good
template <class T> CS_FN void back_to_best(const Rows<T>& rw, const Options& o, T best, T after, int events, T& res) {
  auto worse = res > best;
  if (!any(worse)) return;
  for (int e = 0; e < events && rw.history; e++) rw.took[e] = select(worse, select(T(e) < after, rw.took[e], T(0)), rw.took[e]);
  set_rows(rw.lam, rw.count[1], [&](int r) { return select(worse, rw.best[r], rw.lam[r]); });
  if (!o.polish) natural_velocity(rw);  // else it is known later
  res = select(worse, best, res);
}

// no adjoint: a part of relax.   a round of passes in lanes that are `moving`, and what an adjoint is to know of it
template <class T, class M>
CS_OP void pass_round(const Tree& t, const Rows<T>& rw, const Options& o, int round, M moving, int& events) {
  remember(rw, events);
  alternate(t, rw, o, round, moving);
  if (rw.history) rw.took[events] = select(moving, T(1), T(0)), rw.event[events] = kAlternateEvent + round;
  events++;
}
// no adjoint: a part of relax.   sweeps, in lanes that are `moving` until they change nothing
template <class T, class M> CS_OP void sweep_round(const Tree& t, const Rows<T>& rw, const Options& o, M moving, Round<T>& x) {
  bool half = o.form == kHalfSolved || (o.form < kDense && t.tree_rows > kDenseRows);
  for (int k = 0; k < kRound && x.count < o.iterations; k++, x.count++) {
    if (!any(moving)) continue;
    T change = T(0);
    remember(rw, x.events);
    if (half)
      sweep_half_solved(t, rw, o, moving, change, rw.sigma);
    else
      sweep_dense(t, rw, o, moving, change);
    if (rw.history) rw.took[x.events] = select(moving, T(1), T(0)), rw.event[x.events] = 1;
    x.events++;
    x.sweeps += select(moving, T(1), T(0));
    moving = moving & (change > T(ElementOf<T>(o.tolerance)));
  }
}
// no adjoint: a choice.   1 in lanes that have rows at all
template <class T> CS_FN T some_rows(const Rows<T>& rw) {
  T some = T(0);
  for (int i = team_rank(); i < rw.count[0]; i += kTeam) some = max(some, rw.valid[i]);
  return largest(some);
}

// no adjoint: a part of relax.   rw: where the numbers of the iterations are. Returns whether lambda is found.   first: only the first round, whose passes are done; where
// that is not enough it hands on how far it has come;   later: only those that follow it
template <bool first, class T>
CS_OP bool relax_rounds(const Tree& t, const Rows<T>& all, const Rows<T>& rw, const Options& o, bool later) {
  using E = ElementOf<T>;
  T tol = T(E(o.tolerance)), some = some_rows(rw), done = T(0);
  Round<T> x = {T(E(kUnbounded)), T(E(kUnbounded)), T(0), T(0), T(0), 0, 0};
  if constexpr (kMayHold<T>)
    if (later) x = *rw.round;
  T &res = x.res, &best = x.best, &sweeps = x.sweeps;
  int n = rw.count[1], &events = x.events, &count = x.count;
  bool alternating = alternates(t, o);
  set_rows(rw.lam, n, [&](int r) { return first || later ? all.lam[r] : T(0); });
  if constexpr (kMayHold<T>)
    if (later) set_rows(rw.best, n, [&](int r) { return all.best[r]; });
  if (!first && !later && alternating && any(some > T(0.5))) alternate_matrix(rw);
  while (count < o.iterations && any(done < T(0.5))) {
    auto live = done < T(0.5);
    auto moving = live & (some > T(0.5));
    if (alternating && any(moving)) {
      if (first)
        events++;
      else
        pass_round(t, rw, o, count / kAlternateRound<E>, moving, events);
      sweeps += select(moving, T(E(passes_of<E>(count / kAlternateRound<E>))), T(0));
    }
    if (alternating) count += kAlternateRound<E>;
    if (!alternating) sweep_round(t, rw, o, moving, x);
    T now = natural_residual(rw, o);
    res = select(live, now, res);
    auto same = abs(res - x.passed) < T(E(kCircles<E>)) * x.passed;
    if (alternating) x.passed = res;
    // solved to the last digit, or without polish, there is nothing to choose from; but sweeps alone have another derivative
    if (!o.polish)
      done = select(res > tol, done, T(1));
    else if (!o.exact)
      done = select(res == T(0), T(1), done);
    if (alternating)
      newton_after_passes(rw, o, count / kAlternateRound<E> - 1, res, done, events);
    else if (t.chained)
      newton_steps(rw, o, false, o.polish, o.polish, done, res, done, events);
    else if (o.polish)
      newton_attempts(rw, o, o.sides == 0, res, done, events);
    done = select(res > tol, done, T(1));
    if (alternating) done = select(same, T(1), done);
    if (!alternating) continue;
    done = select((best < T(E(kContradiction))) & !(res < T(0.5) * best), T(1), done);
    bool last = count >= o.iterations || !any(done < T(0.5));
    if (!last) set_rows(rw.best, n, [&](int r) { return select(res < best, rw.lam[r], rw.best[r]); });
    x.best_after = select(res < best, T(events), x.best_after), best = min(best, res);
    if (first && !last) {
      share_rows(n, [&](int r) { all.lam[r] = rw.lam[r], all.best[r] = rw.best[r]; });
      *rw.round = x;
      return false;
    }
    if (last) back_to_best(rw, o, best, x.best_after, events, res);
  }
  auto open = res > tol;
  if (o.polish && any(open)) {
    remember(rw, events);
    inside(rw, o, open);
    if (rw.history) rw.took[events] = select(open, T(1), T(0)), rw.event[events] = 3;
    events++;
    T now = natural_residual(rw, o);
    res = select(open, now, res);
  }
  remember(rw, events);
  if (rw.history) rw.event[events] = 0;
  rw.status->residual = res, rw.status->sweeps = sweeps;
  rw.status->solved = select(res > tol, T(0), T(1));
  share_rows(n, [&](int r) { all.lam[r] = rw.lam[r], all.y[r] = rw.y[r]; });
  return true;
}
// no adjoint: relax_adj and natural_adj.   lambda of all rows.   later: the first round, which has not found it, is done (ops/first_round.h)
template <class T> CS_OP void relax(const Tree& t, const Rows<T>& all, const Options& o, bool later) {
  if constexpr (kMayHold<T>)
    if (may_hold(all, kHeldChunks)) {
      relax_rounds<false>(t, all, in_near(all), o, later);
      return;
    }
  Private<T> own;
  relax_rounds<false>(t, all, in_private(all, own), o, false);
}
// adjoint, exact: from rb.lam (after) to rb.A, rb.b, rb.rho, bounds and mu; in lanes that are not wanted rb.lam is zero
template <class T> CS_OP void relax_adj(const Tree& t, const Rows<T>& rw, const Options& o, const RowBars<T>& rb) {
  int n = rw.count[1], events = 0;
  T least = T(ElementOf<T>(kUnbounded));
  while (rw.event[events]) events++;
  // a team that held its inverse in registers left none in memory
  if (kTeam > 1 && alternates(t, o) && events > 0) alternate_matrix(rw);
  for (int e = events - 1; e >= 0; e--) {
    least = min(least, bar_size(rw, rb.lam, 0, n));
    const T *before = rw.history + e * n, *after = before + n;
    if (rw.event[e] == 1) {
      for (int s = 0; s < rw.count[2]; s++) sweep_adj(rw, o, s, before, after, rw.took[e], rb, rw.delta);
      continue;
    }
    if (rw.event[e] == 3) {
      inside_adj(rw, o, before, rw.took[e], rb);
      continue;
    }
    if (rw.event[e] == 4) {
      let_go_adj(rw, rw.took[e], rb);
      continue;
    }
    share(n, [&](int r) { rw.lam[r] = before[r]; });
    if (rw.event[e] >= kAlternateEvent) {
      alternate_adj(t, rw, o, rw.event[e] - kAlternateEvent, rw.took[e], rb, least);
      continue;
    }
    natural_residual(rw, o);
    for (int s = 0; s < rw.count[2]; s++) {
      int first, last, r0, m;
      island_rows(rw, s, first, last, r0, m);
      natural_slope(rw, o, s, rw.damped[e]);
      newton_adj(rw, o, s, after, rw.took[e], rw.damped[e], rb);
    }
  }
  rw.count[3] = 0;  // K is another one now
  share(n, [&](int r) { rw.lam[r] = rw.history[events * n + r]; });
  for (int s = 0; s < rw.count[2]; s++) {
    int first, last, r0, m;
    island_rows(rw, s, first, last, r0, m);
    for (int i = first; i < last; i++) {
      int corner = rw.island_A[s] + (rw.first_row[i] - r0) * (m + 1);
      own_rho_adj(rw, rb, i, rw.A + corner, m, rb.A + corner);
    }
  }
}

// The derivative of iterations that wandered can be enormous, and says nothing. Where it is this many times the implicit one, that one is taken:
// in float64 only before it overflows
template <class E> constexpr E kWandered = sizeof(E) == 8 ? E(1e12) : E(1e4);

// no adjoint: a part of solver_adj.   the implicit adjoint of all lanes, from rb.z, into w, lo, hi and mu
template <class T> CS_OP void implicit_bars(const Rows<T>& all, const Options& o, const RowBars<T>& rb) {
  Private<T> own;
  const Rows<T>& rw = in_private(all, own);
  natural_residual(rw, o);
  CS_FOR (int s = 0; s < rw.count[2]; s++) {
    int first, last, r0, m;
    island_rows(rw, s, first, last, r0, m);
    if (rw.K != all.K || !rw.count[3]) natural_slope(rw, o, s, T(0));
    natural_adj(rw, o, s, rb);
  }
  rw.count[3] = rw.K == all.K;
}

// no adjoint: a test.   zero where all n numbers are finite, else NaN, or 1
template <class T> CS_FN T not_finite(const T* x, int n) {
  T sum = T(0);
  for (int k = team_rank(); k < n; k += kTeam) sum += x[k] - x[k];
  if constexpr (kTeam > 1) return T(anyone(!(sum == T(0))));
  return sum;
}

// no adjoint: a part of solver_adj.   the exact adjoint where `exact`, from rb.lam, in place of the implicit one, unless it wandered.
template <class T, class M>
CS_WHOLE void exact_bars(const Tree& t, const Rows<T>& rw, const Options& o, const RowBars<T>& rb, M exact) {
  int n = rw.count[1], numbers = rw.island_A[rw.count[2]];
  T zero = T(0), size = zero, found = zero, sum = zero;
  for (int r = 0; r < n; r++) {
    rb.w_else[r] = rb.w[r], rb.lo_else[r] = rb.lo[r], rb.hi_else[r] = rb.hi[r];
    rb.lam[r] = select(exact, rb.lam[r], zero), rb.lo[r] = rb.hi[r] = zero;
    size = max(size, abs(rb.w[r]));
  }
  for (int i = 0; i < rw.count[0]; i++) rb.mu_else[i] = rb.block_mu[i], rb.block_mu[i] = zero;
  share(numbers, [&](int k) { rb.A[k] = zero; });
  relax_adj(t, rw, o, rb);
  for (int r = 0; r < n; r++)
    found = max(found, abs(rb.b[r])), sum += rb.b[r] - rb.b[r] + (rb.lo[r] - rb.lo[r]) + (rb.hi[r] - rb.hi[r]);
  for (int i = 0; i < rw.count[0]; i++) sum += rb.block_mu[i] - rb.block_mu[i];
  sum += not_finite(rb.A, numbers);
  auto keep = exact & (sum == zero) & !(found > T(kWandered<ElementOf<T>>) * size);
  for (int r = 0; r < n; r++) {
    rb.w[r] = select(keep, zero, rb.w_else[r]), rb.b[r] = select(keep, rb.b[r], zero);
    rb.lo[r] = select(keep, rb.lo[r], rb.lo_else[r]), rb.hi[r] = select(keep, rb.hi[r], rb.hi_else[r]);
  }
  for (int i = 0; i < rw.count[0]; i++) rb.block_mu[i] = select(keep, rb.block_mu[i], rb.mu_else[i]);
  share(numbers, [&](int k) { rb.A[k] = select(keep, rb.A[k], zero); });
}

// no adjoint: a part of solver_adj.   A~ = A_bar + w lambda^T, whose diagonal is R's, too
template <class T> CS_WHOLE void softness_bars(const Rows<T>& rw, const RowBars<T>& rb) {
  for (int s = 0; s < rw.count[2]; s++) {
    int first, last, r0, m;
    island_rows(rw, s, first, last, r0, m);
    T* A = rb.A + rw.island_A[s];
    for (int k = 0; k < m; k++) share(m, [&](int j) { A[k * m + j] = fnma(rb.b[r0 + k], rw.lam[r0 + j], A[k * m + j]); });
    for (int k = 0; k < m; k++) rb.R[r0 + k] += A[k * (m + 1)];
  }
}

// no adjoint: a part of constrain_adj.   rb.w, rb.A (A~), bars of bounds, mu and R, from rb.lam.   Returns whether any A~ is not zero
template <class T> CS_OP bool solver_adj(const Tree& t, const Rows<T>& rw, const Options& o, const RowBars<T>& rb) {
  int n = rw.count[1];
  // an interior point has no sweeps to reverse: where it did not converge too its conditions are differentiated
  T open = o.method == kRounds ? rw.status->solved : T(1);
  auto exact = o.exact ? open == open : open < T(0.5);
  bool dense = any(exact);
  CS_FOR (int r = 0; r < n; r++) rb.z[r] = rb.lam[r], rb.w[r] = rb.b[r] = rb.lo[r] = rb.hi[r] = rb.rho[r] = T(0);
  CS_FOR (int i = 0; i < rw.count[0]; i++) rb.block_mu[i] = T(0);
  implicit_bars(rw, o, rb);
  if (dense) exact_bars(t, rw, o, rb, exact);
  CS_FOR (int r = 0; r < n; r++) rb.w[r] -= rb.b[r], rb.R[r] = -rb.w[r] * rw.lam[r];
  if (dense) softness_bars(rw, rb);
  return dense;
}

CS_END
