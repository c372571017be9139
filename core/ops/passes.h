// passes: those of ops/alternate.h by a team of threads that holds (A + D)^-1 in its registers: products by rows, projections by chunks of three places (ops/held.h).
//
// One thread has what a contact needs, or three joint rows: p and z stay with it from pass to pass. The others tell it x, and it tells them what A + D is solved for.
// no adjoint in this file: alternate_adj runs the passes again, and knows their derivative
#pragma once
#include "held.h"
#include "polish.h"

CS_BEGIN

// d: the smaller, the more a pass trusts A. Measured on a humanoid that lies, in float32: 30, 50 and 70 passes (kPasses) leave 3.1, 2.2 and 1.8 Newton steps, and a step takes
// 34, 33 and 36 us of a processor
constexpr double kStiff = 0.06;
// no adjoint: a choice.   o, from 0 to 2, how far a pass goes: far at first; but where cones are not convex together, passes that go far can go round in circles,
// and short ones mostly do not. Of the steps of a laikago on its hulls, in float64, 0.4% stayed unsolved with 1.1 in all later rounds, with these 0.01%
template <class E> CS_FN double over_of(int round) {
  if (round == 0) return 1.6;
  return sizeof(E) == 4 ? 0.8 : round == 1 ? 1 : 0.5;
}
// no adjoint: a choice.   how many passes a round has
template <class E> CS_FN int passes_of(int round) { return round == 0 ? kPasses : kLaterPasses<E>; }

// no adjoint: alternate_adj has it.   p + o (x - z)
template <class T> CS_FN T pass_on(T over, T p, T x, T z) { return fma(over, x - z, p); }

// Three places of an island, and the numbers of their rows
template <class T> struct Chunk {
  bool contact;
  int row[kPivots];  // -1: none
  T p[kPivots], z[kPivots], D[kPivots], b[kPivots], lo[kPivots], hi[kPivots], mu;
};
// no adjoint: see above.   the c-th chunk of island s; p: [rows]
template <class T> CS_FN Chunk<T> chunk_of(const Rows<T>& rw, int s, const HeldPlaces& at, int c, T d, const T* p) {
  Chunk<T> x;
  x.contact = c >= at.first_contact() && c < at.chunks;
  x.mu = x.contact ? rw.block_mu[rw.island_block[s] + at.singles + c - at.first_contact()] : T(0);
  CS_STRIP (int v = 0; v < kPivots; v++) {
    int k = c < at.chunks ? at.row(kPivots * c + v) : -1, r = rw.first_row[rw.island_block[s]] + k;
    x.row[v] = k < 0 ? -1 : r;
    x.p[v] = x.z[v] = x.D[v] = x.b[v] = x.lo[v] = x.hi[v] = T(0);
    if (k < 0) continue;
    x.p[v] = p[r], x.D[v] = d * rw.inv_rho[r], x.b[v] = rw.b[r];
    if (!x.contact || v == 0) x.lo[v] = rw.lo[r], x.hi[v] = rw.hi[r];
  }
  return x;
}
// no adjoint: project_block_adj has it.   z = Pi(p), and what A + D is solved for
template <class T> CS_FN Pivots<T> project_chunk(const Options& o, Chunk<T>& x) {
  CS_STRIP (int v = 0; v < kPivots; v++) x.z[v] = min(max(x.p[v], x.lo[v]), x.hi[v]);
  if (x.contact) {
    x.z[1] = x.p[1], x.z[2] = x.p[2];
    cone_project(o, x.z[1], x.z[2], x.mu * max(x.z[0], T(0)));
  }
  Pivots<T> q;
  CS_STRIP (int v = 0; v < kPivots; v++) q.at[v] = fma(x.D[v], x.z[v] + (x.z[v] - x.p[v]), -x.b[v]);
  return q;
}

// no adjoint: a choice.   f of a matrix, a row for each thread where that is enough, else two
template <class T, class F> CS_FN void by_rows(const HeldPlaces& at, const F& f) {
  if (!kHoldsFew || kPivots * at.chunks > kTeam) {  // few rows have a kernel of their own
    Held<T, 2> K;
    f(K, Size<2>{});
  } else {
    Held<T, 1, kTeam / kPivots> K;
    f(K, Size<1>{});
  }
}

// no adjoint: alternate_adj knows that dG = -G dA G.   K = -(A + D)^-1 in registers, and A and K by places in memory
template <int R, int C, class T> CS_FN void held_inverse(const Rows<T>& rw, Held<T, R, C>& K) {
  Pivots<T>* A = held_matrix(rw, kHeldA);
  T D[R];
  CS_STRIP (int r = 0; r < R; r++) {
    int row = rw.places.row(team_rank() + r * kTeam);
    D[r] = row < 0 ? T(1) : T(ElementOf<T>(kStiff)) * rw.inv_rho[row];
  }
  by_places(K, rw.places, rw.A);
  store_held(K, A, rw.places.chunks);
  invert_held(K, D, rw.places.chunks, held_near(rw));
  store_held(K, held_matrix(rw, kHeldG), rw.places.chunks);
}

// no adjoint: see above.   from p [rows]; lambda is where they end.   first: K is not yet known
template <class T> CS_FN void held_passes(const Rows<T>& rw, const Options& o, const T* p, T over, int passes, bool first) {
  const HeldPlaces at = rw.places;
  Pivots<T>*q = held_near(rw), *of_contacts = q + kMostChunks, *x = of_contacts + kMostChunks;
  by_rows<T>(at, [&](auto& K, auto size) {
    constexpr int R = decltype(size)::n;
    if (first)
      held_inverse(rw, K);
    else
      load_held(K, held_matrix(rw, kHeldG), at.chunks, kPivots * at.chunks);
    Chunk<T> own = chunk_of(rw, 0, at, team_rank(), T(ElementOf<T>(kStiff)), p);
    bool mine = team_rank() < at.chunks;
    team_wait();
    if (team_rank() < kMostChunks) of_contacts[team_rank()] = {{T(0), T(0), T(0)}};
    CS_SHORT (int k = 0; k < passes; k++) {
      Pivots<T> to = project_chunk(o, own);
      if (mine) (own.contact ? of_contacts : q)[team_rank()] = to;
      team_wait();
      T y[R];
      minus_held_times(K, at, q, of_contacts, y);
      CS_STRIP (int r = 0; r < R; r++) {
        int place = team_rank() + r * kTeam;
        if (place < kPivots * at.chunks) x[place / kPivots].at[place % kPivots] = y[r];
      }
      team_wait();
      const Pivots<T> by = x[mine ? team_rank() : 0];
      CS_STRIP (int v = 0; v < kPivots; v++) own.p[v] = pass_on(over, own.p[v], by.at[v], own.z[v]);
    }
    project_chunk(o, own);
    CS_STRIP (int v = 0; v < kPivots; v++)
      if (own.row[v] >= 0) rw.lam[own.row[v]] = own.z[v];
  });
  team_wait();
}

CS_END
