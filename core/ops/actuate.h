// actuate: control -> joint forces.   tau_d = sum over the motors on dof d of gear u.   linear in each
#pragma once
#include "../data/trace.h"

CS_BEGIN

template <class T> CS_OP void actuate(const Tree& t, const Params<T>& th, const T* u, T* tau) {
  for (int d = 0; d < t.nv; d++) tau[d] = T(0);
  if (!u) return;
  for (int k = 0; k < t.nu; k++) tau[t.motor_dof[k]] = fma(th.gear[k], u[k], tau[t.motor_dof[k]]);
}
template <class T>
CS_OP void actuate_adj(const Tree& t, const Params<T>& th, const T* u, const T* tau_bar, const Params<T>& th_bar, T* u_bar) {
  if (!u) return;
  for (int k = 0; k < t.nu; k++) {
    T g = tau_bar[t.motor_dof[k]];
    if (u_bar) u_bar[k] = fma(th.gear[k], g, u_bar[k]);
    if (th_bar.gear) th_bar.gear[k] = fma(u[k], g, th_bar.gear[k]);
  }
}

CS_END
