// What a user sees of a step's rows: status, contacts and joint rows as numbers, and the way back of the contacts' impulses.
#pragma once
#include "../core/split.h"
#include "lanes.h"

CS_BEGIN

// A world's status over many steps (order as in costate/info.py)
template <class T> struct StatusSum {
  ElementOf<T> x[lanes<T>][kStatusNumbers] = {};
  CS_FN void add(const Tree& t, const Status<T>& s, const Options& o, const bool* alive) {
    using E = ElementOf<T>;
    auto most = [](E& a, E b) { a = b > a ? b : a; };
    for (int l = 0; l < lanes<T>; l++) {
      if (!alive[l]) continue;
      bool solved = lane(s.solved, l) > E(0.5);
      most(x[l][0], lane(s.residual, l)), most(x[l][2], lane(s.sweeps, l)), most(x[l][3], lane(s.contacts, l));
      most(x[l][4], lane(s.penetration, l)), most(x[l][7], lane(s.wanted, l));
      most(x[l][8], lane(s.drift, l)), most(x[l][9], lane(s.contradiction, l));
      x[l][10] += lane(s.impacts, l);
      x[l][1] += E(!solved), x[l][5] += E(lane(s.wanted, l) > E(t.max_contacts)),
          x[l][6] += E((!solved || t.large) && !o.exact && o.method == kRounds);
    }
  }
  CS_FN void store(const Array<ElementOf<T>>& a, Group g) const {
    for (int l = 0; l < g.count && a.data; l++)
      for (int i = 0; i < kStatusNumbers; i++) a.data[(g.first + l) * kStatusNumbers + i] = x[l][i];
  }
};

// block of every contact slot, in rw.mark; blocks are sorted by island, slots by candidate
template <class T> CS_OP void block_of_slot(const Rows<T>& rw) {
  for (int i = 0; i < rw.count[0]; i++)
    if (rw.kind[i] == kContactRows) rw.mark[(rw.item[i] - rw.touch) / lanes<T>] = i;
}

// how far a contact is from changing its state, m/s, and the state: 1 separated, 2 sticking, 3 sliding
template <class T> CS_OP T contact_state(const Rows<T>& rw, const Options& o, int i, T& state) {
  int r = rw.first_row[i];
  T x = fnma(rw.rho[r], rw.y[r], rw.lam[r]), rho = rw.rho[r + 1];
  T p = fnma(rho, rw.y[r + 1], rw.lam[r + 1]), q = fnma(rho, third(rw, rw.y + r), third(rw, rw.lam + r)),
    size = rw.block_mu[i] * max(rw.lam[r], T(0));
  Cone<T> c = cone_slope(o, p, q, size);
  auto pressed = x > T(0);
  state = select(pressed, T(2) + c.outside, T(1));
  T normal = abs(x) / rw.rho[r], rim = abs(sqrt(fma(p, p, q * q)) - size) / rho;
  return select(pressed, min(normal, rim), normal);
}

// contacts [max_contacts, 12], ids and joint rows [., 3] of every lane, after step(); a world that diverged shows none
template <class T, class E>
CS_OP void show_rows(const RolloutCall<E>& c, const Trace<T>& tr, const Rows<T>& rw, Group g, const bool* alive) {
  const Tree& t = tree_of(c);
  int most = t.max_contacts, width = kContactNumbers, n_rows = joint_rows(t) + t.ne;
  for (int l = 0; l < g.count; l++) {
    E *contacts = c.contacts.data + (g.first + l) * most * width, *rows = c.rows.data + (g.first + l) * n_rows * kRowNumbers;
    for (int i = 0; i < most * width && c.contacts.data; i++) contacts[i] = 0;
    for (int i = 0; i < most && c.contact_ids; i++) c.contact_ids[(g.first + l) * most + i] = -1;
    for (int i = 0; i < n_rows * kRowNumbers && c.rows.data; i++) rows[i] = 0;
  }
  if (!constrained(t)) return;
  for (int r = 0; r < t.ne && c.rows.data; r++)
    for (int l = 0; l < g.count; l++) {
      if (!alive[l]) continue;
      E* to = c.rows.data + ((g.first + l) * n_rows + joint_rows(t) + t.shown_row[r]) * kRowNumbers;
      to[0] = lane(rw.eq.total[r], l), to[1] = E(2), to[2] = lane(rw.eq.now.phi[r], l);
    }
  if (!rw.count[0]) return;
  if (t.large)
    large_velocity(t, rw, rw.sigma);
  else
    natural_residual(rw, c.options);
  block_of_slot(rw);
  int held[lanes<T>] = {};
  for (int s = 0; s < rw.count[4] && c.contacts.data; s++) {
    int i = rw.mark[s], r = rw.first_row[i];
    T state, far = contact_state(rw, c.options, i, state);
    const Mat3<T>& C = rw.C[i];
    Vec3<T> f = rw.lam[r] * C.r0 + rw.lam[r + 1] * C.r1 + third(rw, rw.lam + r) * C.r2;
    for (int l = 0; l < g.count; l++) {
      int k = rw.item[i][l], at = held[l];
      if (k < 0 || !alive[l]) continue;
      held[l]++;
      int p = rw.cand_pair[k], b = t.shape_body[t.pair_b[p]];
      Vec3<T> x = rw.x_b[i] + (b < 0 ? zero3<T>() : tr.origin[t.root[b]]);
      const T values[kContactNumbers] = {rw.gap[k], x.x, x.y, x.z, C.r0.x, C.r0.y, C.r0.z, f.x, f.y, f.z, state, far};
      for (int j = 0; j < width; j++) c.contacts.data[((g.first + l) * most + at) * width + j] = lane(values[j], l);
      if (c.contact_ids) c.contact_ids[(g.first + l) * most + at] = t.pair_first[p] + rw.cand_point[k];
    }
  }
  for (int i = 0; i < rw.count[0] && c.rows.data; i++) {
    int r = rw.first_row[i], base = rw.kind[i] == kDryRow ? 0 : rw.kind[i] == kMotorRow ? t.n_dry : t.n_dry + t.n_row_motor;
    if (rw.kind[i] == kContactRows || rw.kind[i] == kTurnRow) continue;
    T x = fnma(rw.rho[r], rw.y[r], rw.lam[r]);
    T state = select(x > rw.lo[r], select(x < rw.hi[r], T(2), T(3)), T(1)),
      far = min(abs(x - rw.lo[r]), abs(x - rw.hi[r])) / rw.rho[r];
    for (int l = 0; l < g.count; l++) {
      if (rw.item[i][l] < 0 || !alive[l]) continue;
      E* to = c.rows.data + ((g.first + l) * n_rows + base + rw.item[i][l]) * kRowNumbers;
      to[0] = lane(rw.lam[r], l), to[1] = lane(state, l), to[2] = lane(far, l);
    }
  }
}
// adjoint: bars of the impulses to the blocks that have them; zero where nobody asks
template <class T, class E> CS_OP void show_rows_adj(const RolloutCall<E>& c, const Rows<T>& rw, Group g, const RowBars<T>& rb) {
  const Tree& t = tree_of(c);
  if (!constrained(t)) return;
  clear(rb.impulse, rw.count[0]);
  if (!c.contacts.data) return;
  int held[lanes<T>] = {};
  block_of_slot(rw);
  for (int s = 0; s < rw.count[4]; s++) {
    int i = rw.mark[s];
    for (int l = 0; l < g.count; l++) {
      if (rw.item[i][l] < 0) continue;
      const E* from = c.contacts.data + ((g.first + l) * t.max_contacts + held[l]++) * kContactNumbers + 7;
      set_lane(rb.impulse[i].x, l, from[0]), set_lane(rb.impulse[i].y, l, from[1]), set_lane(rb.impulse[i].z, l, from[2]);
    }
  }
}

CS_END
