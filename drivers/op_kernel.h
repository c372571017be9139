// Functions of one instant, pack by pack: load, call the core, store. The adjoint recomputes the forward for its trace.
#pragma once
#include "../core/query.h"
#include "../core/split.h"
#include "lanes.h"

CS_BEGIN

template <class T> struct OpBuffers {
  Trace<T> tr;
  Bars<T> bar;
  Rows<T> rw;  // of linearize, distance, and what concerns equality rows
  RowBars<T> rb;
  Split<T> split;
  T *in[6], *out[3], *in_bar[6], *out_bar[3];
  T *q1, *q2, *tangent;  // normalised copies and tangent bars of integrate and difference
};

template <class T> CS_OP OpBuffers<T> op_buffers(const OpCall<ElementOf<T>>& c, Arena<T>& m) {
  const Tree& t = tree_of(c);
  OpShape s = op_shape(c.op, t);
  bool adjoint = c.adjoint;
  OpBuffers<T> b{};
  b.tr = trace_map(t, m);
  b.bar = bars_map(t, m);
  if ((c.op == kErrors || c.op == kSettle) && t.ne) {
    b.rw.eq = equality_map(t, 0, m), b.rb.eq = equality_bars_map(t, 0, m);
    b.rb.V_x = m.template take<Motion<T>>(t.nb), b.rb.V_y = m.template take<Motion<T>>(t.nb);
    b.rb.F_x = m.template take<Force<T>>(t.nb), b.rb.F_y = m.template take<Force<T>>(t.nb);
  }
  if (c.op == kDistance) touch_map(t, b.rw, m), touch_bars_map(t, b.rb, m);
  if (c.op == kLinearize) b.rw = rows_map(t, c.options, true, m), b.rb = row_bars_map(t, c.options, m);
  if (c.op == kLinearize && c.options.impacts) b.split = split_map(t, c.options, true, m);
  for (int k = 0; k < s.n_in; k++) b.in[k] = m.template take<T>(s.in[k]), b.in_bar[k] = m.template take<T>(adjoint ? s.in[k] : 0);
  for (int k = 0; k < s.n_out; k++)
    b.out[k] = m.template take<T>(s.out[k]), b.out_bar[k] = m.template take<T>(adjoint ? s.out[k] : 0);
  b.q1 = m.template take<T>(t.nq), b.q2 = m.template take<T>(t.nq), b.tangent = m.template take<T>(2 * t.nv);
  return b;
}

// rows of A and B in tangent coordinates. Those of v+ by the step's adjoint, one unit costate at a time; those of
// q+ = q (+) h v+ follow by the chain rule, joint by joint
template <class T> CS_OP void linearize(const Tree& t, const Options& o, const OpBuffers<T>& b, const T* external) {
  Params<T> th = params_map(t, b.in[5]), none = params_map(t, static_cast<T*>(nullptr));
  Inputs<T> in = {b.in[0], b.in[1], b.in[2], b.in[3][0], external};
  T *q_next = b.q1, *v_next = b.q2, *unit = b.tangent, *v_share = b.tangent + t.nv, h_bar = T(0);
  step(t, th, b.tr, b.rw, o, in, q_next, v_next);
  if (constrained(t)) clear(b.rb.impulse, b.rw.count[0]);
  int n = 2 * t.nv;
  T *A = b.out[0], *B = b.out[1];
  clear(A, n * n), clear(B, n * t.nu);
  for (int i = t.nv; i < n; i++) {
    clear(b.tangent, n);
    v_share[i - t.nv] = T(1);
    InputBars<T> in_bar = {A + i * n, A + i * n + t.nv, B + i * t.nu, T(0), nullptr};
    step_adj(t, th, b.tr, b.rw, o, in, v_next, unit, v_share, b.bar, b.rb, none, in_bar);
  }
  for (int i = 0; i < t.nv; i++) {
    clear(b.tangent, n);
    unit[i] = T(1);
    integrate_adj(t, in.h, v_next, unit, A + i * n, h_bar, v_share);
    int body = t.dof_body[i], first = t.v_adr[body];
    for (int d = first; d < first + joint_nv(t.joint[body]); d++) {
      const T *a = A + (t.nv + d) * n, *c = B + (t.nv + d) * t.nu;
      for (int k = 0; k < n; k++) A[i * n + k] = fma(v_share[d], a[k], A[i * n + k]);
      for (int k = 0; k < t.nu; k++) B[i * t.nu + k] = fma(v_share[d], c[k], B[i * t.nu + k]);
    }
  }
}

// the same of a step that is split at impacts: no row follows from another
template <class T> CS_OP void linearize_split(const Tree& t, const Options& o, OpBuffers<T>& b, const T* external) {
  Params<T> th = params_map(t, b.in[5]), none = params_map(t, static_cast<T*>(nullptr));
  Inputs<T> in = {b.in[0], b.in[1], b.in[2], b.in[3][0], external};
  split_step(t, th, b.tr, b.rw, o, in, b.q1, b.q2, b.split);
  int n = 2 * t.nv;
  T *A = b.out[0], *B = b.out[1];
  clear(A, n * n), clear(B, n * t.nu);
  auto show = [&](int) { clear(b.rb.impulse, b.rw.count[0]); };
  for (int i = 0; i < n; i++) {
    T* row = A + i * n;
    row[i] = T(1);
    InputBars<T> in_bar = {nullptr, nullptr, B + i * t.nu, T(0), nullptr};
    split_step_adj(t, th, b.tr, b.rw, o, in, row, row + t.nv, b.bar, b.rb, none, in_bar, b.split, show);
  }
}

// Op `op` is this one? Kernels that are compiled for one call hold nothing else
#ifdef CS_MODEL
#define CS_CALLED(op, code) if constexpr (CS_OP_CODE == code)
#else
#define CS_CALLED(op, code) if (op == code)
#endif

template <class T>
CS_OP void op_forward([[maybe_unused]] int op, const Tree& t, const Options& o, OpBuffers<T>& b, const T* external) {
  T* const* in = b.in;
  T* const* out = b.out;
  CS_CALLED(op, kJointForces) {
    joint_forces(t, params_map(t, in[4]), b.tr, Inputs<T>{in[0], in[1], nullptr, T(0), external}, in[2], out[0]);
  }
  CS_CALLED(op, kAcceleration) {
    acceleration(t, params_map(t, in[4]), b.tr, Inputs<T>{in[0], in[1], nullptr, T(0), external}, in[2]);
    for (int d = 0; d < t.nv; d++) out[0][d] = b.tr.acc[d];
  }
  CS_CALLED(op, kMassMatrix) mass_matrix(t, params_map(t, in[1]), b.tr, in[0], out[0]);
  CS_CALLED(op, kPoses) poses(t, params_map(t, in[2]), b.tr, in[0], in[1], out[0], out[1], out[2]);
  CS_CALLED(op, kIntegrate) {
    normalise(t, in[0], b.q1);
    integrate(t, b.q1, T(1), in[1], out[0]);
  }
  CS_CALLED(op, kDifference) {
    normalise(t, in[0], b.q1), normalise(t, in[1], b.q2);
    difference(t, b.q1, b.q2, out[0]);
  }
  CS_CALLED(op, kPrepare) prepare(t, in[0], out[0]);
  CS_CALLED(op, kErrors) errors(t, params_map(t, in[1]), b.tr, b.rw.eq, in[0], out[0]);
  CS_CALLED(op, kSettle) settle(t, params_map(t, in[1]), b.tr, b.rw, in[0], b.q2, out[0]);
  CS_CALLED(op, kDistance) distance(t, params_map(t, in[1]), b.tr, b.rw, in[0], out[0]);
  CS_CALLED(op, kLinearize) {
    CS_IF(Options, o, impacts) {
      if (constrained(t)) return linearize_split(t, o, b, external);
    }
    linearize(t, o, b, external);
  }
}
// adjoint: after op_forward on the same buffers; in_bar cleared by the caller.   linearize has none, the binding refuses it
template <class T> CS_OP void op_adjoint(int op, const Tree& t, const OpBuffers<T>& b, const T* external, bool theta_wanted) {
  T* const* in = b.in;
  T* const* bar = b.in_bar;
  T* const* g = b.out_bar;
  OpShape s = op_shape(op, t);
  Params<T> th = params_map(t, in[s.n_in - 1]), th_bar = params_map(t, theta_wanted ? bar[s.n_in - 1] : nullptr);
  T* tangent = b.tangent;
  clear(tangent, 2 * t.nv);
  [[maybe_unused]] InputBars<T> in_bar = {tangent, bar[1], nullptr, T(0), bar[3]};
  CS_CALLED(op, kJointForces) {
    joint_forces_adj(t, th, b.tr, Inputs<T>{in[0], in[1], nullptr, T(0), external}, in[2], g[0], b.bar, th_bar, in_bar, bar[2]);
  }
  CS_CALLED(op, kAcceleration) {
    bars_clear(t, b.bar);
    for (int d = 0; d < t.nv; d++) b.bar.u[d] = g[0][d];
    acceleration_adj(t, th, b.tr, Inputs<T>{in[0], in[1], nullptr, T(0), external}, b.bar, th_bar, in_bar);
    for (int d = 0; d < t.nv; d++) tangent[d] += b.bar.q[d], bar[2][d] += b.bar.u[d];
  }
  CS_CALLED(op, kMassMatrix) mass_matrix_adj(t, th, b.tr, g[0], b.bar, th_bar, tangent);
  CS_CALLED(op, kPoses) poses_adj(t, th, b.tr, in[1], g[0], g[1], g[2], b.bar, th_bar, tangent, bar[1]);
  CS_CALLED(op, kErrors) errors_adj(t, th, b.tr, b.rw.eq, g[0], b.rb.eq, b.bar, th_bar, tangent);
  CS_CALLED(op, kDistance) distance_adj(t, th, b.tr, b.rw, g[0], b.rb, b.bar, th_bar, tangent);
  CS_CALLED(op, kSettle) {
    tangent_bars(t, b.out[0], g[0], tangent);
    settle_adj(t, th, b.tr, b.rw, b.q2, tangent, b.rb, b.bar, th_bar, b.tangent + t.nv);
    for (int d = 0; d < t.nv; d++) tangent[d] = tangent[t.nv + d];
  }
  CS_CALLED(op, kIntegrate) {
    T h_bar = T(0);
    tangent_bars(t, b.out[0], g[0], tangent + t.nv);
    integrate_adj(t, T(1), in[1], tangent + t.nv, tangent, h_bar, bar[1]);
  }
  CS_CALLED(op, kDifference) {
    difference_adj(t, b.q1, b.q2, g[0], tangent, tangent + t.nv);
    normalise_adj(t, in[1], tangent + t.nv, bar[1]);
  }
  CS_CALLED(op, kPrepare) return prepare_adj(t, in[0], g[0], bar[0]);
  normalise_adj(t, in[0], tangent, bar[0]);
}

// loads bars of the outputs, calls op_adjoint, stores bars of the inputs
template <class T, class E> CS_OP void op_backward(const OpCall<E>& c, const OpShape& s, Group g, const OpBuffers<T>& b,
                                                   const T* external, const bool* keep) {
  for (int k = 0; k < s.n_out; k++) {
    if (c.out_bar[k].data)
      load(c.out_bar[k], g, s.out[k], b.out_bar[k]);
    else
      clear(b.out_bar[k], s.out[k]);
  }
  for (int k = 0; k < s.n_in; k++) clear(b.in_bar[k], s.in[k]);
  op_adjoint(c.op, tree_of(c), b, external, c.in_bar[s.n_in - 1].data != nullptr);
  for (int k = 0; k < s.n_in; k++)
    if (c.in_bar[k].data) store_bar(c.in_bar[k], g, s.in[k], b.in_bar[k], keep);
}

template <class T, class E> CS_OP void run_op(const OpCall<E>& c, long lo, long hi, void* scratch) {
  const Tree& t = tree_of(c);
  OpShape s = op_shape(c.op, t);
  Arena<T> arena{static_cast<T*>(scratch), 0};
  OpBuffers<T> b = op_buffers<T>(c, arena);
  bool keep[lanes<T>];
  for (bool& k : keep) k = true;
  int ext = c.op == kLinearize ? 4 : 3;
  bool has_ext = c.op == kJointForces || c.op == kAcceleration || c.op == kLinearize;
  for (long p = lo; p < hi; p++) {
    Group g = group<T>(p, c.worlds);
    for (int k = 0; k < s.n_in; k++)
      if (c.in[k].data && (c.in[k].stride || p == lo)) load(c.in[k], g, s.in[k], b.in[k]);
    const T* external = has_ext && c.in[ext].data ? b.in[ext] : nullptr;
    op_forward(c.op, t, c.options, b, external);
    for (int k = 0; k < s.n_out && !c.adjoint; k++)
      if (c.out[k].data) store(c.out[k], g, s.out[k], b.out[k]);
    CS_IF(OpCall<E>, c, adjoint) op_backward(c, s, g, b, external, keep);
  }
}

template <class T, class E> CS_OP size_t op_scratch(const OpCall<E>& c) {
  Arena<T> count{nullptr, 0};
  op_buffers<T>(c, count);
  return count.used * sizeof(T);
}

CS_END
