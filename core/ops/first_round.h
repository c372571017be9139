// first_round: the first of the rounds of ops/rounds.h, for rows that a team holds, in two parts: its passes, and the Newton steps that follow. Most worlds need no other,
// and each part is shorter than the whole and needs fewer registers (drivers/part_kernel.h).
// no adjoint in this file: relax_adj and natural_adj know what it leaves
#pragma once
#include "rounds.h"

CS_BEGIN

// no adjoint: see above.   passes, from lambda = 0
template <class T> CS_OP void first_passes(const Tree& t, const Rows<T>& all, const Options& o) {
  const Rows<T> rw = in_near(all);
  auto moving = some_rows(rw) > T(0.5);
  int n = rw.count[1], events = 0;
  set_rows(rw.lam, n, [&](int) { return T(0); });
  if (o.iterations > 0 && any(moving)) pass_round(t, rw, o, 0, moving, events);
  share_rows(n, [&](int r) { all.lam[r] = rw.lam[r]; });
}
// no adjoint: see above.   Newton steps. Returns whether they found lambda; else `relax` finds it later
template <class T> CS_OP bool first_polish(const Tree& t, const Rows<T>& all, const Options& o) {
  return relax_rounds<true>(t, all, in_near(all), o, false);
}

CS_END
