// fall: how far bodies move in a part of a step that is split at impacts (core/split.h).
//
//   q+ = q (+) h rate,   rate = v+ - h/2 a,   a = gravity + (f - D v) / m   along the sliding dofs of lone free and planar bodies: their parabola, so
//   that a ball keeps its energy.   f: external force. What is pushed, tied, driven, on a spring or part of a robot moves by v+, as ever
// saves: pushed, falls, rate.   kinks: whether a body is pushed
#pragma once
#include "delassus.h"
#include "flight.h"

CS_BEGIN

// no adjoint: chooses.   rw.pushed of every root: 1 where something other than an impact acts on its tree
template <class T> CS_OP void find_pushed(const Tree& t, const Rows<T>& rw, const Options& o) {
  using E = ElementOf<T>;
  T zero = T(0), one = T(1), least = T(E(o.tolerance));
  for (int b = 0; b < t.nb; b++) rw.pushed[b] = zero;
  for (int d = 0; d < t.nv; d++)
    if (t.ne && t.dof_item_adr[d] < t.dof_item_adr[d + 1]) rw.pushed[t.root[t.dof_body[d]]] = one;
  for (int i = 0; i < rw.count[0]; i++) {
    T most = zero;
    for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++) most = max(most, abs(rw.lam[r]) * rw.inv_rho[r]);
    auto by = (most > least) & (rw.impact[i] < T(0.5)) & (rw.valid[i] > T(0.5));
    if (!any(by)) continue;
    int a, b, bits = int(lane_bits(by));
    for (int l = 0; l < (rw.same[i] >= 0 ? 1 : lanes<T>); l++) {
      int item = rw.same[i] >= 0 ? rw.same[i] : rw.item[i][l];
      if (item < 0) continue;
      block_bodies(t, rw, rw.kind[i], item, a, b);
      for (int side = 0; side < 2; side++) {
        int body = side ? b : a;
        if (body < 0) continue;
        T& to = rw.pushed[t.root[body]];
        if (rw.same[i] >= 0)
          to = select(by, one, to);
        else if (bits >> l & 1)
          set_lane(to, l, E(1));
      }
    }
  }
}

// no adjoint: integers.   sliding dofs of a lone body b that may fall. A robot goes on by v+: it would jump whenever something begins to push it
CS_FN int falling_dofs(const Tree& t, int b) {
  if (t.parent[b] >= 0 || t.tree_body_adr[b + 1] - t.tree_body_adr[b] > 1) return 0;
  return t.joint[b] == kFree ? 3 : t.joint[b] == kPlanar ? 2 : 0;
}

// no adjoint: chooses.   rw.falls of root b: 1 where nothing but weight, external forces and damping acts on it
template <class T> CS_OP void find_falling(const Tree& t, const Params<T>& th, const Rows<T>& rw, int b) {
  int first = t.v_adr[b], n = falling_dofs(t, b);
  bool driven = false;
  for (int k = 0; k < t.nu; k++) driven |= t.motor_dof[k] >= first && t.motor_dof[k] < first + n;
  rw.falls[b] = driven ? T(0) : select(rw.pushed[b] + th.stiffness[b] > T(0), T(0), T(1));
}

// no adjoint: flight_rate_adj has it.   a along dof d of body b
template <class T> CS_FN T fall_accel(const Params<T>& th, const Trace<T>& tr, const T* v, const T* external, int b, int d) {
  Vec3<T> f = external ? Vec3<T>{external[6 * b + 3], external[6 * b + 4], external[6 * b + 5]} : zero3<T>();
  return dot(tr.S[d].v, th.gravity[0]) + (dot(tr.S[d].v, f) - tr.D[d] * v[d]) / th.mass[b];
}

template <class T> CS_OP void flight_rate(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                          const Inputs<T>& in, const T* v_next) {
  for (int d = 0; d < t.nv; d++) rw.rate[d] = v_next[d];
  for (int b = 0; b < t.nb; b++) {
    if (!falling_dofs(t, b)) continue;
    find_falling(t, th, rw, b);
    for (int d = t.v_adr[b]; d < t.v_adr[b] + falling_dofs(t, b); d++)
      rw.rate[d] = fnma(T(0.5) * in.h * rw.falls[b], fall_accel(th, tr, in.v, in.external, b, d), rw.rate[d]);
  }
}
// adjoint: of the part that is not v+; rate_bar = h q_next_bar on sliding dofs
template <class T> CS_OP void flight_rate_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                              const Inputs<T>& in, const T* q_next_bar, const Bars<T>& bar,
                                              const Params<T>& th_bar, InputBars<T>& in_bar) {
  for (int b = 0; b < t.nb; b++)
    for (int d = t.v_adr[b]; d < t.v_adr[b] + falling_dofs(t, b); d++) {
      Vec3<T> s = tr.S[d].v, f = zero3<T>();
      if (in.external) f = {in.external[6 * b + 3], in.external[6 * b + 4], in.external[6 * b + 5]};
      // h a, then a = s . gravity + load / m
      T g = T(-0.5) * rw.falls[b] * in.h * q_next_bar[d], a_bar = in.h * g, m = th.mass[b], load_bar = a_bar / m,
        load = dot(s, f) - tr.D[d] * in.v[d];
      in_bar.h = fma(g, fall_accel(th, tr, in.v, in.external, b, d), in_bar.h);
      bar.S[d].f = bar.S[d].f + a_bar * th.gravity[0] + load_bar * f;
      bar.D[d] = fnma(load_bar, in.v[d], bar.D[d]), in_bar.v[d] = fnma(load_bar, tr.D[d], in_bar.v[d]);
      if (th_bar.gravity) th_bar.gravity[0] = fma(a_bar, s, th_bar.gravity[0]), th_bar.mass[b] -= load_bar * load / m;
      if (!in.external || !in_bar.external) continue;
      T* to = in_bar.external + 6 * b + 3;
      to[0] = fma(load_bar, s.x, to[0]), to[1] = fma(load_bar, s.y, to[1]), to[2] = fma(load_bar, s.z, to[2]);
    }
}

CS_END
