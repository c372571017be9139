// islands: the blocks of a step, where their numbers lie, and which of them hang together (data/rows.h).
// no adjoint in this file: integers
#pragma once
#include "../base/team.h"
#include "columns.h"

CS_BEGIN

#ifndef CS_FIXED_ROWS
// no adjoint: integers.   some item of a slot, and whether all lanes that have one have the same
template <class T> CS_FN int some_item(const int* slot, int& same) {
  int item = -1;
  same = -1;
  for (int l = 0; l < lanes<T>; l++) {
    if (slot[l] < 0) continue;
    if (item >= 0 && slot[l] != item) return same = -1, item;
    same = item = slot[l];
  }
  return item;
}

// Trees joined by rows, as a forest of pointers
struct Islands {
  int *up, *id;  // [nb], of root bodies
  CS_FN int find(int r) const {
    while (up[r] != r) r = up[r] = up[up[r]];
    return r;
  }
};

// no adjoint: integers.   the slot of the k-th possible block: dry rows, servos, limits, rows against turning, contacts, in this order
template <class T> CS_FN int* block_slot(const Tree& t, const Rows<T>& rw, int k, int n_limits, int n_touch, int& kind) {
  int fixed = t.n_dry + t.n_row_motor;
  if (k < fixed) return kind = k < t.n_dry ? kDryRow : kMotorRow, rw.fixed + k * lanes<T>;
  if (k < fixed + n_limits) return kind = kLimitRow, rw.limit + (k - fixed) * lanes<T>;
  int turn = k - fixed - n_limits, n_turns = t.turns * n_touch;
  if (turn < n_turns) return kind = kTurnRow, rw.touch + turn / t.turns * lanes<T>;
  return kind = kContactRows, rw.touch + (turn - n_turns) * lanes<T>;
}

// no adjoint: integers.   islands of n slots: which trees hang together, in any lane; returns how many islands, in the order of their first
// slot, each slot's in `of`
template <class T> CS_OP int find_islands(const Tree& t, const Rows<T>& rw, int n, int n_limits, int n_touch, int* of) {
  Islands f = {rw.mark + t.nv, rw.mark + t.nv + t.nb};
  int kind, body[2], islands = 0;
  CS_FOR (int r = 0; r < t.nb; r++) f.up[r] = t.joined[r], f.id[r] = -1;
  CS_FOR (int k = 0; k < n; k++) {
    const int* slot = block_slot(t, rw, k, n_limits, n_touch, kind);
    int tree = -1;
    for (int l = 0; l < lanes<T>; l++) {
      if (slot[l] < 0 || (l > 0 && slot[l] == slot[l - 1])) continue;
      block_bodies(t, rw, kind, slot[l], body[0], body[1]);
      CS_FOR (int side = 0; side < 2; side++) {
        if (body[side] < 0) continue;
        int root = f.find(t.root[body[side]]);
        if (tree >= 0) f.up[root] = f.find(tree);
        tree = root;
      }
    }
    of[k] = tree;
  }
  CS_FOR (int k = 0; k < n; k++) {
    int& id = f.id[f.find(of[k])];
    if (id < 0) id = islands++;
    of[k] = id;
  }
  return islands;
}

// no adjoint: integers.   whether threads of a team make the columns of a block each: not where equality rows are columns too, or whole trees are
CS_FN bool lists_apart(const Tree& t) { return kTeam > 1 && t.form == kSparse && !t.large && !t.n_item; }

// no adjoint: integers.   the columns of block i, without those before it: each block has room for the longest list
template <class T> CS_FN void list_apart(const Tree& t, const Rows<T>& rw, int i) {
  int a, b, most = max_list(t, 1);
  block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
  rw.col_adr[i] = i * most, rw.J_adr[i] = rw.Y_adr[i] = rw.first_row[i] * most;
  rw.reach_n[i] = 0, rw.list_n[i] = rw.col_n[i] = merge_dofs(t, a, b, rw.col + rw.col_adr[i]);
}

// no adjoint: integers.   all blocks, of so many limits and contacts: island by island, each in the order of slots
template <class T> CS_OP void lay_out(const Tree& t, const Rows<T>& rw, int n_limits, int n_touch) {
  int turns = t.n_dry + t.n_row_motor + n_limits, n = turns + (1 + t.turns) * n_touch, rows = 0, numbers = 0;
  CS_FOR (int d = 0; d < t.nv; d++) rw.mark[d] = 0;
  int *of = rw.mark + 2 * n_halves(t) + 2 * t.nb + t.n_item, *sorted = of + n;
  int islands = find_islands(t, rw, n, n_limits, n_touch, of);
  CS_FOR (int s = 0; s <= islands; s++) rw.island_block[s] = rw.island_singles[s] = 0;
  CS_FOR (int k = 0; k < n; k++) rw.island_block[of[k] + 1]++;
  CS_FOR (int s = 0; s < islands; s++) rw.island_block[s + 1] += rw.island_block[s];
  CS_FOR (int k = n - 1; k >= 0; k--) sorted[--rw.island_block[of[k] + 1]] = k;
  CS_FOR (int s = 0; s < islands; s++) rw.island_block[s] = rw.island_block[s + 1];
  rw.island_block[islands] = n;
  rw.col_adr[0] = rw.J_adr[0] = rw.Y_adr[0] = 0;
  bool together = lists_apart(t);
  CS_FOR (int s = 0; s < islands; s++) {
    int row0 = rows;
    rw.island_A[s] = numbers;
    CS_FOR (int i = rw.island_block[s]; i < rw.island_block[s + 1]; i++) {
      rw.item[i] = block_slot(t, rw, sorted[i], n_limits, n_touch, rw.kind[i]), rw.first_row[i] = rows;
      some_item<T>(rw.item[i], rw.same[i]);
      if (!together) block_list(t, rw, i);
      bool contact = rw.kind[i] == kContactRows;
      rows += contact ? rw.width : 1, rw.island_singles[s] += !contact;
    }
    numbers += t.large ? 9 * (rw.island_block[s + 1] - rw.island_block[s]) : (rows - row0) * (rows - row0);
  }
  if (together) share(n, [&](int i) { list_apart(t, rw, i); });
  if (t.turns) {
    int *place = sorted + n, contacts = turns + t.turns * n_touch;
    CS_FOR (int i = 0; i < n; i++) place[sorted[i]] = i;
    CS_FOR (int k = turns; k < contacts; k++) {
      rw.axis[place[k]] = (k - turns) % t.turns;
      rw.over[place[k]] = place[contacts + (k - turns) / t.turns];
    }
  }
  rw.island_A[islands] = numbers, rw.first_row[n] = rows;
  rw.count[0] = n, rw.count[1] = rows, rw.count[2] = islands, rw.count[3] = 0, rw.count[4] = n_touch;
}

// no adjoint: integers.   whether n slots act on one tree, or on trees that equality rows join; asked by a team
template <class T> CS_FN bool on_one_tree(const Tree& t, const Rows<T>& rw, int n, int n_limits, int n_touch) {
  int kind, a, b, first = -1;
  bool other = false;
  for (int k = 0; k < n; k = k ? k + kTeam : 1 + team_rank()) {
    const int* slot = block_slot(t, rw, k, n_limits, n_touch, kind);
    block_bodies(t, rw, kind, *slot, a, b);
    if (k == 0) first = t.joined[b < 0 ? a : b];
    other = other || (a >= 0 && t.joined[a] != first) || (b >= 0 && t.joined[b] != first);
  }
  return !anyone(other);
}

// no adjoint: integers.   as lay_out, by a team, where there is but one island
template <class T> CS_OP void one_island(const Tree& t, const Rows<T>& rw, int n_limits, int n_touch) {
  int turns = t.n_dry + t.n_row_motor + n_limits, singles = turns + t.turns * n_touch, n = singles + n_touch;
  int rows = singles + rw.width * n_touch, islands = n > 0;
  share(n, [&](int i) {
    rw.item[i] = block_slot(t, rw, i, n_limits, n_touch, rw.kind[i]), rw.same[i] = rw.item[i][0];
    rw.first_row[i] = i < singles ? i : singles + rw.width * (i - singles);
    list_apart(t, rw, i);
    if (rw.kind[i] == kTurnRow) rw.axis[i] = (i - turns) % t.turns, rw.over[i] = singles + (i - turns) / t.turns;
  });
  rw.island_block[0] = rw.island_A[0] = 0, rw.island_singles[0] = singles;
  rw.island_block[islands] = n, rw.island_A[islands] = rows * rows, rw.first_row[n] = rows;
  rw.count[0] = n, rw.count[1] = rows, rw.count[2] = islands, rw.count[3] = 0, rw.count[4] = n_touch;
}
#endif

CS_END
