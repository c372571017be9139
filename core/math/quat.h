// Unit quaternions (w, x, y, z) and the rotation group.
//
// A rotation's derivative lives in its tangent space: a perturbed rotation is q exp(d_theta), d_theta in body axes.
// Bars of rotations are therefore Vec3 (theta_bar) inside the engine; tangent_bar and quat_normalise_adj convert
// from and to the four numbers a user sees.   log and difference: not smooth at a half turn, where the shorter way flips.
#pragma once
#include "mat3.h"
#include "trig.h"

CS_BEGIN

template <class T> struct Quat {
  T w, x, y, z;
};

// no adjoint: reads the vector part
template <class T> CS_FN Vec3<T> vec(Quat<T> q) { return {q.x, q.y, q.z}; }

// no adjoint: linear in each argument
template <class T> CS_FN Quat<T> mul(Quat<T> a, Quat<T> b) {
  Vec3<T> v = fma(a.w, vec(b), fma(b.w, vec(a), cross(vec(a), vec(b))));
  return {fnma(a.x, b.x, fnma(a.y, b.y, fnma(a.z, b.z, a.w * b.w))), v.x, v.y, v.z};
}

// no adjoint: linear
template <class T> CS_FN Quat<T> conj(Quat<T> q) { return {q.w, -q.x, -q.y, -q.z}; }

// no adjoint: linear in x; in q the tangent rule d(R x) = R (d_theta x x) is used by callers
// matrix: R(q) = 1 + 2 (w [u] + [u]^2)
template <class T> CS_FN Mat3<T> matrix(Quat<T> q) {
  T x2 = q.x + q.x, y2 = q.y + q.y, z2 = q.z + q.z, one = T(1);
  T xx = x2 * q.x, yy = y2 * q.y, zz = z2 * q.z;
  return {{one - (yy + zz), fnma(z2, q.w, x2 * q.y), fma(y2, q.w, x2 * q.z)},
          {fma(z2, q.w, x2 * q.y), one - (xx + zz), fnma(x2, q.w, y2 * q.z)},
          {fnma(y2, q.w, x2 * q.z), fma(x2, q.w, y2 * q.z), one - (xx + yy)}};
}

// no adjoint: as matrix().   rotate: y = R(q) x.  t = 2 u x x;  y = x + w t + u x t
template <class T> CS_FN Vec3<T> rotate(Quat<T> q, Vec3<T> x) {
  Vec3<T> t = cross(vec(q), x);
  t = t + t;
  return fma(q.w, t, x + cross(vec(q), t));
}

// quat_normalise: q / |q|.   a zero quaternion is refused by the driver before it gets here
template <class T> CS_FN Quat<T> quat_normalise(Quat<T> q) {
  T s = T(1) / sqrt(fma(q.w, q.w, fma(q.x, q.x, fma(q.y, q.y, q.z * q.z))));
  return {q.w * s, q.x * s, q.y * s, q.z * s};
}
// adjoint, from the tangent at the unit quaternion:  d_theta = 2 vec(conj(u) dq) / |q|,  u = q / |q|
template <class T> CS_FN void quat_normalise_adj(Quat<T> q, Vec3<T> theta_bar, Quat<T>& q_bar) {
  T n = fma(q.w, q.w, fma(q.x, q.x, fma(q.y, q.y, q.z * q.z)));
  Quat<T> b = mul(q, Quat<T>{T(0), theta_bar.x, theta_bar.y, theta_bar.z});
  T s = T(2) / n;
  q_bar.w += s * b.w, q_bar.x += s * b.x, q_bar.y += s * b.y, q_bar.z += s * b.z;
}

// no adjoint: used on bars only.   dq = q (0, d_theta) / 2, so theta_bar = vec(conj(q) q_bar) / 2
template <class T> CS_FN Vec3<T> tangent_bar(Quat<T> q, Quat<T> q_bar) { return T(0.5) * vec(mul(conj(q), q_bar)); }

// no adjoint: coefficients of the closed forms below, functions of x = theta^2:
//   exp_sinc = sin(theta/2)/theta,  right_a = (1 - cos theta)/theta^2,  right_b = (theta - sin theta)/theta^3,
//   inverse_b = (1 - (theta/2) cot(theta/2))/theta^2.   Series below theta = 0.1, where the closed forms cancel
template <class T> struct TurnCoefficients {
  T half_cos, exp_sinc, right_a, right_b, inverse_b;
};
// no adjoint: see above
template <class T> CS_FN TurnCoefficients<T> turn_coefficients(Vec3<T> phi) {
  using E = ElementOf<T>;
  T x = dot(phi, phi);
  auto small = x < T(E(0.01));
  T theta = sqrt(select(small, T(1), x)), s, c;  // the unselected side stays finite
  sincos(T(0.5) * theta, s, c);
  T inv = T(1) / theta, inv2 = inv * inv, s2 = s + s;
  auto series = [&](E a, E b, E d, E e, E f) { return fma(x, fma(x, fma(x, fma(x, T(f), T(e)), T(d)), T(b)), T(a)); };
  TurnCoefficients<T> k;
  k.half_cos = select(small, series(1, -1. / 8, 1. / 384, -1. / 46080, 1. / 10321920), c);
  k.exp_sinc = select(small, series(1. / 2, -1. / 48, 1. / 3840, -1. / 645120, 1. / 185794560), s * inv);
  k.right_a = select(small, series(1. / 2, -1. / 24, 1. / 720, -1. / 40320, 1. / 3628800), s2 * s * inv2);
  k.right_b = select(small, series(1. / 6, -1. / 120, 1. / 5040, -1. / 362880, 1. / 39916800), (theta - s2 * c) * inv2 * inv);
  T half_cot = T(0.5) * theta * c / select(small, T(1), s);
  k.inverse_b = select(small, series(1. / 12, 1. / 720, 1. / 30240, 1. / 1209600, 1. / 47900160), (T(1) - half_cot) * inv2);
  return k;
}

// quat_exp: the turn by |phi| about phi.   smooth everywhere
template <class T> CS_FN Quat<T> quat_exp(Vec3<T> phi) {
  TurnCoefficients<T> k = turn_coefficients(phi);
  return {k.half_cos, k.exp_sinc * phi.x, k.exp_sinc * phi.y, k.exp_sinc * phi.z};
}
// adjoint:  d_theta = (1 - a [phi] + b [phi]^2) d_phi, the right Jacobian; transposed
template <class T> CS_FN void quat_exp_adj(Vec3<T> phi, Vec3<T> theta_bar, Vec3<T>& phi_bar) {
  TurnCoefficients<T> k = turn_coefficients(phi);
  Vec3<T> t = cross(phi, theta_bar);
  phi_bar += fma(k.right_b, cross(phi, t), fma(k.right_a, t, theta_bar));
}

// quat_log: phi with exp(phi) = +-q, |phi| <= pi.   kink: the half turn, w = 0; the branch w >= 0 is taken there
template <class T> CS_FN Vec3<T> quat_log(Quat<T> q) {
  auto flip = q.w < T(0);
  T w = select(flip, -q.w, q.w);
  T d = T(1) / (T(1) + w);
  T y = dot(vec(q), vec(q)) * d * d;  // tan^2(theta/4)
  T s = T(4) * d * atan_ratio(y);
  return select(flip, -s, s) * vec(q);
}
// adjoint:  d_phi = (1 + [phi]/2 + b [phi]^2) d_theta, the inverse right Jacobian; transposed
template <class T> CS_FN void quat_log_adj(Vec3<T> phi, Vec3<T> phi_bar, Vec3<T>& theta_bar) {
  TurnCoefficients<T> k = turn_coefficients(phi);
  Vec3<T> t = cross(phi, phi_bar);
  theta_bar += fma(k.inverse_b, cross(phi, t), fma(T(-0.5), t, phi_bar));
}

CS_END
