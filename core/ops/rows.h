// rows: the numbers of every row: J on its list of dofs, b = J v* + target, bounds, softness R.
// saves: valid, x_a, x_b, C, block_mu, t_*, b, R, lo, hi
#pragma once
#include "contact_J.h"
#include "flight.h"
#include "joint_rows.h"
#include "overlap.h"
#include "ties.h"

CS_BEGIN

// no adjoint: integers.   adds to the entry of a tree that block i acts on, in each lane its own
template <class T> CS_FN void add_to_tree(const Tree& t, const Rows<T>& rw, int i, T x, T* by_tree) {
  int a, b;
  for (int l = 0; l < (rw.same[i] >= 0 ? 1 : lanes<T>); l++) {
    int item = rw.same[i] >= 0 ? rw.same[i] : rw.item[i][l];
    if (item < 0) continue;
    block_bodies(t, rw, rw.kind[i], item, a, b);
    T& to = by_tree[t.root[b >= 0 ? b : a]];
    if (rw.same[i] >= 0)
      to += x;
    else
      set_lane(to, l, lane(to, l) + lane(x, l));
  }
}

// no adjoint: integers.   the tree whose coordinates side b of a motor's row has, -1 the world
template <class T> CS_FN int tree_of_b(const Tree& t, const Rows<T>& rw, int i) {
  int a, b;
  block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
  return b < 0 ? -1 : t.root[b];
}

// Bars of a part's duration, and of the whole step's
template <class T> struct Lapse {
  T h, full;
};

// no adjoint: a sum over a block's dofs.   J: one row
template <class T> CS_FN T row_dot(const Span& s, const T* J, const T* x) {
  T sum = T(0);
  CS_FOR (int k = 0; k < s.m; k++) sum = fma(J[k], x[s.col[k]], sum);
  return sum;
}

// planar_frame: normal, the tangent a quarter turn ahead of it, and z
template <class T> CS_FN Mat3<T> planar_frame(Vec3<T> n) { return {n, {-n.y, n.x, T(0)}, {T(0), T(0), T(1)}}; }
// adjoint: in place, all to the normal
template <class T> CS_FN void planar_frame_adj(Mat3<T>& C_bar) {
  C_bar.r0.x += C_bar.r1.y, C_bar.r0.y -= C_bar.r1.x;
  C_bar.r1 = C_bar.r2 = zero3<T>();
}

// contact_rows: block i
template <class T>
CS_OP void contact_rows(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, const Options& o, int i) {
  using E = ElementOf<T>;
  int same = rw.same[i], r = rw.first_row[i];
  const int* item = rw.item[i];
  Span s = span(rw, i);
  auto valid = rw.valid[i] > T(0.5);
  Mat3<T> C = row_gather<T>(rw.frame, item, same);
  if (t.planar) C = planar_frame(C.r0);
  auto keep = [&](Vec3<T> a) { return Vec3<T>{select(valid, a.x, T(0)), select(valid, a.y, T(0)), select(valid, a.z, T(0))}; };
  rw.C[i] = {keep(C.r0), keep(C.r1), keep(C.r2)};
  rw.x_b[i] = row_gather<T>(rw.point, item, same);
  rw.x_a[i] = rw.x_b[i] - row_gather<T>(rw.shift, item, same);
  rw.block_mu[i] = select(valid, row_gather<T>(rw.mu, item, same), T(0));
  Vec3<T> star;
  T Jv;
  contact_J(t, tr, rw, i, in.v, star, Jv);
  const T *J = rw.J + s.J, Jv_star = star.x;
  T gap = row_gather<T>(rw.gap, item, same), e = row_gather<T>(rw.e, item, same);
  // where steps are split only what overlaps bounces like this: it has met before
  auto met = gap < T(-E(kTouching<E>));
  T bounces = in.split ? select(met, T(1), T(0)) : T(1);
  Target<T> y = contact_target(gap, Jv, Jv_star, e, row_gather<T>(rw.soft, item, same), in.h, in.full, bounces, o);
  rw.t_gap[i] = y.gap, rw.t_v[i] = y.v, rw.t_e[i] = y.e, rw.t_h[i] = y.h, rw.t_full[i] = y.full;
  rw.b[r] = select(valid, Jv_star + y.value, T(0));
  rw.b[r + 1] = star.y;
  if (rw.width == 3) rw.b[r + 2] = star.z;
  if (in.split) {
    // an impact takes no time: what forces do in the rest of the step does not count. y = A lambda + J v + e J_n v
    auto hit = valid & !(met | (gap > T(E(kTouching<E>)))) & (e * Jv < T(-E(kLeastBounce * o.bounce_speed))) &
               (Jv < T(-E(o.bounce_speed)));
    rw.impact[i] = select(hit, T(1), T(0));
    rw.t_gap[i] = select(hit, T(0), y.gap), rw.t_v[i] = select(hit, T(1) + e, y.v), rw.t_e[i] = select(hit, Jv, y.e),
    rw.t_h[i] = select(hit, T(0), y.h), rw.t_full[i] = select(hit, T(0), y.full);
    rw.b[r] = select(hit, fma(e, Jv, Jv), rw.b[r]);
    CS_FOR (int j = 1; j < s.n; j++) rw.b[r + j] = select(hit, row_dot(s, J + j * s.m, in.v), rw.b[r + j]);
  }
  rw.lo[r] = T(0), rw.hi[r] = T(E(kUnbounded));
  // the floor of R decides how redundant contacts share a load: the same for all of a body's, and with a derivative
  T floor = fma(T(E(o.relative_softness)), row_gather<T>(rw.lightness, item, same), T(E(o.absolute_softness)));
  T soft = row_gather<T>(rw.soft, item, same), slope, deep = overlap(t, rw, i, gap, soft, slope);
  rw.R[r] =
      fma(T(E(o.recovery)) / (in.h * in.full), soft, fma(T(E(kYield)) * deep, row_gather<T>(rw.lightness, item, same), floor));
  CS_FOR (int j = 1; j < s.n; j++) rw.R[r + j] = floor;
}
// adjoint: J_bar is complete; w, R_bar and the bar of mu are those of the solver; impulse_bar by what was shown to the user
template <class T> CS_OP void contact_rows_adj(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in,
                                               const Options& o, int i, const RowBars<T>& rb, const Bars<T>& bar,
                                               Lapse<T>& lapse) {
  using E = ElementOf<T>;
  int same = rw.same[i], r = rw.first_row[i];
  const int* item = rw.item[i];
  Vec3<T> x_bar = zero3<T>(), f_bar = rb.impulse[i];
  Mat3<T> C_bar = {rw.lam[r] * f_bar, rw.lam[r + 1] * f_bar, third(rw, rw.lam + r) * f_bar};
  contact_J_adj(t, tr, rw, i, rb.J + rw.J_adr[i], bar, C_bar, x_bar);
  if (t.planar) planar_frame_adj(C_bar);
  T w = rb.w[r], softer = T(E(o.recovery)) / (in.h * in.full);
  T soft_bar = select(rw.valid[i] > T(0.5), softer * rb.R[r], T(0));
  T R_bar = soft_bar * row_gather<T>(rw.soft, item, same);
  lapse.h = fnma(w, rw.t_h[i], lapse.h) - R_bar / in.h, lapse.full = fnma(w, rw.t_full[i], lapse.full) - R_bar / in.full;
  T slope, deep = overlap(t, rw, i, row_gather<T>(rw.gap, item, same), row_gather<T>(rw.soft, item, same), slope),
           yield = T(E(kYield)) * rb.R[r];
  row_scatter<T>(rb.gap, item, same, fma(yield * slope, row_gather<T>(rw.lightness, item, same), -w * rw.t_gap[i]));
  row_scatter<T>(rb.e, item, same, -w * rw.t_e[i]);
  row_scatter<T>(rb.soft, item, same, soft_bar);
  T floor_bar = fma(yield, deep, T(E(o.relative_softness)) * (rb.R[r] + rb.R[r + 1] + third(rw, rb.R + r)));
  row_scatter<T>(rb.lightness, item, same, select(rw.valid[i] > T(0.5), floor_bar, T(0)));
  row_scatter<T>(rb.mu, item, same, rb.block_mu[i]);
  row_scatter<T>(rb.point, item, same, x_bar);
  row_scatter<T>(rb.frame, item, same, C_bar);
}

// no adjoint: a part of rows and rows_adj.   the floor of R of a joint row on dof d
template <class T> CS_FN T joint_floor(const Tree& t, const Params<T>& th, const Options& o, int d) {
  using E = ElementOf<T>;
  return fma(T(E(o.relative_softness)), dof_lightness(t, th, d), T(E(o.absolute_softness)));
}

// limit_row: block i; lanes may hold limits of different joints
template <class T>
CS_OP void limit_row(const Tree& t, const Params<T>& th, const Rows<T>& rw, const RowInputs<T>& in, const Options& o, int i) {
  int same = rw.same[i], r = rw.first_row[i];
  const int* item = rw.item[i];
  Span s = span(rw, i);
  auto valid = rw.valid[i] > T(0.5);
  Vec3<T> G = row_gather<T>(rw.limit_J, item, same);
  T* J = rw.J + s.J;
  CS_FOR (int k = 0; k < s.m; k++) J[k] = T(0);
  G = {select(valid, G.x, T(0)), select(valid, G.y, T(0)), select(valid, G.z, T(0))};
  T floor = same >= 0 ? joint_floor(t, th, o, t.limit_dof[same]) : T(1);
  if (same >= 0) {
    int k = place(s, t.limit_dof[same]);
    J[k] = G.x;
    if (t.joint[t.limit_body[same]] == kBall) J[k + 1] = G.y, J[k + 2] = G.z;
  }
  for (int l = 0; same < 0 && l < lanes<T>; l++) {
    if (item[l] < 0) continue;
    int d = t.limit_dof[item[l]], k = place(s, d);
    set_lane(J[k], l, lane(G.x, l));
    set_lane(floor, l, lane(joint_floor(t, th, o, d), l));
    if (t.joint[t.limit_body[item[l]]] == kBall) set_lane(J[k + 1], l, lane(G.y, l)), set_lane(J[k + 2], l, lane(G.z, l));
  }
  T Jv_star = row_dot(s, J, rw.v_star);
  // a limit does not bounce: with J v = 0 the gate stays shut
  Target<T> y = contact_target(row_gather<T>(rw.distance, item, same), T(0), Jv_star, T(0), T(0), in.h, in.full, T(1), o);
  rw.t_gap[i] = y.gap, rw.t_v[i] = T(0), rw.t_e[i] = T(0), rw.t_h[i] = y.h, rw.t_full[i] = y.full;
  rw.b[r] = select(valid, Jv_star + y.value, T(0));
  rw.lo[r] = T(0), rw.hi[r] = T(ElementOf<T>(kUnbounded)), rw.R[r] = floor;
}
// adjoint: the distance, the floor of R, and J of ball joints
template <class T> CS_OP void limit_row_adj(const Tree& t, const Params<T>& th, const Rows<T>& rw, const Options& o, int i,
                                            const RowBars<T>& rb, const Params<T>& th_bar, Lapse<T>& lapse) {
  int same = rw.same[i], r = rw.first_row[i];
  const int* item = rw.item[i];
  Span s = span(rw, i);
  const T* J_bar = rb.J + s.J;
  lapse.h = fnma(rb.w[r], rw.t_h[i], lapse.h), lapse.full = fnma(rb.w[r], rw.t_full[i], lapse.full);
  row_scatter<T>(rb.distance, item, same, -rb.w[r] * rw.t_gap[i]);
  for (int l = 0; l < (same >= 0 ? 1 : lanes<T>); l++) {
    int k = same >= 0 ? same : item[l];
    if (k < 0) continue;
    int d = t.limit_dof[k];
    T R_bar = select(rw.valid[i] > T(0.5), rb.R[r], T(0));
    if (same < 0) R_bar = T(0), set_lane(R_bar, l, lane(rb.R[r], l));
    dof_lightness_adj(t, th, d, T(ElementOf<T>(o.relative_softness)) * R_bar, th_bar);
    if (t.joint[t.limit_body[k]] != kBall) continue;
    const T* from = J_bar + place(s, d);
    if (same >= 0) {
      rb.limit_J[k] += Vec3<T>{from[0], from[1], from[2]};
      continue;
    }
    T* to = &rb.limit_J[k].x;
    CS_FOR (int j = 0; j < 3; j++) set_lane(to[j], l, lane(to[j], l) + lane(from[j], l));
  }
}

// no adjoint: gathers arguments.   the coordinate that actuator k drives: of its dof, or of its tie
template <class T> CS_FN T motor_place(const Tree& t, const Params<T>& th, const T* q, const T* u, int k, T of_tie) {
  if (t.motor_tie[k] >= 0) return near_turn(t, th, u, k, of_tie);
  return motor_coordinate(t, q, k);
}

// Relative softness of a servo's row, at least: servos that move legs against feet that stick would contradict each other at the slightest error,
// until some of them give up. It costs one part in ten million of the speed that a servo's impulse is worth
constexpr double kServoSoftness = 1e-7;

// no adjoint: a part of motor_rows and motor_rows_adj.   softness over lightness of actuator k's row
CS_FN double motor_softness(const Tree& t, const Options& o, int k) {
  return t.actuator[k] == kServo && o.relative_softness < kServoSoftness ? kServoSoftness : o.relative_softness;
}

// no adjoint: as motor_softness.   lightness of what actuator k drives
template <class T> CS_FN T motor_lightness(const Tree& t, const Params<T>& th, int k) {
  int tie = t.motor_tie[k];
  return tie < 0 ? dof_lightness(t, th, t.motor_dof[k])
                 : pair_lightness(th, t.tie_a[tie], t.tie_b[tie], t.tie_axis[tie] == kHingeAxis);
}

// motor_rows: block i, an actuator that is a row, on a dof or on a tie
template <class T> CS_OP void motor_rows(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                         const RowInputs<T>& in, const Options& o, int i) {
  using E = ElementOf<T>;
  int r = rw.first_row[i], k = t.row_motor[rw.item[i][0]], d = t.motor_dof[k], tie = t.motor_tie[k];
  Span s = span(rw, i);
  T* J = rw.J + s.J;
  TieAxisRow<T> a;
  if (tie >= 0) a = tie_axis(t, tr, rw.eq.now, tie);
  RowValues<T> y = motor_row(t, th, motor_place(t, th, tr.q, in.u, k, tie >= 0 ? a.x : T(0)), in.u, in.h, k);
  if (tie < 0) {
    CS_FOR (int j = 0; j < s.m; j++) J[j] = T(0);
    J[place(s, d)] = y.J;
  } else {
    int tree = tree_of_b(t, rw, i);
    block_signs(t, rw, i, J);
    CS_FOR (int j = 0; j < s.m; j++) {
      int c = s.col[j];
      J[j] = y.J * J[j] * dot(tr.S[c], t.root[t.dof_body[c]] == tree ? a.F_b : a.F_a);
    }
  }
  T floor = fma(T(E(motor_softness(t, o, k))), motor_lightness(t, th, k), T(E(o.absolute_softness)));
  rw.b[r] = row_dot(s, J, rw.v_star) + y.target;
  rw.lo[r] = y.lo, rw.hi[r] = y.hi, rw.R[r] = y.R + floor;
}
template <class T> CS_OP void motor_rows_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                             const RowInputs<T>& in, const Options& o, int i, const RowBars<T>& rb,
                                             const Bars<T>& bar, const Params<T>& th_bar, T* u_bar, T& h_bar) {
  int r = rw.first_row[i], k = t.row_motor[rw.item[i][0]], d = t.motor_dof[k], tie = t.motor_tie[k];
  Span s = span(rw, i);
  const T* J_bar = rb.J + s.J;
  T x_bar = T(0), floor_bar = T(ElementOf<T>(motor_softness(t, o, k))) * rb.R[r];
  RowValues<T> y_bar = {T(0), -rb.w[r], rb.R[r], rb.lo[r], rb.hi[r]};
  if (tie < 0) {
    y_bar.J = J_bar[place(s, d)];
    motor_row_adj(t, th, motor_place(t, th, tr.q, in.u, k, T(0)), in.u, in.h, k, y_bar, th_bar, x_bar, u_bar, h_bar);
    if (t.motor_q[k] >= 0) bar.q[d] += x_bar;
    dof_lightness_adj(t, th, d, floor_bar, th_bar);
    return;
  }
  TieAxisRow<T> a = tie_axis(t, tr, rw.eq.now, tie);
  Motion<T> F_a_bar = zero_motion<T>(), F_b_bar = F_a_bar;
  int tree = tree_of_b(t, rw, i);
  block_signs(t, rw, i, rw.sigma);
  CS_FOR (int j = 0; j < s.m; j++) {
    int c = s.col[j];
    bool of_b = t.root[t.dof_body[c]] == tree;
    Force<T> F = of_b ? a.F_b : a.F_a;
    T share = rw.sigma[j] * J_bar[j], g = th.gear[k] * share;
    y_bar.J = fma(share, dot(tr.S[c], F), y_bar.J);
    bar.S[c] = fma(g, F, bar.S[c]);
    Motion<T>& F_bar = of_b ? F_b_bar : F_a_bar;
    F_bar = fma(g, tr.S[c], F_bar);
  }
  motor_row_adj(t, th, motor_place(t, th, tr.q, in.u, k, a.x), in.u, in.h, k, y_bar, th_bar, x_bar, u_bar, h_bar);
  tie_axis_adj(t, tr, rw.eq.now, tie, x_bar, F_a_bar, F_b_bar, rb.eq.frame[2 * tie], rb.eq.frame[2 * tie + 1]);
  pair_lightness_adj(th, t.tie_a[tie], t.tie_b[tie], t.tie_axis[tie] == kHingeAxis, floor_bar, th_bar);
}

// no adjoint: a part of rows and rows_adj, undone there.   block i, of dry friction
template <class T>
CS_FN void dry_rows(const Tree& t, const Params<T>& th, const Rows<T>& rw, const RowInputs<T>& in, const Options& o, int i) {
  int r = rw.first_row[i], k = rw.item[i][0], d = t.dry_dof[k];
  RowValues<T> y = dry_row(th, in.h, k);
  Span s = span(rw, i);
  CS_FOR (int j = 0; j < s.m; j++) rw.J[s.J + j] = T(0);
  rw.J[s.J + place(s, d)] = y.J;
  rw.b[r] = rw.v_star[d];
  rw.lo[r] = y.lo, rw.hi[r] = y.hi, rw.R[r] = joint_floor(t, th, o, d);
}

// rows: all of them; those of a block by one thread of a team
template <class T> CS_OP void rows(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                   const RowInputs<T>& in, const Options& o) {
  using E = ElementOf<T>;
  auto block = [&](int i) {
    T valid = T(1);
    for (int l = 0; l < lanes<T>; l++)
      if (rw.item[i][l] < 0) set_lane(valid, l, E(0));
    rw.valid[i] = valid;
    rw.block_mu[i] = rw.impact[i] = T(0);
    switch (rw.kind[i]) {
      case kContactRows: return contact_rows(t, tr, rw, in, o, i);
      case kLimitRow: return limit_row(t, th, rw, in, o, i);
      case kMotorRow: return motor_rows(t, th, tr, rw, in, o, i);
      case kDryRow: return dry_rows(t, th, rw, in, o, i);
    }
  };
  share_rows(rw.count[0], block);
}
// adjoint: bar.q and the bars of candidates and limits; J_bar, w, R_bar, lo_bar, hi_bar, block_mu are complete.   Contacts by a thread of a team each, but for what
// several of them add to, and other rows, which are few: in the order of blocks
template <class T> CS_OP void rows_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Rows<T>& rw,
                                       const RowInputs<T>& in, const Options& o, const RowBars<T>& rb, const Bars<T>& bar,
                                       const Params<T>& th_bar, T* u_bar) {
  T *lapse_h = rb.lo_else, *lapse_full = rb.hi_else;
  if constexpr (kTeam > 1) {
    share(rw.count[0], [&](int i) {
      Lapse<T> lapse = {T(0), T(0)};
      if (rw.kind[i] == kContactRows) contact_rows_adj(t, tr, rw, in, o, i, rb, bar, lapse);
      lapse_h[i] = lapse.h, lapse_full[i] = lapse.full;
    });
  }
  CS_FOR (int i = 0; i < rw.count[0]; i++) {
    Lapse<T> lapse = {T(0), T(0)};
    if (kTeam > 1 && rw.kind[i] == kContactRows) {
      contact_S_adj(t, rw, i, rb.J + rw.J_adr[i], bar);
      lapse = {lapse_h[i], lapse_full[i]};
    } else if (rw.kind[i] == kContactRows) {
      contact_rows_adj(t, tr, rw, in, o, i, rb, bar, lapse);
    } else if (rw.kind[i] == kLimitRow) {
      limit_row_adj(t, th, rw, o, i, rb, th_bar, lapse);
    } else if (rw.kind[i] == kMotorRow) {
      motor_rows_adj(t, th, tr, rw, in, o, i, rb, bar, th_bar, u_bar, lapse.h);
    } else if (rw.kind[i] == kDryRow) {
      int r = rw.first_row[i], k = rw.item[i][0], d = t.dry_dof[k];
      RowValues<T> y_bar = {rb.J[rw.J_adr[i] + place(span(rw, i), d)], -rb.w[r], rb.R[r], rb.lo[r], rb.hi[r]};
      dry_row_adj(th, in.h, k, y_bar, th_bar, lapse.h);
      dof_lightness_adj(t, th, d, T(ElementOf<T>(o.relative_softness)) * rb.R[r], th_bar);
    }
    add_to_tree(t, rw, i, in.split ? lapse.h : lapse.h + lapse.full, rb.h);
    if (in.split) add_to_tree(t, rw, i, lapse.full, rb.full);
  }
}

CS_END
