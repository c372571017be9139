// slots: which candidates and limits get rows in this step, and how they are laid out (data/rows.h).
//
//   a candidate has rows if  gap + h min(approach, 0) < margin,  approach the normal velocity at the start of the step
// Slots are filled group by group, in the order of candidates: what a lane holds, and in which order, never depends on its lane-mates.
// no adjoint in this file: it chooses, and differentiates nothing
#pragma once
#include "collide.h"
#include "limits.h"

CS_BEGIN

// no adjoint: chooses.   velocity of b against a along the normal of candidate k
template <class T> CS_FN T approach(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int k) {
  int a = t.shape_body[t.touch_a[k]], b = t.shape_body[t.touch_b[k]];
  Vec3<T> v = zero3<T>(), x = rw.point[k];
  if (b >= 0) v += tr.v[b].v + cross(tr.v[b].w, x);
  if (a >= 0) v -= tr.v[a].v + cross(tr.v[a].w, x - offset(t, tr, t.touch_a[k], b));
  return dot(rw.frame[k].r0, v);
}

// no adjoint: chooses.   items of one group into slots, lanes_of[k] the lanes (as bits) that hold item k (or order[k]). Each lane takes the
// next free slot; where that needs no more slots, every item has a slot of its own instead, since lanes that hold the same item
// are faster. In both layouts a lane holds its items in order, so its numbers are the same. Returns how many slots
template <class T> CS_OP int fill_slots(int* slots, const int* lanes_of, const int* order, int first, int last) {
  int held[lanes<T>] = {}, items = 0, most = 0;
  for (int k = first; k < last; k++) {
    items += lanes_of[k] != 0;
    for (int l = 0; l < lanes<T>; l++) held[l] += lanes_of[k] >> l & 1;
  }
  for (int l = 0; l < lanes<T>; l++) most = held[l] > most ? held[l] : most, held[l] = 0;
  bool own = items == most;
  int n = own ? items : most, used = 0;
  for (int i = 0; i < n * lanes<T>; i++) slots[i] = -1;
  for (int k = first; k < last; k++) {
    if (!lanes_of[k]) continue;
    for (int l = 0; l < lanes<T>; l++)
      if (lanes_of[k] >> l & 1) slots[(own ? used : held[l]++) * lanes<T> + l] = order ? order[k] : k;
    used++;
  }
  return n;
}

// no adjoint: chooses.   contacts into slots; rw.used gets the lanes of every candidate. Returns how many slots
template <class T> CS_OP int contact_slots(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, T h, const Options& o) {
  using E = ElementOf<T>;
  int total[lanes<T>] = {}, wanted[lanes<T>] = {}, n = 0;
  T deepest = T(0);
  for (int k = 0; k < t.nk; k++) {
    auto active = fma(h, min(approach(t, tr, rw, k), T(0)), rw.gap[k]) < T(E(o.margin));
    int bits = int(lane_bits(active));
    rw.used[k] = bits;
    if (!bits) continue;
    deepest = select(active, max(deepest, -rw.gap[k]), deepest);
    for (int l = 0; l < lanes<T>; l++) {
      if (!(bits >> l & 1)) continue;
      wanted[l]++;
      if (total[l] < t.max_contacts)
        total[l]++;
      else
        rw.used[k] &= ~(1 << l);
    }
  }
  for (int g = 0; g < t.n_groups; g++)
    n += fill_slots<T>(rw.touch + n * lanes<T>, rw.used, nullptr, t.group_adr[g], t.group_adr[g + 1]);
  Status<T>& status = *rw.status;
  status.penetration = deepest, status.contacts = status.wanted = T(0);
  for (int l = 0; l < lanes<T>; l++) set_lane(status.contacts, l, E(total[l])), set_lane(status.wanted, l, E(wanted[l]));
  return n;
}

// no adjoint: chooses.   joint limits into slots; returns how many
template <class T> CS_OP int limit_slots(const Tree& t, const Rows<T>& rw, const T* v, T h, const Options& o) {
  int n = 0;
  for (int k = 0; k < t.n_limit; k++) {
    int i = t.limit_order[k], d = t.limit_dof[i];
    Vec3<T> J = rw.limit_J[i];
    T rate = t.joint[t.limit_body[i]] == kBall ? dot(J, Vec3<T>{v[d], v[d + 1], v[d + 2]}) : J.x * v[d];
    rw.limited[k] = int(lane_bits(fma(h, min(rate, T(0)), rw.distance[i]) < T(ElementOf<T>(o.margin))));
  }
  for (int g = 0; g < t.n_limit_groups; g++)
    n += fill_slots<T>(rw.limit + n * lanes<T>, rw.limited, t.limit_order, t.limit_group_adr[g], t.limit_group_adr[g + 1]);
  return n;
}

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

// no adjoint: integers.   the bodies that an item of a block touches; -1 none
CS_FN void block_bodies(const Tree& t, int kind, int item, int& a, int& b) {
  a = -1;
  switch (kind) {
    case kDryRow: b = t.dof_body[t.dry_dof[item]]; break;
    case kMotorRow: {
      int k = t.row_motor[item], tie = t.motor_tie[k];
      a = tie < 0 ? -1 : t.tie_a[tie], b = tie < 0 ? t.dof_body[t.motor_dof[k]] : t.tie_b[tie];
      break;
    }
    case kLimitRow: b = t.limit_body[item]; break;
    default: a = t.shape_body[t.touch_a[item]], b = t.shape_body[t.touch_b[item]];
  }
}

// no adjoint: integers.   marks the dofs above body b: in the articulated form all of its tree, where H^-1 J^T does not stay sparse
CS_FN void mark_dofs(const Tree& t, int b, int stamp, int* mark) {
  if (b < 0) return;
  if (t.form == kSparse) {
    for (int d = t.last_dof[b]; d >= 0 && mark[d] != stamp; d = t.dof_parent[d]) mark[d] = stamp;
  } else {
    for (int d = 0; d < t.nv; d++)
      if (t.root[t.dof_body[d]] == t.root[b]) mark[d] = stamp;
  }
}

// no adjoint: integers.   items whose rows moving the dofs of block i reaches, directly or by elimination
template <class T> CS_FN void block_reach(const Tree& t, const Rows<T>& rw, int i) {
  int *reached = rw.mark + t.nv + 2 * t.nb, *list = rw.list + i * t.nv, *reach = rw.reach + i * t.n_item, n = 0;
  for (int j = 0; j < t.n_item; j++) reached[j] = 0;
  for (int k = 0; k < rw.list_n[i]; k++)
    for (int a = t.dof_item_adr[list[k]]; a < t.dof_item_adr[list[k] + 1]; a++) reached[t.dof_item[a]] = 1;
  for (int j = 0; j < t.n_item; j++) {
    if (!reached[j]) continue;
    reach[n++] = j;
    for (int f = t.fill_adr[j]; f < t.fill_adr[j + 1]; f++) reached[t.fill_item[f]] = 1;
  }
  rw.reach_n[i] = n;
}

// no adjoint: integers.   the dofs that can move block i in any lane
template <class T> CS_OP void block_list(const Tree& t, const Rows<T>& rw, int i) {
  int n = 0, last = -1, *list = rw.list + i * t.nv;
  for (int l = 0; l < lanes<T>; l++) {
    int item = rw.item[i][l], a, b;
    if (item < 0 || item == last) continue;
    last = item;
    block_bodies(t, rw.kind[i], item, a, b);
    mark_dofs(t, a, i + 1, rw.mark), mark_dofs(t, b, i + 1, rw.mark);
    if (rw.same[i] >= 0) break;
  }
  for (int d = 0; d < t.nv; d++)
    if (rw.mark[d] == i + 1) list[n++] = d;
  rw.list_n[i] = n;
  block_reach(t, rw, i);
}

// Trees joined by rows, as a forest of pointers
struct Islands {
  int *up, *id;  // [nb], of root bodies
  CS_FN int find(int r) const {
    while (up[r] != r) r = up[r] = up[up[r]];
    return r;
  }
};

// no adjoint: integers.   the slot of the k-th possible block: dry rows, servos, limits, contacts, in this order
template <class T> CS_FN int* block_slot(const Tree& t, const Rows<T>& rw, int k, int n_limits, int& kind) {
  int fixed = t.n_dry + t.n_row_motor;
  if (k < fixed) return kind = k < t.n_dry ? kDryRow : kMotorRow, rw.fixed + k * lanes<T>;
  if (k < fixed + n_limits) return kind = kLimitRow, rw.limit + (k - fixed) * lanes<T>;
  return kind = kContactRows, rw.touch + (k - fixed - n_limits) * lanes<T>;
}

// no adjoint: chooses
template <class T> CS_OP void slots(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const T* v, T h, const Options& o) {
  int n_limits = limit_slots(t, rw, v, h, o), n_touch = contact_slots(t, tr, rw, h, o);
  int n = t.n_dry + t.n_row_motor + n_limits + n_touch, blocks = 0, rows = 0, islands = 0, numbers = 0, kind, same, a, b;
  for (int i = 0; i < t.n_dry + t.n_row_motor; i++)
    for (int l = 0; l < lanes<T>; l++) rw.fixed[i * lanes<T> + l] = i < t.n_dry ? i : i - t.n_dry;
  for (int d = 0; d < t.nv; d++) rw.mark[d] = 0;
  // which trees hang together
  Islands f = {rw.mark + t.nv, rw.mark + t.nv + t.nb};
  for (int r = 0; r < t.nb; r++) f.up[r] = t.joined[r], f.id[r] = 0;
  auto look = [&](int k) {
    int* slot = block_slot(t, rw, k, n_limits, kind);
    block_bodies(t, kind, some_item<T>(slot, same), a, b);
    return slot;
  };
  for (int k = 0; k < n; k++) {
    look(k);
    if (a >= 0 && b >= 0) f.up[f.find(t.root[a])] = f.find(t.root[b]);
  }
  // blocks, island by island
  for (int first = 0; first < n; first++) {
    look(first);
    int root = f.find(t.root[b >= 0 ? b : a]), row0 = rows;
    if (f.id[root]) continue;
    f.id[root] = 1;
    rw.island_block[islands] = blocks, rw.island_A[islands] = numbers, rw.island_singles[islands] = 0;
    for (int k = first; k < n; k++) {
      int* slot = look(k);
      if (f.find(t.root[b >= 0 ? b : a]) != root) continue;
      rw.kind[blocks] = kind, rw.item[blocks] = slot, rw.same[blocks] = same, rw.first_row[blocks] = rows;
      block_list(t, rw, blocks++);
      rows += kind == kContactRows ? 3 : 1, rw.island_singles[islands] += kind != kContactRows;
    }
    numbers += (rows - row0) * (rows - row0);
    islands++;
  }
  rw.island_block[islands] = blocks, rw.island_A[islands] = numbers, rw.first_row[blocks] = rows;
  rw.count[0] = blocks, rw.count[1] = rows, rw.count[2] = islands, rw.count[3] = 0, rw.count[4] = n_touch;
}

CS_END
