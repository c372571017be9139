// A step that is split at the times of impact, and its adjoint.
//
//   parts k = 0, 1, ...: step(q_k, v_k, h_k) -> q_k+1, v_k+1.   h_k: until the first pair that flies meets (ops/impact.h), gap(q_k+1) = 0; of the
//   last part what is left. An impact is a row of the part that begins with it (contact_rows of ops/rows.h), and takes no time.
//   adjoint:  the time h_k is the root of the gap phi at the end of its part. With d the derivative of phi along the part by its duration
//             and L the loss:  h_k_bar = dL/dh_k - dL/dh_left;   lambda = -h_k_bar / d;   then (q_k+1)_bar += lambda dphi/dq: the part's adjoint
//             twice, for the loss and for phi. A step that begins with an impact has a part of no duration before it
// Each lane has its own parts: one that is done repeats its last one. kinks: a pair that only just meets; more impacts than Options::impacts, from
// where on the rest is one plain step
#pragma once
#include "ops/impact.h"
#include "step.h"

CS_BEGIN

// The parts of a step, and scratch
template <class T> struct Split {
  Way<T> way;
  // where each part begins [most + 1, nq], [., nv]; what chooses what flies in it (Inputs) [., nv] twice; its duration and what was left then
  T *q, *v, *after, *later, *h, *left;
  T full;      // the step
  int* hit;    // [most + 1, lanes] the pair that meets at its end, -1 none
  int* live;   // [most + 1] lanes that are in this part, as bits
  int* point;  // [most + 1, lanes] which of its points
  int* began;  // [lanes] the pair whose impact the step begins with, -1 none
  int parts;
  T *q_end, *v_end;
  // of the adjoint
  Bars<T> bar;
  RowBars<T> rb;
  T *theta, *external, *u, *q_phi, *v_phi, *q_in, *v_in, *q_seed, *v_seed;
};

// no adjoint: memory
template <class T> CS_FN Split<T> split_map(const Tree& t, const Options& o, bool keep, Arena<T>& m) {
  Split<T> s{};
  int n = o.impacts + 1;
  s.way = way_map(t, m);
  s.q = m.template take<T>((n + 1) * t.nq), s.v = m.template take<T>((n + 1) * t.nv), s.after = m.template take<T>(n * t.nv);
  s.later = m.template take<T>(n * t.nv);
  s.h = m.template take<T>(n), s.left = m.template take<T>(n), s.hit = m.template take<int>(n * lanes<T>);
  s.live = m.template take<int>(n + 1), s.point = m.template take<int>(n * lanes<T>), s.began = m.template take<int>(lanes<T>);
  s.q_end = m.template take<T>(t.nq), s.v_end = m.template take<T>(t.nv);
  if (!keep) return s;
  s.bar = bars_map(t, m);
  touch_bars_map(t, s.rb, m);
  s.theta = m.template take<T>(params_size(t)), s.external = m.template take<T>(6 * t.nb), s.u = m.template take<T>(t.nu);
  s.q_phi = m.template take<T>(t.nv), s.v_phi = m.template take<T>(t.nv), s.q_in = m.template take<T>(t.nv),
  s.v_in = m.template take<T>(t.nv), s.q_seed = m.template take<T>(t.nv), s.v_seed = m.template take<T>(t.nv);
  return s;
}

// no adjoint: gathers arguments.   of part k
template <class T> CS_FN Inputs<T> part_inputs(const Tree& t, const Options& o, const Inputs<T>& in, const Split<T>& s, int k) {
  return {s.q + k * t.nq,     s.v + k * t.nv,    in.u, s.h[k], in.external, k < o.impacts, s.full, s.left[k],
          s.after + k * t.nv, s.later + k * t.nv};
}

// no adjoint: chooses.   lanes in which key(c) is the least of n, the first of equal ones, and there is something at all
template <class T, class F> CS_FN int is_least(F key, int n, int c) {
  T far = T(ElementOf<T>(kNowhere)), before = far + far, behind = before;
  for (int i = 0; i < c; i++) before = min(before, key(i));
  for (int i = c + 1; i < n; i++) behind = min(behind, key(i));
  return int(lane_bits((key(c) < before) & !(behind < key(c))));
}

// no adjoint: chooses.   of the n candidates of a pair the one that meets: of those that approach the closest, else the closest of all; per lane
template <class T> CS_FN int meets_at(const Options& o, const Way<T>& s, int n, int c) {
  T slow = T(-ElementOf<T>(o.bounce_speed)), far = T(ElementOf<T>(kNowhere));
  return is_least<T>([&](int i) { return s.rw.gap[i] + select(s.rate[i] < slow, T(0), far); }, n, c);
}

// no adjoint: chooses.   the same of corners on a plane, which keep their numbers: the lowest of those that rows do not hold.   rests: of the pair
template <class T> CS_FN int lowest_at(const Way<T>& s, const int* rests, int n, int c) {
  T far = T(ElementOf<T>(kNowhere));
  return is_least<T>([&](int i) { return fma(far, lane_flags<T>(rests[i]), s.rw.gap[i]); }, n, c);
}

// no adjoint: see above.   gap and rate, per lane, of the pairs that meet, in configuration s.q_end with s.v_end; and in which of their points
template <class T> CS_OP void meetings(const Tree& t, const Params<T>& th, const Rows<T>& rw, const Options& o, Split<T>& s,
                                       const int* hit, int* point, T& gap, T& rate) {
  Way<T>& at = s.way;
  normalise(t, s.q_end, at.tr.q);
  look_at(t, th, at, s.v_end, static_cast<const T*>(nullptr));
  gap = rate = T(0);
  for (int k = 0; k < at.n; k++) {
    int bits = 0;
    for (int l = 0; l < lanes<T>; l++) bits |= (hit[l] == at.pair[k]) << l;
    if (!bits) continue;
    int p = at.pair[k], n = look_at_pair(t, th, rw, at, p, bits);
    bool chosen = pair_chosen(t, p);
    for (int c = 0; c < n; c++) {
      int here = (chosen ? meets_at(o, at, n, c) : lowest_at(at, at.rests + k * kCorners, n, c)) & bits;
      auto mine = lane_flags<T>(here) > T(0.5);
      gap = select(mine, at.rw.gap[c], gap), rate = select(mine, at.rate[c], rate);
      for (int l = 0; l < lanes<T>; l++)
        if (here >> l & 1) point[l] = c;
    }
  }
}

// no adjoint: see above.   part k again, until the pairs that meet at its end do so to the last digit: secants, kept between a time before and a time
// after, since the end of what is pushed moves in another way than its bodies. What does not meet within what is left is no hit. Nor is what overlaps
// all the while: it is not looked at again. Returns whether there was any
template <class T> CS_OP bool find_end(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                       const Options& o, const Inputs<T>& in, Split<T>& s, int k) {
  using E = ElementOf<T>;
  int *hit = s.hit + k * lanes<T>, *point = s.point + k * lanes<T>, open = 0, missed = 0, sunk = 0;
  for (int l = 0; l < lanes<T>; l++) open |= (hit[l] >= 0) << l;
  T zero = T(0), half = T(E(0.5)), left = s.left[k], least = T(E(kLeastPart)) * left, most = T(E(1 - kLeastPart)) * left;
  T h = min(s.h[k], most), before = zero, behind = most, bracket = zero, h_old = h, gap_old = zero, gap, rate;
  for (int n = 0; n < kMostRoots && open; n++) {
    auto now = lane_flags<T>(open) > half;
    s.h[k] = select(now, h, s.h[k]);
    step(t, th, tr, rw, o, part_inputs(t, o, in, s, k), s.q_end, s.v_end);
    meetings(t, th, rw, o, s, hit, point, gap, rate);
    auto early = gap > zero;
    auto goes_on = (abs(gap) > T(E(kMeeting<E>))) & (early | (h > least)) & (behind - before > T(E(1e-15)) * left);
    int there = int(lane_bits(!goes_on));
    int never = int(lane_bits(early & !(h < most))) & open & ~there;
    before = select(early, h, before), behind = select(early, behind, h), bracket = select(early, bracket, T(1));
    auto moved = (h < h_old) | (h_old < h);
    auto known = bracket > half;
    T slope = select(moved, (gap - gap_old) / select(moved, h - h_old, T(1)), rate), middle = half * (before + behind);
    auto falls = slope < zero;
    T next = h - select(falls, gap / select(falls, slope, T(1)), zero);
    if (n % 4 == 3) next = select(known, middle, next);
    auto between = falls & (next > before) & ((next < behind) | !known);
    h_old = select(now, h, h_old), gap_old = select(now, gap, gap_old);
    h = select(now, max(select(between, min(next, behind), select(known, middle, behind)), least), h);
    int inside = int(lane_bits(!((gap > T(-10 * E(kTouching<E>))) | (s.h[k] > least)))) & open, past = 0;
    for (int i = 0; i < s.way.n; i++) {
      int p = s.way.pair[i];
      if (!pair_chosen(t, p)) continue;
      for (int l = 0; l < lanes<T>; l++)
        if (inside >> l & 1 && hit[l] == p) s.way.bits[i] &= ~(1 << l), past |= 1 << l;
    }
    sunk |= past, never |= past;
    for (int l = 0; l < lanes<T>; l++)
      if (never >> l & 1) hit[l] = -1, set_lane(s.h[k], l, lane(left, l));
    open &= ~(never | there), missed = int(lane_bits(gap > T(E(kTouching<E>)))) & open;
  }
  for (int l = 0; l < lanes<T>; l++)
    if (missed >> l & 1) hit[l] = -1, set_lane(s.h[k], l, lane(left, l));
  step(t, th, tr, rw, o, part_inputs(t, o, in, s, k), s.q_end, s.v_end);
  return sunk != 0;
}

// no adjoint: integers.   the pair of an impact with which part 0 begins, of each lane; deeper ones have not just met
template <class T> CS_FN void find_began(const Rows<T>& rw, int* began) {
  using E = ElementOf<T>;
  for (int l = 0; l < lanes<T>; l++) began[l] = -1;
  for (int i = 0; i < rw.count[0]; i++) {
    if (rw.kind[i] != kContactRows) continue;
    int now = int(lane_bits(rw.impact[i] > T(0.5)));
    for (int l = 0; l < lanes<T>; l++) {
      int c = rw.item[i][l];
      if (now >> l & 1 && c >= 0 && lane(rw.gap[c], l) > E(-kTouching<E>)) began[l] = rw.cand_pair[c];
    }
  }
}

// no adjoint: see above.   the step of part k to the end of what is left. If it begins with impacts, what they do alone decides what flies
template <class T> CS_OP void try_part(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                       const Options& o, const Inputs<T>& in, Split<T>& s, int k) {
  T *after = s.after + k * t.nv, *later = s.later + k * t.nv, some = T(0);
  Inputs<T> part = part_inputs(t, o, in, s, k);
  part.later = nullptr;
  step(t, th, tr, rw, o, part, s.q_end, s.v_end);
  for (int i = 0; i < rw.count[0]; i++) some = max(some, rw.impact[i]);
  for (int d = 0; d < t.nv; d++) later[d] = after[d] + (rw.v_star[d] - part.v[d]);
  if (!any(some > T(0.5))) return;
  part.touching = true;
  step(t, th, tr, rw, o, part, s.q_end, s.v_end);
  for (int d = 0; d < t.nv; d++) after[d] = select(some > T(0.5), part.v[d] + (s.v_end[d] - rw.v_star[d]), after[d]);
  part.touching = false;
  step(t, th, tr, rw, o, part, s.q_end, s.v_end);
  for (int d = 0; d < t.nv; d++) later[d] = after[d] + (rw.v_star[d] - part.v[d]);
}

// split_step: q_next, v_next, and the parts in s
template <class T> CS_OP void split_step(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                         const Options& o, const Inputs<T>& in, T* q_next, T* v_next, Split<T>& s) {
  T left = in.h, impacts = T(0);
  int live = (1 << lanes<T>)-1;
  s.full = in.h;
  for (int i = 0; i < t.nq; i++) s.q[i] = in.q[i];
  for (int d = 0; d < t.nv; d++) s.v[d] = s.after[d] = in.v[d];
  for (int k = 0;; k++) {
    int *hit = s.hit + k * lanes<T>, hits = 0;
    auto now = lane_flags<T>(live) > T(0.5);
    s.left[k] = k ? select(now, left, s.left[k - 1]) : left, s.h[k] = k ? select(now, left, s.h[k - 1]) : left, s.live[k] = live;
    s.parts = k + 1;
    try_part(t, th, tr, rw, o, in, s, k);
    if (k == 0) find_began(rw, s.began);
    for (int l = 0; l < lanes<T>; l++) hit[l] = -1;
    if (k < o.impacts) {
      find_way(t, th, tr, rw, part_inputs(t, o, in, s, k), s.v_end, s.way);
      for (bool again = true; again;) {
        T tau = time_of_impact(t, th, tr, rw, o, left, live, s.way, hit);
        hits = 0;
        for (int l = 0; l < lanes<T>; l++) hits |= (hit[l] >= 0) << l;
        s.h[k] = select(lane_flags<T>(hits) > T(0.5), max(tau, T(ElementOf<T>(kLeastPart)) * left), s.h[k]);
        again = hits && find_end(t, th, tr, rw, o, in, s, k);
      }
      hits = 0;
      for (int l = 0; l < lanes<T>; l++) hits |= (hit[l] >= 0) << l;
    }
    auto met = lane_flags<T>(hits) > T(0.5);
    for (int i = 0; i < t.nq; i++) {
      q_next[i] = select(now, s.q_end[i], k ? q_next[i] : s.q_end[i]);
      s.q[(k + 1) * t.nq + i] = select(met, s.q_end[i], s.q[k * t.nq + i]);
    }
    for (int d = 0; d < t.nv; d++) {
      v_next[d] = select(now, s.v_end[d], k ? v_next[d] : s.v_end[d]);
      s.v[(k + 1) * t.nv + d] = select(met, s.v_end[d], s.v[k * t.nv + d]);
      if (k < o.impacts) s.after[(k + 1) * t.nv + d] = select(met, s.v_end[d], s.after[k * t.nv + d]);
    }
    left = select(met, left - s.h[k], left), impacts += select(met, T(1), T(0));
    live = hits;
    if (!live) break;
  }
  for (int l = 0; l < lanes<T>; l++)
    if (s.began[l] >= 0) set_lane(impacts, l, lane(impacts, l) + ElementOf<T>(1));
  rw.status->impacts = impacts;
}

// no adjoint: a part of split_step_adj.   q_phi: tangent dphi/dq of the pairs `hit`, and dphi/dtheta in th_phi, at the place that s.way looks at
template <class T> CS_OP void meeting_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, const Options& o, Split<T>& s,
                                          const int* hit, const int* point, const Params<T>& th_phi) {
  Way<T>& at = s.way;
  const RowBars<T>& rb = s.rb;
  bars_clear(t, s.bar);
  for (int i = 0; i < t.ns; i++) rb.shape[i] = zero_force<T>();
  for (int l = 0; l < lanes<T>; l++) {
    int before = 0, p = hit[l], bits = 0;
    for (int j = 0; j < l; j++) before |= hit[j] == p;
    if (p < 0 || before) continue;
    for (int j = l; j < lanes<T>; j++) bits |= (hit[j] == p) << j;
    int n = look_at_pair(t, th, rw, at, p, bits);
    for (int c = 0; c < n; c++) {
      int mine = meets_at(o, at, n, c);
      if (point && !pair_chosen(t, p)) {
        mine = 0;
        for (int j = 0; j < lanes<T>; j++) mine |= (point[j] == c) << j;
      }
      mine &= bits & int(lane_bits(at.rw.gap[c] < T(ElementOf<T>(0.5 * kNowhere))));
      at.rw.used[c] = mine;
      rb.gap[c] = lane_flags<T>(mine), rb.frame[c] = {zero3<T>(), zero3<T>(), zero3<T>()}, rb.point[c] = zero3<T>();
      rb.mu[c] = rb.e[c] = rb.soft[c] = rb.lightness[c] = T(0);
    }
    collide_adj(t, th, at.rw, rb, th_phi);
  }
  shapes_adj(t, th, at.tr, at.rw, rb, s.bar, th_phi);
  kinematics_adj(t, th, at.tr, s.bar, th_phi);
  for (int d = 0; d < t.nv; d++) s.q_phi[d] = s.bar.q[d];
}

// no adjoint: a part of split_step_adj.   theta_bar += lambda dphi/dtheta
template <class T> CS_FN void add_theta(const Tree& t, T lambda, const T* theta, const Params<T>& th_bar) {
  T* to = reinterpret_cast<T*>(th_bar.gravity);
  for (int i = 0; to && i < params_size(t); i++) to[i] = fma(lambda, theta[i], to[i]);
}

// no adjoint: a part of split_step_adj.   lambda = (left_bar - h_bar) / rate, where something meets; a pair that only grazes has no derivative: none is taken
template <class T, class M> CS_FN T meeting_lambda(M met, T left_bar, T h_bar, T rate) {
  using E = ElementOf<T>;
  auto meets = met & (abs(rate) > T(E(kMeeting<E>)));
  return select(meets, (left_bar - h_bar) / select(meets, rate, T(1)), T(0));
}

// no adjoint: a part of split_step_adj.   a step that begins with an impact: before it lies a part without duration, of which
//   q = q0 + s v,  v = v0 + s a,  left = h - s,  phi(q) = 0.   The trace is that of part 0
template <class T> CS_OP void began_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, const Options& o, T* q_bar,
                                        const T* v_bar, const Params<T>& th_bar, T left_bar, Split<T>& s) {
  int bits = 0;
  for (int l = 0; l < lanes<T>; l++) bits |= (s.began[l] >= 0) << l;
  if (!bits) return;
  Params<T> th_phi = params_map(t, th_bar.gravity ? s.theta : static_cast<T*>(nullptr));
  for (int i = 0; i < params_size(t) && th_bar.gravity; i++) s.theta[i] = T(0);
  normalise(t, s.q, s.way.tr.q);
  look_at(t, th, s.way, s.v, static_cast<const T*>(nullptr));
  meeting_adj(t, th, rw, o, s, s.began, static_cast<const int*>(nullptr), th_phi);
  T rate = T(0), h_bar = T(0);
  for (int d = 0; d < t.nv; d++) {
    T a = (rw.v_star[d] - s.v[d]) / s.h[0];
    rate = fma(s.q_phi[d], s.v[d], rate), h_bar += fma(q_bar[d], s.v[d], v_bar[d] * a);
  }
  T lambda = meeting_lambda(lane_flags<T>(bits) > T(0.5), left_bar, h_bar, rate);
  for (int d = 0; d < t.nv; d++) q_bar[d] = fma(lambda, s.q_phi[d], q_bar[d]);
  add_theta(t, lambda, s.theta, th_bar);
}

// adjoint: s holds the parts. q_bar (tangent), v_bar: those of the end on entry, of the start on return; the rest is added. show(lanes):
// sets rb.impulse after the step of the part in which these lanes end
template <class T, class Show>
CS_OP void split_step_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, const Options& o,
                          const Inputs<T>& in, T* q_bar, T* v_bar, const Bars<T>& bar, const RowBars<T>& rb,
                          const Params<T>& th_bar, InputBars<T>& in_bar, Split<T>& s, const Show& show) {
  T zero = T(0), left_bar = zero, full_bar = zero;
  for (int k = s.parts - 1; k >= 0; k--) {
    const int* hit = s.hit + k * lanes<T>;
    int hits = 0;
    for (int l = 0; l < lanes<T>; l++) hits |= (hit[l] >= 0) << l;
    auto now = lane_flags<T>(s.live[k]) > T(0.5), met = lane_flags<T>(hits) > T(0.5);
    Inputs<T> part = part_inputs(t, o, in, s, k);
    step(t, th, tr, rw, o, part, s.q_end, s.v_end);
    Params<T> th_phi = params_map(t, th_bar.gravity ? s.theta : static_cast<T*>(nullptr));
    InputBars<T> phi = {s.q_in, s.v_in, s.u, zero, in_bar.external ? s.external : nullptr};
    for (int d = 0; d < t.nv; d++) s.q_in[d] = s.v_in[d] = s.q_phi[d] = s.v_phi[d] = zero;
    if (hits) {
      for (int i = 0; i < params_size(t) && th_bar.gravity; i++) s.theta[i] = zero;
      for (int i = 0; i < 6 * t.nb && in_bar.external; i++) s.external[i] = zero;
      for (int i = 0; i < t.nu; i++) s.u[i] = zero;
      normalise(t, s.q + (k + 1) * t.nq, s.way.tr.q);
      look_at(t, th, s.way, s.v_end, static_cast<const T*>(nullptr));
      meeting_adj(t, th, rw, o, s, hit, s.point + k * lanes<T>, th_phi);
      for (int d = 0; d < t.nv; d++) s.q_phi[d] = select(met, s.q_phi[d], zero);
      for (int i = 0; i < rw.count[0]; i++) rb.impulse[i] = zero3<T>();
      step_adj(t, th, tr, rw, o, part, s.v_end, s.q_phi, s.v_phi, bar, rb, th_phi, phi);
    }
    show(s.live[k] & ~hits);
    for (int d = 0; d < t.nv; d++)
      s.q_seed[d] = select(now, q_bar[d], zero), s.v_seed[d] = select(now, v_bar[d], zero), s.q_phi[d] = s.v_phi[d] = zero;
    InputBars<T> main = {s.q_phi, s.v_phi, in_bar.u, zero, in_bar.external};
    step_adj(t, th, tr, rw, o, part, s.v_end, s.q_seed, s.v_seed, bar, rb, th_bar, main);
    T lambda = meeting_lambda(met, left_bar, main.h, phi.h);
    left_bar = select(now & !met, main.h, left_bar), full_bar += fma(lambda, phi.full, main.full);
    for (int d = 0; d < t.nv; d++) {
      q_bar[d] = select(now, fma(lambda, s.q_in[d], s.q_phi[d]), q_bar[d]);
      v_bar[d] = select(now, fma(lambda, s.v_in[d], s.v_phi[d]), v_bar[d]);
    }
    if (!hits) continue;
    for (int i = 0; i < t.nu && in_bar.u; i++) in_bar.u[i] = fma(lambda, s.u[i], in_bar.u[i]);
    for (int i = 0; i < 6 * t.nb && in_bar.external; i++) in_bar.external[i] = fma(lambda, s.external[i], in_bar.external[i]);
    add_theta(t, lambda, s.theta, th_bar);
  }
  began_adj(t, th, rw, o, q_bar, v_bar, th_bar, left_bar, s);
  in_bar.h += left_bar + full_bar;
}

CS_END
