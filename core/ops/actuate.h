// actuate: control -> joint forces tau, and the damping D of every dof.
//
//   tau_d = gear f;   u is clipped to its limits first
//   motor     f = u, kept in its force limits           position  f = kp (u - gear q+) - kd gear v+
//   velocity  f = kd (u - gear v+)                      general   f = gain u + bias - kp gear q+ - kd gear v+
//   with q+ = q + h v+: implicit, so that stiff gains are stable
// The v+ of a spring or damper goes into D += gear^2 (kd + h kp), where H = M + armature + h D takes it up; what is left
// goes into tau. Actuators of these three kinds with force limits, servos, and all that drive a tie are rows instead (ops/joint_rows.h).
// kinks: at the limits of control and force; there the derivative is that of the inside
#pragma once
#include "../base/team.h"
#include "../data/trace.h"

CS_BEGIN

// control: u clipped to its limits; without u zero
template <class T> CS_FN T control(const Tree& t, const Params<T>& th, const T* u, int k) {
  T c = u ? u[k] : T(0);
  int i = t.clip[k];
  return i < 0 ? c : min(max(c, th.control_lower[i]), th.control_upper[i]);
}
// adjoint: what is clipped belongs to the limit
template <class T>
CS_FN void control_adj(const Tree& t, const Params<T>& th, const T* u, int k, T c_bar, const Params<T>& th_bar, T* u_bar) {
  int i = t.clip[k];
  if (i >= 0) {
    T c = u ? u[k] : T(0);
    auto low = c<th.control_lower[i], high = c> th.control_upper[i];
    if (th_bar.control_lower) th_bar.control_lower[i] += select(low, c_bar, T(0));
    if (th_bar.control_upper) th_bar.control_upper[i] += select(high, c_bar, T(0));
    c_bar = select(low | high, T(0), c_bar);
  }
  if (u && u_bar) u_bar[k] += c_bar;
}

// no adjoint: integers.   is actuator k a row?
CS_FN bool is_row(const Tree& t, int k) { return t.motor_tie[k] >= 0 || (t.actuator[k] != kMotor && t.bound[k] >= 0); }

// no adjoint: undone in actuate_adj and motor_row_adj.   f of a spring, damper or general actuator at v+ = 0 and q+ = q.   x: coordinate of its joint,
// zero where there is none
template <class T> CS_FN T spring_force(const Tree& t, const Params<T>& th, T x, int k, T c) {
  int i = t.general[k];
  if (t.actuator[k] == kPosition) return th.kp[k] * fnma(th.gear[k], x, c);
  if (i < 0) return th.kd[k] * c;
  return fma(th.control_gain[i], c, fnma(th.kp[k] * th.gear[k], x, th.control_bias[i]));
}
// no adjoint: reads
template <class T> CS_FN T motor_coordinate(const Tree& t, const T* q, int k) {
  return t.motor_q[k] < 0 ? T(0) : q[t.motor_q[k]];
}

template <class T> CS_OP void actuate(const Tree& t, const Params<T>& th, const T* q, const T* u, T h, T* tau, T* D) {
  share(t.nv, [&](int d) { tau[d] = T(0), D[d] = th.damping[d]; });
  for (int k = 0; k < t.nu; k++) {
    if (is_row(t, k)) continue;
    int d = t.motor_dof[k], i = t.bound[k];
    T c = control(t, th, u, k), g = th.gear[k], f = c;
    if (t.actuator[k] == kMotor) {
      if (i >= 0) f = min(max(c, th.force_lower[i]), th.force_upper[i]);
    } else {
      f = spring_force(t, th, motor_coordinate(t, q, k), k, c);
      D[d] = fma(g * g, fma(h, th.kp[k], th.kd[k]), D[d]);
    }
    tau[d] = fma(g, f, tau[d]);
  }
}
// no adjoint: a part of servo_adj and motor_row_adj.   f0 = control_gain c + control_bias - kp gear x of a general actuator
template <class T> CS_FN void general_adj(const Tree& t, const Params<T>& th, T x, T c, int k, T f_bar, const Params<T>& th_bar,
                                          T& x_bar, T& c_bar, T& kp_bar, T& g_bar) {
  int i = t.general[k];
  T L_bar = -th.kp[k] * f_bar;
  c_bar = th.control_gain[i] * f_bar;
  if (th_bar.control_gain) th_bar.control_gain[i] = fma(c, f_bar, th_bar.control_gain[i]), th_bar.control_bias[i] += f_bar;
  kp_bar = fnma(th.gear[k] * x, f_bar, kp_bar);
  g_bar = fma(x, L_bar, g_bar), x_bar = fma(th.gear[k], L_bar, x_bar);
}
// no adjoint: a part of actuate_adj, a spring or damper: undo f, then D
template <class T> CS_FN void servo_adj(const Tree& t, const Params<T>& th, const T* q, const T* u, T h, int k, T f_bar, T D_bar,
                                        const Params<T>& th_bar, T* q_bar, T* u_bar, T& h_bar, T& g_bar) {
  T c = control(t, th, u, k), g = th.gear[k], c_bar, kp_bar = h * g * g * D_bar, kd_bar = g * g * D_bar;
  g_bar = fma(T(2) * g * fma(h, th.kp[k], th.kd[k]), D_bar, g_bar);
  h_bar = fma(g * g * th.kp[k], D_bar, h_bar);
  if (t.actuator[k] == kPosition) {
    T x = q[t.motor_q[k]];
    c_bar = th.kp[k] * f_bar;
    kp_bar = fma(fnma(g, x, c), f_bar, kp_bar);
    g_bar = fnma(x, c_bar, g_bar);
    q_bar[t.motor_dof[k]] = fnma(g, c_bar, q_bar[t.motor_dof[k]]);
  } else if (t.actuator[k] == kGeneral) {
    T x_bar = T(0);
    general_adj(t, th, t.motor_q[k] < 0 ? T(0) : q[t.motor_q[k]], c, k, f_bar, th_bar, x_bar, c_bar, kp_bar, g_bar);
    if (t.motor_q[k] >= 0) q_bar[t.motor_dof[k]] += x_bar;
  } else {
    c_bar = th.kd[k] * f_bar;
    kd_bar = fma(c, f_bar, kd_bar);
  }
  if (th_bar.kp) th_bar.kp[k] += kp_bar, th_bar.kd[k] += kd_bar;
  control_adj(t, th, u, k, c_bar, th_bar, u_bar);
}
template <class T> CS_OP void actuate_adj(const Tree& t, const Params<T>& th, const T* q, const T* u, T h, const T* tau_bar,
                                          const T* D_bar, const Params<T>& th_bar, T* q_bar, T* u_bar, T& h_bar) {
  if (th_bar.damping)
    for (int d = 0; d < t.nv; d++) th_bar.damping[d] += D_bar[d];
  for (int k = 0; k < t.nu; k++) {
    if (is_row(t, k)) continue;
    int d = t.motor_dof[k], i = t.bound[k];
    T c = control(t, th, u, k), g = th.gear[k], f = c, f_bar = g * tau_bar[d], g_bar = T(0);
    if (t.actuator[k] == kMotor) {
      if (i >= 0) {
        auto low = c<th.force_lower[i], high = c> th.force_upper[i];
        f = min(max(c, th.force_lower[i]), th.force_upper[i]);
        if (th_bar.force_lower) th_bar.force_lower[i] += select(low, f_bar, T(0));
        if (th_bar.force_upper) th_bar.force_upper[i] += select(high, f_bar, T(0));
        f_bar = select(low | high, T(0), f_bar);
      }
      control_adj(t, th, u, k, f_bar, th_bar, u_bar);
    } else {
      f = spring_force(t, th, motor_coordinate(t, q, k), k, c);
      servo_adj(t, th, q, u, h, k, f_bar, D_bar[d], th_bar, q_bar, u_bar, h_bar, g_bar);
    }
    if (th_bar.gear) th_bar.gear[k] += fma(f, tau_bar[d], g_bar);
  }
}

CS_END
