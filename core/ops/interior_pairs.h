// interior_pairs: complementary pairs of an interior point (de Avila Belbute-Peres et al. 2018, section 3), Newton steps on them.
//
//   a row      z = lam - lo, s = u;   z = hi - lam, s = v;   y = u - v
//   friction   lam_t = sum beta_k d_k, d_k the corners of the polygon;   z = beta_k, s = sigma_k = d_k . y_t + gamma;
//              z = gamma, s = zeta = mu lam_n - sum beta_k
//   all pairs  z > 0, s > 0, z s = weight tau
// In a Newton step everything but lam is eliminated, block by block:  dlam = -W dy + ...,  dy = A dlam.  Scaled by N, so that
// nothing is large,  K dlam = N (1 + W A) dlam = ...,  with
//   a row      N = held = rho d / (1 + rho d),  d = u / (lam - lo) + v / (hi - lam);   N W = rho free,  free = 1 - held
//   friction   N = (1 + M / rho)^-1,  N W = rho (1 - N),  and lam_t follows mu lam_n along part m, scaled:
//              M = sum p_k (d_k - m)(d_k - m)^T + (1 - part) sum p_k m m^T,  p_k = beta_k / sigma_k,  m = sum p_k d_k / sum p_k
// This is K of the natural map (ops/polish.h) with its kinks rounded off.   docs/maths/contact
#pragma once
#include "polish.h"

CS_BEGIN

// Numbers of a pair never fall below this
constexpr double kLeastPair = 1e-25;

// no adjoint: constants.   corner k of the friction polygon of a unit disc; in planar models one end of the interval
template <class T> CS_FN void corner(const Options& o, int k, T& x, T& y) {
  using E = ElementOf<T>;
  double a = o.apothem, h = o.half_edge, nx = o.normal_x[k], ny = o.normal_y[k];
  x = T(E(o.sides == 2 ? 1 - 2 * k : a * nx - h * ny)), y = T(E(o.sides == 2 ? 0 : a * ny + h * nx));
}

// no adjoint: linear.   y = A x + b of island s; without b: A x
template <class T> CS_OP void island_velocity(const Rows<T>& rw, int s, const T* x, const T* b, T* y) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  for (int k = 0; k < n; k++) {
    T sum = dense_dot(rw, s, rw.A + rw.island_A[s] + k * n, x + r0, n);
    y[r0 + k] = b ? b[r0 + k] + sum : sum;
  }
}

// no adjoint: integers.   pairs of block i, one after the other
template <class T> CS_FN int interior_end(const Rows<T>& rw, const Options& o, int i) {
  return i * interior_pairs(o) + (rw.kind[i] == kContactRows ? interior_pairs(o) : 2);
}

// A joint row's or a normal's slope
template <class T> struct RowSlope {
  T free, held;  // 1 - N, N
};
// no adjoint: returns derivatives.   z = 0 marks a row that stays put
template <class T> CS_FN RowSlope<T> interior_row(const Rows<T>& rw, const Options& o, int i) {
  int r = rw.first_row[i], p = i * interior_pairs(o);
  const Interior<T>& ip = rw.ip;
  T zero = T(0), one = T(1);
  auto some = ip.z[p] > zero;
  T lo = ip.s[p] / select(some, ip.z[p], one), hi = ip.s[p + 1] / ip.z[p + 1], d = rw.rho[r] * (lo + hi), inv = one / (one + d);
  return {select(some, inv, zero), select(some, d * inv, one)};
}

// no adjoint: returns derivatives.   M in the frame of its stiffest direction u: else what is soft would drown in rounding
template <class T> CS_OP Section<T> friction_section(const Rows<T>& rw, const Options& o, int i) {
  int at = i * interior_pairs(o), p = at + kFirstCorner;
  const Interior<T>& ip = rw.ip;
  T zero = T(0), one = T(1), x, y, scale = rw.inv_rho[rw.first_row[i] + 1];
  Section<T> g;
  g.sum = g.x = g.y = zero;
  for (int k = 0; k < o.sides; k++) {
    T stiff = ip.z[p + k] / ip.s[p + k];
    corner(o, k, x, y);
    g.sum += stiff, g.x = fma(stiff, x, g.x), g.y = fma(stiff, y, g.y);
  }
  T inv = one / max(g.sum, T(ElementOf<T>(kLeastPair))), gamma = ip.z[at + 2], zeta = ip.s[at + 2],
    den = one / fma(gamma, g.sum, zeta);
  g.x *= inv, g.y *= inv, g.part = gamma * g.sum * den;
  T rest = zeta * g.sum * den, most = rest * fma(g.x, g.x, g.y * g.y), ux = g.x, uy = g.y;
  for (int k = 0; k < o.sides; k++) {
    corner(o, k, x, y);
    T vx = x - g.x, vy = y - g.y, size = ip.z[p + k] / ip.s[p + k] * fma(vx, vx, vy * vy);
    auto more = size > most;
    most = select(more, size, most), ux = select(more, vx, ux), uy = select(more, vy, uy);
  }
  T length = fma(ux, ux, uy * uy);
  auto some = length > zero;
  inv = one / sqrt(select(some, length, one)), ux = select(some, ux * inv, one), uy = select(some, uy * inv, zero);
  T a = fma(g.x, ux, g.y * uy), b = fnma(g.x, uy, g.y * ux), tt = rest * a * a, tn = rest * a * b, nn = rest * b * b;
  for (int k = 0; k < o.sides; k++) {
    corner(o, k, x, y);
    T vx = x - g.x, vy = y - g.y, stiff = ip.z[p + k] / ip.s[p + k];
    a = fma(vx, ux, vy * uy), b = fnma(vx, uy, vy * ux);
    tt = fma(stiff * a, a, tt), tn = fma(stiff * a, b, tn), nn = fma(stiff * b, b, nn);
  }
  // (1 + M / rho)^-1 by elimination of u, then back to the contact's tangents
  T D = one / fma(scale, tt, one), c = scale * tn * D, S = one / (one + scale * fnma(tn, c, nn));
  T N_tn = -c * S, N_tt = fma(c * c, S, D), uu = ux * uy;
  g.Nxx = fma(N_tt * ux, ux, fma(S * uy, uy, T(-2) * N_tn * uu)), g.Nyy = fma(N_tt * uy, uy, fma(S * ux, ux, T(2) * N_tn * uu));
  g.Nxy = fma(N_tt - S, uu, N_tn * fnma(uy, uy, ux * ux));
  return g;
}

// no adjoint: a derivative itself.   K of island s at the pairs, and the sections of its contacts
template <class T> CS_OP void interior_slope(const Rows<T>& rw, const Options& o, int s) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  const T* A = rw.A + rw.island_A[s];
  T *K = rw.K + rw.island_A[s], one = T(1);
  for (int i = first; i < last; i++) {
    int r = rw.first_row[i], k = r - r0;
    RowSlope<T> f = interior_row(rw, o, i);
    T scale = f.free * rw.rho[r];
    for (int j = 0; j < n; j++) K[k * n + j] = scale * A[k * n + j];
    K[k * n + k] += f.held;
    if (rw.kind[i] != kContactRows) continue;
    Section<T> g = rw.ip.section[i] = friction_section(rw, o, i);
    T rho = rw.rho[r + 1], xx = rho * (one - g.Nxx), xy = -rho * g.Nxy, yy = rho * (one - g.Nyy), size = rw.block_mu[i] * g.part;
    const T *A1 = A + (k + 1) * n, *A2 = A1 + n;
    T *K1 = K + (k + 1) * n, *K2 = K1 + n;
    if (rw.width == 2) {
      for (int j = 0; j < n; j++) K1[j] = xx * A1[j];
    } else {
      for (int j = 0; j < n; j++) K1[j] = fma(xx, A1[j], xy * A2[j]), K2[j] = fma(xy, A1[j], yy * A2[j]);
      K2[k] -= size * fma(g.Nxy, g.x, g.Nyy * g.y), K1[k + 2] += g.Nxy, K2[k + 1] += g.Nxy, K2[k + 2] += g.Nyy;
    }
    K1[k] -= size * fma(g.Nxx, g.x, g.Nxy * g.y), K1[k + 1] += g.Nxx;
  }
}

// no adjoint: a part of the iteration.   z s of pair p, and the predictor's dz ds, above the target
template <class T> CS_FN T product_miss(const Interior<T>& ip, int p, T tau) {
  return fma(ip.z[p], ip.s[p], ip.cross[p]) - ip.weight[p] * tau;
}

// By how much the equations of a contact's friction are missed
template <class T> struct Misfit {
  T zeta, x, y;  // mu lam_n - sum beta - zeta;  lam_t - sum beta_k d_k
};
// no adjoint: a part of the iteration
template <class T> CS_FN Misfit<T> friction_misfit(const Rows<T>& rw, const Options& o, int i) {
  int r = rw.first_row[i], at = i * interior_pairs(o), p = at + kFirstCorner;
  Misfit<T> m = {rw.block_mu[i] * rw.lam[r] - rw.ip.s[at + 2], rw.lam[r + 1], third(rw, rw.lam + r)};
  for (int k = 0; k < o.sides; k++) {
    T x, y, beta = rw.ip.z[p + k];
    corner(o, k, x, y);
    m.zeta -= beta, m.x = fnma(beta, x, m.x), m.y = fnma(beta, y, m.y);
  }
  return m;
}

// no adjoint: a part of the iteration.   right-hand side of K dlam of island s, into rw.delta
template <class T> CS_OP void interior_right(const Rows<T>& rw, const Options& o, int s, T tau) {
  const Interior<T>& ip = rw.ip;
  for (int i = rw.island_block[s]; i < rw.island_block[s + 1]; i++) {
    int r = rw.first_row[i], at = i * interior_pairs(o), p = at + kFirstCorner;
    T z = select(ip.z[at] > T(0), ip.z[at], T(1));
    T g = ip.s[at] - ip.s[at + 1] - rw.y[r] - product_miss(ip, at, tau) / z + product_miss(ip, at + 1, tau) / ip.z[at + 1];
    rw.delta[r] = interior_row(rw, o, i).free * rw.rho[r] * g;
    if (rw.kind[i] != kContactRows) continue;
    Section<T> c = ip.section[i];
    Misfit<T> m = friction_misfit(rw, o, i);
    T gamma = ip.z[at + 2], zeta = ip.s[at + 2], sum = T(0), wx = -m.x, wy = -m.y, y1 = rw.y[r + 1], y2 = third(rw, rw.y + r);
    for (int k = 0; k < o.sides; k++) {
      T x, y, sigma = ip.s[p + k];
      corner(o, k, x, y);
      T e = -fma(ip.z[p + k], fma(x, y1, y * y2) + gamma - sigma, product_miss(ip, p + k, tau)) / sigma;
      sum += e, wx = fma(x - c.x, e, wx), wy = fma(y - c.y, e, wy);
    }
    T along = fma(zeta, sum, c.sum * fma(gamma, m.zeta, product_miss(ip, at + 2, tau))) / fma(gamma, c.sum, zeta);
    wx = fma(c.x, along, wx), wy = fma(c.y, along, wy);
    rw.delta[r + 1] = fma(c.Nxx, wx, c.Nxy * wy);
    if (rw.width == 3) rw.delta[r + 2] = fma(c.Nxy, wx, c.Nyy * wy);
  }
}

// no adjoint: a part of the iteration.   steps of a contact's friction, from rw.delta and rw.Ad, its dy
template <class T> CS_OP void friction_steps(const Rows<T>& rw, const Options& o, int i, T tau) {
  int r = rw.first_row[i], at = i * interior_pairs(o), p = at + kFirstCorner;
  const Interior<T>& ip = rw.ip;
  Misfit<T> m = friction_misfit(rw, o, i);
  T inv_rho = rw.inv_rho[r + 1], zero = T(0), one = T(1);
  T gamma = ip.z[at + 2], zeta = ip.s[at + 2], sum = zero;
  T y1 = rw.y[r + 1] + rw.Ad[r + 1], y2 = third(rw, rw.y + r) + third(rw, rw.Ad + r);
  auto some = ip.weight[at + 2] > zero;
  for (int k = 0; k < o.sides; k++) {
    T x, y;
    corner(o, k, x, y);
    ip.ds[p + k] = fma(x, y1, y * y2) + gamma - ip.s[p + k];
    sum -= fma(ip.z[p + k], ip.ds[p + k], product_miss(ip, p + k, tau)) / ip.s[p + k];
  }
  T rest = fma(rw.block_mu[i], rw.delta[r], m.zeta), miss = product_miss(ip, at + 2, tau);
  T dgamma = fma(gamma, sum - rest, -miss) / fma(gamma, ip.section[i].sum, zeta);
  // of z and s the larger is known better: what the smaller does follows from it
  for (int k = 0; k < o.sides; k++) {
    T ds = ip.ds[p + k] + dgamma, z = ip.z[p + k], sigma = ip.s[p + k], over = product_miss(ip, p + k, tau),
      dz = -fma(z, ds, over) / sigma;
    auto larger = z * inv_rho > sigma;
    rest -= dz;
    ip.dz[p + k] = select(some, dz, zero);
    ip.ds[p + k] = select(some, select(larger, -fma(sigma, dz, over) / select(larger, z, one), ds), zero);
  }
  auto larger = gamma > zeta * inv_rho;
  ip.dz[at + 2] = select(some, dgamma, zero);
  ip.ds[at + 2] = select(some, select(larger, -fma(zeta, dgamma, miss) / select(larger, gamma, one), rest), zero);
}

// no adjoint: a part of the iteration.   dlam and steps of all pairs of island s towards tau; K is factored
template <class T> CS_OP void interior_steps(const Rows<T>& rw, const Options& o, int s, T tau) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  const Interior<T>& ip = rw.ip;
  interior_right(rw, o, s, tau);
  lu_solve(rw.K + rw.island_A[s], n, rw.delta + r0);
  island_velocity<T>(rw, s, rw.delta, nullptr, rw.Ad);
  for (int i = first; i < last; i++) {
    int r = rw.first_row[i], p = i * interior_pairs(o);
    for (int j = 0; j < 2; j++) {
      auto some = ip.weight[p + j] > T(0);
      T dz = j ? -rw.delta[r] : rw.delta[r], z = select(some, ip.z[p + j], T(1));
      ip.dz[p + j] = select(some, dz, T(0));
      ip.ds[p + j] = select(some, -fma(ip.s[p + j], dz, product_miss(ip, p + j, tau)) / z, T(0));
    }
    if (rw.kind[i] == kContactRows) friction_steps(rw, o, i, tau);
  }
}

// no adjoint: a part of the iteration.   the longest part of the step that leaves all pairs positive
template <class T> CS_OP T interior_reach(const Rows<T>& rw, const Options& o) {
  const Interior<T>& ip = rw.ip;
  T most = T(ElementOf<T>(kLeastPair)), one = T(1);
  for (int i = 0; i < rw.count[0]; i++)
    for (int p = i * interior_pairs(o); p < interior_end(rw, o, i); p++) {
      auto some = ip.weight[p] > T(0);
      most = max(most, max(-ip.dz[p] / select(some, ip.z[p], one), -ip.ds[p] / select(some, ip.s[p], one)));
    }
  return one / most;
}

// no adjoint: a part of the iteration.   mean of z s / weight after a part of the step. Blocks in the order of their slots: that of islands depends on
// lane-mates, and with it the rounding of the sum
template <class T> CS_OP T interior_tau(const Rows<T>& rw, const Options& o, T part) {
  const Interior<T>& ip = rw.ip;
  T sum = T(0), count = T(0), one = T(1), zero = T(0);
  for (int k = 0; k < rw.count[0]; k++) {
    int i = ip.order[k];
    for (int p = i * interior_pairs(o); p < interior_end(rw, o, i); p++) {
      auto some = ip.weight[p] > zero;
      T product = fma(part, ip.dz[p], ip.z[p]) * fma(part, ip.ds[p], ip.s[p]);
      sum += select(some, product / select(some, ip.weight[p], one), zero), count += select(some, one, zero);
    }
  }
  return sum / max(count, one);
}

// no adjoint: integers.   blocks in the order of their slots
template <class T> CS_OP void interior_order(const Rows<T>& rw) {
  auto before = [&](int i, int j) { return rw.kind[i] != rw.kind[j] ? rw.kind[i] < rw.kind[j] : rw.item[i] < rw.item[j]; };
  for (int i = 0; i < rw.count[0]; i++) {
    int k = i;
    for (; k > 0 && before(i, rw.ip.order[k - 1]); k--) rw.ip.order[k] = rw.ip.order[k - 1];
    rw.ip.order[k] = i;
  }
}

CS_END
