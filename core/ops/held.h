// held: matrices of an island by a team of threads that has room for them (kHeld, base/team.h), a row or two in the registers of each thread; and what is done with
// them there: inverse, products, Gauss's elimination. Every number is the result of the same operations in the same order as in inverse.h, polish.h, lu_together.h.
//
// Places: joint rows come first, filled up to a multiple of three, then contacts, so that three neighbours make a chunk. What has no row is zero.
// In memory a chunk of a row is read at once, those of neighbouring rows are neighbours, and each is where it is in every world: nothing is to be computed for it.
// A register is named when this is compiled: loops over columns are unrolled as far as there is room, and left early. A column that is to be known by a number
// is first: what is eliminated leaves the front, and all others move up by one chunk as they are computed.
// no adjoint in this file: its functions are parts of others, which know theirs
#pragma once
#include "inverse.h"
#include "lu_together.h"
#include "relax.h"

CS_BEGIN

// The rows of a thread, of C chunks
template <class T, int R, int C = kHeldChunks> struct Held {
  T at[R][kPivots * C];
};

// no adjoint: integers.   of island s
template <class T> CS_FN HeldPlaces held_places(const Rows<T>& rw, int s) {
  int singles = rw.island_singles[s], gap = (kPivots - singles % kPivots) % kPivots;
  int n = rw.first_row[rw.island_block[s + 1]] - rw.first_row[rw.island_block[s]];
  return {singles, gap, n, (n + gap) / kPivots};
}
// Whether there is room for such matrices at all; and whether a kernel is for few rows
template <class T> constexpr bool kMayHold = kTeam == 32 && kHeldChunks > 0 && sizeof(T) == 4;
constexpr bool kHoldsFew = kHeldChunks < kMostChunks;
// no adjoint: a choice.   whether the only island, of so many chunks at most, can be held; Rows::held is null where contacts have other than three rows, or rows that
// depend on them
template <class T> CS_FN bool may_hold(const Rows<T>& rw, int most) {
  return sizeof(T) == 4 && rw.held && rw.count[2] == 1 && held_places(rw, 0).chunks <= most;
}
// no adjoint: memory.   rows whose iterations a team has near
template <class T> CS_FN Rows<T> in_near(Rows<T> rw) {
  NearRows<T>& near = *near_memory(rw.near_team);
  struct {
    T b, lo, hi, rho, inv_rho, mu;
    int kind, first_row;
  } own[2];  // numbers of a row and of a block: all are read before any is written
  int k = team_rank(), rows = rw.count[1], blocks = rw.count[0];
  CS_STRIP (int v = 0; v < 2; v++) {
    int r = k + v * kTeam < rows ? k + v * kTeam : 0, i = k + v * kTeam < blocks ? k + v * kTeam : 0;
    int next = k + v * kTeam < blocks ? i : blocks;
    own[v] = {rw.b[r], rw.lo[r], rw.hi[r], rw.rho[r], rw.inv_rho[r], rw.block_mu[i], rw.kind[i], rw.first_row[next]};
  }
  team_wait();
  CS_STRIP (int v = 0; v < 2; v++) {
    int r = k + v * kTeam;
    near.b[r] = own[v].b, near.lo[r] = own[v].lo, near.hi[r] = own[v].hi, near.rho[r] = own[v].rho,
    near.inv_rho[r] = own[v].inv_rho;
    near.block_mu[r] = own[v].mu, near.kind[r] = own[v].kind, near.first_row[r] = own[v].first_row;
  }
  team_wait();
  rw.is_held = true, rw.places = held_places(rw, 0);
  rw.lam = near.lam, rw.y = near.y, rw.delta = near.delta, rw.before = near.before, rw.Ad = near.Ad, rw.trial = near.trial;
  rw.start = near.start, rw.stalled = near.stalled, rw.best = near.best, rw.b = near.b, rw.lo = near.lo, rw.hi = near.hi,
  rw.rho = near.rho;
  rw.inv_rho = near.inv_rho, rw.block_mu = near.block_mu, rw.kind = near.kind, rw.first_row = near.first_row;
  rw.cols = near.cols, rw.active = near.active, rw.active_block = near.active_block;
  return rw;
}

// What is kept of an island in memory
enum HeldMatrix { kHeldA, kHeldG, kHeldK };
// no adjoint: memory.   chunk J of the row at place k is at [J * kHeldPlaces + k]
template <class T> CS_FN Pivots<T>* held_matrix(const Rows<T>& rw, HeldMatrix which) {
  return rw.held + which * kMostChunks * kHeldPlaces;
}
// no adjoint: memory.   what threads tell each other
template <class T> CS_FN Pivots<T>* held_near(const Rows<T>& rw) { return near_memory(rw.near_team)->told; }

// no adjoint: copies.   x of the thread that has place k, to all
template <int R, class T> CS_FN T of_place(const T (&x)[R], int k) {
  if constexpr (R == 1) return of_rank(x[0], k);
  return of_rank(k < kTeam ? x[0] : x[R - 1], k);
}

// no adjoint: memory.   A of the only island by places; zeros where there is no row or no column. It is symmetric: threads read neighbours along its columns
template <int R, int C, class T> CS_FN void by_places(Held<T, R, C>& K, const HeldPlaces& at, const T* rows) {
  const T* A = rows;
  int first = at.first_contact(), own[R];
  bool mine[R];
  CS_STRIP (int r = 0; r < R; r++) {
    int row = at.row(team_rank() + r * kTeam);
    mine[r] = row >= 0, own[r] = row < 0 ? 0 : row;
  }
  constexpr int group = C % 5 == 0 ? 5 : 3;  // chunks that are read at once
  static_assert(C % group == 0, "or there is no room for the last ones");
  CS_STRIP (int P = 0; P < C; P += group) {
    CS_STRIP (int J = P; J < P + group; J++)
      CS_STRIP (int r = 0; r < R; r++)
        CS_STRIP (int w = 0; w < kPivots; w++) K.at[r][kPivots * J + w] = T(0);
    if (P >= at.chunks) continue;
    CS_STRIP (int J = P; J < P + group; J++) {
      const T* from = J < at.chunks ? A : rows;
      CS_STRIP (int r = 0; r < R; r++)
        CS_STRIP (int w = 0; w < kPivots; w++) {  // beyond the last joint row there is something else, or the row of a contact
          T there = from[w * at.n + own[r]];
          bool is = mine[r] && J < at.chunks && (J >= first || kPivots * J + w < at.singles);
          K.at[r][kPivots * J + w] = is ? there : T(0);
        }
      A += (J + 1 == first ? kPivots - at.gap : kPivots) * at.n;
    }
  }
}
// no adjoint: memory.   chunk J of an own row, of so many chunks and places
template <class T> CS_FN Pivots<T> own_chunk(const Pivots<T>* from, int J, int r, int chunks, int places) {
  int k = r * kTeam + team_rank();
  const Pivots<T> none = {{T(0), T(0), T(0)}};
  return J < chunks && (r == 0 || k < places) ? from[J * kHeldPlaces + k] : none;
}
// no adjoint: memory.   so many chunks and places; zeros beyond
template <int R, int C, class T> CS_FN void load_held(Held<T, R, C>& K, const Pivots<T>* from, int chunks, int places) {
  CS_STRIP (int J = 0; J < C; J++)
    CS_STRIP (int r = 0; r < R; r++) {
      const Pivots<T> x = own_chunk(from, J, r, chunks, places);
      CS_STRIP (int w = 0; w < kPivots; w++) K.at[r][kPivots * J + w] = x.at[w];
    }
}
// no adjoint: memory
template <int R, int C, class T> CS_FN void store_held(const Held<T, R, C>& K, Pivots<T>* to, int chunks) {
  CS_STRIP (int J = 0; J < C; J++) {
    if (J >= chunks) break;
    CS_STRIP (int r = 0; r < R; r++) {
      const T* x = K.at[r] + kPivots * J;
      int k = r * kTeam + team_rank();
      if (r == 0 || k < kPivots * chunks) to[J * kHeldPlaces + k] = {{x[0], x[1], x[2]}};
    }
  }
}

// no adjoint: see above.   K becomes -(K + D)^-1 (ops/inverse.h).   D: of own rows; g: [12 chunks] scratch: factors of all places, twice, so that columns in their
// order, from any of them on, are neighbours; and once more, since some threads may still read those before
template <int R, int C, class T> CS_FN void invert_held(Held<T, R, C>& K, const T (&D)[R], int chunks, Pivots<T>* g) {
  int places = kPivots * chunks;
  CS_SHORT (int P = 0; P < chunks; P++) {
    Pivots<T>* now = g + (P & 1) * 2 * places;
    T own[R][kPivots], of[kPivots][kPivots];  // factors: of own rows, and of the w-th pivot's row at the v-th
    int before[R];                            // own places after the first pivot's
    CS_STRIP (int r = 0; r < R; r++) before[r] = team_rank() + r * kTeam - kPivots * P;
    CS_STRIP (int v = 0; v < kPivots; v++) {
      T x[R], there[R];
      CS_STRIP (int r = 0; r < R; r++) {
        x[r] = K.at[r][v];
        CS_STRIP (int u = 0; u < v; u++) x[r] = fnma(own[r][u], of[u][v], before[r] == u ? T(0) : x[r]);
        there[r] = x[r] + D[r];
      }
      T root = root_pivot(of_place(there, kPivots * P + v));
      CS_STRIP (int r = 0; r < R; r++) there[r] = own[r][v] = before[r] == v ? -root : x[r] * root;
      CS_STRIP (int w = v + 1; w < kPivots; w++) of[v][w] = of_place(there, kPivots * P + w);
    }
    CS_STRIP (int r = 0; r < R; r++) {
      if (before[r] >= 0 && before[r] < kPivots) {
        CS_STRIP (int j = 0; j < kPivots * C; j++) K.at[r][j] = T(0);
        CS_STRIP (int v = 0; v < kPivots; v++) own[r][v] = v < before[r] ? T(0) : own[r][v];
      }
      int k = team_rank() + r * kTeam;
      if (k < places) now[k] = now[k + places] = {{own[r][0], own[r][1], own[r][2]}};
    }
    team_wait();
    CS_STRIP (int J = 1; J <= C; J++) {
      if (J > chunks) break;
      CS_STRIP (int w = 0; w < kPivots; w++) {
        const Pivots<T> by = now[kPivots * (P + J) + w];
        CS_STRIP (int r = 0; r < R; r++) {
          // behind the last column there are zeros: those of the pivots begin anew
          T y = J < C ? K.at[r][J < C ? kPivots * J + w : 0] : T(0);
          CS_STRIP (int v = 0; v < kPivots; v++) y = fnma(own[r][v], by.at[v], y);
          K.at[r][kPivots * (J - 1) + w] = y;
        }
      }
    }
  }
  team_wait();
}

// no adjoint: see above.   y = -K x of own rows, in the order of dense_dot.   x: by chunks, of_contacts: of contacts, zero elsewhere
template <int R, int C, class T> CS_FN void minus_held_times(const Held<T, R, C>& K, const HeldPlaces& at, const Pivots<T>* x,
                                                             const Pivots<T>* of_contacts, T (&y)[R]) {
  constexpr int group = 3;  // chunks that are read at once, while those before are multiplied
  DenseSum<T> sum[R];
  Pivots<T> next[group];
  CS_STRIP (int g = 0; g < group && g < C; g++) next[g] = of_contacts[g];
  CS_STRIP (int J = 0; J < C; J++) {
    if (J >= at.first_contact()) break;
    const Pivots<T> by = x[J];
    CS_STRIP (int r = 0; r < R; r++)
      CS_STRIP (int w = 0; w < kPivots; w++) sum[r].s = fnma(K.at[r][kPivots * J + w], by.at[w], sum[r].s);
  }
  CS_STRIP (int J = 0; J < C; J += group) {
    if (J >= at.chunks) break;
    Pivots<T> by[group];
    CS_STRIP (int g = 0; g < group; g++) by[g] = next[g];
    CS_STRIP (int g = 0; g < group && J + group + g < C; g++) next[g] = of_contacts[J + group + g];
    CS_STRIP (int g = 0; g < group && J + g < C; g++)
      CS_STRIP (int r = 0; r < R; r++) {
        const T* a = K.at[r] + kPivots * (J + g);
        DenseSum<T>& to = sum[r];
        to.s0 = fnma(a[0], by[g].at[0], to.s0), to.s1 = fnma(a[1], by[g].at[1], to.s1), to.s2 = fnma(a[2], by[g].at[2], to.s2);
      }
  }
  CS_STRIP (int r = 0; r < R; r++) y[r] = sum[r].all(kPivots);
}

// no adjoint: linear.   y += A lam, as add_A has it, with the matrix in memory.   x: scratch that is near
template <class T> CS_ONCE void held_product(HeldPlaces at, const Pivots<T>* A, Pivots<T>* x, const T* lam, T* y) {
  team_wait();
  if (team_rank() < at.chunks)
    CS_STRIP (int w = 0; w < kPivots; w++) {
      int row = at.row(kPivots * team_rank() + w);
      x[team_rank()].at[w] = row < 0 ? T(0) : lam[row];
    }
  team_wait();
  DenseSum<T> sum[2];
  constexpr int group = 7;  // chunks that are read at once; kMostChunks is a multiple of it
  CS_SHORT (int J = 0; J < at.chunks; J += group, A += group * kHeldPlaces) {
    Pivots<T> a[group][2];
    CS_STRIP (int g = 0; g < group; g++)
      CS_STRIP (int r = 0; r < 2; r++) a[g][r] = own_chunk(A, g, r, at.chunks - J, kPivots * at.chunks);
    CS_STRIP (int g = 0; g < group; g++) {
      if (J + g >= at.chunks) break;
      const Pivots<T> by = x[J + g];
      bool joints = J + g < at.first_contact();
      CS_STRIP (int r = 0; r < 2; r++) {
        DenseSum<T>& to = sum[r];
        const T* of = a[g][r].at;
        if (joints)
          CS_STRIP (int w = 0; w < kPivots; w++) to.s = fma(of[w], by.at[w], to.s);
        else
          to.s0 = fma(of[0], by.at[0], to.s0), to.s1 = fma(of[1], by.at[1], to.s1), to.s2 = fma(of[2], by.at[2], to.s2);
      }
    }
  }
  CS_STRIP (int r = 0; r < 2; r++) {
    int row = at.row(r * kTeam + team_rank());
    if (row >= 0) y[row] += sum[r].all(kPivots);
  }
  team_wait();
}
// no adjoint: the same
template <class T> CS_FN void held_add(const Rows<T>& rw, const T* lam, T* y) {
  held_product(rw.places, held_matrix(rw, kHeldA), held_near(rw), lam, y);
}

CS_END
