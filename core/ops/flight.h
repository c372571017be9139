// flight: pairs that are apart and come together faster than bounce_speed. Where steps are split at impacts (core/split.h) they have no rows:
// the step ends where they meet.
// no adjoint in this file: it chooses, and differentiates nothing
#pragma once
#include "../data/inputs.h"
#include "../data/rows.h"

CS_BEGIN

// Gaps that count as touching, and to which times of impact are found, m
template <class E> constexpr double kTouching = sizeof(E) == 4 ? 1e-5 : 1e-9;
template <class E> constexpr double kMeeting = sizeof(E) == 4 ? 1e-6 : 1e-12;
// Part of bounce_speed below which nothing leaves again after an impact
constexpr double kLeastBounce = 1e-2;

// no adjoint: linear, used to choose.   motion of body b under velocities x
template <class T> CS_FN Motion<T> body_motion(const Tree& t, const Trace<T>& tr, const T* x, int b) {
  Motion<T> m = zero_motion<T>();
  for (int d = b < 0 ? -1 : t.last_dof[b]; d >= 0; d = t.dof_parent[d]) m = fma(x[d], tr.S[d], m);
  return m;
}

// no adjoint: chooses.   rate of the gap of candidate c, if its bodies move like this
template <class T> CS_FN T gap_rate(const Rows<T>& rw, int c, const Motion<T>& of_a, const Motion<T>& of_b) {
  Vec3<T> x = rw.point[c];
  return dot(rw.frame[c].r0, of_b.v + cross(of_b.w, x) - of_a.v - cross(of_a.w, x - rw.shift[c]));
}

// no adjoint: chooses.   lanes, as bits, in which the pair of candidates first to last is apart and meets too fast for rows: at the end of what
// is left of the step, whatever part of it this is
template <class T> CS_OP int flying(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in,
                                    const Options& o, int first, int last) {
  using E = ElementOf<T>;
  int p = rw.cand_pair[first], a = t.shape_body[t.pair_a[p]], b = t.shape_body[t.pair_b[p]];
  Motion<T> still = zero_motion<T>(), now_a = a < 0 ? still : tr.v[a], now_b = b < 0 ? still : tr.v[b],
            then_a = body_motion(t, tr, rw.v_star, a), then_b = body_motion(t, tr, rw.v_star, b);
  T least = T(E(kNowhere)), rate = T(0), more = in.reach / in.h;
  for (int c = first; c < last; c++) {
    T now = gap_rate(rw, c, now_a, now_b), then = gap_rate(rw, c, then_a, then_b);
    auto closer = rw.gap[c] < least;
    least = select(closer, rw.gap[c], least), rate = select(closer, fma(more, then - now, now), rate);
  }
  return int(lane_bits((least > T(E(kTouching<E>))) & (rate < T(-E(o.bounce_speed)))));
}

CS_END
