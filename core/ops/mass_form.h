// mass_form: x . M(q) y  =  sum over bodies of V_x . I V_y,  V the body's velocity under x or y (without armature). Only the n bodies of whole trees, parents first (null: the first n).
#pragma once
#include "../data/rows.h"

CS_BEGIN

template <class T>
CS_OP T mass_form(const Tree& t, const Trace<T>& tr, const T* x, const T* y, const int* bodies, int n, const RowBars<T>& rb) {
  T sum = T(0);
  for (int k = 0; k < n; k++) {
    int b = bodies ? bodies[k] : k, P = t.parent[b];
    rb.V_x[b] = P >= 0 ? rb.V_x[P] : zero_motion<T>(), rb.V_y[b] = P >= 0 ? rb.V_y[P] : zero_motion<T>();
    for (int d = t.v_adr[b]; d < t.v_adr[b] + joint_nv(t.joint[b]); d++) {
      rb.V_x[b] = fma(x[d], tr.S[d], rb.V_x[b]);
      rb.V_y[b] = fma(y[d], tr.S[d], rb.V_y[b]);
    }
    rb.F_x[b] = mul(tr.I[b], rb.V_x[b]), rb.F_y[b] = mul(tr.I[b], rb.V_y[b]);
    sum += dot(rb.V_x[b], rb.F_y[b]);
  }
  return sum;
}
// adjoint, of a bar of 1: adds to bar.I and bar.S
template <class T> CS_OP void mass_form_adj(const Tree& t, const Trace<T>& tr, const T* x, const T* y, const int* bodies, int n,
                                            const RowBars<T>& rb, const Bars<T>& bar) {
  mass_form(t, tr, x, y, bodies, n, rb);
  for (int k = n - 1; k >= 0; k--) {
    int b = bodies ? bodies[k] : k, P = t.parent[b];
    inertia_form_adj(rb.V_x[b], rb.V_y[b], bar.I[b]);
    // what a body's velocity is worth is worth as much to its parent
    for (int d = t.v_adr[b]; d < t.v_adr[b] + joint_nv(t.joint[b]); d++)
      bar.S[d] = fma(x[d], rb.F_y[b], fma(y[d], rb.F_x[b], bar.S[d]));
    if (P >= 0) rb.F_x[P] += rb.F_x[b], rb.F_y[P] += rb.F_y[b];
  }
}

// no adjoint: a part of dense_adj and large_adj.   of -x^T H y with x and y fixed what armature, damping and the step size are worth
template <class T> CS_FN void diagonal_adj(const Tree& t, const Trace<T>& tr, int d, T xy, T h, const RowBars<T>& rb,
                                           const Bars<T>& bar, const Params<T>& th_bar) {
  T& h_bar = rb.h[t.root[t.dof_body[d]]];
  if (th_bar.armature) th_bar.armature[d] += xy;
  bar.D[d] = fma(h, xy, bar.D[d]);
  h_bar = fma(tr.D[d], xy, h_bar);
}

CS_END
