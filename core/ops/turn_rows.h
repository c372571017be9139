// turn_rows: torsional and rolling friction of a contact: rows against turning about its normal, and about its two tangents.
//
//   J = axis . (w_b - w_a);   |lambda| <= mu_turn lambda_n, with lambda_n the normal impulse of its contact;   mu_turn in m, by the pair's friction rule
// A contact of a pair whose condim is 4 has the first, of 6 all three; the model has as many for every contact as the largest pair asks for, and
// those that a pair does not ask for are empty, as slots without an item are. Each is a block of its own, which knows its contact (rw.over).
// saves: J, b, R, block_mu.   kinks: its bounds
#pragma once
#include "collide.h"
#include "rows.h"

CS_BEGIN

// no adjoint: integers.   does the pair of candidate c ask for the row about this axis (0 the normal, 1 and 2 tangents)?
template <class T> CS_FN bool turn_asked(const Tree& t, const Rows<T>& rw, int c, int axis) {
  return t.pair_dim[rw.cand_pair[c]] >= (axis ? 6 : 4);
}

// turn_values: coefficient of candidate c, and how little resists
template <class T>
CS_FN void turn_values(const Tree& t, const Params<T>& th, const Rows<T>& rw, int c, int axis, T& mu, T& light) {
  int p = rw.cand_pair[c], i = t.pair_a[p], j = t.pair_b[p];
  const T* of = axis ? th.rolling : th.torsion;
  mu = pair_rule(t.friction_rule, of[i], of[j]);
  light = pair_lightness(th, t.shape_body[i], t.shape_body[j], true);
}
// adjoint: of both coefficients
template <class T> CS_FN void turn_values_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, int c, const RowBars<T>& rb,
                                              const Params<T>& th_bar) {
  int p = rw.cand_pair[c], i = t.pair_a[p], j = t.pair_b[p];
  pair_rule_adj(t.friction_rule, th.torsion[i], th.torsion[j], rb.torsion[c], th_bar.torsion[i], th_bar.torsion[j]);
  pair_rule_adj(t.friction_rule, th.rolling[i], th.rolling[j], rb.rolling[c], th_bar.rolling[i], th_bar.rolling[j]);
  pair_lightness_adj(th, t.shape_body[i], t.shape_body[j], true, rb.turn_lightness[c], th_bar);
}

// turn_row: block i, after its contact
template <class T> CS_OP void turn_row(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                       const RowInputs<T>& in, const Options& o, int i) {
  using E = ElementOf<T>;
  int r = rw.first_row[i], same = rw.same[i], over = rw.over[i], axis = rw.axis[i];
  Span s = span(rw, i);
  T mu = T(0), light = T(1), m, l1;
  for (int l = 0; l < (same >= 0 ? 1 : lanes<T>); l++) {
    int c = same >= 0 ? same : rw.item[i][l];
    if (c < 0 || !turn_asked(t, rw, c, axis)) {
      if (c >= 0) same >= 0 ? rw.valid[i] = T(0) : (set_lane(rw.valid[i], l, E(0)), T(0));
      continue;
    }
    turn_values(t, th, rw, c, axis, m, l1);
    if (same >= 0)
      mu = m, light = l1;
    else
      set_lane(mu, l, lane(m, l)), set_lane(light, l, lane(l1, l));
  }
  auto valid = rw.valid[i] > T(0.5);
  Vec3<T> n = (&rw.C[over].r0)[axis];
  T *J = rw.J + s.J, on = rw.valid[i];
  block_signs(t, rw, i, J);
  for (int k = 0; k < s.m; k++) J[k] = on * J[k] * dot(n, tr.S[s.col[k]].w);
  rw.impact[i] = on * rw.impact[over];
  rw.b[r] = row_dot(s, J, rw.v_star);
  if (in.split) rw.b[r] = select(rw.impact[i] > T(0.5), row_dot(s, J, in.v), rw.b[r]);
  rw.block_mu[i] = select(valid, mu, T(0));
  rw.lo[r] = rw.hi[r] = T(0);  // see row_bounds
  rw.R[r] = fma(T(E(o.relative_softness)), light, T(E(o.absolute_softness)));
}
// adjoint: J_bar, R_bar and the bar of mu are complete
template <class T> CS_OP void turn_row_adj(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const Options& o, int i,
                                           const RowBars<T>& rb, const Bars<T>& bar) {
  using E = ElementOf<T>;
  int r = rw.first_row[i], same = rw.same[i], over = rw.over[i], axis = rw.axis[i];
  Span s = span(rw, i);
  const T* J_bar = rb.J + s.J;
  Mat3<T> C_bar = {zero3<T>(), zero3<T>(), zero3<T>()};
  Vec3<T> n = (&rw.C[over].r0)[axis], &n_bar = (&C_bar.r0)[axis];
  auto valid = rw.valid[i] > T(0.5);
  block_signs(t, rw, i, rw.sigma);
  for (int k = 0; k < s.m; k++) {
    int d = s.col[k];
    T g = select(valid, rw.sigma[k] * J_bar[k], T(0));
    n_bar = fma(g, tr.S[d].w, n_bar);
    bar.S[d].n = fma(g, n, bar.S[d].n);
  }
  row_scatter<T>(rb.frame, rw.item[i], same, C_bar);
  row_scatter<T>(axis ? rb.rolling : rb.torsion, rw.item[i], same, select(valid, rb.block_mu[i], T(0)));
  row_scatter<T>(rb.turn_lightness, rw.item[i], same, select(valid, T(E(o.relative_softness)) * rb.R[r], T(0)));
}

// turn_rows: all of them, after rows()
template <class T> CS_OP void turn_rows(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                        const RowInputs<T>& in, const Options& o) {
  if (!t.turns) return;
  share(rw.count[0], [&](int i) {
    if (rw.kind[i] == kTurnRow) turn_row(t, th, tr, rw, in, o, i);
  });
}
template <class T> CS_OP void turn_rows_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                            const Options& o, const RowBars<T>& rb, const Bars<T>& bar, const Params<T>& th_bar) {
  for (int i = 0; t.turns && i < rw.count[0]; i++)
    if (rw.kind[i] == kTurnRow) turn_row_adj(t, tr, rw, o, i, rb, bar);
  // candidate by candidate: in this order the sum does not depend on lane-mates
  for (int c = 0; t.turns && th_bar.torsion && c < rw.count[6]; c++)
    if (rw.used[c]) turn_values_adj(t, th, rw, c, rb, th_bar);
}

CS_END
