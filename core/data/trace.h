// Trace: what a step computes on the way, kept for its adjoint. Bars: the same for the adjoint.
//
// Both are carved out of one block of scratch memory that the driver owns; with a null block the arena only counts.
// Frames: everything is in world axes; positions and spatial vectors are about the tree's root body (its `origin`), so
// that float32 stays accurate far from the world's origin.
#pragma once
#ifndef __CUDACC_RTC__
#include <cstddef>
#endif

#include "../base/team.h"
#include "../math/spatial.h"
#include "params.h"

CS_BEGIN

template <class T> struct Arena {
  T* base;
  size_t used;
  template <class V> CS_FN V* take(int count) {
    // pointers among floats: the base is aligned for anything
    constexpr size_t step = alignof(V) > sizeof(T) ? alignof(V) / sizeof(T) : 1;
    used = (used + step - 1) / step * step;
    V* p = reinterpret_cast<V*>(base ? base + used : nullptr);
    used += (size_t(count) * sizeof(V) + sizeof(T) - 1) / sizeof(T);
    return p;
  }
};

template <class T> struct Trace {
  T* q;                       // [nq] normalised coordinates                                        by normalise
  Quat<T>* quat;              // [nb] body orientation                                              by kinematics
  Mat3<T>* R;                 // [nb] the same as a matrix                                          by kinematics
  Vec3<T>* p;                 // [nb] body origin, from the tree's origin, m                        by kinematics
  Vec3<T>* origin;            // [nb] world position of a root body, m (only entries of roots)      by kinematics
  Motion<T>* S;               // [nv] motion of the dof's body per unit of v                        by kinematics
  Motion<T>* v;               // [nb] velocity                                                      by velocity
  Motion<T>* a;               // [nb] acceleration, gravity included                                by inverse_dynamics
  Force<T>* f;                // [nb] force through the joint: sum over the subtree                 by inverse_dynamics
  Inertia<T>* I;              // [nb] inertia about the tree's origin                               by inertia
  Inertia<T>* Ic;             // [nb] composite inertia of the subtree                               by composite
  T* L;                       // [nm] rows of H, then its factor L (sparse form)                    by factor
  T* D_inv;                   // [nv] 1 / D                                                         by factor
  ArticulatedInertia<T>* IA;  // [nb] (articulated form)                                    by factor
  Force<T>* U;                // [nv] IA S (articulated form)                               by factor
  T* D;                       // [nv] damping, with that of actuators                               by actuate
  T* acc;                     // [nv] joint accelerations; in step_adj those with contact           by motion
  T* tau;                     // [nv] joint forces, right-hand sides                                scratch
};

template <class T> struct Bars {
  Force<T>* X;    // [nb] by a rigid displacement of body b alone, about the tree's origin
  Force<T>* S;    // [nv]
  Force<T>* v;    // [nb]
  Force<T>* a;    // [nb]
  Motion<T>* f;   // [nb]
  Inertia<T>* I;  // [nb]
  T* q;           // [nv] tangent coordinates
  T* u;           // [nv] the adjoint's solution of H u = acc_bar
  T* D;           // [nv]
};

// no adjoint: memory
template <class T> CS_FN Trace<T> trace_map(const Tree& t, Arena<T>& m) {
  Trace<T> r;
  bool sparse = t.form == kSparse;
  r.q = m.template take<T>(t.nq);
  r.quat = m.template take<Quat<T>>(t.nb);
  r.R = m.template take<Mat3<T>>(t.nb);
  r.p = m.template take<Vec3<T>>(t.nb);
  r.origin = m.template take<Vec3<T>>(t.nb);
  r.S = m.template take<Motion<T>>(t.nv);
  r.v = m.template take<Motion<T>>(t.nb);
  r.a = m.template take<Motion<T>>(t.nb);
  r.f = m.template take<Force<T>>(t.nb);
  r.I = m.template take<Inertia<T>>(t.nb);
  r.Ic = m.template take<Inertia<T>>(t.nb);
  r.L = m.template take<T>(sparse ? t.nm : 0);
  r.D_inv = m.template take<T>(t.nv);
  r.IA = m.template take<ArticulatedInertia<T>>(sparse ? 0 : t.nb);
  r.U = m.template take<Force<T>>(sparse ? 0 : t.nv);
  r.D = m.template take<T>(t.nv);
  r.acc = m.template take<T>(t.nv);
  r.tau = m.template take<T>(t.nv);
  return r;
}

// no adjoint: memory
template <class T> CS_FN Bars<T> bars_map(const Tree& t, Arena<T>& m) {
  Bars<T> r;
  r.X = m.template take<Force<T>>(t.nb);
  r.S = m.template take<Force<T>>(t.nv);
  r.v = m.template take<Force<T>>(t.nb);
  r.a = m.template take<Force<T>>(t.nb);
  r.f = m.template take<Motion<T>>(t.nb);
  r.I = m.template take<Inertia<T>>(t.nb);
  r.q = m.template take<T>(t.nv);
  r.u = m.template take<T>(t.nv);
  r.D = m.template take<T>(t.nv);
  return r;
}

// no adjoint: memory
template <class T> CS_FN void bars_clear(const Tree& t, const Bars<T>& bar) {
  share(t.nb, [&](int b) {
    bar.X[b] = bar.v[b] = bar.a[b] = zero_force<T>();
    bar.I[b] = {T(0), zero3<T>(), {T(0), T(0), T(0), T(0), T(0), T(0)}};
  });
  share(t.nv, [&](int d) { bar.S[d] = zero_force<T>(), bar.q[d] = bar.D[d] = T(0); });
}

CS_END
