// columns: which bodies a block acts on, and which dofs move its rows.
// no adjoint in this file: integers
#pragma once
#include "../data/rows.h"
#include "tree_together.h"

CS_BEGIN

// no adjoint: integers.   the bodies of candidate c; -1 the world
template <class T> CS_FN void cand_bodies(const Tree& t, const Rows<T>& rw, int c, int& a, int& b) {
  int p = rw.cand_pair[c];
  a = t.shape_body[t.pair_a[p]], b = t.shape_body[t.pair_b[p]];
}

// no adjoint: integers.   the bodies that an item of a block touches; -1 none
template <class T> CS_FN void block_bodies(const Tree& t, const Rows<T>& rw, int kind, int item, int& a, int& b) {
  a = -1;
  switch (kind) {
    case kDryRow: b = t.dof_body[t.dry_dof[item]]; break;
    case kMotorRow: {
      int k = t.row_motor[item], tie = t.motor_tie[k];
      a = tie < 0 ? -1 : t.tie_a[tie], b = tie < 0 ? t.dof_body[t.motor_dof[k]] : t.tie_b[tie];
      break;
    }
    case kLimitRow: b = t.limit_body[item]; break;
    default: cand_bodies(t, rw, item, a, b);
  }
}

#ifndef CS_FIXED_ROWS
// no adjoint: integers.   adds the dofs above body b to a list: where H^-1 J^T does not stay sparse (articulated form) or is kept as a whole
// (large models) all of its tree
CS_FN void list_dofs(const Tree& t, int b, int stamp, int* mark, int* list, int& n) {
  if (b < 0) return;
  auto add = [&](int d) {
    if (mark[d] == stamp) return false;
    return mark[d] = stamp, list[n++] = d, true;
  };
  if (t.form == kSparse && !t.large) {
    int first = n;
    CS_FOR (int d = t.last_dof[b]; d >= 0 && add(d);) d = t.dof_parent[d];
    for (int i = first, j = n - 1; i < j; i++, j--) {
      int d = list[i];
      list[i] = list[j], list[j] = d;
    }
  } else {
    CS_FOR (int k = t.tree_adr[t.root[b]]; k < t.tree_adr[t.root[b] + 1]; k++) add(t.tree_dof[k]);
  }
}

// The dofs above a body, from the root on: what is left of them in row_dof
struct Chain {
  int next, end;
};
// no adjoint: integers.   of body b; none of the world. Where the mass matrix is sparse
CS_FN Chain chain_above(const Tree& t, int b) {
  int d = b < 0 ? -1 : t.last_dof[b], first = d < 0 ? 0 : t.row_adr[d];
  return {first, d < 0 ? first : first + t.dof_depth[d] + 1};
}

// no adjoint: integers.   the dofs above two bodies, in order; returns how many
CS_FN int merge_dofs(const Tree& t, int a, int b, int* list) {
  int n = 0;
  if constexpr (kBits > 0) {
    CS_SHORT (unsigned left = body_bits(t, a) | body_bits(t, b); left;) list[n++] = take_bit(left);
    return n;
  }
  Chain p = chain_above(t, a), q = chain_above(t, b);
  while (p.next < p.end || q.next < q.end) {
    int d = p.next < p.end ? t.row_dof[p.next] : t.nv, e = q.next < q.end ? t.row_dof[q.next] : t.nv;
    int first = d < e ? d : e;
    p.next += d == first, q.next += e == first, list[n++] = first;
  }
  return n;
}

// no adjoint: integers.   items whose rows moving the dofs of block i reaches, directly or by elimination; their rows become columns
template <class T> CS_FN void block_reach(const Tree& t, const Rows<T>& rw, int i, int* list) {
  if (!t.n_item) {
    rw.reach_n[i] = 0, rw.col_n[i] = rw.list_n[i];
    return;
  }
  int *reached = rw.mark + t.nv + 2 * t.nb, *reach = rw.reach + i * t.n_item, n = 0, columns = rw.list_n[i];
  CS_FOR (int j = 0; j < t.n_item; j++) reached[j] = 0;
  CS_FOR (int k = 0; k < rw.list_n[i]; k++)
    CS_FOR (int a = t.dof_item_adr[list[k]]; a < t.dof_item_adr[list[k] + 1]; a++) reached[t.dof_item[a]] = 1;
  CS_FOR (int j = 0; j < t.n_item; j++) {
    if (!reached[j]) continue;
    reach[n++] = j;
    CS_FOR (int r = t.item_row[j]; r < t.item_row[j + 1]; r++) list[columns++] = t.nv + r;
    CS_FOR (int f = t.fill_adr[j]; f < t.fill_adr[j + 1]; f++) reached[t.fill_item[f]] = 1;
  }
  rw.reach_n[i] = n, rw.col_n[i] = columns;
}

// no adjoint: integers.   where the lists and numbers of block i end
template <class T> CS_FN void block_ends(const Rows<T>& rw, int i) {
  int rows = rw.kind[i] == kContactRows ? rw.width : 1;
  rw.col_adr[i + 1] = rw.col_adr[i] + rw.col_n[i];
  rw.J_adr[i + 1] = rw.J_adr[i] + rows * rw.list_n[i], rw.Y_adr[i + 1] = rw.Y_adr[i] + rows * rw.col_n[i];
}

// no adjoint: integers.   the columns of block i: all that can move it in any lane
template <class T> CS_OP void block_list(const Tree& t, const Rows<T>& rw, int i) {
  int n = 0, last = -1, *list = rw.col + rw.col_adr[i];
  bool merge = rw.same[i] >= 0 && t.form == kSparse && !t.large;
  for (int l = 0; l < lanes<T>; l++) {
    int item = rw.item[i][l], a, b;
    if (item < 0 || item == last) continue;
    last = item;
    block_bodies(t, rw, rw.kind[i], item, a, b);
    if (merge)
      n = merge_dofs(t, a, b, list);
    else
      list_dofs(t, a, i + 1, rw.mark, list, n), list_dofs(t, b, i + 1, rw.mark, list, n);
    if (rw.same[i] >= 0) break;
  }
  CS_FOR (int k = 1; k < n && !merge; k++) {
    int d = list[k], j = k;
    CS_FOR (; j > 0 && list[j - 1] > d; j--) list[j] = list[j - 1];
    list[j] = d;
  }
  rw.list_n[i] = n;
  block_reach(t, rw, i, list);
  block_ends(rw, i);
}

#endif

CS_END
