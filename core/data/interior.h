// Interior: complementary pairs z >= 0, s >= 0, z s = 0 of the interior-point method (ops/interior_pairs.h), and their steps.
//
// Every block has the same number of places for pairs; one that a block or a lane does not have is marked by a weight of zero:
//   0  z = lam - lo, s = u          1  z = hi - lam, s = v          of a joint row or a normal, y = u - v
//   2  z = gamma, s = zeta          3 + k  z = beta_k, s = sigma_k  of a contact's friction, corner k
#pragma once
#include "options.h"
#include "trace.h"

CS_BEGIN

constexpr int kFirstCorner = 3;  // place of the first corner's pair in a block

// The slope of a contact's friction
template <class T> struct Section {
  T sum, x, y;      // of p_k = beta_k / sigma_k; the mean corner, weighted with p_k
  T part;           // gamma sum / (zeta + gamma sum): how far the mean corner follows mu lam_n
  T Nxx, Nxy, Nyy;  // (1 + M / rho)^-1, M = -d lam_t / d y_t: the identity where it slides, zero where it sticks
};

template <class T> struct Interior {
  T *z, *s;    // [blocks, interior_pairs] impulses, or gamma, m/s; what is complementary to them        by interior
  T *dz, *ds;  // [blocks, interior_pairs] their steps                                                   scratch
  T* cross;    // [blocks, interior_pairs] dz ds of the predictor                                        scratch
  T* weight;   // [blocks, interior_pairs] z s on the central path is weight tau, kg; 0: no such pair    by interior
  int* order;  // [blocks] in the order of their slots                                                   by interior
  Section<T>*
      section;  // [blocks]                                                                               by interior_slope
};

// no adjoint: integers.   places for pairs in a block
CS_FN int interior_pairs(const Options& o) { return kFirstCorner + o.sides; }

// no adjoint: memory
template <class T> CS_FN Interior<T> interior_map(int blocks, const Options& o, Arena<T>& m) {
  Interior<T> x;
  int n = blocks * interior_pairs(o);
  x.z = m.template take<T>(n), x.s = m.template take<T>(n), x.dz = m.template take<T>(n), x.ds = m.template take<T>(n);
  x.cross = m.template take<T>(n), x.weight = m.template take<T>(n), x.section = m.template take<Section<T>>(blocks);
  x.order = m.template take<int>(blocks);
  return x;
}

CS_END
