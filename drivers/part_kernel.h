// Kernels for the parts of a step of many worlds, on a GPU: without rows, which rows there are, what they are made of, their impulses; in an adjoint also the way
// back. Their code is short, each has as many threads for a world as suit it, and worlds wait for each other less. What one leaves in scratch the next finds there.
//
//   forward: kPartMove, .. kPartSolve for each substep; kPartMove also ends the one before, and comes once more after the last
//   Of few rows, which most worlds have, the impulses are first sought by kPartPass and kPartPolish, which need fewer registers each: more worlds have room. kPartSolve is
//   for the others, and for those that need more than a round of passes. In float64 there are no few
//   adjoint: kPartMove, .. kPartBack for each substep on the way (`visit` of rollout_kernel.h)
#pragma once
#include "rollout_kernel.h"

CS_BEGIN

enum StepPart { kPartMove, kPartFind, kPartMake, kPartPass, kPartPolish, kPartSolve, kPartBack };

// Worlds are solved in the order of how long they will probably take: the longest first, since the others wait for the last one, and those of a block, which ends with
// its last one, are alike. They are gone back through in this order, too: where the solver did not converge its iterations are reversed.
// Lists: worlds of few rows that need more than a round of passes; worlds of many rows, and those of few, pace by pace
constexpr int kPaces = 16, kAgain = 0, kMany = 1, kFew = kMany + kPaces, kLists = kFew + kPaces;
struct Order {
  int* counts;  // [2, kLists] of an even and an odd substep in turn: how many worlds a list has; zero at first
  int* worlds;  // [kLists, n] those
  int n;
  // no adjoint: memory.   of so many worlds
  static CS_FN Order of(int* memory, long n) { return {memory, memory + 2 * kLists, int(n)}; }
  // no adjoint: integers.   world k is in this list, too
  CS_FN void put(long at, int list, int k) const {
    int* count = counts + kLists * (at & 1) + list;
#ifdef __CUDA_ARCH__
    int place = atomicAdd(count, 1);
#else
    int place = (*count)++;
#endif
    worlds[list * n + place] = k;
  }
  // no adjoint: integers.   the k-th world of the lists from `first` to before `end`; -1: there are fewer
  CS_FN int get(long at, int k, int first, int end) const {
    int count[kLists];  // all are read at once
    CS_STRIP (int i = 0; i < kLists; i++) count[i] = counts[kLists * (at & 1) + i];
    int found = -1;
    CS_STRIP (int i = 0; i < kLists; i++) {
      if (i < first || i >= end) continue;
      if (k >= 0 && k < count[i]) found = i * n + k;
      k -= count[i];
    }
    return found < 0 ? -1 : worlds[found];
  }
};
// no adjoint: a choice.   the slowest are 0. A Newton step takes as long as some thirty passes, and both the longer the more rows there are; of either a world mostly
// needs as many as in the step before.   before: whether there was one
template <class T> CS_FN int pace_of(const Rows<T>& rw, bool before) {
  constexpr float most = 4000 + 500 * (kPaces - 1);
  float passes = before ? float(rw.status->sweeps) + 30 * float(rw.status->steps) : 80, size = passes * float(rw.count[1] + 40);
  int pace = size < most ? int((most - size) / 500) : 0;
  return pace < kPaces ? pace : kPaces - 1;
}
// no adjoint: a choice.   that of a world's pace, and of whether its rows are few
template <class T> CS_FN int list_of(const Rows<T>& rw, bool before) {
  return pace_of(rw, before) + (may_hold(rw, kFewChunks) ? kFew : kMany);
}
// no adjoint: integers.   which world is the k-th of a part that has them in their order; -1: there are fewer
CS_FN int own_world(const Order& order, int part, long at, int k) {
  if (part == kPartPass || part == kPartPolish) return order.get(at, k, kFew, kLists);
  return part == kPartSolve ? order.get(at, k, kAgain, kFew) : order.get(at, k, kMany, kLists);
}

// no adjoint: of rollouts without one.   the end of the substep before, and the start of substep `at` of the whole rollout. Returns whether there is one
template <class T, class E>
CS_WHOLE bool part_begins(const RolloutCall<E>& c, RolloutBuffers<T>& b, const Params<T>& th, Group g, long at) {
  const Tree& t = tree_of(c);
  if (at == 0) {
    rollout_begins(c, b, g, *b.status);
  } else {
    long s = (at - 1) / c.substeps;
    bool alive[1] = {c.diverged_at[g.first] >= c.steps};
    if (constrained(t)) respond(t, b.tr, b.rw, c.options, b.v_next);
    arrive(t, th, b.tr, b.rw, c.options, rollout_inputs(c, b, b.q, b.v), b.q_next, b.v_next);
    substep_ends(c, b, g, s, alive, *b.status);
    if (at % c.substeps == 0) store(c.q, g, t.nq, b.q, s), store(c.v, g, t.nv, b.v, s);
    if (at == c.steps * c.substeps) return rollout_ends(c, b, g, alive, *b.status), false;
  }
  if (at % c.substeps == 0) load_step(c, b, g, at / c.substeps);
  return true;
}

// Where the adjoint's `at`-th substep is
struct PartVisit {
  long s, i;  // control step, how many substeps it has been on the way there
  Visit now;
};
template <class E> CS_FN PartVisit part_visit(const RolloutCall<E>& c, long at) {
  long n = visits(c.substeps), i = at % n;
  return {c.steps - 1 - at / n, i, visit(c.substeps, i)};
}
// no adjoint: of adjoints.   the same of the adjoint
template <class T, class E>
CS_WHOLE void part_begins_adj(const RolloutCall<E>& c, RolloutBuffers<T>& b, const Params<T>& th, Group g, long at) {
  const Tree& t = tree_of(c);
  PartVisit x = part_visit(c, at);
  if (at == 0) adjoint_begins(c, b);
  if (x.i == 0) return control_step_begins_adj(c, b, g, x.s);
  Visit before = visit(c.substeps, x.i - 1);
  if (!before.up) return;
  if (constrained(t)) respond(t, b.tr, b.rw, c.options, b.v_next);
  Inputs<T> in = rollout_inputs(c, b, b.q + before.k * t.nq, b.v + before.k * t.nv);
  arrive(t, th, b.tr, b.rw, c.options, in, b.q + (before.k + 1) * t.nq, b.v_next);
  share(t.nv, [&](int d) { b.v[(before.k + 1) * t.nv + d] = b.v_next[d]; });
}
// no adjoint: of adjoints.   the way back
template <class T, class E> CS_WHOLE void part_back(const RolloutCall<E>& c, RolloutBuffers<T>& b, const Params<T>& th, Group g,
                                                    const Inputs<T>& in, long at) {
  const Tree& t = tree_of(c);
  PartVisit x = part_visit(c, at);
  if (x.now.up) return;
  bool keep[1];
  kept_worlds<T>(c, g, keep);
  if (constrained(t)) respond(t, b.tr, b.rw, c.options, b.v_next);
  arrive(t, th, b.tr, b.rw, c.options, in, b.q_next, b.v_next);
  substep_adj(c, b, g, x.now.k, th, theta_bars(c, b));
  if (x.now.k > 0) return;
  control_step_ends_adj(c, b, g, x.s, keep);
  if (x.s == 0) adjoint_ends(c, b, g, keep);
}

// the part CS_PART of substep `at`, of world w, the k-th of those that are in `order`
template <class T, class E>
CS_WHOLE void run_part(const RolloutCall<E>& c, long w, long at, void* scratch, const Order& order, int k) {
  constexpr int most = CS_PART == kPartPass || CS_PART == kPartPolish ? kFewChunks : CS_PART == kPartSolve ? kMostChunks : 0;
  static_assert(kHeldChunks == most, "costate/_native/cuda/parts.py gives this part room for another number of chunks");
  const Tree& t = tree_of(c);
  Arena<T> arena{static_cast<T*>(scratch), 0};
  RolloutBuffers<T> b = rollout_buffers<T>(c, arena);
  Group g = group<T>(w, c.worlds);
  b.in[kTheta] = c.in[kTheta].data + g.first * c.in[kTheta].stride;
  Params<T> th = params_map(t, b.in[kTheta]);
  long substep = c.adjoint ? part_visit(c, at).now.k : 0;
  Inputs<T> in = rollout_inputs(c, b, b.q + substep * t.nq, b.v + substep * t.nv);
  if constexpr (CS_PART == kPartMove) {
    if (at == 0) load_constants(c, b, g, true);
    CS_IF(RolloutCall<E>, c, adjoint) part_begins_adj(c, b, th, g, at);
    else if (!part_begins(c, b, th, g, at)) return;
    in.h = b.in[kH][0];
    move_freely(t, th, b.tr, b.rw, in, b.v_next);
  }
  if constexpr (CS_PART == kPartBack) part_back(c, b, th, g, in, at);
  if constexpr (CS_PART == kPartFind) {
    if (k == 0) share(kLists, [&](int list) { order.counts[kLists * (~at & 1) + list] = 0; });
    if (constrained(t)) find_rows(t, th, b.tr, b.rw, row_inputs(in), c.options, b.v_next);
    if (team_rank() == 0) order.put(at, constrained(t) ? list_of(b.rw, at > 0) : kMany, k);
  }
  if (!constrained(t)) return;
  if constexpr (CS_PART == kPartMake) make_rows(t, th, b.tr, b.rw, row_inputs(in), c.options);
  if constexpr (CS_PART == kPartPass) solver_status(b.rw), first_passes(t, b.rw, c.options);
  if constexpr (CS_PART == kPartPolish)
    if (!first_polish(t, b.rw, c.options) && team_rank() == 0) order.put(at, kAgain, k);
  if constexpr (CS_PART == kPartSolve) solve_rows(t, b.rw, c.options, may_hold(b.rw, kFewChunks));
}

CS_END
