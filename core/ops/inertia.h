// inertia: the bodies' inertias in the tree's frame; mass_rows: the mass matrix, row by row along each dof's ancestors.
//
//   c = p + R com;   h = m c;   I = R I_com R^T + m (c.c 1 - c c^T)
//   M_dj = S_j . (Ic_b S_d) for j among d and its ancestors, Ic_b the composite inertia of d's body (Featherstone 2008, 6.2)
// saves: tr.I, tr.Ic.   smooth everywhere
#pragma once
#include "tree_together.h"

CS_BEGIN

template <class T> CS_OP void inertia(const Tree& t, const Params<T>& th, const Trace<T>& tr) {
  share(t.nb, [&](int b) {
    T m = th.mass[b];
    Vec3<T> c = tr.p[b] + mul(tr.R[b], th.com[b]), h = m * c;
    Sym3<T> I = conjugate(tr.R[b], th.inertia[b]);
    I.xx = fma(h.y, c.y, fma(h.z, c.z, I.xx)), I.yy = fma(h.x, c.x, fma(h.z, c.z, I.yy)),
    I.zz = fma(h.x, c.x, fma(h.y, c.y, I.zz));
    I.xy = fnma(h.x, c.y, I.xy), I.xz = fnma(h.x, c.z, I.xz), I.yz = fnma(h.y, c.z, I.yz);
    tr.I[b] = {m, h, I};
  });
}
// no adjoint: the parameters' part of inertia_adj: undo I, then h and c, in body axes
template <class T>
CS_FN void inertia_params_adj(const Params<T>& th, const Trace<T>& tr, int b, const Inertia<T>& I_bar, const Params<T>& th_bar) {
  const Mat3<T>& R = tr.R[b];
  Vec3<T> e[3], com = th.com[b];
  columns(R, e[0], e[1], e[2]);
  // I_com_bar = R^T G R, G the matrix whose stored numbers are I_bar.I (off-diagonals count twice there)
  Sym3<T> G = I_bar.I;
  G.xy = T(0.5) * G.xy, G.xz = T(0.5) * G.xz, G.yz = T(0.5) * G.yz;
  Vec3<T> Ge[3] = {mul(G, e[0]), mul(G, e[1]), mul(G, e[2])};
  Sym3<T> g = {dot(e[0], Ge[0]), dot(e[1], Ge[1]), dot(e[2], Ge[2]), dot(e[1], Ge[0]), dot(e[2], Ge[0]), dot(e[2], Ge[1])};
  th_bar.inertia[b] += Sym3<T>{g.xx, g.yy, g.zz, g.xy + g.xy, g.xz + g.xz, g.yz + g.yz};
  // d(m (c.c 1 - c c^T)) : G = dm (c.k) + 2 m dc.k,  k = tr(G) c - G c
  Vec3<T> c = tr.p[b] + mul(R, com);
  Vec3<T> k = (G.xx + G.yy + G.zz) * c - mul(G, c);
  th_bar.mass[b] += I_bar.m + dot(I_bar.h, c) + dot(c, k);
  th_bar.com[b] += th.mass[b] * tmul(R, I_bar.h + k + k);
}
// adjoint by the pose: the inertia is carried along by a displacement (w, v):  dh = w x h + m v,
// dI = [w] I - I [w] + 2 (h.v) 1 - h v^T - v h^T
template <class T>
CS_OP void inertia_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Bars<T>& bar, const Params<T>& th_bar) {
  share(t.nb, [&](int b) {
    const Inertia<T>&I = tr.I[b], &I_bar = bar.I[b];
    Sym3<T> G = I_bar.I;
    G.xy = T(0.5) * G.xy, G.xz = T(0.5) * G.xz, G.yz = T(0.5) * G.yz;
    // rows of G and of I; tr(([w] I - I [w]) G) = 2 w . axial(I G)
    Vec3<T> g0 = {G.xx, G.xy, G.xz}, g1 = {G.xy, G.yy, G.yz}, g2 = {G.xz, G.yz, G.zz};
    Vec3<T> i0 = {I.I.xx, I.I.xy, I.I.xz}, i1 = {I.I.xy, I.I.yy, I.I.yz}, i2 = {I.I.xz, I.I.yz, I.I.zz};
    Vec3<T> axial = {dot(i1, g2) - dot(i2, g1), dot(i2, g0) - dot(i0, g2), dot(i0, g1) - dot(i1, g0)};
    Vec3<T> k = (G.xx + G.yy + G.zz) * I.h - mul(G, I.h);
    bar.X[b].n += cross(I.h, I_bar.h) + axial + axial;
    bar.X[b].f += fma(I.m, I_bar.h, k + k);
    if (th_bar.mass) inertia_params_adj(th, tr, b, I_bar, th_bar);
  });
}

// composite: Ic_b = I_b + sum over children
template <class T> CS_OP void composite(const Tree& t, const Trace<T>& tr) {
  share(t.nb, [&](int b) { tr.Ic[b] = tr.I[b]; });
  inwards(t, tr.Ic);
}
// adjoint: bar.I holds Ic_bar; what a composite is worth, each of its bodies is worth
template <class T> CS_OP void composite_adj(const Tree& t, const Bars<T>& bar) {
  for (int b = 0; b < t.nb; b++)
    if (t.parent[b] >= 0) bar.I[b] += bar.I[t.parent[b]];
}

// mass_rows: M as dense [nv, nv], both triangles, with armature
template <class T> CS_OP void mass_rows(const Tree& t, const Params<T>& th, const Trace<T>& tr, T* M) {
  for (int i = 0; i < t.nv * t.nv; i++) M[i] = T(0);
  for (int d = 0; d < t.nv; d++) {
    Force<T> F = mul(tr.Ic[t.dof_body[d]], tr.S[d]);
    for (int j = d; j >= 0; j = t.dof_parent[j]) M[d * t.nv + j] = M[j * t.nv + d] = dot(tr.S[j], F);
    M[d * t.nv + d] += th.armature[d];
  }
}
// adjoint: undo M_dj = S_j . F, then F = Ic S_d
template <class T>
CS_OP void mass_rows_adj(const Tree& t, const Trace<T>& tr, const T* M_bar, const Bars<T>& bar, const Params<T>& th_bar) {
  for (int d = 0; d < t.nv; d++) {
    const Inertia<T>& Ic = tr.Ic[t.dof_body[d]];
    Force<T> F = mul(Ic, tr.S[d]);
    Motion<T> F_bar = zero_motion<T>();
    for (int j = d; j >= 0; j = t.dof_parent[j]) {
      T m = j == d ? M_bar[d * t.nv + d] : M_bar[d * t.nv + j] + M_bar[j * t.nv + d];
      bar.S[j] = fma(m, F, bar.S[j]);
      F_bar = fma(m, tr.S[j], F_bar);
    }
    bar.S[d] += mul(Ic, F_bar);
    inertia_form_adj(F_bar, tr.S[d], bar.I[t.dof_body[d]]);
    if (th_bar.armature) th_bar.armature[d] += M_bar[d * t.nv + d];
  }
}

CS_END
