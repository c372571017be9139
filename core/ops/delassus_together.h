// delassus_together: A (ops/delassus.h) by a team, for a model of few dofs: a block's columns are bits of a number.
//
// A thread has one row at a time, in registers on all dofs: where its block has none they are zero, and add nothing to the sums of the others. Which dof is
// above which the compiler knows. What two blocks share are the bits that both have.
// no adjoint in this file: see ops/delassus.h
#pragma once
#include "columns.h"

CS_BEGIN

#if CS_TEAM > 1 && defined(CS_MODEL)
constexpr int kWidth = Tree::planar ? 2 : 3;
#else
constexpr int kWidth = 3;
#endif

// no adjoint: integers.   the columns of block i, as bits
template <class T> CS_FN unsigned block_bits(const Tree& t, const Rows<T>& rw, int i) {
  int a, b;
  block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
  return body_bits(t, a) | body_bits(t, b);
}

// no adjoint: see above.   L^T y = J^T,  W = D^-1 y  of all rows, two of a thread at a time; the columns of all blocks in `columns`
template <class T> CS_FN void halves_together(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int* columns) {
  constexpr int n = kBits ? kBits : 1, R = 2;
  int blocks = rw.count[0];
  share(blocks, [&](int i) { columns[i] = int(block_bits(t, rw, i)); });
  CS_SHORT (int k = team_rank(); k < kWidth * blocks; k += R * kTeam) {
    T y[R][n];
    T *Y[R], *W[R];
    unsigned of[R];  // none where there is no row
    CS_STRIP (int r = 0; r < R; r++) {
      int at = k + r * kTeam, i = at < kWidth * blocks ? at / kWidth : 0, j = at % kWidth;
      Span s = span(rw, i);
      of[r] = at < kWidth * blocks && j < s.n ? unsigned(columns[i]) : 0;
      const T* J = rw.J + s.J + j * s.m;
      Y[r] = rw.Y + s.Y + j * s.s, W[r] = rw.W + s.Y + j * s.s;
      CS_STRIP (int d = 0; d < n; d++) y[r][d] = of[r] >> d & 1 ? J[bit_place(of[r], d)] : T(0);
    }
    CS_STRIP (int d = n - 1; d >= 0; d--) {
      int depth = t.dof_depth[d];
      CS_STRIP (int c = d + 1; c < n; c++) {
        if (!is_above(t, d, c)) continue;
        T L = tr.L[t.row_adr[c] + depth];
        CS_STRIP (int r = 0; r < R; r++) y[r][d] = fnma(L, y[r][c], y[r][d]);
      }
    }
    CS_STRIP (int d = 0; d < n; d++) {
      T D_inv = tr.D_inv[d];
      CS_STRIP (int r = 0; r < R; r++)
        if (of[r] >> d & 1) Y[r][bit_place(of[r], d)] = y[r][d], W[r][bit_place(of[r], d)] = y[r][d] * D_inv;
    }
  }
  team_wait();
}

// no adjoint: see above.   block (i, j) of A of an island that begins with row r0 and has n rows, and its mirror image. As many rows for all kinds of blocks:
// that of a joint stands for itself several times, and its numbers go several times to the same place
template <class T> CS_FN void pair_together(const Rows<T>& rw, int i, int j, const int* columns, T* A, int r0, int n) {
  Span a = span(rw, i), b = span(rw, j);
  const T *Y = rw.Y + a.Y, *W = rw.W + b.Y;
  int next_a = a.n == 1 ? 0 : 1, next_b = b.n == 1 ? 0 : 1;
  unsigned of_a = unsigned(columns[i]), of_b = unsigned(columns[j]);
  T s[kWidth][kWidth];
  CS_STRIP (int x = 0; x < kWidth; x++)
    CS_STRIP (int y = 0; y < kWidth; y++) s[x][y] = T(0);
  constexpr int strip = 3;  // columns that are read at once: zeros where there are no more, which add nothing
  const T *of_Y[kWidth], *of_W[kWidth];
  CS_STRIP (int x = 0; x < kWidth; x++) of_Y[x] = Y + x * next_a * a.s, of_W[x] = W + x * next_b * b.s;
  // columns that follow each other in both, and those after a gap, and so on
  CS_SHORT (unsigned both = of_a & of_b; both;) {
    unsigned first = both & (0u - both), run = both & ~(both + first);
    int at_a = bit_count(of_a & (first - 1)), at_b = bit_count(of_b & (first - 1));
    CS_SHORT (int left = bit_count(run); left > 0; left -= strip, at_a += strip, at_b += strip) {
      T y[strip][kWidth], w[strip][kWidth];
      CS_STRIP (int c = 0; c < strip; c++)
        CS_STRIP (int x = 0; x < kWidth; x++)
          y[c][x] = c < left ? of_Y[x][at_a + c] : T(0), w[c][x] = c < left ? of_W[x][at_b + c] : T(0);
      CS_STRIP (int c = 0; c < strip; c++)
        CS_STRIP (int i = 0; i < kWidth; i++)
          CS_STRIP (int j = 0; j < kWidth; j++) s[i][j] = fma(y[c][i], w[c][j], s[i][j]);
    }
    both ^= run;
  }
  T *to = A + (a.r - r0) * n + b.r - r0, *across = A + (b.r - r0) * n + a.r - r0;
  CS_STRIP (int x = 0; x < kWidth; x++)
    CS_STRIP (int y = 0; y < kWidth; y++) {
      T sum = i == j && y > x ? s[y][x] : s[x][y];
      to[x * next_a * n + y * next_b] = across[y * next_b * n + x * next_a] = sum;
    }
}

// no adjoint: linear in lam.   dv = H^-1 J^T lam of all blocks: impulse_response of ops/delassus.h, by threads that have a dof each
template <class T>
CS_FN void response_together(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int first, int last, const T* lam, T* dv) {
  constexpr int strip = 4;  // blocks whose numbers are read at once
  HeldDofs<T> sum;
  CS_STRIP (int r = 0; r < sum.R; r++) sum.at[r] = T(0);
  team_wait();
  CS_SHORT (int begin = first; begin < last; begin += kTeam) {
    int own = begin + team_rank(), end = begin + kTeam < last ? begin + kTeam : last;
    int columns = own < last ? int(block_bits(t, rw, own)) : 0;
    CS_SHORT (int i = begin; i < end; i += strip) {
      T W[strip][kWidth][sum.R], l[strip][kWidth];
      CS_STRIP (int c = 0; c < strip; c++) {
        unsigned bits = unsigned(of_rank(columns, i + c < end ? i + c - begin : 0));
        Span s = span(rw, i + c < end ? i + c : i);
        const T* from = rw.W + s.Y;
        CS_STRIP (int j = 0; j < kWidth; j++) {
          bool there = i + c < end && j < s.n;
          l[c][j] = there ? lam[s.r + j] : T(0);
          CS_STRIP (int r = 0; r < sum.R; r++) {
            int d = sum.dof(r);
            W[c][j][r] = there && d < t.nv && (bits >> d & 1) ? from[j * s.s + bit_place(bits, d)] : T(0);
          }
        }
      }
      CS_STRIP (int c = 0; c < strip; c++)
        CS_STRIP (int j = 0; j < kWidth; j++)
          CS_STRIP (int r = 0; r < sum.R; r++) sum.at[r] = fma(W[c][j][r], l[c][j], sum.at[r]);
    }
  }
  second_half_held(t, tr, sum);
  keep_dofs(t, sum, dv);
}

CS_END
