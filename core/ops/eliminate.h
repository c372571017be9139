// eliminate: x = K^-1 x by a team of threads that has the rows of K in its registers (ops/held.h), column by column, and then back.
//
// The numbers of lu_together.h: rows are those off their bounds, columns also those of the identity, which change nothing but x. A thread that has a pivot's row tells
// the others what they need of it.
// no adjoint in this file: newton_adj solves with K^T of its own
#pragma once
#include "held.h"

CS_BEGIN

// What is known on the way
template <class T, int R> struct HeldElimination {
  Held<T, R> K;
  T y[R];       // x of own rows
  int own[R];   // their columns, kNone beyond the last row
  int k, next;  // the next pivot's row, and its column
  T m[R][kPivots];
  int from[kPivots];  // factors of a chunk's pivots, and their rows
  static constexpr int kNone = kPivots * kMostChunks;
  CS_FN int column(int i, int count) const { return i >= 0 && i < count ? of_place(own, i) : kNone; }
};

// no adjoint: see above.   column j, the v-th of those in front
template <int R, class T> CS_FN void eliminate_front(HeldElimination<T, R>& e, const Together<T>& a, const T* x, int j, int v) {
  T front[R];
  CS_STRIP (int r = 0; r < R; r++) front[r] = e.K.at[r][v], e.m[r][v] = T(0);
  e.from[v] = 0;
  if (e.next == j) {
    T d = pivot(of_place(front, e.k)), by = of_place(e.y, e.k);
    CS_STRIP (int r = 0; r < R; r++) {
      bool below = e.own[r] > j && e.own[r] < e.kNone;
      T m = e.m[r][v] = below ? front[r] * d : T(0);
      e.y[r] = below ? fnma(by, m, e.y[r]) : e.y[r];
      e.K.at[r][v] = e.own[r] == j ? d : front[r];
    }
    CS_STRIP (int w = v + 1; w < kPivots; w++) {
      T there[R];
      CS_STRIP (int r = 0; r < R; r++) there[r] = e.K.at[r][w];
      T u = of_place(there, e.k);
      CS_STRIP (int r = 0; r < R; r++) e.K.at[r][w] = fnma(e.m[r][v], u, there[r]);
    }
    e.from[v] = e.k, e.next = e.column(++e.k, a.count);
  } else if (j < a.n) {  // the identity's
    T by = x[a.cols[j]];
    CS_STRIP (int r = 0; r < R; r++) e.y[r] = e.own[r] > j && e.own[r] < e.kNone ? fnma(by, front[r], e.y[r]) : e.y[r];
  }
}

// no adjoint: see above.   all chunks of columns after the P-th less what its pivots do to them; they move up
template <int R, class T> CS_FN void eliminate_rest(HeldElimination<T, R>& e, int P, int chunks) {
  constexpr int strip = 2 * kPivots;  // columns at a time; kHeldChunks is odd
  CS_STRIP (int j = kPivots; j < kPivots * kHeldChunks; j += strip) {
    if (j >= kPivots * (chunks - P)) break;
    T z[strip][R];
    CS_STRIP (int w = 0; w < strip; w++)
      CS_STRIP (int r = 0; r < R; r++) z[w][r] = e.K.at[r][j + w];
    CS_STRIP (int v = 0; v < kPivots; v++) {
      T u[strip];
      CS_STRIP (int w = 0; w < strip; w++) u[w] = of_place(z[w], e.from[v]);
      CS_STRIP (int w = 0; w < strip; w++)
        CS_STRIP (int r = 0; r < R; r++) z[w][r] = fnma(e.m[r][v], u[w], z[w][r]);
    }
    CS_STRIP (int w = 0; w < strip; w++)
      CS_STRIP (int r = 0; r < R; r++) e.K.at[r][j - kPivots + w] = z[w][r];
  }
}

// no adjoint: a part of eliminate.   K: kHeldK of the island's rows, where it leaves what is above the diagonal
template <int R, class T> CS_FN void eliminate_rows(const Together<T>& a, Pivots<T>* K, T* x) {
  HeldElimination<T, R> e;
  int chunks = (a.n + kPivots - 1) / kPivots;
  load_held(e.K, K, chunks, a.count);
  CS_STRIP (int r = 0; r < R; r++) {
    int i = team_rank() + r * kTeam;
    e.own[r] = i < a.count ? a.rows[i] : e.kNone, e.y[r] = i < a.count ? x[a.cols[e.own[r]]] : T(0);
  }
  e.k = 0, e.next = e.column(0, a.count);
  Pivots<T>* kept = K + team_rank();
  CS_SHORT (int P = 0; P < chunks; P++, kept += kHeldPlaces) {
    CS_STRIP (int v = 0; v < kPivots; v++) eliminate_front(e, a, x, kPivots * P + v, v);
    CS_STRIP (int r = 0; r < R; r++) kept[r * kTeam] = {{e.K.at[r][0], e.K.at[r][1], e.K.at[r][2]}};
    eliminate_rest(e, P, chunks);
  }
  e.next = e.column(--e.k, a.count);
  Pivots<T> U[R], before[R];  // a chunk of columns, and the one before, which is read meanwhile
  CS_STRIP (int r = 0; r < R; r++) before[r] = kept[r * kTeam - kHeldPlaces];
  CS_SHORT (int P = chunks - 1; P >= 0; P--) {
    kept -= kHeldPlaces;
    CS_STRIP (int r = 0; r < R; r++) U[r] = before[r], before[r] = P > 0 ? kept[r * kTeam - kHeldPlaces] : U[r];
    CS_STRIP (int v = kPivots - 1; v >= 0; v--) {
      int j = kPivots * P + v;
      if (j >= a.n) continue;
      bool known = e.next != j;
      T there[R];
      CS_STRIP (int r = 0; r < R; r++) there[r] = e.y[r] * U[r].at[v];
      T by = known ? x[a.cols[j]] : of_place(there, e.k);
      if (!known) e.next = e.column(--e.k, a.count);
      CS_STRIP (int r = 0; r < R; r++) e.y[r] = e.own[r] < j ? fnma(by, U[r].at[v], e.y[r]) : e.own[r] == j ? by : e.y[r];
    }
  }
  CS_STRIP (int r = 0; r < R; r++)
    if (e.own[r] < e.kNone) x[a.cols[e.own[r]]] = e.y[r];
  team_wait();
}
// no adjoint: see above
template <class T> CS_FN void eliminate(const Rows<T>& rw, const Together<T>& a, T* x) {
  if constexpr (kMayHold<T>) {
    if (a.count > kTeam)
      eliminate_rows<2>(a, held_matrix(rw, kHeldK), x);
    else
      eliminate_rows<1>(a, held_matrix(rw, kHeldK), x);
  }
}

CS_END
