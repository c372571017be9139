// slots: which candidates and limits get rows in this step, and how they are laid out (data/rows.h).
//
//   a candidate has rows if  gap + h min(approach, 0) < margin,  approach the normal velocity at the start of the step; but not if it flies, where steps
//   are split at impacts: it is apart, and will approach faster than bounce_speed
// Slots are filled group by group, in the order of candidates: what a lane holds, and in which order, never depends on its lane-mates.
// no adjoint in this file: it chooses, and differentiates nothing
#pragma once
#include "collide.h"
#include "flight.h"
#include "islands.h"
#include "limits.h"

CS_BEGIN

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
  if (lanes<T> == 1) return bits;
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
  CS_FOR (int c = 0; c < candidates; c++) {
    int bits = active_lanes(t, tr, rw, in, o, c, near, depth);
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

// no adjoint: chooses.   the lanes in which the k-th limit, in the order of t.limit_order, has a row
template <class T> CS_FN int limit_lanes(const Tree& t, const Rows<T>& rw, const T* v, T h, const Options& o, int k) {
  int i = t.limit_order[k], d = t.limit_dof[i];
  Vec3<T> J = rw.limit_J[i];
  T rate = t.joint[t.limit_body[i]] == kBall ? dot(J, Vec3<T>{v[d], v[d + 1], v[d + 2]}) : J.x * v[d];
  return int(lane_bits(fma(h, min(rate, T(0)), rw.distance[i]) < T(ElementOf<T>(o.margin))));
}

// no adjoint: chooses.   rw.limited, of all of them
template <class T> CS_OP void active_limits(const Tree& t, const Rows<T>& rw, const T* v, T h, const Options& o) {
  CS_FOR (int k = 0; k < t.n_limit; k++) rw.limited[k] = limit_lanes(t, rw, v, h, o, k);
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

#ifndef CS_FIXED_ROWS
// no adjoint: chooses.   limits that have rows, into slots, by a team; returns how many
template <class T> CS_OP int limits_together(const Tree& t, const Rows<T>& rw, const T* v, T h, const Options& o) {
  int found = 0, before;
  CS_SHORT (int first = 0; first < t.n_limit; first += kTeam) {
    int k = first + team_rank(), active = k < t.n_limit && limit_lanes(t, rw, v, h, o, k), more = how_many(active, before);
    if (k < t.n_limit) rw.limited[k] = active;
    if (active) rw.limit[found + before] = t.limit_order[k];
    found += more;
  }
  return found;
}

// no adjoint: chooses.   what active_contacts and contact_slots find, by a team
template <class T>
CS_OP int contacts_together(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, const Options& o) {
  using E = ElementOf<T>;
  int candidates = rw.count[6], wanted = 0, before, near = 0;
  T deepest = T(0), depth;
  CS_SHORT (int first = 0; first < candidates; first += kTeam) {
    int c = first + team_rank(), active = c < candidates && active_lanes(t, tr, rw, in, o, c, near, depth);
    int more = how_many(active, before), at = wanted + before;
    bool room = active && at < t.max_contacts;
    if (c < candidates) rw.used[c] = room;
    if (room) rw.touch[at] = c;
    if (active) deepest = max(deepest, depth);
    wanted += more;
  }
  int n = wanted < t.max_contacts ? wanted : t.max_contacts;
  // pairs that found no room count as one contact too many
  if (rw.count[7] && wanted == n) wanted = t.max_contacts + 1;
  Status<T>& status = *rw.status;
  status.penetration = largest(deepest), status.contacts = T(E(n)), status.wanted = T(E(wanted));
  return n;
}

// no adjoint: chooses
template <class T>
CS_OP void slots(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const RowInputs<T>& in, const Options& o) {
  if constexpr (kTeam > 1) {
    int limits = limits_together(t, rw, in.v, in.h, o), touch = contacts_together(t, tr, rw, in, o);
    share(t.n_dry + t.n_row_motor, [&](int i) { rw.fixed[i] = i < t.n_dry ? i : i - t.n_dry; });
    int n = t.n_dry + t.n_row_motor + limits + (1 + t.turns) * touch;
    bool one = lists_apart(t) && on_one_tree(t, rw, n, limits, touch);
    return one ? one_island(t, rw, limits, touch) : lay_out(t, rw, limits, touch);
  }
  active_limits(t, rw, in.v, in.h, o), active_contacts(t, tr, rw, in, o);
  CS_FOR (int i = 0; i < t.n_dry + t.n_row_motor; i++)
    for (int l = 0; l < lanes<T>; l++) rw.fixed[i * lanes<T> + l] = i < t.n_dry ? i : i - t.n_dry;
  int n_limits = limit_slots(t, rw), n_touch = contact_slots(t, rw);
  lay_out(t, rw, n_limits, n_touch);
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
