// Layout: how the rows of a step lie in memory: which contacts and joint rows have a block, the rows and columns of each, islands.
//
// It is found anew in every step (ops/slots.h, ops/islands.h). Kernels that are compiled for a model with few possible rows (CS_FIXED_ROWS) have it as constants instead:
// every possible row has its place, and those that are not active are empty, as in a lane whose lane-mates have more rows.
#pragma once
#include "trace.h"

namespace costate {

#ifdef CS_FIXED_ROWS
// As `count` below; all but the fourth and the last are constant
struct Counts {
  int* own;
  struct Count {
    int* own;
    int k;
    CS_FN operator int() const { return k < 7 && k != 3 ? FixedRows::counts[k] : own[k]; }
    CS_FN int operator=(int x) const { return own[k] = x; }
  };
  CS_FN Count operator[](int k) const { return {own, k}; }
};
// Every block has a slot of its own
struct Items {
  int* own;
  CS_FN int* operator[](int i) const { return own + i; }
};
struct Layout : FixedRows {
  Counts count;
  Items item;
  int* touch;  // the first contact's
};
#else
struct Layout {
  // candidates: the points in which pairs that are near may touch
  int *cand_pair, *cand_point;  // [max_cand] pair, and which of its points                                    by collide
  // slots and blocks
  int*
      count;  // [8] blocks, rows, islands, whether K holds the factor of the solution, contact slots, near pairs, candidates, overflow
  int *touch, *limit;     // [max_slots, lanes], [n_limit, lanes] item in a slot, -1 none                     by slots
  int* fixed;             // [n_dry + n_row_motor, lanes] the same                                           by slots
  int *kind, *first_row;  // [blocks + 1] BlockKind, first row                                               by slots
  int** item;             // [blocks] its slot: one item per lane                                            by slots
  int* same;              // [blocks] the item that all lanes with one share, -1 if they differ              by slots
  // columns of a block's rows: the dofs that can move it, in order; behind them nv + r for equality rows r that such a move reaches
  int *list_n, *col_n;  // [blocks] dofs, columns                                                            by slots
  int *col_adr, *col;   // [blocks + 1], [max_cols] first column; those                                      by slots
  int *J_adr, *Y_adr;   // [blocks + 1] first number of J; of Y and W                                        by slots
  int *island_block, *island_A, *island_singles;  // [islands + 1] first block, first number of A; joint rows   by slots
};
#endif

}  // namespace costate

CS_BEGIN

// no adjoint: memory.   of candidates
template <class T> CS_FN void candidates_map(const Tree& t, Layout& r, Arena<T>& m) {
#ifndef CS_FIXED_ROWS
  r.cand_pair = m.template take<int>(t.max_cand), r.cand_point = m.template take<int>(t.max_cand);
  r.count = m.template take<int>(8);
#else
  r.count = {m.template take<int>(8)};
#endif
}

// no adjoint: memory.   of so many slots for contacts, and blocks of at most `list` dofs
template <class T> CS_FN void layout_map(const Tree& t, int slots, int blocks, int list, Layout& r, Arena<T>& m) {
#ifndef CS_FIXED_ROWS
  constexpr int L = lanes<T>;
  r.touch = m.template take<int>(slots * L);
  r.limit = m.template take<int>(t.n_limit * L), r.fixed = m.template take<int>((t.n_dry + t.n_row_motor) * L);
  r.kind = m.template take<int>(blocks + 1), r.first_row = m.template take<int>(blocks + 1);
  r.item = m.template take<int*>(blocks), r.same = m.template take<int>(blocks);
  r.list_n = m.template take<int>(blocks), r.col_n = m.template take<int>(blocks);
  r.col_adr = m.template take<int>(blocks + 1), r.col = m.template take<int>(blocks * (list + t.ne));
  r.J_adr = m.template take<int>(blocks + 1), r.Y_adr = m.template take<int>(blocks + 1);
  r.island_block = m.template take<int>(blocks + 1), r.island_A = m.template take<int>(blocks + 1);
  r.island_singles = m.template take<int>(blocks + 1);
#else
  r.item = {m.template take<int>(blocks)};
  r.touch = r.item.own + joint_rows(t);
#endif
}

CS_END
