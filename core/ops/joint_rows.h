// joint_rows: what a dry-friction row, an actuator or a joint limit puts into its row.
//
//   dry friction  J = 1, |lambda| <= h dry_friction           limit  J = d distance, 0 <= lambda, target as a contact's
//   actuator      J = gear (times the axis of a tie), h force_lower <= lambda <= h force_upper, and
//     servo               target = -clip(gain (u - gear x), +-max_speed): the speed that it reaches within its force (paper B)
//     position, velocity, general  R = 1/(h k),  target = -f0 / k,  k = kd + h kp: free of its bounds it exerts f = f0 - k gear v+,
//                         f0 = kp (u - gear x), kd u, or control_gain u + control_bias - kp gear x
//     motor (on a tie)    both bounds are h u
// kinks: those of the control's limits, max_speed, and the target's branches (contact_target)
#pragma once
#include "actuate.h"
#include "lightness.h"
#include "slots.h"

CS_BEGIN

// A row's own numbers
template <class T> struct RowValues {
  T J, target, R, lo, hi;
};

constexpr double kUnbounded = 1e30;

// contact_target: the velocity that a gap asks for, and its derivatives by gap, J v, e, h and the whole step, of which h may be a part: that
// decides how fast a penetration is undone. bounces: 1 where what would meet within the step bounces now
template <class T> struct Target {
  T value, gap, v, e, h, full;
};
// no adjoint: it returns its own derivatives.   A soft contact is a spring: it pushes as hard as it is compressed, without push_speed.
// An impact takes over where it asks for more than the penetration does.
// kinks: touching, the end of push_speed, and the gate of an impact, which is chosen like a feature
template <class T> CS_FN Target<T> contact_target(T gap, T Jv, T Jv_star, T e, T soft, T h, T full, T bounces, const Options& o) {
  using E = ElementOf<T>;
  T zero = T(0), inv = T(1) / h, share = T(1) / full, push = T(-E(o.push_speed)), wish = T(E(o.recovery)) * gap * share;
  auto deep = gap < zero;
  auto slow = (wish > push) | (soft > zero);
  T slope = select(deep, select(slow, T(E(o.recovery)) * share, zero), inv);
  T value = select(deep, select(slow, wish, push), gap * inv), late = -slope * gap;
  Target<T> y = {value, slope, zero, zero, select(deep, zero, late * inv), select(deep, late * share, zero)};
  auto impact = (fma(h, Jv_star, gap) < zero) & (Jv < T(-E(o.bounce_speed))) & (bounces > zero) & !(deep & !(e * Jv < value));
  return {select(impact, e * Jv, value), select(impact, zero, slope), select(impact, e, zero),
          select(impact, Jv, zero),      select(impact, zero, y.h),   select(impact, zero, y.full)};
}

// dry_row: dry friction i
template <class T> CS_FN RowValues<T> dry_row(const Params<T>& th, T h, int i) {
  T hi = h * th.dry_friction[i];
  return {T(1), T(0), T(0), -hi, hi};
}
template <class T>
CS_FN void dry_row_adj(const Params<T>& th, T h, int i, const RowValues<T>& y_bar, const Params<T>& th_bar, T& h_bar) {
  T g = y_bar.hi - y_bar.lo;
  h_bar = fma(th.dry_friction[i], g, h_bar);
  if (th_bar.dry_friction) th_bar.dry_friction[i] = fma(h, g, th_bar.dry_friction[i]);
}

// no adjoint: whole turns, chosen like a feature.   angle x of a hinge between bodies, which is known up to full turns: the one nearest to
// what actuator k is told
template <class T> CS_FN T near_turn(const Tree& t, const Params<T>& th, const T* u, int k, T x) {
  using E = ElementOf<T>;
  if (t.tie_axis[t.motor_tie[k]] != kHingeAxis || t.actuator[k] == kGeneral) return x;
  T g = th.gear[k], geared = g * g;
  auto some = geared > T(0);
  T wish = select(some, control(t, th, u, k) / select(some, g, T(1)), x);
  return fma(T(E(6.283185307179586)), whole(T(E(0.15915494309189535)) * (wish - x)), x);
}

// no adjoint: undone in motor_row_adj.   f0 of a spring or damper, the speed that a servo wishes before it is clipped; x: coordinate of its joint
template <class T> CS_FN T motor_wish(const Tree& t, const Params<T>& th, T x, T c, int k) {
  return t.actuator[k] == kServo ? th.gain[t.servo[k]] * fnma(th.gear[k], x, c) : spring_force(t, th, x, k, c);
}

// motor_row: actuator k, at coordinate x of its joint
template <class T> CS_FN RowValues<T> motor_row(const Tree& t, const Params<T>& th, T x, const T* u, T h, int k) {
  int i = t.bound[k];
  T most = T(ElementOf<T>(kUnbounded)), lo = i < 0 ? -most : h * th.force_lower[i], hi = i < 0 ? most : h * th.force_upper[i];
  T c = control(t, th, u, k), wish = motor_wish(t, th, x, c, k);
  if (t.actuator[k] == kMotor) {
    T f = min(max(h * c, lo), hi);
    return {th.gear[k], T(0), T(0), f, f};
  }
  if (t.actuator[k] == kServo) {
    T v = th.max_speed[t.servo[k]];
    return {th.gear[k], -min(max(wish, -v), v), T(0), lo, hi};
  }
  T inv = T(1) / fma(h, th.kp[k], th.kd[k]);
  return {th.gear[k], -wish * inv, inv / h, lo, hi};
}
// adjoint: undo the bounds, R, target
template <class T> CS_FN void motor_row_adj(const Tree& t, const Params<T>& th, T x, const T* u, T h, int k, RowValues<T> y_bar,
                                            const Params<T>& th_bar, T& x_bar, T* u_bar, T& h_bar) {
  int i = t.bound[k];
  T g = th.gear[k], c = control(t, th, u, k), wish = motor_wish(t, th, x, c, k), zero = T(0), c_bar = zero, g_bar = y_bar.J;
  T kp_bar = zero, kd_bar = zero;
  if (t.actuator[k] == kMotor) {
    T f_bar = y_bar.lo + y_bar.hi;
    auto low = zero > T(1), high = low;
    if (i >= 0) low = c<th.force_lower[i], high = c> th.force_upper[i];
    y_bar.lo = select(low, f_bar, zero), y_bar.hi = select(high, f_bar, zero);
    f_bar = select(low | high, zero, f_bar);
    c_bar = h * f_bar, h_bar = fma(c, f_bar, h_bar);
  } else if (t.actuator[k] == kServo) {
    int j = t.servo[k];
    T v = th.max_speed[j], over = fnma(g, x, c);
    auto fast = wish > v, slow = wish < -v;
    T wish_bar = select(fast | slow, zero, -y_bar.target);
    c_bar = th.gain[j] * wish_bar;
    if (th_bar.gain) th_bar.gain[j] = fma(over, wish_bar, th_bar.gain[j]);
    if (th_bar.max_speed) th_bar.max_speed[j] += select(fast, -y_bar.target, select(slow, y_bar.target, zero));
  } else {
    // R = 1/(h k), target = -f0/k,  k = kd + h kp
    T inv = T(1) / fma(h, th.kp[k], th.kd[k]), f_bar = -inv * y_bar.target;
    kd_bar = inv * (wish * inv * y_bar.target - inv / h * y_bar.R), kp_bar = h * kd_bar;
    h_bar = fma(th.kp[k], kd_bar, fnma(inv / (h * h), y_bar.R, h_bar));
    if (t.actuator[k] == kGeneral) {
      general_adj(t, th, x, c, k, f_bar, th_bar, x_bar, c_bar, kp_bar, g_bar);
    } else {
      c_bar = (t.actuator[k] == kPosition ? th.kp[k] : th.kd[k]) * f_bar;
      T& gain_bar = t.actuator[k] == kPosition ? kp_bar : kd_bar;
      gain_bar = fma(t.actuator[k] == kPosition ? fnma(g, x, c) : c, f_bar, gain_bar);
    }
  }
  if (t.actuator[k] == kPosition || t.actuator[k] == kServo) x_bar = fnma(g, c_bar, x_bar), g_bar = fnma(x, c_bar, g_bar);
  if (i >= 0) {
    h_bar += fma(th.force_lower[i], y_bar.lo, th.force_upper[i] * y_bar.hi);
    if (th_bar.force_lower) th_bar.force_lower[i] = fma(h, y_bar.lo, th_bar.force_lower[i]);
    if (th_bar.force_upper) th_bar.force_upper[i] = fma(h, y_bar.hi, th_bar.force_upper[i]);
  }
  control_adj(t, th, u, k, c_bar, th_bar, u_bar);
  if (!th_bar.gear) return;
  th_bar.gear[k] += g_bar, th_bar.kp[k] += kp_bar, th_bar.kd[k] += kd_bar;
}

CS_END
