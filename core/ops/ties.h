// ties: the frames of every tie, the error phi of each of its rows, and the wrench F of the row:  d phi/dt = F . (velocity of b - velocity of a).
//
//   frame:    p = p_body + R_body tie_pos,  R = R_body R(tie_quat); on the world without the body
//   slide i   phi = e_i . d, d = p_b - p_a, e the axes of a       F: force along e_i at p_b
//   distance  phi = |d| - length                                 F: force along d / |d| at p_b
//   turn i    phi = 2 sign(w) u_i,  (w, u) = conj(quat_a) quat_b     F: torque about R_a sign(w) (w 1_i + u x 1_i)
//   align     phi = +- e_m . b_n                                 F: torque about +- b_n x e_m
// saves: p, quat, R.   kinks: a weld half a turn off (w = 0: as w > 0); a distance of zero (axis z of a, no derivative)
#pragma once
#include "../data/rows.h"

CS_BEGIN

constexpr double kNoDistance = 1e-9;

template <class T> CS_OP void ties(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Ties<T>& e) {
  for (int f = 0; f < 2 * t.n_tie; f++) {
    int b = f & 1 ? t.tie_b[f / 2] : t.tie_a[f / 2];
    e.p[f] = b < 0 ? th.tie_pos[f] : tr.p[b] + mul(tr.R[b], th.tie_pos[f]);
    e.quat[f] = b < 0 ? th.tie_quat[f] : mul(tr.quat[b], th.tie_quat[f]);
    e.R[f] = matrix(e.quat[f]);
  }
}
// adjoint: a displacement of the body displaces the frame; tie_pos shifts it, tie_quat turns it about its own origin
template <class T> CS_OP void ties_adj(const Tree& t, const Params<T>& th, const Trace<T>& tr, const Ties<T>& e,
                                       const Force<T>* frame_bar, const Bars<T>& bar, const Params<T>& th_bar) {
  for (int f = 0; f < 2 * t.n_tie; f++) {
    int b = f & 1 ? t.tie_b[f / 2] : t.tie_a[f / 2];
    Force<T> F = frame_bar[f];
    if (b >= 0) bar.X[b] += F;
    if (!th_bar.tie_pos) continue;
    th_bar.tie_pos[f] += b < 0 ? F.f : tmul(tr.R[b], F.f);
    quat_normalise_adj(th.tie_quat[f], tmul(e.R[f], F.n - cross(e.p[f], F.f)), th_bar.tie_quat[f]);
  }
}

// no adjoint: bars are rigid displacements, counted from origins that stay where they are
// tie_shift: what leads from coordinates of a's tree to those of b's
template <class T> CS_FN Vec3<T> tie_shift(const Tree& t, const Trace<T>& tr, int k) {
  int a = t.tie_a[k], b = t.tie_b[k];
  if (a >= 0 && b >= 0 && t.root[a] == t.root[b]) return zero3<T>();
  Vec3<T> from = a < 0 ? zero3<T>() : tr.origin[t.root[a]], to = b < 0 ? zero3<T>() : tr.origin[t.root[b]];
  return from - to;
}

// no adjoint: reads a column
template <class T> CS_FN Vec3<T> axis(const Mat3<T>& R, int i) {
  Vec3<T> x, y, z;
  columns(R, x, y, z);
  return i == 0 ? x : i == 1 ? y : z;
}

// One row: error, and what it pushes along (locks below kLockTurn) or turns about
template <class T> struct LockRow {
  T phi;
  Vec3<T> axis;
};

// no adjoint: a sign, chosen like a feature.   (w, u) = conj(quat_a) quat_b of tie k, with w >= 0
template <class T> CS_FN Quat<T> tie_turn(const Ties<T>& e, int k) {
  Quat<T> q = mul(conj(e.quat[2 * k]), e.quat[2 * k + 1]);
  T s = select(q.w < T(0), T(-1), T(1));
  return {s * q.w, s * q.x, s * q.y, s * q.z};
}

// no adjoint: a unit vector
template <class T> CS_FN Vec3<T> unit3(int i) { return {T(i == 0 ? 1 : 0), T(i == 1 ? 1 : 0), T(i == 2 ? 1 : 0)}; }

// lock_row: lock c of tie k.   d: from a to b
template <class T> CS_FN LockRow<T> lock_row(const Params<T>& th, const Ties<T>& e, int k, int c, Vec3<T> d) {
  const Mat3<T>&R_a = e.R[2 * k], &R_b = e.R[2 * k + 1];
  if (c < kLockDistance) return {dot(axis(R_a, c), d), axis(R_a, c)};
  if (c == kLockDistance) {
    T d2 = dot(d, d);
    auto some = d2 > T(ElementOf<T>(kNoDistance * kNoDistance));
    T length = sqrt(select(some, d2, T(1)));
    Vec3<T> n = (T(1) / length) * d, z = axis(R_a, 2);
    return {select(some, length, T(0)) - th.tie_length[k],
            {select(some, n.x, z.x), select(some, n.y, z.y), select(some, n.z, z.z)}};
  }
  if (c < kLockAlign) {
    Quat<T> q = tie_turn(e, k);
    Vec3<T> i = unit3<T>(c - kLockTurn);
    return {T(2) * dot(vec(q), i), mul(R_a, fma(q.w, i, cross(vec(q), i)))};
  }
  int r = (c - kLockAlign) / 2, odd = (c - kLockAlign) % 2, n = (r + 1 + odd) % 3, m = 3 - r - n;
  Vec3<T> e_m = axis(R_a, m), b_n = axis(R_b, n);
  T sign = T(odd ? -1 : 1);
  return {sign * dot(e_m, b_n), sign * cross(b_n, e_m)};
}
// adjoint: to displacements of both frames; x_bar: of the point p_b at which the row pushes
template <class T> CS_FN void lock_row_adj(const Ties<T>& e, int k, int c, Vec3<T> d, const LockRow<T>& y, T phi_bar,
                                           Vec3<T> axis_bar, Vec3<T> x_bar, Force<T>& a_bar, Force<T>& b_bar, T* length_bar) {
  const Mat3<T>&R_a = e.R[2 * k], &R_b = e.R[2 * k + 1];
  Vec3<T> p_a = e.p[2 * k], p_b = e.p[2 * k + 1], d_bar = phi_bar * y.axis;
  if (c < kLockTurn) {
    if (c < kLockDistance) {
      a_bar.n += cross(y.axis, fma(phi_bar, d, axis_bar));
    } else {
      T d2 = dot(d, d), zero = T(0);
      auto some = d2 > T(ElementOf<T>(kNoDistance * kNoDistance));
      T inv = T(1) / sqrt(select(some, d2, T(1)));
      Vec3<T> g = fma(inv, axis_bar - dot(y.axis, axis_bar) * y.axis, d_bar);
      d_bar = {select(some, g.x, zero), select(some, g.y, zero), select(some, g.z, zero)};
      Vec3<T> turned = cross(y.axis, axis_bar);
      a_bar.n += {select(some, zero, turned.x), select(some, zero, turned.y), select(some, zero, turned.z)};
      if (length_bar) length_bar[k] -= phi_bar;
    }
    a_bar -= Force<T>{cross(p_a, d_bar), d_bar};
    b_bar += Force<T>{cross(p_b, d_bar + x_bar), d_bar + x_bar};
    return;
  }
  if (c < kLockAlign) {
    Quat<T> q = tie_turn(e, k);
    Vec3<T> i = unit3<T>(c - kLockTurn), u = vec(q), g = tmul(R_a, axis_bar);
    Vec3<T> u_bar = fma(T(2) * phi_bar, i, cross(i, g));
    Vec3<T> turn = mul(R_a, T(0.5) * (fma(q.w, u_bar, cross(u, u_bar)) - dot(i, g) * u));
    a_bar.n += cross(y.axis, axis_bar) - turn;
    b_bar.n += turn;
    return;
  }
  int r = (c - kLockAlign) / 2, odd = (c - kLockAlign) % 2, n = (r + 1 + odd) % 3, m = 3 - r - n;
  Vec3<T> e_m = axis(R_a, m), b_n = axis(R_b, n);
  T sign = T(odd ? -1 : 1);
  b_bar.n += cross(b_n, sign * fma(phi_bar, e_m, cross(e_m, axis_bar)));
  a_bar.n += cross(e_m, sign * fma(phi_bar, b_n, cross(axis_bar, b_n)));
}

// Where a hinge or slide is, and the wrench of its axis about the origins of both trees
template <class T> struct TieAxisRow {
  T x;
  Force<T> F_a, F_b;
};

// tie_axis: angle about z, or displacement along z, of tie k
template <class T> CS_FN TieAxisRow<T> tie_axis(const Tree& t, const Trace<T>& tr, const Ties<T>& e, int k) {
  Vec3<T> z = axis(e.R[2 * k], 2), shift = tie_shift(t, tr, k), x_b = e.p[2 * k + 1], x_a = x_b - shift, o = zero3<T>();
  if (t.tie_axis[k] == kSlideAxis) return {dot(z, x_a - e.p[2 * k]), {cross(x_a, z), z}, {cross(x_b, z), z}};
  Quat<T> q = tie_turn(e, k);
  T n2 = fma(q.w, q.w, q.z * q.z);
  auto some = n2 > T(ElementOf<T>(kNoDistance));
  T inv = T(1) / sqrt(select(some, n2, T(1)));
  return {quat_log(Quat<T>{inv * q.w, T(0), T(0), inv * q.z}).z, {z, o}, {z, o}};
}
// adjoint: F_a_bar and F_b_bar are motions
template <class T> CS_FN void tie_axis_adj(const Tree& t, const Trace<T>& tr, const Ties<T>& e, int k, T x_bar, Motion<T> F_a_bar,
                                           Motion<T> F_b_bar, Force<T>& a_bar, Force<T>& b_bar) {
  Vec3<T> z = axis(e.R[2 * k], 2), shift = tie_shift(t, tr, k), x_b = e.p[2 * k + 1], x_a = x_b - shift;
  if (t.tie_axis[k] == kSlideAxis) {
    Vec3<T> d = x_a - e.p[2 * k], d_bar = x_bar * z;
    Vec3<T> z_bar = F_a_bar.v + F_b_bar.v + cross(F_a_bar.w, x_a) + cross(F_b_bar.w, x_b) + x_bar * d;
    Vec3<T> b_x = d_bar + cross(z, F_a_bar.w + F_b_bar.w);
    a_bar.n += cross(z, z_bar);
    a_bar -= Force<T>{cross(e.p[2 * k], d_bar), d_bar};
    b_bar += Force<T>{cross(x_b, b_x), b_x};
    return;
  }
  // angle = 2 atan2(u_z, w)
  Quat<T> q = tie_turn(e, k);
  T n2 = fma(q.w, q.w, q.z * q.z);
  auto some = n2 > T(ElementOf<T>(kNoDistance));
  T s = select(some, x_bar / select(some, n2, T(1)), T(0));
  Vec3<T> turn = mul(e.R[2 * k], s * Vec3<T>{fma(q.w, q.y, q.z * q.x), fnma(q.w, q.x, q.z * q.y), n2});
  a_bar.n += cross(z, F_a_bar.w + F_b_bar.w) - turn;
  b_bar.n += turn;
}

CS_END
