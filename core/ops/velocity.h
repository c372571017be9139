// velocity: v -> spatial velocity of every body.   v_b = v_parent + sum_d S_d v_d
// saves: tr.v.   linear in v
#pragma once
#include "tree_together.h"

CS_BEGIN

template <class T> CS_OP void velocity(const Tree& t, const Trace<T>& tr, const T* v) {
  outwards(t, [&](int b) {
    int P = t.parent[b], n = joint_nv(t.joint[b]);
    Motion<T> m = P >= 0 ? tr.v[P] : zero_motion<T>();
    for (int d = t.v_adr[b]; d < t.v_adr[b] + n; d++) m = fma(v[d], tr.S[d], m);
    tr.v[b] = m;
  });
}
// adjoint: what a body's velocity is worth is worth as much to its parent
template <class T> CS_OP void velocity_adj(const Tree& t, const Trace<T>& tr, const T* v, const Bars<T>& bar, T* v_bar) {
  leaves_first(
      t,
      [&](int b) {
        int n = joint_nv(t.joint[b]);
        for (int d = t.v_adr[b]; d < t.v_adr[b] + n; d++) {
          v_bar[d] += dot(tr.S[d], bar.v[b]);
          bar.S[d] = fma(v[d], bar.v[b], bar.S[d]);
        }
      },
      [&](int c, int P) { bar.v[P] += bar.v[c]; });
}

CS_END
