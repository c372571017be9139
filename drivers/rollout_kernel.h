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
template <class T, class E> CS_OP void one_step_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g, const Params<T>& th,
                                                    const Inputs<T>& in, const Params<T>& th_bar, InputBars<T>& in_bar) {
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

#ifdef CS_PART
// Kernels for the parts of a step: without rows, which rows there are, what they are made of, their impulses. The first one also ends the step before. Their
// code is short, each has as many threads for a world as suit it, and worlds wait for each other less. What one leaves in scratch the next finds there
enum StepPart { kPartMove, kPartFind, kPartMake, kPartSolve };

// Worlds that took long to solve in the step before are solved first, since they mostly do again, and the others wait for the last one. For an even and an odd
// substep in turn: how many there are of either kind; and `n` worlds
struct Order {
  int* counts;  // [2, 2], zero at first
  int* worlds;  // [n]
  int n;
};
// no adjoint: integers.   the k-th world, from now on
CS_FN void put_in_order(const Order& order, long at, int k, bool first) {
  int* count = order.counts + 2 * (at & 1) + first;
#ifdef __CUDA_ARCH__
  int place = atomicAdd(count, 1);
#else
  int place = (*count)++;
#endif
  order.worlds[first ? place : order.n - 1 - place] = k;
}
// no adjoint: a choice.   did this world take longer than most? A Newton step takes as long as some twenty passes
template <class T> CS_FN bool took_long(const Rows<T>& rw) { return rw.status->sweeps + T(20) * rw.status->steps > T(100); }

// no adjoint: of rollouts without one.   the part CS_PART of substep `at` of the whole rollout, of world w, the k-th of those that are in `order`
template <class T, class E>
CS_WHOLE void run_part(const RolloutCall<E>& c, long w, long at, void* scratch, const Order& order, int k) {
  const Tree& t = tree_of(c);
  Arena<T> arena{static_cast<T*>(scratch), 0};
  RolloutBuffers<T> b = rollout_buffers<T>(c, arena);
  Group g = group<T>(w, c.worlds);
  b.in[kTheta] = c.in[kTheta].data + g.first * c.in[kTheta].stride;
  Params<T> th = params_map(t, b.in[kTheta]);
  auto inputs = [&] { return rollout_inputs(c, b, b.q, b.v); };
  if constexpr (CS_PART == kPartMove) {
    if (constrained(t) && team_rank() == 0) put_in_order(order, at, k, at > 0 && took_long(b.rw));
    if (at == 0) {
      load_constants(c, b, g, true);
      rollout_begins(c, b, g, *b.status);
    } else {
      long s = (at - 1) / c.substeps;
      bool alive[1] = {c.diverged_at[g.first] >= c.steps};
      if (constrained(t)) respond(t, b.tr, b.rw, c.options, b.v_next);
      arrive(t, th, b.tr, b.rw, c.options, inputs(), b.q_next, b.v_next);
      substep_ends(c, b, g, s, alive, *b.status);
      if (at % c.substeps == 0) store(c.q, g, t.nq, b.q, s), store(c.v, g, t.nv, b.v, s);
      if (at == c.steps * c.substeps) return rollout_ends(c, b, g, alive, *b.status);
    }
    if (at % c.substeps == 0) load_step(c, b, g, at / c.substeps);
    move_freely(t, th, b.tr, b.rw, inputs(), b.v_next);
  } else if (constrained(t)) {
    if (CS_PART == kPartFind && k == 0 && team_rank() == 0) order.counts[2 * (~at & 1)] = order.counts[2 * (~at & 1) + 1] = 0;
    if constexpr (CS_PART == kPartFind) find_rows(t, th, b.tr, b.rw, row_inputs(inputs()), c.options, b.v_next);
    if constexpr (CS_PART == kPartMake) make_rows(t, th, b.tr, b.rw, row_inputs(inputs()), c.options);
    if constexpr (CS_PART == kPartSolve) solve_rows(t, b.rw, c.options);
  }
}
#endif

// adjoint of one control step: from the costate after it (b.q_tan, b.v_bar) to the costate before it, in place
template <class T, class E> CS_WHOLE void control_step_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g, long s,
                                                           const Params<T>& th, const Params<T>& th_bar) {
  const Tree& t = tree_of(c);
  if (s == 0) {
    load(c.in[kQ], g, t.nq, b.q), load(c.in[kV], g, t.nv, b.v);
  } else {
    load(c.q, g, t.nq, b.q, s - 1), load(c.v, g, t.nv, b.v, s - 1);
  }
  clear(b.in_bar[kU], t.nu);
  // up to the start of the last substep, then back from one to the one before; in one loop, so that a kernel holds one step only
  for (long n = c.substeps - 1, i = 0; i <= 2 * n; i++) {
    long k = i < n ? i : 2 * n - i;
    bool up = i < n;
    Inputs<T> in = rollout_inputs(c, b, b.q + k * t.nq, b.v + k * t.nv);
    one_step(c, b, th, in.q, in.v, up ? b.q + (k + 1) * t.nq : b.q_next, up ? b.v + (k + 1) * t.nv : b.v_next);
    if (up) continue;
    InputBars<T> in_bar = {b.q_acc, b.v_acc, b.in_bar[kU], b.in_bar[kH][0],
                           c.in_bar[kExternal].data ? b.in_bar[kExternal] : nullptr};
    one_step_adj(c, b, g, th, in, th_bar, in_bar);
    b.in_bar[kH][0] = in_bar.h;
    for (int d = 0; d < t.nv; d++) b.q_tan[d] = b.q_acc[d], b.v_bar[d] = b.v_acc[d];
  }
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

template <class T, class E> CS_WHOLE void rollout_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, Group g) {
  const Tree& t = tree_of(c);
  int P = params_size(t), next = 6 * t.nb;
  bool keep[lanes<T>];
  for (int l = 0; l < g.count; l++) keep[l] = c.diverged_at[g.first + l] >= c.steps;
  const Array<E>* bar = c.in_bar;
  Params<T> th = params_map(t, b.in[kTheta]), th_bar = params_map(t, bar[kTheta].data ? b.in_bar[kTheta] : nullptr);
  clear(b.in_bar[kTheta], P), clear(b.in_bar[kH], 1), clear(b.in_bar[kExternal], next);
  clear(b.q_tan, t.nv), clear(b.v_bar, t.nv);
  for (long s = c.steps - 1; s >= 0; s--) {
    // the loss's own share at the state after step s
    if (c.q_bar.data) {
      load(c.q, g, t.nq, b.q_next, s), load(c.q_bar, g, t.nq, b.q_amb, s);
      tangent_bars(t, b.q_next, b.q_amb, b.q_tan);
    }
    if (c.v_bar.data) {
      load(c.v_bar, g, t.nv, b.v_next, s);
      for (int d = 0; d < t.nv; d++) b.v_bar[d] += b.v_next[d];
    }
    load_step(c, b, g, s);
    control_step_adj(c, b, g, s, th, th_bar);
    T norm = costate_norm(t, b);
    if (c.costate.data)
      for (int l = 0; l < g.count; l++) c.costate.data[s * c.worlds + g.first + l] = keep[l] ? lane(norm, l) : E(0);
    bool cut = c.truncate && s > 0 && s % c.truncate == 0;
    T scale = T(cut ? E(0) : c.decay);
    if (c.clip > E(0)) scale = scale * (T(c.clip) / max(norm, T(c.clip)));
    for (int d = 0; d < t.nv; d++) b.q_tan[d] *= scale, b.v_bar[d] *= scale;
    if (bar[kU].data) store_bar(bar[kU], g, t.nu, b.in_bar[kU], keep, s);
    if (bar[kExternal].data && bar[kExternal].time) {
      store_bar(bar[kExternal], g, next, b.in_bar[kExternal], keep, s);
      clear(b.in_bar[kExternal], next);
    }
  }
  if (bar[kQ].data) {
    load(c.in[kQ], g, t.nq, b.q);
    clear(b.q_amb, t.nq);
    normalise_adj(t, b.q, b.q_tan, b.q_amb);
    store_bar(bar[kQ], g, t.nq, b.q_amb, keep);
  }
  if (bar[kV].data) store_bar(bar[kV], g, t.nv, b.v_bar, keep);
  if (bar[kH].data) store_bar(bar[kH], g, 1, b.in_bar[kH], keep);
  if (bar[kExternal].data && !bar[kExternal].time) store_bar(bar[kExternal], g, next, b.in_bar[kExternal], keep);
  if (bar[kTheta].data) store_bar(bar[kTheta], g, P, b.in_bar[kTheta], keep);
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
