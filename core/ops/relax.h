// sweep: one pass of projected Gauss-Seidel over the rows:  lambda_r <- Pi(lambda_r - rho_r y_r),  y = A lambda + b.
//
// Two forms of y_r: from the island's dense A, or half-solved (y_r = b_r + Y_r . g + R_r lambda_r with g = sum_s W_s lambda_s), which
// is linear in the rows. A contact's three rows move together (contact_update).
// kinks: a bound, the rim of the cone
#pragma once
#include "delassus.h"
#include "friction.h"

CS_BEGIN

// no adjoint: a sum over rows lo to hi.   Joint rows, which come first, then normals and tangents of contacts, each in a chain of its own: one chain
// would wait for itself, and chains by position would make a lane's sum depend on the empty slots its lane-mates cause
template <class T> CS_FN T dense_dot(const T* a, const T* x, int lo, int hi, int singles) {
  T s = T(0), s0 = T(0), s1 = T(0), s2 = T(0);
  int k = lo;
  for (; k < hi && k < singles; k++) s = fma(a[k], x[k], s);
  if (k < hi && (k - singles) % 3 == 1) s1 = a[k] * x[k], k++;
  if (k < hi && (k - singles) % 3 == 2) s2 = a[k] * x[k], k++;
  for (; k + 2 < hi; k += 3) s0 = fma(a[k], x[k], s0), s1 = fma(a[k + 1], x[k + 1], s1), s2 = fma(a[k + 2], x[k + 2], s2);
  if (k < hi) s0 = fma(a[k], x[k], s0), k++;
  if (k < hi) s1 = fma(a[k], x[k], s1);
  return (s + s0) + (s1 + s2);
}

// no adjoint: integers.   rows of island s
template <class T> CS_FN void island_rows(const Rows<T>& rw, int s, int& first, int& last, int& r0, int& n) {
  first = rw.island_block[s], last = rw.island_block[s + 1], r0 = rw.first_row[first], n = rw.first_row[last] - r0;
}

// contact_update: one contact given its own velocity y, everything else held. Where sticking, lambda - B^-1 y with B its 3 x 3 block of A,
// lies in the cone, it is the answer; else the normal is projected, then both tangents at the velocity that is left
template <class T> struct ContactUpdate {
  T lam[3];
  T y1, y2;  // tangential velocity after the normal has moved
  T stick;   // 1 where it sticks
};
// no adjoint: contact_update_adj is a part of sweep_adj.   A: the block's corner in the island's matrix, rows n apart
template <class T>
CS_FN ContactUpdate<T> contact_update(const Rows<T>& rw, const Options& o, int i, const T* A, int n, const T* lam, Vec3<T> y) {
  int r = rw.first_row[i];
  T mu = rw.block_mu[i], zero = T(0);
  Vec3<T> d = mul(rw.B_inv[i], y), s = {lam[0] - d.x, lam[1] - d.y, lam[2] - d.z};
  auto stick = (s.x > zero) & cone_inside(o, s.y, s.z, mu * s.x);
  T normal = max(fnma(rw.rho[r], y.x, lam[0]), zero), by = normal - lam[0];
  T y1 = fma(A[n], by, y.y), y2 = fma(A[2 * n], by, y.z);
  T p1 = fnma(rw.rho[r + 1], y1, lam[1]), p2 = fnma(rw.rho[r + 1], y2, lam[2]);
  if (!all(stick)) cone_project(o, p1, p2, mu * normal);
  return {{select(stick, s.x, normal), select(stick, s.y, p1), select(stick, s.z, p2)}, y1, y2, select(stick, T(1), zero)};
}
// adjoint: g: bars of the new lambda, zero in lanes that did not move. Leaves y_bar, own_bar (of the old lambda), bars of rho, mu, bound and, of the
// normal's share in y1 and y2, of A; u: the update
template <class T> CS_FN void contact_update_adj(const Rows<T>& rw, const Options& o, int i, const T* A, int n, const T* lam,
                                                 Vec3<T> y, const ContactUpdate<T>& u, Vec3<T> g, const RowBars<T>& rb, T* A_bar,
                                                 Vec3<T>& y_bar, Vec3<T>& own_bar) {
  int r = rw.first_row[i];
  T mu = rw.block_mu[i], rho = rw.rho[r + 1], zero = T(0);
  auto stick = u.stick > T(0.5);
  Vec3<T> held = mul(rw.B_inv[i], g);
  g = {select(stick, zero, g.x), select(stick, zero, g.y), select(stick, zero, g.z)};
  // tangents
  T x = fnma(rw.rho[r], y.x, lam[0]), normal = max(x, zero), by = normal - lam[0];
  Cone<T> c = cone_slope(o, fnma(rho, u.y1, lam[1]), fnma(rho, u.y2, lam[2]), mu * normal);
  T p1 = fma(c.Pxx, g.y, c.Pxy * g.z), p2 = fma(c.Pxy, g.y, c.Pyy * g.z), r_bar = fma(c.cx, g.y, c.cy * g.z);
  T y1 = -rho * p1, y2 = -rho * p2, by_bar = fma(A[n], y1, A[2 * n] * y2);
  rb.rho[r + 1] = fnma(u.y1, p1, rb.rho[r + 1]), rb.rho[r + 2] = fnma(u.y2, p2, rb.rho[r + 2]);
  rb.block_mu[i] = fma(normal, r_bar, rb.block_mu[i]);
  A_bar[n] = fma(y1, by, A_bar[n]), A_bar[2 * n] = fma(y2, by, A_bar[2 * n]);
  // normal
  T n_bar = g.x + fma(mu, r_bar, by_bar);
  auto low = x < zero;
  T x_bar = select(low, zero, n_bar);
  rb.rho[r] = fnma(y.x, x_bar, rb.rho[r]);
  y_bar = {select(stick, -held.x, -rw.rho[r] * x_bar), select(stick, -held.y, y1), select(stick, -held.z, y2)};
  own_bar = {x_bar - by_bar, p1, p2};
}

// sweep: lanes that are not live keep their lambda. change: largest |d lambda| / rho, m/s.   velocity(s, i, r): y of row r, block i, island s;
// moved(i, r, d): row r has changed by d
template <class T, class M, class Velocity, class Moved>
CS_OP void sweep(const Rows<T>& rw, const Options& o, M live, T& change, const Velocity& velocity, const Moved& moved) {
  T* lam = rw.lam;
  auto put = [&](int i, int r, T x) {
    T d = select(live, x - lam[r], T(0));
    lam[r] = select(live, x, lam[r]);
    change = max(change, abs(d) * rw.inv_rho[r]);
    moved(i, r, d);
  };
  for (int i = 0, s = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i];
    if (i == rw.island_block[s + 1]) s++;
    if (rw.kind[i] != kContactRows) {
      put(i, r, min(max(fnma(rw.rho[r], velocity(s, i, r), lam[r]), rw.lo[r]), rw.hi[r]));
      continue;
    }
    int first, last, r0, n;
    island_rows(rw, s, first, last, r0, n);
    Vec3<T> y = {velocity(s, i, r), velocity(s, i, r + 1), velocity(s, i, r + 2)};
    ContactUpdate<T> u = contact_update(rw, o, i, rw.A + rw.island_A[s] + (r - r0) * (n + 1), n, lam + r, y);
    for (int j = 0; j < 3; j++) put(i, r + j, u.lam[j]);
  }
}
// adjoint of one sweep over an island, from lam_bar after it to lam_bar before it, in place.   before, after: lambda; took: lanes that moved
template <class T> CS_OP void sweep_adj(const Rows<T>& rw, const Options& o, int s, const T* before, const T* after, T took,
                                        const RowBars<T>& rb, T* now) {
  int first, last, r0, n;
  island_rows(rw, s, first, last, r0, n);
  auto moved = took > T(0.5);
  const T* A = rw.A + rw.island_A[s];
  T *A_bar = rb.A + rw.island_A[s], *lam_bar = rb.lam + r0, zero = T(0);
  for (int k = 0; k < n; k++) now[k] = after[r0 + k];
  // y_r = b_r + A_r . now
  auto velocity = [&](int k) { return rw.b[r0 + k] + dense_dot(A + k * n, now, 0, n, rw.island_singles[s]); };
  auto velocity_adj = [&](int k, T y_bar) {
    rb.b[r0 + k] += y_bar;
    for (int j = 0; j < n; j++) {
      A_bar[k * n + j] = fma(y_bar, now[j], A_bar[k * n + j]);
      lam_bar[j] = fma(y_bar, A[k * n + j], lam_bar[j]);
    }
  };
  for (int i = last - 1; i >= first; i--) {
    int r = rw.first_row[i], k = r - r0;
    if (rw.kind[i] != kContactRows) {
      now[k] = before[r];
      T y = velocity(k), rho = rw.rho[r], x = fnma(rho, y, now[k]), g = select(moved, lam_bar[k], zero);
      auto low = x<rw.lo[r], high = x> rw.hi[r];
      rb.lo[r] += select(low, g, zero), rb.hi[r] += select(high, g, zero);
      g = select(low | high, zero, g);
      lam_bar[k] = select(moved, g, lam_bar[k]);
      rb.rho[r] = fnma(y, g, rb.rho[r]);
      velocity_adj(k, -rho * g);
      continue;
    }
    for (int j = 0; j < 3; j++) now[k + j] = before[r + j];
    Vec3<T> y = {velocity(k), velocity(k + 1), velocity(k + 2)}, y_bar, own;
    Vec3<T> g = {select(moved, lam_bar[k], zero), select(moved, lam_bar[k + 1], zero), select(moved, lam_bar[k + 2], zero)};
    const T* B = A + k * (n + 1);
    ContactUpdate<T> u = contact_update(rw, o, i, B, n, now + k, y);
    contact_update_adj(rw, o, i, B, n, now + k, y, u, g, rb, A_bar + k * (n + 1), y_bar, own);
    auto stick = moved & (u.stick > T(0.5));
    lam_bar[k] = select(moved, own.x, lam_bar[k]), lam_bar[k + 1] = select(moved, own.y, lam_bar[k + 1]);
    lam_bar[k + 2] = select(moved, own.z, lam_bar[k + 2]);
    // a contact that sticks has forgotten its old lambda: B times the change counts too, so its own columns take the new one
    for (int j = 0; j < 3; j++) now[k + j] = select(stick, u.lam[j], before[r + j]);
    velocity_adj(k, y_bar.x), velocity_adj(k + 1, y_bar.y), velocity_adj(k + 2, y_bar.z);
    for (int j = 0; j < 3; j++) {
      now[k + j] = before[r + j];
      lam_bar[k + j] = select(stick, zero, lam_bar[k + j]);
    }
  }
}

// no adjoint: sweep_adj serves both forms.   with the dense matrices
template <class T, class M> CS_OP void sweep_dense(const Rows<T>& rw, const Options& o, M live, T& change) {
  auto velocity = [&](int s, int, int r) {
    int first, last, r0, n;
    island_rows(rw, s, first, last, r0, n);
    return rw.b[r] + dense_dot(rw.A + rw.island_A[s] + (r - r0) * n, rw.lam + r0, 0, n, rw.island_singles[s]);
  };
  sweep(rw, o, live, change, velocity, [](int, int, T) {});
}

// no adjoint: sweep_adj serves both forms.   without them; g: [nv]
template <class T, class M>
CS_OP void sweep_half_solved(const Tree& t, const Rows<T>& rw, const Options& o, M live, T& change, T* g) {
  for (int d = 0; d < t.nv; d++) g[d] = T(0);
  auto moved = [&](int i, int r, T by) {
    const int* list = rw.list + i * t.nv;
    for (int k = 0; k < rw.list_n[i]; k++) g[list[k]] = fma(rw.W[r * t.nv + list[k]], by, g[list[k]]);
  };
  for (int i = 0; i < rw.count[0]; i++)
    for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++) moved(i, r, rw.lam[r]);
  auto velocity = [&](int, int i, int r) { return rw.b[r] + fma(rw.R[r], rw.lam[r], row_dot(t, rw, i, rw.Y + r * t.nv, g)); };
  sweep(rw, o, live, change, velocity, moved);
}

CS_END
