// tree_together: what goes along a tree, from its roots to its leaves or back, by a team of threads (base/team.h); elsewhere body by body.
//
// Teams take all bodies of a level at once, or a number of all bodies each. Where a model's dofs are few and known when this is compiled (kBits), its factor and
// what is solved with it are in the registers of threads: the k-th has the k-th number of every row of L, or every kTeam-th dof. All loops are unrolled then.
// Every number is the result of the same operations in the same order as in ops/solve.h.
// no adjoint in this file: each loop is a part of an op, which knows its own
#pragma once
#include "../base/team.h"
#include "../data/trace.h"

CS_BEGIN

// Dofs of a model that has so few; 0 elsewhere
#if CS_TEAM > 1 && defined(CS_MODEL)
constexpr int kBits = Tree::form == kSparse && !Tree::ne && !Tree::large && Tree::nv <= 32 ? Tree::nv : 0;
constexpr bool kHoldsRows = kBits > 0 && Tree::max_row <= kTeam;
// no adjoint: integers.   the dofs above body b as bits, where dofs are so few; none of the world
CS_FN unsigned body_bits(const Tree& t, int b) { return b < 0 ? 0 : unsigned(t.body_dofs[b]); }
#else
constexpr int kBits = 0;
constexpr bool kHoldsRows = false;
CS_FN unsigned body_bits(const Tree&, int) { return 0; }
#endif

// no adjoint: integers.   how many bits are set
CS_FN int bit_count(unsigned x) {
#ifdef __CUDA_ARCH__
  return __popc(x);
#else
  return __builtin_popcount(x);
#endif
}
// no adjoint: integers.   the place of dof d among those that are set
CS_FN int bit_place(unsigned x, int d) { return bit_count(x & ((1u << d) - 1)); }
// no adjoint: integers.   takes the lowest of the bits that are set away, and returns its place
CS_FN int take_bit(unsigned& x) {
  unsigned without = x & (x - 1);
  int d = bit_count((x ^ without) - 1);
  x = without;
  return d;
}

// no adjoint: see above.   f(b) of every body, after that of its parent
template <class F> CS_FN void outwards(const Tree& t, const F& f) {
  if constexpr (kTeam == 1) {
    for (int b = 0; b < t.nb; b++) f(b);
  } else {
    CS_SHORT (int k = 0; k < t.levels; k++) {
      const int* body = t.level_body + t.level_adr[k];
      share(t.level_adr[k + 1] - t.level_adr[k], [&](int i) { f(body[i]); });
    }
  }
}
// no adjoint: linear.   x_parent += x_b, from the leaves on
template <template <class> class X, class T> CS_FN void inwards(const Tree& t, X<T>* x) {
  if constexpr (kTeam == 1) {
    for (int b = t.nb - 1; b >= 0; b--)
      if (t.parent[b] >= 0) x[t.parent[b]] += x[b];
  } else {
    constexpr int n = sizeof(X<T>) / sizeof(T);
    share(n, [&](int k) {
      T* at = reinterpret_cast<T*>(x) + k;
      CS_SHORT (int b = t.nb - 1; b >= 0; b--)
        if (t.parent[b] >= 0) at[n * t.parent[b]] += at[n * b];
    });
  }
}

// no adjoint: see above.   from the leaves on: own(b) of every body, after child(c, b) of each of its children, the last one first
template <class F, class G> CS_FN void leaves_first(const Tree& t, const F& own, const G& child) {
  if constexpr (kTeam == 1) {
    for (int b = t.nb - 1; b >= 0; b--) {
      own(b);
      if (t.parent[b] >= 0) child(b, t.parent[b]);
    }
  } else {
    CS_SHORT (int k = t.levels - 1; k >= 0; k--) {
      const int *body = t.level_body + t.level_adr[k], *next = t.level_body + t.level_adr[k + 1];
      int n = k + 1 < t.levels ? t.level_adr[k + 2] - t.level_adr[k + 1] : 0;
      share(t.level_adr[k + 1] - t.level_adr[k], [&](int i) {
        CS_SHORT (int c = n - 1; c >= 0; c--)
          if (t.parent[next[c]] == body[i]) child(next[c], body[i]);
        own(body[i]);
      });
    }
  }
}

// no adjoint: integers.   is dof a above dof d?
CS_FN bool is_above(const Tree& t, int a, int d) {
  return t.dof_depth[a] < t.dof_depth[d] && t.row_dof[t.row_adr[d] + t.dof_depth[a]] == a;
}

// no adjoint: see above.   L and D_inv from the rows of H in tr.L
template <class T> CS_FN void eliminate_held(const Tree& t, const Trace<T>& tr) {
  constexpr int n = kBits ? kBits : 1;
  T own[n];
  int k = team_rank();
  CS_STRIP (int d = 0; d < n; d++) own[d] = k <= t.dof_depth[d] ? tr.L[t.row_adr[d] + k] : T(0);
  CS_STRIP (int d = n - 1; d >= 0; d--) {
    T D_inv = tr.D_inv[d] = T(1) / of_rank(own[d], t.dof_depth[d]);
    // beyond a row's end there is what nobody reads
    CS_STRIP (int i = d - 1; i >= 0; i--)
      if (is_above(t, i, d)) own[i] = fnma(of_rank(own[d], t.dof_depth[i]) * D_inv, own[d], own[i]);
    if (k <= t.dof_depth[d]) tr.L[t.row_adr[d] + k] = k < t.dof_depth[d] ? own[d] * D_inv : own[d];
  }
  team_wait();
}
// no adjoint: see above.   the same, by threads that have one of a dof's ancestors each
template <class T> CS_FN void eliminate_shared(const Tree& t, const Trace<T>& tr) {
  CS_SHORT (int d = t.nv - 1; d >= 0; d--) {
    const int* row = t.row_dof + t.row_adr[d];
    T *Ld = tr.L + t.row_adr[d], D_inv = tr.D_inv[d] = T(1) / Ld[t.dof_depth[d]];
    share(t.dof_depth[d], [&](int k) {
      T a = Ld[k] * D_inv, *Li = tr.L + t.row_adr[row[k]];
      CS_SHORT (int m = 0; m <= k; m++) Li[m] = fnma(a, Ld[m], Li[m]);
    });
    share(t.dof_depth[d], [&](int k) { Ld[k] *= D_inv; });
  }
}

// A number of every dof, as threads have them
template <class T> struct HeldDofs {
  static constexpr int R = kBits ? (kBits + kTeam - 1) / kTeam : 1;
  T at[R];
  CS_FN static int dof(int r) { return r * kTeam + team_rank(); }
  CS_FN T of(int d) const { return of_rank(at[d / kTeam], d % kTeam); }
};
// no adjoint: memory
template <class T> CS_FN HeldDofs<T> held_dofs(const Tree& t, const T* x) {
  HeldDofs<T> y;
  team_wait();
  CS_STRIP (int r = 0; r < y.R; r++) y.at[r] = y.dof(r) < t.nv ? x[y.dof(r)] : T(0);
  return y;
}
// no adjoint: memory
template <class T> CS_FN void keep_dofs(const Tree& t, const HeldDofs<T>& y, T* x) {
  CS_STRIP (int r = 0; r < y.R; r++)
    if (y.dof(r) < t.nv) x[y.dof(r)] = y.at[r];
  team_wait();
}
// no adjoint: integers.   bits of the dofs above d
CS_FN unsigned bits_above(const Tree& t, int d) {
  unsigned bits = 0;
  CS_STRIP (int a = 0; a < kBits; a++) bits |= is_above(t, a, d) ? 1u << a : 0;
  return bits;
}
// no adjoint: integers.   and beneath it
CS_FN unsigned bits_beneath(const Tree& t, int d) {
  unsigned bits = 0;
  CS_STRIP (int b = 0; b < kBits; b++) bits |= is_above(t, d, b) ? 1u << b : 0;
  return bits;
}
// no adjoint: linear.   L^-T x
template <class T> CS_FN void first_half_held(const Tree& t, const Trace<T>& tr, HeldDofs<T>& x) {
  const T* L[HeldDofs<T>::R];
  CS_STRIP (int r = 0; r < x.R; r++) L[r] = tr.L + (x.dof(r) < t.nv ? t.dof_depth[x.dof(r)] : 0);
  CS_STRIP (int d = kBits - 1; d > 0; d--) {
    T by = x.of(d);
    CS_STRIP (int r = 0; r < x.R; r++)
      if (bits_above(t, d) >> r * kTeam >> team_rank() & 1) x.at[r] = fnma(L[r][t.row_adr[d]], by, x.at[r]);
  }
}
// no adjoint: linear.   L^-1 x
template <class T> CS_FN void second_half_held(const Tree& t, const Trace<T>& tr, HeldDofs<T>& x) {
  const T* L[HeldDofs<T>::R];
  CS_STRIP (int r = 0; r < x.R; r++) L[r] = tr.L + (x.dof(r) < t.nv ? t.row_adr[x.dof(r)] : 0);
  CS_STRIP (int d = 0; d < kBits - 1; d++) {
    T by = x.of(d);
    CS_STRIP (int r = 0; r < x.R; r++)
      if (bits_beneath(t, d) >> r * kTeam >> team_rank() & 1) x.at[r] = fnma(L[r][t.dof_depth[d]], by, x.at[r]);
  }
}
// no adjoint: linear.   x = H^-1 x
template <class T> CS_FN void solve_held(const Tree& t, const Trace<T>& tr, T* x) {
  HeldDofs<T> y = held_dofs(t, x);
  first_half_held(t, tr, y);
  CS_STRIP (int r = 0; r < y.R; r++) y.at[r] = y.dof(r) < t.nv ? y.at[r] * tr.D_inv[y.dof(r)] : T(0);
  second_half_held(t, tr, y);
  keep_dofs(t, y, x);
}

CS_END
