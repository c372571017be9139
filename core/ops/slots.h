// slots: which candidates and limits get rows in this step, and how they are laid out (data/rows.h).
//
//   a candidate has rows if  gap + h min(approach, 0) < margin,  approach the normal velocity at the start of the step; but not if it flies, where steps
//   are split at impacts: it is apart, and will approach faster than bounce_speed
// Slots are filled group by group, in the order of candidates: what a lane holds, and in which order, never depends on its lane-mates.
// no adjoint in this file: it chooses, and differentiates nothing
#pragma once
#include "collide.h"
#include "flight.h"
#include "limits.h"

CS_BEGIN

// no adjoint: integers.   the bodies of candidate c; -1 the world
template <class T> CS_FN void cand_bodies(const Tree& t, const Rows<T>& rw, int c, int& a, int& b) {
  int p = rw.cand_pair[c];
  a = t.shape_body[t.pair_a[p]], b = t.shape_body[t.pair_b[p]];
}

// no adjoint: chooses.   velocity of b against a along the normal of candidate c
template <class T> CS_FN T approach(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int c) {
  int a, b;
  cand_bodies(t, rw, c, a, b);
  Vec3<T> v = zero3<T>(), x = rw.point[c];
  if (b >= 0) v += tr.v[b].v + cross(tr.v[b].w, x);
  if (a >= 0) v -= tr.v[a].v + cross(tr.v[a].w, x - rw.shift[c]);
  return dot(rw.frame[c].r0, v);
}

// no adjoint: chooses.   items of one group into slots, lanes_of[k] the lanes (as bits) that hold item k (or order[k]). Each lane takes the
// next free slot; where that needs no more slots, every item has a slot of its own instead, since lanes that hold the same item
// are faster. In both layouts a lane holds its items in order, so its numbers are the same. Returns how many slots
template <class T> CS_OP int fill_slots(int* slots, const int* lanes_of, const int* order, int first, int last) {
  int held[lanes<T>] = {}, items = 0, most = 0;
  CS_FOR (int k = first; k < last; k++) {
    items += lanes_of[k] != 0;
    for (int l = 0; l < lanes<T>; l++) held[l] += lanes_of[k] >> l & 1;
  }
  for (int l = 0; l < lanes<T>; l++) most = held[l] > most ? held[l] : most, held[l] = 0;
  bool own = items == most;
  int n = own ? items : most, used = 0;
  CS_FOR (int i = 0; i < n * lanes<T>; i++) slots[i] = -1;
  CS_FOR (int k = first; k < last; k++) {
    if (!lanes_of[k]) continue;
    for (int l = 0; l < lanes<T>; l++)
      if (lanes_of[k] >> l & 1) slots[(own ? used : held[l]++) * lanes<T> + l] = order ? order[k] : k;
    used++;
  }
  return n;
}

// no adjoint: chooses.   the lanes in which candidate c has rows, as bits; near: where in the list of near pairs to begin to look for its own; depth: -gap, or 0
template <class T> CS_FN int active_lanes(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in,
                                          const Options& o, int c, [[maybe_unused]] int& near, T& depth) {
  using E = ElementOf<T>;
  T rate = T(0), later = T(0);
  if (in.split)
    gap_rates(t, tr, rw, in, c, rate, later);
  else
    rate = approach(t, tr, rw, c);
  auto active =
      (fma(in.split ? in.reach : in.h, min(rate, T(0)), rw.gap[c]) < T(E(o.margin))) & (rw.gap[c] < T(E(0.5 * kNowhere)));
  // what flies has no rows: the part ends where it meets. So does what leaves fast, and is sent back by an impact on one of the two
  if (in.split) {
    T touching = T(E(kTouching<E>)), fast = T(E(o.bounce_speed));
    auto away = (rw.gap[c] > touching) | ((rw.gap[c] > -touching) & (approach(t, tr, rw, c) > fast));
    active = active & !(away & (in.touching ? later == later : later < -fast));
  }
  depth = select(active, -rw.gap[c], T(0));
  int bits = int(lane_bits(active));
#ifndef CS_FIXED_ROWS
  while (rw.near[near] != rw.cand_pair[c]) near++;
  bits &= rw.near_bits[near];
#endif
  return bits;
}

// no adjoint: chooses.   rw.used gets the lanes in which a candidate has rows
template <class T>
CS_OP void active_contacts(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, const Options& o) {
  using E = ElementOf<T>;
  int total[lanes<T>] = {}, wanted[lanes<T>] = {}, candidates = rw.count[6], near = 0;
  T deepest = T(0), depth = T(0);
  if constexpr (kTeam > 1) {
    share(candidates, [&](int c) {
      int from = 0;
      T unused;
      rw.used[c] = active_lanes(t, tr, rw, in, o, c, from, unused);
    });
  }
  CS_FOR (int c = 0; c < candidates; c++) {
    int bits = kTeam > 1 ? rw.used[c] : active_lanes(t, tr, rw, in, o, c, near, depth);
    if constexpr (kTeam > 1) depth = -rw.gap[c];
    rw.used[c] = bits;
    if (!bits) continue;
    deepest = max(deepest, depth);
    for (int l = 0; l < lanes<T>; l++) {
      if (!(bits >> l & 1)) continue;
      wanted[l]++;
      if (total[l] < t.max_contacts)
        total[l]++;
      else
        rw.used[c] &= ~(1 << l);
    }
  }
  Status<T>& status = *rw.status;
  status.penetration = deepest, status.contacts = status.wanted = T(0);
  for (int l = 0; l < lanes<T>; l++) {
    // pairs that found no room count as one contact too many
    if (rw.count[7] && wanted[l] <= t.max_contacts) wanted[l] = t.max_contacts + 1;
    set_lane(status.contacts, l, E(total[l])), set_lane(status.wanted, l, E(wanted[l]));
  }
}

// no adjoint: chooses.   rw.limited gets the lanes in which a limit, in the order of t.limit_order, has a row
template <class T> CS_OP void active_limits(const Tree& t, const Rows<T>& rw, const T* v, T h, const Options& o) {
  CS_FOR (int k = 0; k < t.n_limit; k++) {
    int i = t.limit_order[k], d = t.limit_dof[i];
    Vec3<T> J = rw.limit_J[i];
    T rate = t.joint[t.limit_body[i]] == kBall ? dot(J, Vec3<T>{v[d], v[d + 1], v[d + 2]}) : J.x * v[d];
    rw.limited[k] = int(lane_bits(fma(h, min(rate, T(0)), rw.distance[i]) < T(ElementOf<T>(o.margin))));
  }
}

#ifndef CS_FIXED_ROWS
// no adjoint: chooses.   contacts into slots. Returns how many slots
template <class T> CS_OP int contact_slots(const Tree& t, const Rows<T>& rw) {
  int n = 0, candidates = rw.count[6];
  CS_FOR (int c = 0, end; c < candidates; c = end) {
    int group = t.pair_group[rw.cand_pair[c]];
    CS_FOR (end = c; end < candidates && t.pair_group[rw.cand_pair[end]] == group;) end++;
    n += fill_slots<T>(rw.touch + n * lanes<T>, rw.used, nullptr, c, end);
  }
  return n;
}

// no adjoint: chooses.   joint limits into slots; returns how many
template <class T> CS_OP int limit_slots(const Tree& t, const Rows<T>& rw) {
  int n = 0;
  CS_FOR (int g = 0; g < t.n_limit_groups; g++)
    n += fill_slots<T>(rw.limit + n * lanes<T>, rw.limited, t.limit_order, t.limit_group_adr[g], t.limit_group_adr[g + 1]);
  return n;
}
#endif

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

// no adjoint: integers.   the dofs above two bodies, in order: from the leaves, always the higher of two, and then reversed; returns how many.   list: may be null
CS_FN int merge_dofs(const Tree& t, int a, int b, int* list) {
  int n = 0, d = a < 0 ? -1 : t.last_dof[a], e = b < 0 ? -1 : t.last_dof[b];
  while (d >= 0 || e >= 0) {
    int next = d > e ? d : e;
    if (list) list[n] = next;
    n++;
    if (d == next) d = t.dof_parent[d];
    if (e == next) e = t.dof_parent[e];
  }
  for (int i = 0, j = n - 1; list && i < j; i++, j--) {
    int low = list[j];
    list[j] = list[i], list[i] = low;
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

// no adjoint: integers.   the columns of all n blocks, by a team; not where equality rows are columns too, or whole trees are
template <class T> CS_FN void block_lists_together(const Tree& t, const Rows<T>& rw, int n) {
  auto merge = [&](int i, int* list) {
    int a, b;
    block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
    return merge_dofs(t, a, b, list);
  };
  share(n, [&](int i) { rw.reach_n[i] = 0, rw.list_n[i] = rw.col_n[i] = merge(i, nullptr); });
  for (int i = 0; i < n; i++) block_ends(rw, i);
  share(n, [&](int i) { merge(i, rw.col + rw.col_adr[i]); });
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

// no adjoint: chooses
template <class T>
CS_OP void slots(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, const Options& o) {
  active_limits(t, rw, in.v, in.h, o), active_contacts(t, tr, rw, in, o);
  int n_limits = limit_slots(t, rw), n_touch = contact_slots(t, rw);
  int turns = t.n_dry + t.n_row_motor + n_limits, n = turns + (1 + t.turns) * n_touch, rows = 0, numbers = 0;
  CS_FOR (int i = 0; i < t.n_dry + t.n_row_motor; i++)
    for (int l = 0; l < lanes<T>; l++) rw.fixed[i * lanes<T> + l] = i < t.n_dry ? i : i - t.n_dry;
  CS_FOR (int d = 0; d < t.nv; d++) rw.mark[d] = 0;
  int *of = rw.mark + 2 * n_halves(t) + 2 * t.nb + t.n_item, *sorted = of + n;
  int islands = find_islands(t, rw, n, n_limits, n_touch, of);
  // blocks, island by island, each in the order of slots
  CS_FOR (int s = 0; s <= islands; s++) rw.island_block[s] = rw.island_singles[s] = 0;
  CS_FOR (int k = 0; k < n; k++) rw.island_block[of[k] + 1]++;
  CS_FOR (int s = 0; s < islands; s++) rw.island_block[s + 1] += rw.island_block[s];
  CS_FOR (int k = n - 1; k >= 0; k--) sorted[--rw.island_block[of[k] + 1]] = k;
  CS_FOR (int s = 0; s < islands; s++) rw.island_block[s] = rw.island_block[s + 1];
  rw.island_block[islands] = n;
  rw.col_adr[0] = rw.J_adr[0] = rw.Y_adr[0] = 0;
  bool together = kTeam > 1 && t.form == kSparse && !t.large && !t.n_item;
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
  if (together) block_lists_together(t, rw, n);
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
#else
// no adjoint: chooses.   every possible row has its place: those that are not active are empty
template <class T>
CS_OP void slots(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, const Options& o) {
  active_limits(t, rw, in.v, in.h, o), active_contacts(t, tr, rw, in, o);
  int fixed = t.n_dry + t.n_row_motor, singles = joint_rows(t);
  CS_FOR (int i = 0; i < fixed; i++) rw.item[i][0] = i < t.n_dry ? i : i - t.n_dry;
  CS_FOR (int k = 0; k < t.n_limit; k++) rw.item[fixed + k][0] = rw.limited[k] ? t.limit_order[k] : -1;
  CS_FOR (int c = 0; c < t.nk; c++) rw.item[singles + c][0] = rw.used[c] ? c : -1;
  rw.count[3] = 0;
}
#endif

CS_END
