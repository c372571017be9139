// passive: joint springs and dampers, as forces the joints have to overcome (added to the bias).
//
//   tau_d += D_d rate_d + stiffness (q - rest)_d;   for turns (q - rest) = log(rest^-1 q), in body axes
// rate is v, or v+ where damping is implicit.   kink: a spring turned by half a turn (quat_log)
#pragma once
#include "../base/team.h"
#include "../data/trace.h"

CS_BEGIN

// no adjoint: reads four numbers
template <class T> CS_FN Quat<T> load_quat(const T* q) { return {q[0], q[1], q[2], q[3]}; }

template <class T> CS_OP void passive(const Tree& t, const Params<T>& th, const T* D, const T* q, const T* rate, T* tau) {
  share(t.nv, [&](int d) { tau[d] = fma(D[d], rate[d], tau[d]); });
  share(t.nb, [&](int b) {
    int d = t.v_adr[b], a = t.q_adr[b], n = joint_lin(t.joint[b]);
    T k = th.stiffness[b];
    for (int i = 0; i < n; i++) tau[d + i] = fma(k, q[a + i] - th.rest[a + i], tau[d + i]);
    // most turning joints have no spring; a lane without one keeps its tau to the last bit, whatever its lane-mates have
    auto slack = k == T(0);
    if (!joint_turns(t.joint[b]) || all(slack)) return;
    Vec3<T> phi = quat_log(mul(conj(load_quat(th.rest + a + n)), load_quat(q + a + n)));
    T* f = tau + d + n;
    f[0] = select(slack, f[0], fma(k, phi.x, f[0]));
    f[1] = select(slack, f[1], fma(k, phi.y, f[1]));
    f[2] = select(slack, f[2], fma(k, phi.z, f[2]));
  });
}
// no adjoint: a part of passive_adj, a turned spring: undo phi, then e = rest^-1 q, whose tangent is d_theta_q - R(e)^T d_theta_rest
template <class T> CS_FN void passive_turn_adj(const Params<T>& th, const T* q, int a, T k, const T* tau_bar,
                                               const Params<T>& th_bar, T& k_bar, T* q_bar) {
  Quat<T> rest = load_quat(th.rest + a), e = mul(conj(rest), load_quat(q + a));
  Vec3<T> phi = quat_log(e), w = {tau_bar[0], tau_bar[1], tau_bar[2]}, theta_bar = zero3<T>();
  k_bar += dot(phi, w);
  quat_log_adj(phi, k * w, theta_bar);
  q_bar[0] += theta_bar.x, q_bar[1] += theta_bar.y, q_bar[2] += theta_bar.z;
  if (!th_bar.rest) return;
  Quat<T> rest_bar = {T(0), T(0), T(0), T(0)};
  quat_normalise_adj(rest, -rotate(e, theta_bar), rest_bar);
  th_bar.rest[a] += rest_bar.w, th_bar.rest[a + 1] += rest_bar.x, th_bar.rest[a + 2] += rest_bar.y,
      th_bar.rest[a + 3] += rest_bar.z;
}
// adjoint: q_bar in tangent coordinates
template <class T> CS_OP void passive_adj(const Tree& t, const Params<T>& th, const T* D, const T* q, const T* rate,
                                          const T* tau_bar, const Params<T>& th_bar, T* D_bar, T* q_bar, T* rate_bar) {
  share(t.nv, [&](int d) {
    rate_bar[d] = fma(D[d], tau_bar[d], rate_bar[d]);
    D_bar[d] = fma(rate[d], tau_bar[d], D_bar[d]);
  });
  share(t.nb, [&](int b) {
    int d = t.v_adr[b], a = t.q_adr[b], n = joint_lin(t.joint[b]);
    T k = th.stiffness[b], k_bar = T(0);
    for (int i = 0; i < n; i++) {
      T w = tau_bar[d + i];
      q_bar[d + i] = fma(k, w, q_bar[d + i]);
      k_bar = fma(q[a + i] - th.rest[a + i], w, k_bar);
      if (th_bar.rest) th_bar.rest[a + i] = fnma(k, w, th_bar.rest[a + i]);
    }
    if (joint_turns(t.joint[b]) && (th_bar.stiffness || !all(k == T(0))))
      passive_turn_adj(th, q, a + n, k, tau_bar + d + n, th_bar, k_bar, q_bar + d + n);
    if (th_bar.stiffness) th_bar.stiffness[b] += k_bar;
  });
}

CS_END
