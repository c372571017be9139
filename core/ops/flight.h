// flight: pairs that are apart and come together faster than bounce_speed. Where steps are split at impacts (core/split.h) they have no rows:
// the step ends where they meet.
// no adjoint in this file: it chooses, and differentiates nothing
#pragma once
#include "../data/inputs.h"
#include "../data/rows.h"
#include "collide/segments.h"

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

// no adjoint: chooses.   motion of body b at the end of what is left of the step, whatever part of it this is
template <class T>
CS_FN Motion<T> body_later(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, int b) {
  if (in.later) return body_motion(t, tr, in.later, b);
  Motion<T> m = zero_motion<T>();
  for (int d = b < 0 ? -1 : t.last_dof[b]; d >= 0; d = t.dof_parent[d])
    m = fma(in.after[d] + (rw.v_star[d] - in.v[d]), tr.S[d], m);
  return m;
}

// no adjoint: chooses.   rates of the gap of candidate c: now, and at the end of what is left
template <class T>
CS_FN void gap_rates(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, int c, T& now, T& later) {
  int p = rw.cand_pair[c], a = t.shape_body[t.pair_a[p]], b = t.shape_body[t.pair_b[p]];
  now = gap_rate(rw, c, body_motion(t, tr, in.after, a), body_motion(t, tr, in.after, b));
  later = gap_rate(rw, c, body_later(t, tr, rw, in, a), body_later(t, tr, rw, in, b));
}

CS_END
