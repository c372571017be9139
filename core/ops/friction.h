// friction: project a tangential impulse into the friction cone's cross-section of size r = mu lambda_n.
//
//   disc:    p if |p| <= r, else r p/|p|           polygon: the nearest point; edges at apothem r, half as long as half_edge r
//   2 sides: an interval, -r to r, in planar models; there is no y
// What is shorter than 1e-15 stays inside of its own accord: its length counts as that, since threads of a team take roots without a branch for tiny numbers.
// cone_slope gives the derivative: d out = P dp + c dr, P symmetric.   kinks: the rim; a corner. r = 0 (no normal force, or no friction) counts as
// outside, also at p = 0, where there is no direction and c = 0
#pragma once
#include "../base/team.h"
#include "../data/options.h"
#include "../math/vec3.h"

CS_BEGIN

template <class T> struct Cone {
  T x, y;           // the projection
  T Pxx, Pxy, Pyy;  // by p
  T cx, cy;         // by r
  T outside;        // 1 where p is not inside: the contact slides
};

// no adjoint: cone_slope has its derivative.   the edge of the polygon that p is nearest to: outward normal
template <class T> CS_FN void nearest_edge(const Options& o, T x, T y, T& mx, T& my) {
  using E = ElementOf<T>;
  T best = T(-1);
  mx = T(E(o.normal_x[0])), my = T(E(o.normal_y[0]));
  for (int k = 0; k < o.sides; k++) {
    T nx = T(E(o.normal_x[k])), ny = T(E(o.normal_y[k])), d = fma(nx, x, ny * y);
    auto nearer = d > best;
    best = select(nearer, d, best), mx = select(nearer, nx, mx), my = select(nearer, ny, my);
  }
}

// no adjoint: returns its own derivatives
template <class T> CS_FN Cone<T> cone_slope(const Options& o, T x, T y, T r) {
  using E = ElementOf<T>;
  T zero = T(0), one = T(1), n2 = fma(x, x, y * y);
  auto point = !(r > zero);  // nothing to stand on: the projection is zero, and stays zero
  if (o.sides == 0) {
    auto beyond = n2 > r * r;
    auto out = beyond | point;
    T inv = one / sqrt(select(beyond, n2, one)), s = r * inv, ux = x * inv, uy = y * inv;
    return {select(out, s * x, x),
            select(out, s * y, y),
            select(out, s * fnma(ux, ux, one), one),
            select(out, -s * ux * uy, zero),
            select(out, s * fnma(uy, uy, one), one),
            select(out, ux, zero),
            select(out, uy, zero),
            select(out, one, zero)};
  }
  if (o.sides == 2) {
    auto out = (abs(x) > r) | point;
    T side = select(x > zero, one, select(x < zero, -one, zero));
    return {select(out, select(point, zero, side * r), x),
            zero,
            select(out, zero, one),
            zero,
            zero,
            select(out, side, zero),
            zero,
            select(out, one, zero)};
  }
  T mx, my, a = T(E(o.apothem)), half = T(E(o.half_edge));
  nearest_edge(o, x, y, mx, my);
  auto out = (fma(mx, x, my * y) > a * r) | point;
  T s = fnma(my, x, mx * y), end = half * r, side = select(s > end, half, select(s < -end, -half, zero));
  auto corner = out & ((s > end) | (s < -end) | point), edge = out & !corner, nowhere = point & !(n2 > zero);
  T along = select(corner, side * r, s);
  return {select(out, fnma(along, my, a * r * mx), x),         select(out, fma(along, mx, a * r * my), y),
          select(out, select(edge, my * my, zero), one),       select(edge, -mx * my, zero),
          select(out, select(edge, mx * mx, zero), one),       select(nowhere | !out, zero, fnma(side, my, a * mx)),
          select(nowhere | !out, zero, fma(side, mx, a * my)), select(out, one, zero)};
}

// no adjoint: chooses
template <class T> CS_FN auto cone_inside(const Options& o, T x, T y, T r) {
  if (o.sides == 0) return !(fma(x, x, y * y) > r * r);
  if (o.sides == 2) return !(abs(x) > r);
  T mx, my;
  nearest_edge(o, x, y, mx, my);
  return !(fma(mx, x, my * y) > T(ElementOf<T>(o.apothem)) * r);
}

// no adjoint: cone_slope has its derivative.   the projection alone
template <class T> CS_FN void cone_project(const Options& o, T& x, T& y, T r) {
  if (o.sides == 0) {
    T n2 = fma(x, x, y * y);
    auto out = n2 > r * r;
    if (kTeam == 1 && !any(out)) return;  // threads of a team would wait for each other
    T inv = inverse_root(max(min(select(out, n2, T(1)), T(1e36f)), T(1e-30f)));
    T s = r * inv;
    x = select(out, s * x, x), y = select(out, s * y, y);
    return;
  }
  if (o.sides == 2) {
    x = min(max(x, -r), r);
    return;
  }
  Cone<T> c = cone_slope(o, x, y, r);
  x = c.x, y = c.y;
}

// no adjoint: a part of newton_adj.   second derivative of the disc: the bars of p and r from  z . (P dp + c dr),  dp and dr held fixed
template <class T>
CS_FN void cone_curvature(const Options& o, T x, T y, T r, T zx, T zy, T dx, T dy, T dr, T& x_bar, T& y_bar, T& r_bar) {
  if (o.sides) return;
  T n2 = fma(x, x, y * y), zero = T(0), one = T(1);
  auto out = n2 > r * r;
  T inv = one / sqrt(select(out, n2, one)), ux = x * inv, uy = y * inv, s = r * inv;
  T zu = fma(zx, ux, zy * uy), du = fma(dx, ux, dy * uy), zd = fma(zx, dx, zy * dy), rest = fnma(zu, du, zd);
  // z.(P d) = s (z.d - (z.u)(u.d)),  z.c = z.u;  u = p/|p|
  T bx = fma(dr, zx, -s * fma(zx, du, dx * zu)), by = fma(dr, zy, -s * fma(zy, du, dy * zu)), bu = fma(bx, ux, by * uy);
  x_bar += select(out, fnma(s * rest, ux, fnma(bu, ux, bx)) * inv, zero);
  y_bar += select(out, fnma(s * rest, uy, fnma(bu, uy, by)) * inv, zero);
  r_bar += select(out, rest * inv, zero);
}

CS_END
