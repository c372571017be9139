// delassus_together: A (ops/delassus.h) by a team, for a model of few dofs: a block's columns are bits of a number.
//
// A thread has one row at a time, in registers on all dofs: where its block has none they are zero, and add nothing to the sums of the others. Which dof is
// above which the compiler knows. What two blocks share are the bits that both have.
// no adjoint in this file: see ops/delassus.h
#pragma once
#include "../data/rows.h"
#include "tree_together.h"

CS_BEGIN

#if CS_TEAM > 1 && defined(CS_MODEL)
constexpr int kWidth = Tree::planar ? 2 : 3;
#else
constexpr int kWidth = 3;
#endif

// no adjoint: integers.   how many bits are set
CS_FN int bit_count(unsigned x) {
#ifdef __CUDA_ARCH__
  return __popc(x);
#else
  return __builtin_popcount(x);
#endif
}

// no adjoint: see above.   L^T y = J^T,  W = D^-1 y  of row j of a block
template <class T>
CS_FN void row_halves(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, const Span& s, int j, unsigned columns) {
  constexpr int n = kBits ? kBits : 1;
  int of_J = s.J + j * s.m, of_Y = s.Y + j * s.s;
  T y[n];
  auto place = [&](int d) { return bit_count(columns & ((1u << d) - 1)); };
  CS_STRIP (int d = 0; d < n; d++) y[d] = columns >> d & 1 ? rw.J[of_J + place(d)] : T(0);
  CS_STRIP (int d = n - 1; d >= 0; d--) {
    int depth = t.dof_depth[d];
    CS_STRIP (int c = d + 1; c < n; c++)
      if (is_above(t, d, c)) y[d] = fnma(tr.L[t.row_adr[c] + depth], y[c], y[d]);
  }
  CS_STRIP (int d = 0; d < n; d++)
    if (columns >> d & 1) rw.Y[of_Y + place(d)] = y[d], rw.W[of_Y + place(d)] = y[d] * tr.D_inv[d];
}

// no adjoint: see above.   of all rows; the columns of all blocks in `columns`
template <class T> CS_FN void halves_together(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int* columns) {
  int blocks = rw.count[0];
  share(blocks, [&](int i) {
    Span s = span(rw, i);
    unsigned all = 0;
    for (int k = 0; k < s.m; k++) all |= 1u << s.col[k];
    columns[i] = int(all);
  });
  share(kWidth * blocks, [&](int k) {
    int i = k / kWidth, j = k % kWidth;
    Span s = span(rw, i);
    if (j < s.n) row_halves(t, tr, rw, s, j, unsigned(columns[i]));
  });
}

// no adjoint: see above.   block (i, j) of A of an island that begins with row r0 and has n rows, and its mirror image. As many rows for all kinds of blocks:
// that of a joint stands for itself several times, and its numbers go several times to the same place
template <class T> CS_FN void pair_together(const Rows<T>& rw, int i, int j, const int* columns, T* A, int r0, int n) {
  Span a = span(rw, i), b = span(rw, j);
  const T *Y = rw.Y + a.Y, *W = rw.W + b.Y;
  int next_a = a.n == 1 ? 0 : 1, next_b = b.n == 1 ? 0 : 1;
  unsigned of_a = unsigned(columns[i]), of_b = unsigned(columns[j]);
  T s[kWidth][kWidth], w[kWidth];
  CS_STRIP (int x = 0; x < kWidth; x++)
    CS_STRIP (int y = 0; y < kWidth; y++) s[x][y] = T(0);
  // columns that follow each other in both, and those after a gap, and so on
  for (unsigned both = of_a & of_b; both;) {
    unsigned first = both & (0u - both), run = both & ~(both + first);
    const T *at_a = Y + bit_count(of_a & (first - 1)), *at_b = W + bit_count(of_b & (first - 1));
    for (int k = bit_count(run); k > 0; k--, at_a++, at_b++) {
      CS_STRIP (int y = 0; y < kWidth; y++) w[y] = at_b[y * next_b * b.s];
      CS_STRIP (int x = 0; x < kWidth; x++) {
        T v = at_a[x * next_a * a.s];
        CS_STRIP (int y = 0; y < kWidth; y++) s[x][y] = fma(v, w[y], s[x][y]);
      }
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

CS_END
