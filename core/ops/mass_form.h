// mass_form: x . M(q) y  =  sum over bodies of V_x . I V_y,  V the body's velocity under x or y (without armature). Only the bodies in `among` (null: all).
#pragma once
#include "../data/rows.h"

CS_BEGIN

template <class T>
CS_OP T mass_form(const Tree& t, const Trace<T>& tr, const T* x, const T* y, const int* among, const RowBars<T>& rb) {
  T sum = T(0);
  for (int b = 0; b < t.nb; b++) {
    if (among && !among[b]) continue;
    int P = t.parent[b];
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
template <class T> CS_OP void mass_form_adj(const Tree& t, const Trace<T>& tr, const T* x, const T* y, const int* among,
                                            const RowBars<T>& rb, const Bars<T>& bar) {
  mass_form(t, tr, x, y, among, rb);
  for (int b = t.nb - 1; b >= 0; b--) {
    if (among && !among[b]) continue;
    int P = t.parent[b];
    inertia_form_adj(rb.V_x[b], rb.V_y[b], bar.I[b]);
    // what a body's velocity is worth is worth as much to its parent
    for (int d = t.v_adr[b]; d < t.v_adr[b] + joint_nv(t.joint[b]); d++)
      bar.S[d] = fma(x[d], rb.F_y[b], fma(y[d], rb.F_x[b], bar.S[d]));
    if (P >= 0) rb.F_x[P] += rb.F_x[b], rb.F_y[P] += rb.F_y[b];
  }
}

CS_END
