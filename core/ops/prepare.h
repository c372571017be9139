// prepare: the user's parameters -> the engine's, in which axes and quaternions have unit length.
#pragma once
#include "integrate.h"

CS_BEGIN

// no adjoint: integers.   does joint b have an axis?
CS_FN bool joint_has_axis(int joint) { return joint == kRevolute || joint == kPrismatic; }

template <class T> CS_OP void prepare(const Tree& t, T* raw, T* out) {
  for (int i = 0; i < params_size(t); i++) out[i] = raw[i];
  Params<T> from = params_map(t, raw), to = params_map(t, out);
  for (int b = 0; b < t.nb; b++) {
    to.joint_quat[b] = quat_normalise(from.joint_quat[b]);
    if (joint_has_axis(t.joint[b])) to.joint_axis[b] = vec_normalise(from.joint_axis[b]);
  }
  normalise(t, from.rest, to.rest);
  for (int s = 0; s < t.ns; s++) to.shape_quat[s] = quat_normalise(from.shape_quat[s]);
  for (int f = 0; f < 2 * t.n_tie; f++) to.tie_quat[f] = quat_normalise(from.tie_quat[f]);
}
// no adjoint: a part of prepare_adj; an ambient bar at the unit quaternion becomes tangent, then ambient at the user's
template <class T> CS_FN void prepare_quat_adj(Quat<T> raw, Quat<T> bar, Quat<T>& raw_bar) {
  quat_normalise_adj(raw, tangent_bar(quat_normalise(raw), bar), raw_bar);
}
template <class T> CS_OP void prepare_adj(const Tree& t, T* raw, T* bar, T* raw_bar) {
  Params<T> from = params_map(t, raw), b_in = params_map(t, bar), b_out = params_map(t, raw_bar);
  auto plain = [](T* to, const T* add, int n) {
    for (int i = 0; i < n; i++) to[i] += add[i];
  };
  // everything before joint_quat, joint_anchor, and all after rest but shape_quat and tie_quat is passed on as it is
  plain(raw_bar, bar, int(reinterpret_cast<T*>(b_in.joint_quat) - bar));
  plain(&b_out.joint_anchor[0].x, &b_in.joint_anchor[0].x, 3 * t.nb);
  plain(b_out.stiffness, b_in.stiffness, t.nb);
  plain(b_out.damping, b_in.damping, int(reinterpret_cast<T*>(b_in.shape_quat) - b_in.damping));
  T* sizes = reinterpret_cast<T*>(b_in.shape_size);
  plain(reinterpret_cast<T*>(b_out.shape_size), sizes, int(reinterpret_cast<T*>(b_in.tie_quat) - sizes));
  plain(b_out.tie_length, b_in.tie_length, params_size(t) - int(b_in.tie_length - bar));
  for (int f = 0; f < 2 * t.n_tie; f++) prepare_quat_adj(from.tie_quat[f], b_in.tie_quat[f], b_out.tie_quat[f]);
  for (int s = 0; s < t.ns; s++) prepare_quat_adj(from.shape_quat[s], b_in.shape_quat[s], b_out.shape_quat[s]);
  for (int b = 0; b < t.nb; b++) {
    prepare_quat_adj(from.joint_quat[b], b_in.joint_quat[b], b_out.joint_quat[b]);
    if (joint_has_axis(t.joint[b]))
      vec_normalise_adj(from.joint_axis[b], b_in.joint_axis[b], b_out.joint_axis[b]);
    else
      b_out.joint_axis[b] += b_in.joint_axis[b];
    int a = t.q_adr[b], n = joint_lin(t.joint[b]);
    plain(b_out.rest + a, b_in.rest + a, n);
    if (!joint_turns(t.joint[b])) continue;
    Quat<T> r = load_quat(b_out.rest + a + n);
    prepare_quat_adj(load_quat(from.rest + a + n), load_quat(b_in.rest + a + n), r);
    store_quat(b_out.rest + a + n, r);
  }
}

CS_END
