// Equality: the equality rows of one step, and the factor that eliminates them. EqualityBars: the same for the adjoint.
//
// Rows are those of items (ties, couplings) in the order of elimination. J and its halves are kept on an item's own dofs only: row r of
// item i, its k-th dof: item_J[i] + (r - item_row[i]) * (dofs of i) + k.
#pragma once
#include "trace.h"

CS_BEGIN

// Where the ties are in one configuration
template <class T> struct Ties {
  Vec3<T>* p;     // [2 n_tie] origins of frames a and b, from the origin of their body's tree, or in the world   by ties
  Quat<T>* quat;  // [2 n_tie] orientation                                                                   by ties
  Mat3<T>* R;     // [2 n_tie] the same as a matrix                                                          by ties
  Force<T>*F_a,
      *F_b;  // [ne] what a unit of impulse does, about the origins of both trees                           by equality_errors
  T* phi;    // [ne] error, m or rad                                                                    by equality_errors
};

template <class T> struct Equality {
  Ties<T> now,
      after;  // at the start of the step; where a projection starts from                                  by equality, project
  T* b;       // [ne] J v* + target                                                                        by equality
  T *softness, *floor;  // [ne] R = softness + floor                                                                 by equality
  T *J, *Y, *W;         // [item_J] J; left and right half of J H^-1 J^T                                              by equality
  T* L;                 // [diag_adr] A = L D L^T: unit triangles, 1 / D on the diagonals                            by equality
  T* plain;             // [6 ne] scratch: L D of the column that is eliminated
  T* A_rr;  // [ne] diagonal of A                                                                        by equality_factor
  T *lam,
      *total;  // [ne] impulses; with those of the projections                                                                             by constrain
  T *y, *x;    // [ne], [nv] scratch
  T *v, *mu;   // [project + 1, nv], [project, ne] velocities before each projection, its impulses              by project
  Trace<T> at;  // only kinematics: where the projections start                                              by project
};

template <class T> struct EqualityBars {
  Force<T>* frame;  // [2 n_tie] by a rigid displacement of the frame alone, about its tree's origin
  T *J, *w, *R;     // [item_J], [ne] w = -b_bar
  T *phi, *lam;     // [ne]
  Bars<T> at;       // of Equality::at
};

// no adjoint: memory
template <class T> CS_FN Ties<T> ties_map(const Tree& t, Arena<T>& m) {
  Ties<T> e;
  int frames = 2 * t.n_tie;
  e.p = m.template take<Vec3<T>>(frames), e.quat = m.template take<Quat<T>>(frames), e.R = m.template take<Mat3<T>>(frames);
  e.F_a = m.template take<Force<T>>(t.ne), e.F_b = m.template take<Force<T>>(t.ne), e.phi = m.template take<T>(t.ne);
  return e;
}

// no adjoint: memory
template <class T> CS_FN Equality<T> equality_map(const Tree& t, int project, Arena<T>& m) {
  Equality<T> e;
  int ne = t.ne, numbers = t.item_J[t.n_item];
  e.now = ties_map(t, m);
  if (project) e.after = ties_map(t, m);
  e.b = m.template take<T>(ne);
  e.softness = m.template take<T>(ne), e.floor = m.template take<T>(ne);
  e.J = m.template take<T>(numbers), e.Y = m.template take<T>(numbers), e.W = m.template take<T>(numbers);
  e.L = m.template take<T>(t.diag_adr[t.n_item]), e.plain = m.template take<T>(6 * ne), e.A_rr = m.template take<T>(ne);
  e.lam = m.template take<T>(ne), e.total = m.template take<T>(ne), e.y = m.template take<T>(ne), e.x = m.template take<T>(t.nv);
  e.v = m.template take<T>(project ? (project + 1) * t.nv : 0), e.mu = m.template take<T>(project * ne);
  if (project) e.at = trace_map(t, m);
  return e;
}

// no adjoint: memory
template <class T> CS_FN EqualityBars<T> equality_bars_map(const Tree& t, int project, Arena<T>& m) {
  EqualityBars<T> r;
  r.frame = m.template take<Force<T>>(2 * t.n_tie), r.J = m.template take<T>(t.item_J[t.n_item]);
  r.w = m.template take<T>(t.ne), r.R = m.template take<T>(t.ne), r.phi = m.template take<T>(t.ne),
  r.lam = m.template take<T>(t.ne);
  if (project) r.at = bars_map(t, m);
  return r;
}

// no adjoint: memory.   of what is summed up
template <class T> CS_FN void equality_bars_clear(const Tree& t, const EqualityBars<T>& eb) {
  for (int k = 0; k < t.item_J[t.n_item]; k++) eb.J[k] = T(0);
  for (int r = 0; r < t.ne; r++) eb.R[r] = T(0);
}

CS_END
