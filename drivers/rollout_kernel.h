// Many steps of a pack, and their adjoint. Forward keeps (q, v) after every control step and nothing else; the adjoint goes
// back from one to the one before, recomputing the substeps between.
//
// A world whose state stops being finite is held where it last was finite and flagged; it gives no gradient. Its lane-mates
// never notice.
#pragma once
#include "contact_info.h"

CS_BEGIN

template <class T> struct RolloutBuffers {
  Trace<T> tr;
  Bars<T> bar;
  Rows<T> rw;
  RowBars<T> rb;
  Split<T> split;  // of steps that are split at impacts
  T *in[kRolloutInputs], *in_bar[kRolloutInputs];
  T *q, *v;              // the current control step's start and its substeps: [substeps + 1, n]
  T *q_next, *v_next;    // one step ahead
  T *q_tan, *v_bar;      // the costate, tangent
  T* q_amb;              // an incoming bar of q
  T *q_acc, *v_acc;      // the costate one substep back
  StatusSum<T>* status;  // where each part of a step is a kernel of its own
};

// are steps split at impacts?
template <class E> CS_OP bool splits(const RolloutCall<E>& c) { return c.options.impacts && constrained(tree_of(c)); }

template <class T> CS_OP RolloutBuffers<T> rollout_buffers(const RolloutCall<ElementOf<T>>& c, Arena<T>& m) {
  const Tree& t = tree_of(c);
  RolloutBuffers<T> b{};
  bool adj = c.adjoint;
  int sizes[kRolloutInputs] = {t.nq, t.nv, t.nu, 1, 6 * t.nb, params_size(t)}, n = adj ? int(c.substeps) + 1 : 1;
  b.tr = trace_map(t, m);
  if (adj) b.bar = bars_map(t, m);
  if (constrained(t)) b.rw = rows_map(t, c.options, adj, m);
  if (constrained(t) && adj) b.rb = row_bars_map(t, c.options, m);
  if (splits(c)) b.split = split_map(t, c.options, adj, m);
  for (int k = 0; k < kRolloutInputs; k++) {
    bool read_in_place = k == kTheta && lanes<T> == 1;  // see load_constants
    b.in[k] = m.template take<T>(read_in_place ? 0 : sizes[k]), b.in_bar[k] = m.template take<T>(adj ? sizes[k] : 0);
  }
  b.q = m.template take<T>(n * t.nq), b.v = m.template take<T>(n * t.nv);
  b.q_next = m.template take<T>(t.nq), b.v_next = m.template take<T>(t.nv);
  if (!adj) b.status = m.template take<StatusSum<T>>(1);
  if (!adj) return b;
  b.q_tan = m.template take<T>(t.nv), b.v_bar = m.template take<T>(t.nv);
  b.q_amb = m.template take<T>(t.nq), b.q_acc = m.template take<T>(t.nv), b.v_acc = m.template take<T>(t.nv);
  return b;
}

// which lanes are finite: x - x is 0 for numbers, NaN for the rest
template <class T> CS_OP T finite_sum(const T* q, int nq, const T* v, int nv) {
  T s = T(0);
  for (int i = 0; i < nq; i++) s += q[i] - q[i];
  for (int i = 0; i < nv; i++) s += v[i] - v[i];
  return s;
}

template <class T, class E>
CS_OP Inputs<T> rollout_inputs(const RolloutCall<E>& c, const RolloutBuffers<T>& b, const T* q, const T* v) {
  return {q, v, c.in[kU].data ? b.in[kU] : nullptr, b.in[kH][0], c.in[kExternal].data ? b.in[kExternal] : nullptr};
}

// what stays the same over the steps; controls and time-varying wrenches are loaded step by step
template <class T, class E> CS_OP void load_constants(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g, bool first) {
  const Tree& t = tree_of(c);
  load(c.in[kH], g, 1, b.in[kH]);
  if constexpr (lanes<T> == 1)
    b.in[kTheta] = c.in[kTheta].data + g.first * c.in[kTheta].stride;  // one world reads them where they are
  else if (c.in[kTheta].stride || first)
    load(c.in[kTheta], g, params_size(t), b.in[kTheta]);
  if (c.in[kExternal].data && !c.in[kExternal].time) load(c.in[kExternal], g, 6 * t.nb, b.in[kExternal]);
}
template <class T, class E> CS_OP void load_step(const RolloutCall<E>& c, const RolloutBuffers<T>& b, Group g, long step) {
  const Tree& t = tree_of(c);
  if (c.in[kU].data) load(c.in[kU], g, t.nu, b.in[kU], step);
  if (c.in[kExternal].data && c.in[kExternal].time) load(c.in[kExternal], g, 6 * t.nb, b.in[kExternal], step);
}

template <class T, class E> CS_WHOLE void one_step(const RolloutCall<E>& c, RolloutBuffers<T>& b, const Params<T>& th, const T* q,
                                                   const T* v, T* q_next, T* v_next) {
  const Tree& t = tree_of(c);
  CS_IF(Options, c.options, impacts) {
    if (constrained(t)) return split_step(t, th, b.tr, b.rw, c.options, rollout_inputs(c, b, q, v), q_next, v_next, b.split);
  }
  step(t, th, b.tr, b.rw, c.options, rollout_inputs(c, b, q, v), q_next, v_next);
}
// adjoint, after one_step on the same buffers; q_tan, v_bar: the costate after it, in q_acc and v_acc that before it
template <class T, class E> CS_WHOLE void one_step_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g,
                                                       const Params<T>& th, const Inputs<T>& in, const Params<T>& th_bar,
                                                       InputBars<T>& in_bar) {
  const Tree& t = tree_of(c);
  CS_IF(Options, c.options, impacts) {
    auto show = [&](int bits) {
      show_rows_adj(c, b.rw, g, b.rb);
      T keep = lane_flags<T>(bits);
      for (int i = 0; i < b.rw.count[0]; i++) b.rb.impulse[i] = keep * b.rb.impulse[i];
    };
    if (constrained(t)) {
      for (int d = 0; d < t.nv; d++) b.q_acc[d] = b.q_tan[d], b.v_acc[d] = b.v_bar[d];
      return split_step_adj(t, th, b.tr, b.rw, c.options, in, b.q_acc, b.v_acc, b.bar, b.rb, th_bar, in_bar, b.split, show);
    }
  }
  clear(b.q_acc, t.nv), clear(b.v_acc, t.nv);
  show_rows_adj(c, b.rw, g, b.rb);
  step_adj(t, th, b.tr, b.rw, c.options, in, b.v_next, b.q_tan, b.v_bar, b.bar, b.rb, th_bar, in_bar);
}

// before the first step
template <class T, class E>
CS_OP void rollout_begins(const RolloutCall<E>& c, const RolloutBuffers<T>& b, Group g, StatusSum<T>& status) {
  const Tree& t = tree_of(c);
  for (int l = 0; l < g.count; l++) c.diverged_at[g.first + l] = int(c.steps);
  load(c.in[kQ], g, t.nq, b.q), load(c.in[kV], g, t.nv, b.v);
  status = {};
}
// after a substep of control step s: what it led to is where the next one begins, in lanes where it is finite
template <class T, class E> CS_WHOLE void substep_ends(const RolloutCall<E>& c, const RolloutBuffers<T>& b, Group g, long s,
                                                       bool* alive, StatusSum<T>& status) {
  const Tree& t = tree_of(c);
  T ok = finite_sum(b.q_next, t.nq, b.v_next, t.nv);
  bool all = true;
  for (int l = 0; l < lanes<T>; l++) {
    if (alive[l] && !(lane(ok, l) == E(0))) {
      alive[l] = false;
      if (l < g.count) c.diverged_at[g.first + l] = int(s);
    }
    all = all && alive[l];
  }
  if (constrained(t)) status.add(t, *b.rw.status, c.options, alive);
  if (all) {
    share(t.nq, [&](int i) { b.q[i] = b.q_next[i]; });
    share(t.nv, [&](int i) { b.v[i] = b.v_next[i]; });
  }
  for (int l = 0; l < lanes<T> && !all; l++) {
    if (!alive[l]) continue;
    for (int i = 0; i < t.nq; i++) set_lane(b.q[i], l, lane(b.q_next[i], l));
    for (int i = 0; i < t.nv; i++) set_lane(b.v[i], l, lane(b.v_next[i], l));
  }
}
// after the last step
template <class T, class E> CS_OP void rollout_ends(const RolloutCall<E>& c, const RolloutBuffers<T>& b, Group g,
                                                    const bool* alive, const StatusSum<T>& status) {
  status.store(c.status, g);
  if (c.contacts.data || c.rows.data || c.contact_ids) show_rows(c, b.tr, b.rw, g, alive);
}

template <class T, class E> CS_WHOLE void rollout_forward(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g) {
  const Tree& t = tree_of(c);
  Params<T> th = params_map(t, b.in[kTheta]);
  bool alive[lanes<T>];
  StatusSum<T> status;
  for (int l = 0; l < lanes<T>; l++) alive[l] = true;
  rollout_begins(c, b, g, status);
  for (long s = 0; s < c.steps; s++) {
    load_step(c, b, g, s);
    for (long k = 0; k < c.substeps; k++) {
      one_step(c, b, th, b.q, b.v, b.q_next, b.v_next);
      substep_ends(c, b, g, s, alive, status);
    }
    store(c.q, g, t.nq, b.q, s), store(c.v, g, t.nv, b.v, s);
  }
  rollout_ends(c, b, g, alive, status);
}

// before the last step: no bars yet
template <class T, class E> CS_OP void adjoint_begins(const RolloutCall<E>& c, const RolloutBuffers<T>& b) {
  const Tree& t = tree_of(c);
  clear(b.in_bar[kTheta], params_size(t)), clear(b.in_bar[kH], 1), clear(b.in_bar[kExternal], 6 * t.nb);
  clear(b.q_tan, t.nv), clear(b.v_bar, t.nv);
}
// control step s: the loss's own share at the state after it, and the state before it
template <class T, class E>
CS_WHOLE void control_step_begins_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g, long s) {
  const Tree& t = tree_of(c);
  if (c.q_bar.data) {
    load(c.q, g, t.nq, b.q_next, s), load(c.q_bar, g, t.nq, b.q_amb, s);
    tangent_bars(t, b.q_next, b.q_amb, b.q_tan);
  }
  if (c.v_bar.data) {
    load(c.v_bar, g, t.nv, b.v_next, s);
    share(t.nv, [&](int d) { b.v_bar[d] += b.v_next[d]; });
  }
  load_step(c, b, g, s);
  if (s == 0) {
    load(c.in[kQ], g, t.nq, b.q), load(c.in[kV], g, t.nv, b.v);
  } else {
    load(c.q, g, t.nq, b.q, s - 1), load(c.v, g, t.nv, b.v, s - 1);
  }
  clear(b.in_bar[kU], t.nu);
}
// Substeps of a control step are gone through again, up to where the last one starts, and then back from one to the one before
struct Visit {
  bool up;
  long k;  // substep
};
CS_FN long visits(long substeps) { return 2 * substeps - 1; }
CS_FN Visit visit(long substeps, long i) {
  bool up = i < substeps - 1;
  return {up, up ? i : 2 * (substeps - 1) - i};
}
// adjoint of substep k, which has been run: from the costate after it (b.q_tan, b.v_bar) to the costate before it, in place
template <class T, class E> CS_WHOLE void substep_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g, long k,
                                                      const Params<T>& th, const Params<T>& th_bar) {
  const Tree& t = tree_of(c);
  Inputs<T> in = rollout_inputs(c, b, b.q + k * t.nq, b.v + k * t.nv);
  InputBars<T> in_bar = {b.q_acc, b.v_acc, b.in_bar[kU], b.in_bar[kH][0],
                         c.in_bar[kExternal].data ? b.in_bar[kExternal] : nullptr};
  one_step_adj(c, b, g, th, in, th_bar, in_bar);
  b.in_bar[kH][0] = in_bar.h;
  share(t.nv, [&](int d) { b.q_tan[d] = b.q_acc[d], b.v_bar[d] = b.v_acc[d]; });
}

// length of the costate in tangent coordinates; scaled by its largest entry, whose square may not be finite
template <class T> CS_OP T costate_norm(const Tree& t, const RolloutBuffers<T>& b) {
  T most = T(0), s = T(0);
  for (int d = 0; d < t.nv; d++) most = max(most, max(abs(b.q_tan[d]), abs(b.v_bar[d])));
  T inv = T(1) / select(most > T(0), most, T(1));
  for (int d = 0; d < t.nv; d++) {
    T x = inv * b.q_tan[d], y = inv * b.v_bar[d];
    s = fma(x, x, fma(y, y, s));
  }
  return most * sqrt(s);
}

// after the way back through control step s: what its own inputs are worth, and the costate before it
template <class T, class E>
CS_WHOLE void control_step_ends_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g, long s, const bool* keep) {
  const Tree& t = tree_of(c);
  const Array<E>* bar = c.in_bar;
  T norm = costate_norm(t, b);
  if (c.costate.data)
    for (int l = 0; l < g.count; l++) c.costate.data[s * c.worlds + g.first + l] = keep[l] ? lane(norm, l) : E(0);
  bool cut = c.truncate && s > 0 && s % c.truncate == 0;
  T scale = T(cut ? E(0) : c.decay);
  if (c.clip > E(0)) scale = scale * (T(c.clip) / max(norm, T(c.clip)));
  share(t.nv, [&](int d) { b.q_tan[d] *= scale, b.v_bar[d] *= scale; });
  if (bar[kU].data) store_bar(bar[kU], g, t.nu, b.in_bar[kU], keep, s);
  if (bar[kExternal].data && bar[kExternal].time) {
    store_bar(bar[kExternal], g, 6 * t.nb, b.in_bar[kExternal], keep, s);
    clear(b.in_bar[kExternal], 6 * t.nb);
  }
}
// after the way back through the first one
template <class T, class E> CS_WHOLE void adjoint_ends(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g, const bool* keep) {
  const Tree& t = tree_of(c);
  const Array<E>* bar = c.in_bar;
  if (bar[kQ].data) {
    load(c.in[kQ], g, t.nq, b.q);
    clear(b.q_amb, t.nq);
    normalise_adj(t, b.q, b.q_tan, b.q_amb);
    store_bar(bar[kQ], g, t.nq, b.q_amb, keep);
  }
  if (bar[kV].data) store_bar(bar[kV], g, t.nv, b.v_bar, keep);
  if (bar[kH].data) store_bar(bar[kH], g, 1, b.in_bar[kH], keep);
  if (bar[kExternal].data && !bar[kExternal].time) store_bar(bar[kExternal], g, 6 * t.nb, b.in_bar[kExternal], keep);
  if (bar[kTheta].data) store_bar(bar[kTheta], g, params_size(t), b.in_bar[kTheta], keep);
}
// no adjoint: calls.   which worlds count
template <class T, class E> CS_FN void kept_worlds(const RolloutCall<E>& c, Group g, bool (&keep)[lanes<T>]) {
  for (int l = 0; l < g.count; l++) keep[l] = c.diverged_at[g.first + l] >= c.steps;
}
// no adjoint: calls.   the bars of theta, in scratch
template <class T, class E> CS_FN Params<T> theta_bars(const RolloutCall<E>& c, const RolloutBuffers<T>& b) {
  return params_map(tree_of(c), c.in_bar[kTheta].data ? b.in_bar[kTheta] : nullptr);
}

template <class T, class E> CS_WHOLE void rollout_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g) {
  const Tree& t = tree_of(c);
  bool keep[lanes<T>];
  kept_worlds<T>(c, g, keep);
  Params<T> th = params_map(t, b.in[kTheta]), th_bar = theta_bars(c, b);
  adjoint_begins(c, b);
  for (long s = c.steps - 1; s >= 0; s--) {
    control_step_begins_adj(c, b, g, s);
    // in one loop, so that a kernel holds one step only
    for (long i = 0; i < visits(c.substeps); i++) {
      auto [up, k] = visit(c.substeps, i);
      const T *q = b.q + k * t.nq, *v = b.v + k * t.nv;
      one_step(c, b, th, q, v, up ? b.q + (k + 1) * t.nq : b.q_next, up ? b.v + (k + 1) * t.nv : b.v_next);
      if (!up) substep_adj(c, b, g, k, th, th_bar);
    }
    control_step_ends_adj(c, b, g, s, keep);
  }
  adjoint_ends(c, b, g, keep);
}

template <class T, class E> CS_WHOLE void run_rollout(const RolloutCall<E>& c, long lo, long hi, void* scratch) {
  Arena<T> arena{static_cast<T*>(scratch), 0};
  RolloutBuffers<T> b = rollout_buffers<T>(c, arena);
  for (long p = lo; p < hi; p++) {
    Group g = group<T>(p, c.worlds);
    load_constants(c, b, g, p == lo);
    CS_IF(RolloutCall<E>, c, adjoint) rollout_adj(c, b, g);
    else rollout_forward(c, b, g);
  }
}

template <class T, class E> CS_OP size_t rollout_scratch(const RolloutCall<E>& c) {
  Arena<T> count{nullptr, 0};
  rollout_buffers<T>(c, count);
  return count.used * sizeof(T);
}

CS_END
