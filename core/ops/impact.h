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

constexpr int kMostAdvances = 40;  // of one search
constexpr int kCautious = 8;       // of these with what turning may add; it makes the last ones slow
constexpr int kMostRoots = 8;      // steps to find the time to the last digit
// Shortest part of a step; what meets earlier than that meets next
constexpr double kLeastPart = 1e-9;

// Scratch of a search, and what was found
template <class T> struct Way {
  Trace<T> tr;  // of the place looked at
  Rows<T> rw;   // the same: shapes and candidates only
  T *w0, *w1, *x, *u;
  Motion<T>* accel;  // [nb]
  int *pair, *bits;  // [max_near] pairs that may meet, in which lanes
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
  return s;
}

// no adjoint: see above.   shapes and motions in configuration q with velocities u and, where there are any, accelerations
template <class T> CS_OP void look_at(const Tree& t, const Params<T>& th, Way<T>& s, const T* u, const T* accel) {
  kinematics(t, th, s.tr);
  shapes(t, th, s.tr, s.rw);
  velocity(t, s.tr, u);
  for (int b = 0; b < t.nb; b++) s.accel[b] = accel ? body_motion(t, s.tr, accel, b) : zero_motion<T>();
}

// What is known of a pair at one place: gap, its rate, acceleration along the normal, and what turning may add to both, per lane
template <class T> struct Approach {
  T gap, rate, accel, turn;
};

// no adjoint: see above.   how shape i turns: no point of it moves faster than another by more than `turn`, or is bent away by more than `bend`
template <class T> CS_FN void turning(const Tree& t, const Params<T>& th, const Way<T>& s, int i, T& turn, T& bend) {
  int b = t.shape_body[i];
  if (b < 0) return;
  s.rw.bound_p[i] = s.rw.shape_p[i];
  shape_bound(t, th, s.rw, i);
  Vec3<T> e = s.rw.bound[i], arm = s.rw.bound_p[i] - s.tr.p[b], w = s.tr.v[b].w, faster = s.accel[b].w;
  T size = t.shape_type[i] == kSphere ? T(0) : sqrt(dot(e, e)), w2 = dot(w, w);
  turn = fma(T(2) * sqrt(w2), size, turn);
  bend = fma(size + sqrt(dot(arm, arm)), w2 + sqrt(dot(faster, faster)), bend);
}

// no adjoint: see above.   pair k of the search, where s.tr is
template <class T>
CS_OP Approach<T> approach_of(const Tree& t, const Params<T>& th, const Rows<T>& rw, Way<T>& s, int k, int bits) {
  using E = ElementOf<T>;
  int p = s.pair[k], i = t.pair_a[p], j = t.pair_b[p], a = t.shape_body[i], b = t.shape_body[j];
  Motion<T> still = zero_motion<T>(), v_a = a < 0 ? still : s.tr.v[a], v_b = b < 0 ? still : s.tr.v[b],
            a_a = a < 0 ? still : s.accel[a], a_b = b < 0 ? still : s.accel[b];
  Approach<T> y = {T(E(kNowhere)), T(0), T(0), T(0)};
  T bend = T(0);
  s.rw.count[6] = s.rw.count[7] = 0;
  collide_pair(t, th, s.tr, s.rw, p, bits, rw.grow[i] + rw.grow[j]);
  for (int c = 0; c < s.rw.count[6]; c++) {
    auto closer = s.rw.gap[c] < y.gap;
    y.gap = select(closer, s.rw.gap[c], y.gap);
    y.rate = select(closer, gap_rate(s.rw, c, v_a, v_b), y.rate);
    y.accel = select(closer, gap_rate(s.rw, c, a_a, a_b), y.accel);
  }
  turning(t, th, s, i, y.turn, bend), turning(t, th, s, j, y.turn, bend);
  y.accel -= bend;
  return y;
}

// no adjoint: see above.   first time at which gap + s rate + s^2/2 accel is zero, not below `never` if there is none
template <class T> CS_FN T first_root(T gap, T rate, T accel, T never) {
  T zero = T(0), one = T(1), disc = fnma(T(2) * accel, gap, rate * rate), root = sqrt(max(disc, zero));
  auto falls = rate < zero, some = !(disc < zero), bent = accel < zero;
  T soon = T(2) * gap / select(falls, root - rate, one), late = (rate + root) / select(bent, -accel, one);
  return select(falls & some, soon, select(bent, late, never));
}

// no adjoint: integers.   lanes in which the pair of near pair k has rows
template <class T> CS_FN int lanes_with_rows(const Rows<T>& rw, int k, int& c) {
  int bits = 0;
  for (; c < rw.count[6] && rw.cand_pair[c] == rw.near[k]; c++) bits |= rw.used[c];
  return bits;
}

// no adjoint: see above.   the way of a step that has been made with h = in.reach from tr, rw, to v_next; and the pairs that may meet on it
template <class T> CS_OP void find_way(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                       const Inputs<T>& in, const Options& o, const T* v_next, Way<T>& s) {
  using E = ElementOf<T>;
  for (int d = 0; d < t.nv; d++) {
    auto pushed = rw.pushed[t.root[t.dof_body[d]]] > T(0.5);
    T accel = (rw.v_star[d] - in.v[d]) / in.h;
    s.w0[d] = select(pushed, v_next[d], in.v[d] + (v_next[d] - rw.v_star[d])), s.w1[d] = select(pushed, T(0), accel);
  }
  for (int b = 0; b < t.nb; b++)
    for (int d = t.v_adr[b]; d < t.v_adr[b] + falling_dofs(t, b); d++)
      s.w1[d] = fnma(T(0.5) * unpushed(rw, b), dot(tr.S[d].v, th.gravity[0]), s.w1[d]);
  s.n = 0;
  for (int d = 0; d < t.nq; d++) s.tr.q[d] = tr.q[d];
  bool looked = false;
  for (int k = 0, c = 0; k < rw.count[5]; k++) {
    int with = lanes_with_rows(rw, k, c), bits = rw.near_bits[k];
    s.pair[s.n] = rw.near[k];
    // rows hold what they have, unless an impact has just sent it away
    if (with & bits) {
      if (!looked) look_at(t, th, s, s.w0, static_cast<const T*>(nullptr)), looked = true;
      Approach<T> y = approach_of(t, th, rw, s, s.n, with & bits);
      int away = int(lane_bits((y.rate > T(E(kLeastBounce * o.bounce_speed))) & (y.gap > T(-E(kTouching<E>)))));
      bits &= ~with | away;
    }
    if (bits) s.bits[s.n++] = bits;
  }
}

// no adjoint: see above.   when the first pair meets, within `left`; where none does `left`, and hit [lanes] is -1
template <class T> CS_OP T time_of_impact(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, T left,
                                          int open, Way<T>& s, int* hit) {
  using E = ElementOf<T>;
  T zero = T(0), tau = zero, never = T(E(kNowhere)), meeting = T(E(kMeeting<E>));
  for (int l = 0; l < lanes<T>; l++) hit[l] = -1;
  int seeking = open, hits = 0, any_bits = 0;
  for (int k = 0; k < s.n; k++) any_bits |= s.bits[k];
  seeking &= any_bits;
  for (int n = 0; n < kMostAdvances && seeking; n++) {
    for (int d = 0; d < t.nv; d++) s.x[d] = tau * fma(tau, s.w1[d], s.w0[d]), s.u[d] = fma(T(2) * tau, s.w1[d], s.w0[d]);
    integrate(t, tr.q, T(1), s.x, s.tr.q);
    for (int d = 0; d < t.nv; d++) s.x[d] = T(2) * s.w1[d];
    look_at(t, th, s, s.u, s.x);
    T advance = never;
    for (int k = 0; k < s.n; k++) {
      int bits = s.bits[k] & seeking;
      if (!bits) continue;
      Approach<T> y = approach_of(t, th, rw, s, k, bits);
      T slow = n < kCautious ? y.turn : zero, rate = y.rate - slow;
      // what has met is not there yet while it moves away
      auto met = (y.rate < zero) & !(y.gap > meeting);
      T by = select(met, zero, first_root(max(y.gap, zero), select(y.gap > meeting, rate, y.rate), y.accel, never));
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
