// sides: which of the two bodies of a block a dof moves.
// no adjoint in this file: integers, some of them as numbers
#pragma once
#include "slots.h"

CS_BEGIN

// no adjoint: integers as numbers.   of every column of block i: +1 if its dof moves b, -1 if it moves a, 0 if both or none, per lane. sign: [m] where the
// row itself comes to be, or scratch
template <class T> CS_FN void block_signs(const Tree& t, const Rows<T>& rw, int i, T* sign) {
  using E = ElementOf<T>;
  const int* item = rw.item[i];
  Span s = span(rw, i);
  int a, b;
  // the list from the leaves on, in step with the dofs above both bodies
  auto walk = [&](const auto& put) {
    int of_b = b < 0 ? -1 : t.last_dof[b], of_a = a < 0 ? -1 : t.last_dof[a];
    CS_FOR (int k = s.m - 1; k >= 0; k--) {
      int d = s.col[k], plus = d == of_b, minus = d == of_a;
      put(k, E(plus - minus));
      if (plus) of_b = t.dof_parent[d];
      if (minus) of_a = t.dof_parent[d];
    }
  };
  if (lanes<T> == 1 || rw.same[i] >= 0) {
    block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
    return walk([&](int k, E x) { sign[k] = T(x); });
  }
  CS_FOR (int k = 0; k < s.m; k++) sign[k] = T(0);
  for (int l = 0; l < lanes<T>; l++) {
    if (item[l] < 0) continue;
    block_bodies(t, rw, rw.kind[i], item[l], a, b);
    walk([&](int k, E x) { set_lane(sign[k], l, x); });
  }
}

// no adjoint: an integer as a number.   the same of one column, that of dof d, in one lane
template <class T> CS_FN T column_sign(const Tree& t, const Rows<T>& rw, int i, int d) {
  int a, b;
  block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
  if constexpr (kBits > 0) return T(int(body_bits(t, b) >> d & 1) - int(body_bits(t, a) >> d & 1));
  auto moves = [&](int body) {
    int above = body < 0 ? -1 : t.last_dof[body];
    if (above >= d && t.form == kSparse)
      return t.dof_depth[d] <= t.dof_depth[above] && t.row_dof[t.row_adr[above] + t.dof_depth[d]] == d;
    while (above > d) above = t.dof_parent[above];
    return above == d;
  };
  return T(moves(b) - moves(a));
}

// no adjoint: a part of contact_J and contact_J_adj.   a contact's point, a and b from the origins of both trees, for a dof with this sign
template <class T> CS_FN Vec3<T> point_for(Vec3<T> a, Vec3<T> b, T sign) {
  auto of_a = sign < T(0);
  return {select(of_a, a.x, b.x), select(of_a, a.y, b.y), select(of_a, a.z, b.z)};
}

CS_END
