// contact_J: J of a contact on its list of dofs, directions of the frame times the velocity of b against a at the contact point,
// per dof.
// saves: J
#pragma once
#include "../data/trace.h"
#include "sides.h"

CS_BEGIN

// Bars of a contact's column, the point that they act at, and what they are worth to the velocity there per speed of the dof
template <class T> struct ColumnBars {
  T j0, j1, j2;
  Vec3<T> x, jv_bar;
};
// no adjoint: a part of contact_J_adj.   of column k of block i, where its sign is known
template <class T> CS_FN ColumnBars<T> column_bars(const Rows<T>& rw, const Span& s, int i, const T* J_bar, int k, T sign) {
  const Mat3<T> C = rw.C[i];
  T j0 = J_bar[k], j1 = J_bar[s.m + k], j2 = rw.width == 3 ? J_bar[2 * s.m + k] : T(0);
  return {j0, j1, j2, point_for(rw.x_a[i], rw.x_b[i], sign), sign * (j0 * C.r0 + j1 * C.r1 + j2 * C.r2)};
}

// no adjoint: a part of contact_J.   the same, where dofs are bits: some columns at a time, all numbers of which are read before
// any is written
template <class T>
CS_FN void contact_J_by_bits(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i, const T* v, Vec3<T>& star, T& now) {
  constexpr int strip = 4;
  Span s = span(rw, i);
  T* J = rw.J + s.J;
  const Mat3<T> C = rw.C[i];
  const Vec3<T> x_a = rw.x_a[i], x_b = rw.x_b[i];
  int a, b;
  block_bodies(t, rw, rw.kind[i], rw.same[i], a, b);
  unsigned of_a = body_bits(t, a), of_b = body_bits(t, b), left = of_a | of_b;
  star = zero3<T>(), now = T(0);
  CS_SHORT (int k = 0; k < s.m; k += strip, J += strip) {
    int d[strip];
    Motion<T> S[strip];
    T v_star[strip], v_now[strip];
    CS_STRIP (int c = 0; c < strip; c++) {
      d[c] = left ? take_bit(left) : d[0];
      S[c] = tr.S[d[c]], v_star[c] = rw.v_star[d[c]], v_now[c] = v[d[c]];
    }
    CS_STRIP (int c = 0; c < strip; c++) {
      if (k + c >= s.m) break;
      T sign = T(int(of_b >> d[c] & 1) - int(of_a >> d[c] & 1));
      Vec3<T> jv = sign * (S[c].v + cross(S[c].w, point_for(x_a, x_b, sign)));
      T j0 = dot(C.r0, jv), j1 = dot(C.r1, jv), j2 = dot(C.r2, jv);
      J[c] = j0, J[s.m + c] = j1;
      if (rw.width == 3) J[2 * s.m + c] = j2;
      now = fma(j0, v_now[c], now);
      star = {fma(j0, v_star[c], star.x), fma(j1, v_star[c], star.y), fma(j2, v_star[c], star.z)};
    }
  }
}

// contact_J: the rows of block i; their velocities star under v*, and now of the normal under v
template <class T>
CS_OP void contact_J(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i, const T* v, Vec3<T>& star, T& now) {
  if constexpr (kBits > 0) return contact_J_by_bits(t, tr, rw, i, v, star, now);
  Span s = span(rw, i);
  T* J = rw.J + s.J;
  const Mat3<T> C = rw.C[i];
  const Vec3<T> x_a = rw.x_a[i], x_b = rw.x_b[i];
  block_signs(t, rw, i, J);
  star = zero3<T>(), now = T(0);
  CS_FOR (int k = 0; k < s.m; k++) {
    int d = s.col[k];
    T sign = J[k], v_star = rw.v_star[d];
    Vec3<T> jv = sign * (tr.S[d].v + cross(tr.S[d].w, point_for(x_a, x_b, sign)));
    T j0 = dot(C.r0, jv), j1 = dot(C.r1, jv);
    now = fma(j0, v[d], now);
    J[k] = j0, J[s.m + k] = j1;
    star.x = fma(j0, v_star, star.x), star.y = fma(j1, v_star, star.y);
    if (rw.width < 3) continue;
    T j2 = dot(C.r2, jv);
    J[2 * s.m + k] = j2, star.z = fma(j2, v_star, star.z);
  }
}
// adjoint: C_bar, x_bar and S_bar from J_bar; teams have S_bar from contact_S_adj
template <class T> CS_OP void contact_J_adj(const Tree& t, const Trace<T>& tr, const Rows<T>& rw, int i, const T* J_bar,
                                            const Bars<T>& bar, Mat3<T>& C_bar, Vec3<T>& x_bar) {
  Span s = span(rw, i);
  if constexpr (kTeam == 1) block_signs(t, rw, i, rw.sigma);
  CS_FOR (int k = 0; k < s.m; k++) {
    int d = s.col[k];
    T sign = kTeam == 1 ? rw.sigma[k] : column_sign(t, rw, i, d);
    ColumnBars<T> y = column_bars(rw, s, i, J_bar, k, sign);
    Vec3<T> jv = sign * (tr.S[d].v + cross(tr.S[d].w, y.x));
    C_bar.r0 = fma(y.j0, jv, C_bar.r0), C_bar.r1 = fma(y.j1, jv, C_bar.r1), C_bar.r2 = fma(y.j2, jv, C_bar.r2);
    if constexpr (kTeam == 1) bar.S[d] += Force<T>{cross(y.x, y.jv_bar), y.jv_bar};
    x_bar += cross(y.jv_bar, tr.S[d].w);
  }
}
// no adjoint: a part of contact_J_adj.   S_bar, by threads that have a column each
template <class T> CS_FN void contact_S_adj(const Tree& t, const Rows<T>& rw, int i, const T* J_bar, const Bars<T>& bar) {
  Span s = span(rw, i);
  share(s.m, [&](int k) {
    ColumnBars<T> y = column_bars(rw, s, i, J_bar, k, column_sign(t, rw, i, s.col[k]));
    bar.S[s.col[k]] += Force<T>{cross(y.x, y.jv_bar), y.jv_bar};
  });
}

CS_END
