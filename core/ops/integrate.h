// The configuration manifold: plain coordinates add, quaternions turn by their body-frame rotation vector.
//
//   normalise:  q -> q with unit quaternions              integrate:  q+ = q (+) h v = (q + h v, q exp(h omega))
//   difference: v with q1 (+) v = q2, the shorter way; kink at half a turn (quat_log)
// Bars of q inside the engine are tangent, one number per dof.
#pragma once
#include "passive.h"

CS_BEGIN

// no adjoint: writes four numbers
template <class T> CS_FN void store_quat(T* q, Quat<T> u) { q[0] = u.w, q[1] = u.x, q[2] = u.y, q[3] = u.z; }

template <class T> CS_OP void normalise(const Tree& t, const T* q, T* out) {
  share(t.nb, [&](int b) {
    int a = t.q_adr[b], n = joint_lin(t.joint[b]);
    for (int i = 0; i < n; i++) out[a + i] = q[a + i];
    if (joint_turns(t.joint[b])) store_quat(out + a + n, quat_normalise(load_quat(q + a + n)));
  });
}
// adjoint: from the tangent at the normalised q to the ambient coordinates of q
template <class T> CS_OP void normalise_adj(const Tree& t, const T* q, const T* tangent, T* q_bar) {
  for (int b = 0; b < t.nb; b++) {
    int a = t.q_adr[b], d = t.v_adr[b], n = joint_lin(t.joint[b]);
    for (int i = 0; i < n; i++) q_bar[a + i] += tangent[d + i];
    if (!joint_turns(t.joint[b])) continue;
    Quat<T> u_bar = load_quat(q_bar + a + n);
    quat_normalise_adj(load_quat(q + a + n), Vec3<T>{tangent[d + n], tangent[d + n + 1], tangent[d + n + 2]}, u_bar);
    store_quat(q_bar + a + n, u_bar);
  }
}

// no adjoint: used on bars only.   ambient bar of a normalised q -> tangent bar, added
template <class T> CS_OP void tangent_bars(const Tree& t, const T* q, const T* q_bar, T* tangent) {
  for (int b = 0; b < t.nb; b++) {
    int a = t.q_adr[b], d = t.v_adr[b], n = joint_lin(t.joint[b]);
    for (int i = 0; i < n; i++) tangent[d + i] += q_bar[a + i];
    if (!joint_turns(t.joint[b])) continue;
    Vec3<T> m = tangent_bar(load_quat(q + a + n), load_quat(q_bar + a + n));
    tangent[d + n] += m.x, tangent[d + n + 1] += m.y, tangent[d + n + 2] += m.z;
  }
}

template <class T> CS_OP void integrate(const Tree& t, const T* q, T h, const T* v, T* out) {
  share(t.nb, [&](int b) {
    int a = t.q_adr[b], d = t.v_adr[b], n = joint_lin(t.joint[b]);
    for (int i = 0; i < n; i++) out[a + i] = fma(h, v[d + i], q[a + i]);
    if (!joint_turns(t.joint[b])) return;
    Vec3<T> phi = h * Vec3<T>{v[d + n], v[d + n + 1], v[d + n + 2]};
    // renormalising stops round-off from adding up over a long rollout; on the manifold it changes no derivative
    store_quat(out + a + n, quat_normalise(mul(load_quat(q + a + n), quat_exp(phi))));
  });
}
// adjoint: out_bar and q_bar are tangent.   d_theta+ = R(e)^T d_theta + J_r d_phi,  e = exp(phi)
template <class T> CS_OP void integrate_adj(const Tree& t, T h, const T* v, const T* out_bar, T* q_bar, T& h_bar, T* v_bar) {
  for (int b = 0; b < t.nb; b++) {
    int d = t.v_adr[b], n = joint_lin(t.joint[b]);
    for (int i = d; i < d + n; i++) {
      q_bar[i] += out_bar[i];
      v_bar[i] = fma(h, out_bar[i], v_bar[i]);
      h_bar = fma(v[i], out_bar[i], h_bar);
    }
    if (!joint_turns(t.joint[b])) continue;
    d += n;
    Vec3<T> omega = {v[d], v[d + 1], v[d + 2]}, m = {out_bar[d], out_bar[d + 1], out_bar[d + 2]}, phi = h * omega,
            phi_bar = zero3<T>();
    quat_exp_adj(phi, m, phi_bar);
    Vec3<T> back = rotate(quat_exp(phi), m);
    q_bar[d] += back.x, q_bar[d + 1] += back.y, q_bar[d + 2] += back.z;
    v_bar[d] = fma(h, phi_bar.x, v_bar[d]), v_bar[d + 1] = fma(h, phi_bar.y, v_bar[d + 1]),
    v_bar[d + 2] = fma(h, phi_bar.z, v_bar[d + 2]);
    h_bar += dot(omega, phi_bar);
  }
}

template <class T> CS_OP void difference(const Tree& t, const T* q1, const T* q2, T* out) {
  for (int b = 0; b < t.nb; b++) {
    int a = t.q_adr[b], d = t.v_adr[b], n = joint_lin(t.joint[b]);
    for (int i = 0; i < n; i++) out[d + i] = q2[a + i] - q1[a + i];
    if (!joint_turns(t.joint[b])) continue;
    Vec3<T> phi = quat_log(mul(conj(load_quat(q1 + a + n)), load_quat(q2 + a + n)));
    out[d + n] = phi.x, out[d + n + 1] = phi.y, out[d + n + 2] = phi.z;
  }
}
// adjoint: bars of q1 and q2 are tangent.   d_e = d_theta2 - R(e)^T d_theta1,  e = q1^-1 q2
template <class T> CS_OP void difference_adj(const Tree& t, const T* q1, const T* q2, const T* out_bar, T* q1_bar, T* q2_bar) {
  for (int b = 0; b < t.nb; b++) {
    int a = t.q_adr[b], d = t.v_adr[b], n = joint_lin(t.joint[b]);
    for (int i = d; i < d + n; i++) q1_bar[i] -= out_bar[i], q2_bar[i] += out_bar[i];
    if (!joint_turns(t.joint[b])) continue;
    d += n;
    Quat<T> e = mul(conj(load_quat(q1 + a + n)), load_quat(q2 + a + n));
    Vec3<T> m = zero3<T>();
    quat_log_adj(quat_log(e), Vec3<T>{out_bar[d], out_bar[d + 1], out_bar[d + 2]}, m);
    Vec3<T> back = rotate(e, m);
    q2_bar[d] += m.x, q2_bar[d + 1] += m.y, q2_bar[d + 2] += m.z;
    q1_bar[d] -= back.x, q1_bar[d + 1] -= back.y, q1_bar[d + 2] -= back.z;
  }
}

CS_END
