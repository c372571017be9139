// joint_rows: what a dry-friction row, a force-limited actuator or a joint limit puts into its row.
//
//   dry friction  J = 1, |lambda| <= h dry_friction           limit  J = d distance, 0 <= lambda, target as a contact's
//   actuator      J = gear, h force_lower <= lambda <= h force_upper,  R = 1/(h k),  target = -f0 / k,  k = kd + h kp:
//                 free of its bounds it exerts f = f0 - k gear v+,  f0 = kp (u - gear q) or kd u
// kinks: those of the control's limits; the target's branches (contact_target)
#pragma once
#include "actuate.h"
#include "slots.h"

CS_BEGIN

// A row's own numbers
template <class T> struct RowValues {
  T J, target, R, lo, hi;
};

constexpr double kUnbounded = 1e30;

// contact_target: the velocity that a gap asks for, and its derivatives by gap, J v, e and h
template <class T> struct Target {
  T value, gap, v, e, h;
};
// no adjoint: it returns its own derivatives.   A soft contact is a spring: it pushes as hard as it is compressed, without push_speed.
// An impact takes over where it asks for more than the penetration does.
// kinks: touching, the end of push_speed, and the gate of an impact, which is chosen like a feature
template <class T> CS_FN Target<T> contact_target(T gap, T Jv, T Jv_star, T e, T soft, T h, const Options& o) {
  using E = ElementOf<T>;
  T zero = T(0), inv = T(1) / h, push = T(-E(o.push_speed)), wish = T(E(o.recovery)) * gap * inv;
  auto deep = gap < zero;
  auto slow = (wish > push) | (soft > zero);
  T slope = select(deep, select(slow, T(E(o.recovery)) * inv, zero), inv);
  T value = select(deep, select(slow, wish, push), gap * inv);
  auto impact = (fma(h, Jv_star, gap) < zero) & (Jv < T(-E(o.bounce_speed))) & !(deep & !(e * Jv < value));
  return {select(impact, e * Jv, value), select(impact, zero, slope), select(impact, e, zero), select(impact, Jv, zero),
          select(impact, zero, -slope * gap * inv)};
}

// no adjoint: integers.   does dof d turn its body, or slide it?
CS_FN bool dof_turns(const Tree& t, int d) {
  int b = t.dof_body[d], joint = t.joint[b];
  return joint == kRevolute || joint == kBall || (joint_parent_fixed(joint) && d - t.v_adr[b] >= joint_parent_fixed(joint));
}

// dof_lightness: 1/m of a dof's body where it slides, 3 / tr I where it turns; massless bodies count for nothing. Times relative_softness it is the
// floor of R of the dof's rows: it decides how rows that hold the same share a load, so it has a derivative
template <class T> CS_FN T dof_lightness(const Tree& t, const Params<T>& th, int d) {
  const Sym3<T>& I = th.inertia[t.dof_body[d]];
  T size = dof_turns(t, d) ? T(ElementOf<T>(1.0 / 3)) * (I.xx + I.yy + I.zz) : th.mass[t.dof_body[d]];
  auto some = size > T(0);
  return select(some, T(1) / select(some, size, T(1)), T(0));
}
template <class T> CS_FN void dof_lightness_adj(const Tree& t, const Params<T>& th, int d, T y_bar, const Params<T>& th_bar) {
  if (!th_bar.mass) return;
  int b = t.dof_body[d];
  T y = dof_lightness(t, th, d), size_bar = -y * y * y_bar;
  if (!dof_turns(t, d)) {
    th_bar.mass[b] += size_bar;
    return;
  }
  T third = T(ElementOf<T>(1.0 / 3)) * size_bar;
  th_bar.inertia[b].xx += third, th_bar.inertia[b].yy += third, th_bar.inertia[b].zz += third;
}

// no adjoint: used by both directions.   control and free force of actuator k
template <class T> CS_FN T free_force(const Tree& t, const Params<T>& th, const T* q, const T* u, int k) {
  T c = control(t, th, u, k);
  return t.actuator[k] == kPosition ? th.kp[k] * fnma(th.gear[k], q[t.motor_q[k]], c) : th.kd[k] * c;
}

// fixed_row: dry friction or a force-limited actuator
template <class T>
CS_FN RowValues<T> fixed_row(const Tree& t, const Params<T>& th, const T* q, const T* u, T h, int kind, int i) {
  if (kind == kDryRow) {
    T hi = h * th.dry_friction[i];
    return {T(1), T(0), T(0), -hi, hi};
  }
  int m = t.servo_motor[i], f = t.bound[m];
  T k = fma(h, th.kp[m], th.kd[m]), inv = T(1) / k;
  return {th.gear[m], -free_force(t, th, q, u, m) * inv, inv / h, h * th.force_lower[f], h * th.force_upper[f]};
}
// adjoint: undo the bounds, R, target
template <class T> CS_FN void fixed_row_adj(const Tree& t, const Params<T>& th, const T* q, const T* u, T h, int kind, int i,
                                            const RowValues<T>& y_bar, const Params<T>& th_bar, T* q_bar, T* u_bar, T& h_bar) {
  if (kind == kDryRow) {
    T g = y_bar.hi - y_bar.lo;
    h_bar = fma(th.dry_friction[i], g, h_bar);
    if (th_bar.dry_friction) th_bar.dry_friction[i] = fma(h, g, th_bar.dry_friction[i]);
    return;
  }
  int m = t.servo_motor[i], d = t.motor_dof[m], f = t.bound[m];
  T g = th.gear[m], k = fma(h, th.kp[m], th.kd[m]), inv = T(1) / k, f0 = free_force(t, th, q, u, m), c = control(t, th, u, m);
  h_bar += fma(th.force_lower[f], y_bar.lo, th.force_upper[f] * y_bar.hi);
  if (th_bar.force_lower) th_bar.force_lower[f] = fma(h, y_bar.lo, th_bar.force_lower[f]);
  if (th_bar.force_upper) th_bar.force_upper[f] = fma(h, y_bar.hi, th_bar.force_upper[f]);
  // R = 1/(h k), target = -f0/k
  T k_bar = inv * (f0 * inv * y_bar.target - inv / h * y_bar.R), f_bar = -inv * y_bar.target;
  h_bar = fnma(inv / (h * h), y_bar.R, h_bar);
  h_bar = fma(th.kp[m], k_bar, h_bar);
  T kp_bar = h * k_bar, kd_bar = k_bar, g_bar = y_bar.J, c_bar;
  if (t.actuator[m] == kPosition) {
    T x = q[t.motor_q[m]];
    c_bar = th.kp[m] * f_bar;
    kp_bar = fma(fnma(g, x, c), f_bar, kp_bar);
    g_bar = fnma(x, c_bar, g_bar);
    q_bar[d] = fnma(g, c_bar, q_bar[d]);
  } else {
    c_bar = th.kd[m] * f_bar;
    kd_bar = fma(c, f_bar, kd_bar);
  }
  control_adj(t, th, u, m, c_bar, th_bar, u_bar);
  if (!th_bar.gear) return;
  th_bar.gear[m] += g_bar, th_bar.kp[m] += kp_bar, th_bar.kd[m] += kd_bar;
}

CS_END
