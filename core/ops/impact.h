// impact: when the first pair that flies meets, along the way of a part of a step.
//
//   way:      q(s) = q (+) (s w0 + s^2 w1),  velocity w0 + 2 s w1;   what is pushed: w0 = v+, else v with impacts, and accelerations
//   advance:  the gap of two convex shapes shrinks along its normal n at most like  gap + s rate + s^2/2 accel,  with what turning may add;
//             so nothing meets before its first root. Repeated until it meets or the time is over: no pair can be jumped over
// no adjoint in this file: the time is a root of the gap, differentiated as such (core/split.h)
#pragma once
#include "constrain.h"
#include "integrate.h"
#include "kinematics.h"

CS_BEGIN

constexpr int kMostAdvances = 128;  // of one search
// Part of what is left by which a search moves on at least from what turns: many small advances would not end, and what is jumped over is found inside
constexpr double kHop = 1.0 / 64;
constexpr int kCorners = 8;  // points of a shape that touch a plane, at most (shape_points)
// Part of the margin: what turning may add, below which it is not waited for, and depth below which a held pair has been met on the way
constexpr double kDeep = 0.1;
constexpr int kMostRoots = 40;  // steps to find the time to the last digit
// Shortest part of a step, over what is left of it. What meets later than all but this much meets in the next step
constexpr double kLeastPart = 1e-9;

// Scratch of a search, and what was found
template <class T> struct Way {
  Trace<T> tr;  // of the place looked at
  Rows<T> rw;   // the same: shapes and candidates only
  T *w0, *w1, *x, *u;
  Motion<T>* accel;   // [nb]
  int *pair, *bits;   // [max_near] pairs that may meet, in which lanes
  int *held, *holds;  // [max_near], [max_cand] lanes in which rows hold a pair, a candidate
  int* deep;          // [max_near, kCorners] lanes in which a point of it overlaps where the search begins
  int* rests;         // [max_near, kCorners] lanes in which rows hold a corner on a plane
  T* rate;            // [max_cand] of the gaps of the pair looked at
  int n;
};

// no adjoint: memory
template <class T> CS_FN Way<T> way_map(const Tree& t, Arena<T>& m) {
  Way<T> s{};
  s.tr = trace_map(t, m);
  touch_map(t, s.rw, m);
  s.rw.width = contact_width(t);
  s.w0 = m.template take<T>(t.nv), s.w1 = m.template take<T>(t.nv), s.x = m.template take<T>(t.nv),
  s.u = m.template take<T>(t.nv);
  s.accel = m.template take<Motion<T>>(t.nb);
  s.pair = m.template take<int>(t.max_near), s.bits = m.template take<int>(t.max_near);
  s.held = m.template take<int>(t.max_near), s.holds = m.template take<int>(t.max_cand);
  s.deep = m.template take<int>(t.max_near * kCorners), s.rests = m.template take<int>(t.max_near * kCorners);
  s.rate = m.template take<T>(t.max_cand);
  return s;
}

// no adjoint: see above.   shapes and motions in configuration s.tr.q with velocities u and, where there are any, accelerations
template <class T> CS_OP void look_at(const Tree& t, const Params<T>& th, Way<T>& s, const T* u, const T* accel) {
  kinematics(t, th, s.tr);
  shapes(t, th, s.tr, s.rw);
  velocity(t, s.tr, u);
  for (int b = 0; b < t.nb; b++) s.accel[b] = accel ? body_motion(t, s.tr, accel, b) : zero_motion<T>();
}

// no adjoint: see above.   candidates of pair p where s.tr is, in lanes `bits`, and the rates of their gaps; returns how many
template <class T> CS_OP int look_at_pair(const Tree& t, const Params<T>& th, const Rows<T>& rw, Way<T>& s, int p, int bits) {
  int i = t.pair_a[p], j = t.pair_b[p], a = t.shape_body[i], b = t.shape_body[j];
  Motion<T> still = zero_motion<T>(), v_a = a < 0 ? still : s.tr.v[a], v_b = b < 0 ? still : s.tr.v[b];
  s.rw.count[6] = s.rw.count[7] = 0;
  collide_pair(t, th, s.tr, s.rw, p, bits, rw.grow[i] + rw.grow[j]);
  for (int c = 0; c < s.rw.count[6]; c++) s.rate[c] = gap_rate(s.rw, c, v_a, v_b);
  return s.rw.count[6];
}

// no adjoint: see above.   how shape i turns: no point of it moves faster than another by more than `turn`, or is bent away by more than `bend`; its size
// is added to `size`
template <class T> CS_FN void turning(const Tree& t, const Params<T>& th, const Way<T>& s, int i, T& turn, T& bend, T& size) {
  int b = t.shape_body[i];
  if (b < 0) return;
  s.rw.bound_p[i] = s.rw.shape_p[i];
  shape_bound(t, th, s.rw, i);
  Vec3<T> e = s.rw.bound[i], arm = s.rw.bound_p[i] - s.tr.p[b], w = s.tr.v[b].w, faster = s.accel[b].w;
  T half = t.shape_type[i] == kSphere ? T(0) : sqrt(dot(e, e)), w2 = dot(w, w);
  size += half, turn = fma(T(2) * sqrt(w2), half, turn);
  bend = fma(half + sqrt(dot(arm, arm)), w2 + sqrt(dot(faster, faster)), bend);
}

// no adjoint: see above.   first time at which gap + s rate + s^2/2 accel is zero, not below `never` if there is none
template <class T> CS_FN T first_root(T gap, T rate, T accel, T never) {
  T zero = T(0), one = T(1), disc = fnma(T(2) * accel, gap, rate * rate), root = sqrt(max(disc, zero));
  auto falls = rate < zero, some = !(disc < zero), bent = accel < zero;
  T soon = T(2) * gap / select(falls, root - rate, one), late = (rate + root) / select(bent, -accel, one);
  return select(falls & some, soon, select(bent, late, never));
}

// no adjoint: see above.   the way of a step that has been made with h = in.reach from tr, rw, to v_next; and the pairs that may meet on it
template <class T> CS_OP void find_way(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                       const Inputs<T>& in, const T* v_next, Way<T>& s) {
  for (int d = 0; d < t.nv; d++) {
    auto pushed = rw.pushed[t.root[t.dof_body[d]]] > T(0.5);
    T accel = (rw.v_star[d] - in.v[d]) / in.h;
    s.w0[d] = select(pushed, v_next[d], in.v[d] + (v_next[d] - rw.v_star[d])), s.w1[d] = select(pushed, T(0), accel);
  }
  for (int b = 0; b < t.nb; b++)
    for (int d = t.v_adr[b]; d < t.v_adr[b] + falling_dofs(t, b); d++)
      s.w1[d] = fnma(T(0.5) * rw.falls[b], fall_accel(th, tr, in.v, in.external, b, d), s.w1[d]);
  for (int c = 0; c < rw.count[6]; c++) s.holds[c] = 0;
  for (int i = 0; i < rw.count[0]; i++) {
    if (rw.kind[i] != kContactRows) continue;
    int rests = int(lane_bits(rw.impact[i] < T(0.5)));
    for (int l = 0; l < lanes<T>; l++)
      if (rw.item[i][l] >= 0) s.holds[rw.item[i][l]] |= rests & 1 << l;
  }
  s.n = rw.count[5];
  for (int k = 0, c = 0; k < s.n; k++) {
    s.pair[k] = rw.near[k], s.bits[k] = rw.near_bits[k], s.held[k] = 0;
    for (int i = 0; i < kCorners; i++) s.rests[k * kCorners + i] = 0;
    for (; c < rw.count[6] && rw.cand_pair[c] == rw.near[k]; c++)
      s.held[k] |= s.holds[c], s.rests[k * kCorners + rw.cand_point[c]] |= s.holds[c];
  }
}

// no adjoint: chooses.   1 in the lanes of `bits`
template <class T> CS_FN T lane_flags(int bits) {
  T x = T(0);
  for (int l = 0; l < lanes<T>; l++)
    if (bits >> l & 1) set_lane(x, l, ElementOf<T>(1));
  return x;
}

// no adjoint: see above.   how long pair k cannot meet, in lanes `bits`, where s.tr is; 0: it meets.   advance: how many there were, hop: see kHop
template <class T> CS_OP T pair_advance(const Tree& t, const Params<T>& th, const Rows<T>& rw, const Options& o, Way<T>& s, int k,
                                        int bits, int advance, T hop) {
  using E = ElementOf<T>;
  int p = s.pair[k], i = t.pair_a[p], j = t.pair_b[p], a = t.shape_body[i], b = t.shape_body[j];
  Motion<T> still = zero_motion<T>(), a_a = a < 0 ? still : s.accel[a], a_b = b < 0 ? still : s.accel[b];
  T zero = T(0), never = T(E(kNowhere)), soonest = never, touching = T(E(kTouching<E>)), turn = zero, bend = zero, size = zero;
  turning(t, th, s, i, turn, bend, size), turning(t, th, s, j, turn, bend, size);
  // corners on a plane are points, which turn with their own speed
  bool chosen = pair_chosen(t, p);
  if (!chosen) turn = zero;
  // what rows hold, and what has just been hit, only meets if it approaches
  auto held = lane_flags<T>(s.held[k]) > T(0.5);
  T slow = select(held, T(-E(o.bounce_speed)), T(-E(kLeastBounce * o.bounce_speed)));
  T depth = T(-10) * touching, little = T(E(kDeep * o.margin));
  if (chosen) depth = select(held, -little, depth);
  int* deep = s.deep + k * kCorners;
  for (int c = 0; c < kCorners && !advance; c++) deep[c] = 0;
  int n = look_at_pair(t, th, rw, s, p, bits);
  for (int c = 0; c < n; c++) {
    T gap = s.rw.gap[c], rate = s.rate[c], accel = gap_rate(s.rw, c, a_a, a_b) - bend;
    // corners keep their number, chosen features do not
    int& began = deep[chosen ? 0 : c];
    if (!advance) began |= int(lane_bits(gap < (chosen ? depth : touching)));
    auto apart = lane_flags<T>(advance ? ~began : 0) > T(0.5),
         rests = lane_flags<T>(chosen ? 0 : s.rests[k * kCorners + c]) > T(0.5);
    // what is inside by now has been met on the way, wherever it goes; what leaves may turn around another point of it
    auto touches = !(gap > touching);
    auto meets = touches & ((rate < slow) | (apart & (gap < depth)));
    T added = select(turn * gap < little * max(-rate, zero), zero, turn), leaves = select(held | !(turn > zero), never, hop);
    T by = first_root(max(gap, zero), rate - added, accel, never);
    by = select(added > zero, max(by, select(rate < zero, T(E(0.25)) * hop, hop)), by);
    // a point that leaves comes back by its own acceleration
    T back = select(rate > zero, first_root(zero, rate, accel, never), never);
    T next = select(touches, select(meets, zero, select(held, never, min(max(back, hop), max(leaves, hop)))), by);
    soonest = min(soonest, select(rests, never, next));
  }
  return soonest;
}

// no adjoint: see above.   when the first pair meets, within `left`; where none does `left`, and hit [lanes] is -1
template <class T> CS_OP T time_of_impact(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                          const Options& o, T left, int open, Way<T>& s, int* hit) {
  using E = ElementOf<T>;
  T zero = T(0), tau = zero, never = T(E(kNowhere)), hop = T(E(kHop)) * left;
  int seeking = 0, hits = 0;
  for (int l = 0; l < lanes<T>; l++) hit[l] = -1;
  for (int k = 0; k < s.n; k++) seeking |= s.bits[k] & open;
  for (int n = 0; n < kMostAdvances && seeking; n++) {
    for (int d = 0; d < t.nv; d++) s.x[d] = tau * fma(tau, s.w1[d], s.w0[d]), s.u[d] = fma(T(2) * tau, s.w1[d], s.w0[d]);
    integrate(t, tr.q, T(1), s.x, s.tr.q);
    for (int d = 0; d < t.nv; d++) s.x[d] = T(2) * s.w1[d];
    look_at(t, th, s, s.u, s.x);
    T advance = never;
    for (int k = 0; k < s.n; k++) {
      int bits = s.bits[k] & seeking;
      if (!bits) continue;
      T by = pair_advance(t, th, rw, o, s, k, bits, n, hop);
      int sooner = int(lane_bits(by < advance)) & bits;
      for (int l = 0; l < lanes<T>; l++)
        if (sooner >> l & 1) set_lane(advance, l, lane(by, l)), hit[l] = s.pair[k];
    }
    int arrived = int(lane_bits(!(advance > zero))) & seeking;
    hits |= arrived, seeking &= ~arrived;
    for (int l = 0; l < lanes<T>; l++)
      if (seeking >> l & 1) set_lane(tau, l, lane(tau, l) + lane(advance, l));
    seeking &= ~int(lane_bits(!(tau < left * T(E(1 - kLeastPart)))));
  }
  // whoever is still on the way after so many advances is about to meet
  hits |= seeking;
  for (int l = 0; l < lanes<T>; l++)
    if (!(hits >> l & 1)) set_lane(tau, l, lane(left, l)), hit[l] = -1;
  return tau;
}

CS_END
