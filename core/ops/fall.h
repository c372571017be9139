// fall: how far bodies move in a part of a step that is split at impacts (core/split.h).
//
//   q+ = q (+) h rate,   rate = v+ - h/2 gravity  along the sliding dofs of free and planar bodies on which only gravity acts: exactly their parabola,
//   so that a ball keeps its energy. What is pushed, tied, damped or hangs on joints moves by v+, as ever
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

// no adjoint: integers.   sliding dofs of root b that fall freely
CS_FN int falling_dofs(const Tree& t, int b) {
  return t.parent[b] >= 0 ? 0 : t.joint[b] == kFree ? 3 : t.joint[b] == kPlanar ? 2 : 0;
}

// no adjoint: chooses.   rw.falls of root b: 1 where only gravity acts on its tree
template <class T>
CS_OP void find_falling(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, const T* external, int b) {
  T acts = rw.pushed[b] + th.stiffness[b];
  for (int d = t.v_adr[b]; d < t.v_adr[b] + falling_dofs(t, b); d++) acts += tr.D[d];
  for (int k = t.tree_body_adr[b]; external && k < t.tree_body_adr[b + 1]; k++)
    for (int i = 0; i < 6; i++) acts += abs(external[6 * t.tree_body[k] + i]);
  rw.falls[b] = select(acts > T(0), T(0), T(1));
}

template <class T> CS_OP void flight_rate(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                          const Inputs<T>& in, const T* v_next) {
  for (int d = 0; d < t.nv; d++) rw.rate[d] = v_next[d];
  for (int b = 0; b < t.nb; b++) {
    if (!falling_dofs(t, b)) continue;
    find_falling(t, th, tr, rw, in.external, b);
    for (int d = t.v_adr[b]; d < t.v_adr[b] + falling_dofs(t, b); d++)
      rw.rate[d] = fnma(T(0.5) * in.h * rw.falls[b], dot(tr.S[d].v, th.gravity[0]), rw.rate[d]);
  }
}
// adjoint: of the part that is not v+; rate_bar = h q_next_bar on sliding dofs
template <class T> CS_OP void flight_rate_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw, T h,
                                              const T* q_next_bar, const Bars<T>& bar, const Params<T>& th_bar, T& h_bar) {
  for (int b = 0; b < t.nb; b++)
    for (int d = t.v_adr[b]; d < t.v_adr[b] + falling_dofs(t, b); d++) {
      T g = T(-0.5) * rw.falls[b] * h * q_next_bar[d];  // bar of h (S . gravity)
      h_bar = fma(g, dot(tr.S[d].v, th.gravity[0]), h_bar);
      bar.S[d].f = fma(h * g, th.gravity[0], bar.S[d].f);
      if (th_bar.gravity) th_bar.gravity[0] = fma(h * g, tr.S[d].v, th_bar.gravity[0]);
    }
}

CS_END
