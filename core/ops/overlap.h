// overlap: links of one robot that are far inside each other give way.
//
//   R = floor + kYield deep lightness,   deep: from 0 at an overlap of kDeepOverlap to 1 at twice that
// kinks: both ends
#pragma once
#include "slots.h"

CS_BEGIN

// Softness over lightness of a contact of a robot with itself that is far inside, and the overlap from which on it gives way, m. Such links did not get
// there by themselves; pushed apart at any price, one whose joint hardly lets it go would be thrown away
constexpr double kYield = 1, kDeepOverlap = 0.01;

// no adjoint: integers as numbers.   1 where both bodies of block i belong to one tree
template <class T> CS_FN T one_tree(const Tree& t, const Rows<T>& rw, int i) {
  T own = T(0);
  int a, b;
  for (int l = 0; l < (rw.same[i] >= 0 ? 1 : lanes<T>); l++) {
    int item = rw.same[i] >= 0 ? rw.same[i] : rw.item[i][l];
    if (item < 0) continue;
    block_bodies(t, rw, rw.kind[i], item, a, b);
    if (a < 0 || b < 0 || t.root[a] != t.root[b]) continue;
    if (rw.same[i] >= 0)
      own = T(1);
    else
      set_lane(own, l, ElementOf<T>(1));
  }
  return own;
}

// no adjoint: contact_rows_adj has it.   how far block i gives way: from 0 at kDeepOverlap to 1 at twice that; what is soft does anyway. slope: by the gap
template <class T> CS_FN T overlap(const Tree& t, const Rows<T>& rw, int i, T gap, T soft, T& slope) {
  using E = ElementOf<T>;
  T per = T(E(-1 / kDeepOverlap)), zero = T(0), one = T(1), x = select(soft > zero, zero, fma(per, gap, T(-1)));
  slope = zero;
  if (!any(x > zero)) return zero;
  T own = one_tree(t, rw, i);
  slope = select((x > zero) & (x < one), own * per, zero);
  return own * min(max(x, zero), one);
}

CS_END
