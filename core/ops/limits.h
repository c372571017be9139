// limits: how far every limited joint is from an end of its range, and the derivative of that by its dofs.
//
//   revolute, prismatic: q - lower or upper - q, the end that q + h v is nearer to;   ball: upper - |log q|, the angle of rotation
// saves: distance, limit_J.   kink: the middle of the range; a ball joint at rest (no axis: no derivative)
#pragma once
#include "../base/team.h"
#include "../data/rows.h"
#include "integrate.h"

CS_BEGIN

constexpr double kNoAngle = 1e-9;

// no adjoint: undone in limits_adj.   rotation vector and angle of ball joint b, angle 1 where there is none
template <class T> CS_FN Vec3<T> ball_turn(const Tree& t, const T* q, int b, T& angle) {
  Vec3<T> phi = quat_log(load_quat(q + t.q_adr[b]));
  T a2 = dot(phi, phi);
  auto turned = a2 > T(ElementOf<T>(kNoAngle * kNoAngle));
  angle = select(turned, sqrt(select(turned, a2, T(1))), T(1));
  return {select(turned, phi.x, T(0)), select(turned, phi.y, T(0)), select(turned, phi.z, T(0))};
}

template <class T> CS_OP void limits(const Tree& t, const Params<T>& th, const T* q, const T* v, T h, const Rows<T>& rw) {
  share(t.n_limit, [&](int i) {
    int b = t.limit_body[i];
    if (t.joint[b] == kBall) {
      T angle;
      Vec3<T> phi = ball_turn(t, q, b, angle);
      Vec3<T> axis = (T(1) / angle) * phi;
      rw.distance[i] = th.limit_upper[i] - dot(axis, phi);
      rw.limit_J[i] = -axis;
      return;
    }
    T x = q[t.q_adr[b]], below = x - th.limit_lower[i], above = th.limit_upper[i] - x;
    T by = h * v[t.limit_dof[i]];
    auto upper = above - by < below + by;
    rw.distance[i] = select(upper, above, below);
    rw.limit_J[i] = {select(upper, T(-1), T(1)), T(0), T(0)};
  });
}
// adjoint: q_bar is tangent.   d|phi| = axis . d_theta since the turn about the axis commutes
template <class T>
CS_OP void limits_adj(const Tree& t, const T* q, const Rows<T>& rw, const RowBars<T>& rb, const Params<T>& th_bar, T* q_bar) {
  share(t.n_limit, [&](int i) {
    int b = t.limit_body[i], d = t.limit_dof[i];
    T g = rb.distance[i];
    if (t.joint[b] == kBall) {
      T angle;
      Vec3<T> phi = ball_turn(t, q, b, angle), axis = -rw.limit_J[i], axis_bar = -rb.limit_J[i], m = zero3<T>();
      // the axis: normalised rotation vector
      quat_log_adj(phi, (T(1) / angle) * (axis_bar - dot(axis, axis_bar) * axis), m);
      m -= g * axis;
      q_bar[d] += m.x, q_bar[d + 1] += m.y, q_bar[d + 2] += m.z;
      if (th_bar.limit_upper) th_bar.limit_upper[i] += g;
      return;
    }
    auto upper = rw.limit_J[i].x < T(0);
    q_bar[d] += select(upper, -g, g);
    if (!th_bar.limit_upper) return;
    th_bar.limit_upper[i] += select(upper, g, T(0));
    th_bar.limit_lower[i] -= select(upper, T(0), g);
  });
}

CS_END
