// sweep: one pass of projected Gauss-Seidel over the rows:  lambda_r <- Pi(lambda_r - rho_r y_r),  y = A lambda + b.
//
// Two forms of y_r: from the island's dense A, or half-solved (y_r = b_r + Y_r . g + R_r lambda_r with g = sum_s W_s lambda_s), which
// is linear in the rows. A contact's three rows move together (contact_update).
// kinks: a bound, the rim of the cone
#pragma once
#include "delassus.h"
#include "friction.h"

CS_BEGIN

// A sum over an island's rows. Joint rows, which come first, then normals and tangents of contacts, each in a chain of its own: one chain would wait for itself, and
// chains by position would make a lane's sum depend on the empty slots its lane-mates cause
template <class T> struct DenseSum {
  T s = T(0), s0 = T(0), s1 = T(0), s2 = T(0);
  CS_FN T all(int width) const { return width == 2 ? s + (s0 + s1) : (s + s0) + (s1 + s2); }
};
// no adjoint: see above
template <class T> CS_FN T dense_dot(const Rows<T>& rw, int island, const T* a, const T* x, int n) {
  DenseSum<T> sum;
  int singles = rw.island_singles[island];
  auto add = [&](T& to, int k) { to = fma(a[k], x[k], to); };
  CS_FOR (int k = 0; k < singles; k++) add(sum.s, k);
  if (rw.width == 2)
    CS_FOR (int k = singles; k < n; k += 2) add(sum.s0, k), add(sum.s1, k + 1);
  else
    CS_FOR (int k = singles; k < n; k += 3) add(sum.s0, k), add(sum.s1, k + 1), add(sum.s2, k + 2);
  return sum.all(rw.width);
}

// no adjoint: as dense_dot.   of three rows a, n numbers apart, at once: where rows have places of their own, the compiler sees to that
template <class T> CS_FN Vec3<T> dense_dots(const Rows<T>& rw, int island, const T* a, const T* x, int n) {
#ifdef CS_FIXED_ROWS
  return {dense_dot(rw, island, a, x, n), dense_dot(rw, island, a + n, x, n), dense_dot(rw, island, a + 2 * n, x, n)};
#else
  Vec3<T> s = zero3<T>(), s0 = s, s1 = s, s2 = s;
  const T *b = a + n, *c = b + n;
  int singles = rw.island_singles[island];
  auto add = [&](Vec3<T>& to, int k) {
    T by = x[k];
    to = {fma(a[k], by, to.x), fma(b[k], by, to.y), fma(c[k], by, to.z)};
  };
  for (int k = 0; k < singles; k++) add(s, k);
  if (rw.width == 2) {
    for (int k = singles; k < n; k += 2) add(s0, k), add(s1, k + 1);
    return s + (s0 + s1);
  }
  for (int k = singles; k < n; k += 3) add(s0, k), add(s1, k + 1), add(s2, k + 2);
  return (s + s0) + (s1 + s2);
#endif
}

// no adjoint: integers.   rows of island s
template <class T> CS_FN void island_rows(const Rows<T>& rw, int s, int& first, int& last, int& r0, int& n) {
  first = rw.island_block[s], last = rw.island_block[s + 1], r0 = rw.first_row[first], n = rw.first_row[last] - r0;
}

// contact_update: one contact given its own velocity y, everything else held. Where sticking, lambda - B^-1 y with B its 3 x 3 block of A,
// lies in the cone, it is the answer. Else it slides: along the direction in which its tangents leave the cone, normal and friction are solved
// together (a normal alone would go to and fro for ever where friction pushes the contact apart)
//   p = lam_t - rho y_t;   C, c: projection of p and its slope by the cone's size;   E = C + c (mu lam_n - size), friction at the old normal
//   n' = max(0, lam_n + (A_nt . (lam_t - E) - y_n) / (A_nn + mu A_nt . c));   lam_t' = projection of p at mu n'
template <class T> struct ContactUpdate {
  T lam[3];
  T p1, p2, E1, E2, c1, c2;
  T den;    // A_nn + mu A_nt . c, but at least kLeastDen A_nn
  T stick;  // 1 where it sticks
};
constexpr double kLeastDen = 1;

// no adjoint: contact_update_adj is a part of sweep_adj.   A: the block's corner in the island's matrix
template <class T>
CS_FN ContactUpdate<T> contact_update(const Rows<T>& rw, const Options& o, int i, const T* A, const T* lam, Vec3<T> y) {
  int r = rw.first_row[i];
  T mu = rw.block_mu[i], rho = rw.rho[r + 1], zero = T(0), lam2 = third(rw, lam), A2 = third(rw, A);
  Vec3<T> d = mul(rw.B_inv[i], y), s = {lam[0] - d.x, lam[1] - d.y, lam2 - d.z};
  auto stick = (s.x > zero) & (mu > zero) & cone_inside(o, s.y, s.z, mu * s.x);
  ContactUpdate<T> u;
  u.stick = select(stick, T(1), zero);
  u.lam[0] = s.x, u.lam[1] = s.y, u.lam[2] = s.z;
  if (all(stick)) return u;
  u.p1 = fnma(rho, y.y, lam[1]), u.p2 = fnma(rho, y.z, lam2);
  T size = mu * max(lam[0] - y.x / A[0], zero), old = mu * lam[0];
  Cone<T> c = cone_slope(o, u.p1, u.p2, size);
  u.c1 = c.cx, u.c2 = c.cy;
  u.E1 = fma(c.cx, old - size, c.x), u.E2 = fma(c.cy, old - size, c.y);
  u.den = max(fma(mu, fma(A[1], c.cx, A2 * c.cy), A[0]), T(ElementOf<T>(kLeastDen)) * A[0]);
  T v = fma(A[1], lam[1] - u.E1, fma(A2, lam2 - u.E2, -y.x));
  T normal = max(lam[0] + v / u.den, zero), t1 = u.p1, t2 = u.p2;
  cone_project(o, t1, t2, mu * normal);
  u.lam[0] = select(stick, s.x, normal), u.lam[1] = select(stick, s.y, t1), u.lam[2] = select(stick, s.z, t2);
  return u;
}
// adjoint: g: bars of the new lambda, zero in lanes that did not move. Leaves y_bar, own_bar (of the old lambda), bars of rho, mu and of A's corner
template <class T> CS_FN void contact_update_adj(const Rows<T>& rw, const Options& o, int i, const T* A, const T* lam, Vec3<T> y,
                                                 const ContactUpdate<T>& u, Vec3<T> g, const RowBars<T>& rb, T* A_bar,
                                                 Vec3<T>& y_bar, Vec3<T>& own_bar) {
  int r = rw.first_row[i];
  T mu = rw.block_mu[i], rho = rw.rho[r + 1], zero = T(0), one = T(1), lam2 = third(rw, lam), A2 = third(rw, A);
  auto stick = u.stick > T(0.5);
  Vec3<T> held = mul(rw.B_inv[i], g);
  y_bar = {-held.x, -held.y, -held.z}, own_bar = zero3<T>();
  if (all(stick)) return;
  g = {select(stick, zero, g.x), select(stick, zero, g.y), select(stick, zero, g.z)};
  // lam_t'
  Cone<T> c = cone_slope(o, u.p1, u.p2, mu * u.lam[0]);
  T p1 = fma(c.Pxx, g.y, c.Pxy * g.z), p2 = fma(c.Pxy, g.y, c.Pyy * g.z), size_bar = fma(c.cx, g.y, c.cy * g.z);
  T n_bar = fma(mu, size_bar, g.x), mu_bar = u.lam[0] * size_bar;
  // n' = lam_n + v / den where it presses
  T v = fma(A[1], lam[1] - u.E1, fma(A2, lam2 - u.E2, -y.x));
  n_bar = select(lam[0] + v / u.den > zero, n_bar, zero);
  T v_bar = n_bar / u.den, den_bar = -v * v_bar / u.den, coupled = fma(A[1], u.c1, A2 * u.c2);
  auto floored = !(fma(mu, coupled, A[0]) > T(ElementOf<T>(kLeastDen)) * A[0]);
  T E1 = -v_bar * A[1], E2 = -v_bar * A2, free_bar = select(floored, zero, den_bar);
  A_bar[0] += select(floored, T(ElementOf<T>(kLeastDen)) * den_bar, den_bar);
  A_bar[1] += fma(lam[1] - u.E1, v_bar, mu * u.c1 * free_bar);
  if (rw.width == 3) A_bar[2] += fma(lam2 - u.E2, v_bar, mu * u.c2 * free_bar);
  mu_bar = fma(coupled, free_bar, mu_bar);
  // E, c: outside a disc E = c mu lam_n, c = p/|p|; elsewhere c is constant and E moves with p as the projection does
  T size = mu * max(lam[0] - y.x / A[0], zero), cE = fma(u.c1, E1, u.c2 * E2);
  Cone<T> at = cone_slope(o, u.p1, u.p2, size);
  mu_bar = fma(lam[0], cE, mu_bar);
  own_bar = {fma(mu, cE, n_bar), v_bar * A[1], v_bar * A2};
  if (o.sides == 0) {
    T len2 = fma(u.p1, u.p1, u.p2 * u.p2);
    auto out = at.outside > T(0.5), some = len2 > zero;  // p = 0 has no direction, and none that changes
    T inv = select(some, one / sqrt(select(some, len2, one)), zero);
    T b1 = fma(mu * A[1], free_bar, mu * lam[0] * E1), b2 = fma(mu * A2, free_bar, mu * lam[0] * E2),
      along = fma(u.c1, b1, u.c2 * b2);
    p1 += select(out, inv * fnma(along, u.c1, b1), E1), p2 += select(out, inv * fnma(along, u.c2, b2), E2);
  } else {
    p1 += fma(at.Pxx, E1, at.Pxy * E2), p2 += fma(at.Pxy, E1, at.Pyy * E2);
  }
  // p
  own_bar.y += p1, own_bar.z += p2;
  rb.rho[r + 1] = fnma(y.y, p1, rb.rho[r + 1]);
  if (rw.width == 3) rb.rho[r + 2] = fnma(y.z, p2, rb.rho[r + 2]);
  rb.block_mu[i] += mu_bar;
  y_bar = {select(stick, -held.x, -v_bar), select(stick, -held.y, -rho * p1), select(stick, -held.z, -rho * p2)};
}

// no adjoint: a part of relax_adj and relax_large_adj.   rho = 1 / A_rr; of tangents 1 / (max(A_11, A_22) + |A_12|).   A, A_bar: the block's corner,
// n numbers from row to row
template <class T> CS_FN void own_rho_adj(const Rows<T>& rw, const RowBars<T>& rb, int i, const T* A, int n, T* A_bar) {
  int r = rw.first_row[i];
  A_bar[0] = fnma(rw.rho[r] * rw.rho[r], rb.rho[r], A_bar[0]);
  if (rw.kind[i] != kContactRows) return;
  if (rw.width == 2) {
    A_bar[n + 1] = fnma(rw.rho[r + 1] * rw.rho[r + 1], rb.rho[r + 1], A_bar[n + 1]);
    return;
  }
  T g = -rw.rho[r + 1] * rw.rho[r + 1] * (rb.rho[r + 1] + rb.rho[r + 2]);
  auto second = A[2 * (n + 1)] > A[n + 1];
  A_bar[n + 1] += select(second, T(0), g), A_bar[2 * (n + 1)] += select(second, g, T(0));
  A_bar[n + 2] += select(A[n + 2] < T(0), -g, g);
}

// no adjoint: copies.   x of the first three threads of a team
template <class T> CS_FN Vec3<T> of_three(T x) { return {of_rank(x, 0), of_rank(x, 1), of_rank(x, 2)}; }

// sweep: lanes that are not live keep their lambda. change: largest |d lambda| / rho, m/s.   velocity(s, i, r): y of row r, block i, island s;
// velocities(s, i, r): of a contact's three rows from r on; moved(i, d): the rows of block i have changed by d[0], ..
template <class T, class M, class Velocity, class Velocities, class Moved>
CS_OP void sweep(const Tree& t, const Rows<T>& rw, const Options& o, M live, T& change, const Velocity& velocity,
                 const Velocities& velocities, const Moved& moved) {
  T* lam = rw.lam;
  auto put = [&](int r, T x) {
    T d = select(live, x - lam[r], T(0));
    lam[r] = select(live, x, lam[r]);
    change = max(change, abs(d) * rw.inv_rho[r]);
    return d;
  };
  CS_FOR (int i = 0, s = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i];
    if (i == rw.island_block[s + 1]) s++;
    if (rw.kind[i] != kContactRows) {
      T lo, hi;
      row_bounds(rw, i, lam, lo, hi);
      T d[3] = {put(r, min(max(fnma(rw.rho[r], velocity(s, i, r), lam[r]), lo), hi)), T(0), T(0)};
      moved(i, d);
      continue;
    }
    int first, last, r0, n;
    island_rows(rw, s, first, last, r0, n);
    Vec3<T> y = rw.width == 3 ? velocities(s, i, r) : Vec3<T>{velocity(s, i, r), velocity(s, i, r + 1), T(0)};
    const T* A = t.large ? rw.A + 9 * i : rw.A + rw.island_A[s] + (r - r0) * (n + 1);
    ContactUpdate<T> u = contact_update(rw, o, i, A, lam + r, y);
    T d[3];
    CS_FOR (int j = 0; j < rw.width; j++) d[j] = put(r + j, u.lam[j]);
    moved(i, d);
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
  share(n, [&](int k) { now[k] = after[r0 + k]; });
  // y_r = b_r + A_r . now
  auto velocity = [&](int k) { return rw.b[r0 + k] + dense_dot(rw, s, A + k * n, now, n); };
  auto velocity_adj = [&](int k, T y_bar) {
    rb.b[r0 + k] += y_bar;
    share(n, [&](int j) {
      A_bar[k * n + j] = fma(y_bar, now[j], A_bar[k * n + j]);
      lam_bar[j] = fma(y_bar, A[k * n + j], lam_bar[j]);
    });
  };
  for (int i = last - 1; i >= first; i--) {
    int r = rw.first_row[i], k = r - r0;
    if (rw.kind[i] != kContactRows) {
      now[k] = before[r];
      T y = velocity(k), rho = rw.rho[r], x = fnma(rho, y, now[k]), g = select(moved, lam_bar[k], zero), lo, hi;
      row_bounds(rw, i, now - r0, lo, hi);
      // a row whose bounds are one (a motor on a tie) is always at them
      auto high = x > hi;
      auto low = (x < lo) | (!(high | (lo < hi)));
      row_bounds_adj(rw, i, now - r0, select(low, g, zero), select(high, g, zero), rb, rb.lam);
      g = select(low | high, zero, g);
      lam_bar[k] = select(moved, g, lam_bar[k]);
      rb.rho[r] = fnma(y, g, rb.rho[r]);
      velocity_adj(k, -rho * g);
      continue;
    }
    int w = rw.width;
    for (int j = 0; j < w; j++) now[k + j] = before[r + j];
    Vec3<T> y, y_bar, own;
    if (kTeam > 2 && w == 3)
      y = of_three(velocity(k + team_rank() % 3));
    else
      y = {velocity(k), velocity(k + 1), w == 3 ? velocity(k + 2) : zero};
    Vec3<T> g = {select(moved, lam_bar[k], zero), select(moved, lam_bar[k + 1], zero),
                 select(moved, third(rw, lam_bar + k), zero)};
    const T* B = A + k * (n + 1);
    ContactUpdate<T> u = contact_update(rw, o, i, B, now + k, y);
    contact_update_adj(rw, o, i, B, now + k, y, u, g, rb, A_bar + k * (n + 1), y_bar, own);
    auto stick = moved & (u.stick > T(0.5));
    lam_bar[k] = select(moved, own.x, lam_bar[k]), lam_bar[k + 1] = select(moved, own.y, lam_bar[k + 1]);
    if (w == 3) lam_bar[k + 2] = select(moved, own.z, lam_bar[k + 2]);
    // a contact that sticks has forgotten its old lambda: B times the change counts too, so its own columns take the new one
    for (int j = 0; j < w; j++) now[k + j] = select(stick, u.lam[j], before[r + j]);
    velocity_adj(k, y_bar.x), velocity_adj(k + 1, y_bar.y);
    if (w == 3) velocity_adj(k + 2, y_bar.z);
    for (int j = 0; j < w; j++) {
      now[k + j] = before[r + j];
      lam_bar[k + j] = select(stick, zero, lam_bar[k + j]);
    }
  }
}

// no adjoint: sweep_adj serves both forms.   with the dense matrices
template <class T, class M> CS_OP void sweep_dense(const Tree& t, const Rows<T>& rw, const Options& o, M live, T& change) {
  auto velocity = [&](int s, int, int r) {
    int first, last, r0, n;
    island_rows(rw, s, first, last, r0, n);
    return rw.b[r] + dense_dot(rw, s, rw.A + rw.island_A[s] + (r - r0) * n, rw.lam + r0, n);
  };
  auto velocities = [&](int s, int i, int r) {
    if constexpr (kTeam > 2) return of_three(velocity(s, i, r + team_rank() % 3));
    int first, last, r0, n;
    island_rows(rw, s, first, last, r0, n);
    return Vec3<T>{rw.b[r], rw.b[r + 1], rw.b[r + 2]} + dense_dots(rw, s, rw.A + rw.island_A[s] + (r - r0) * n, rw.lam + r0, n);
  };
  sweep(t, rw, o, live, change, velocity, velocities, [](int, const T*) {});
}

// no adjoint: a sum over the columns of a row.   J, Y or W . g
template <class T> CS_FN T col_dot(const Span& s, const T* Y, const T* g) {
  T sum = T(0);
  for (int k = 0; k < s.s; k++) sum = fma(Y[k], g[s.col[k]], sum);
  return sum;
}
// no adjoint: linear.   g = sum of W lam, [nv + ne]
template <class T> CS_OP void half_state(const Tree& t, const Rows<T>& rw, const T* lam, T* g) {
  set(g, n_halves(t), [&](int) { return T(0); });
  for (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    add_rows(s, s.s, rw.W + s.Y, lam + s.r, g);
  }
}

// no adjoint: sweep_adj and large_adj serve both forms.   without them; g: [nv + ne]
template <class T, class M>
CS_OP void sweep_half_solved(const Tree& t, const Rows<T>& rw, const Options& o, M live, T& change, T* g) {
  half_state(t, rw, rw.lam, g);
  auto moved = [&](int i, const T* by) {
    Span s = span(rw, i);
    add_rows(s, s.s, rw.W + s.Y, by, g);
  };
  auto velocity = [&](int, int i, int r) {
    Span s = span(rw, i);
    return rw.b[r] + fma(rw.R[r], rw.lam[r], col_dot(s, rw.Y + s.Y + (r - s.r) * s.s, g));
  };
  auto velocities = [&](int s, int i, int r) {
    if constexpr (kTeam > 2) return of_three(velocity(s, i, r + team_rank() % 3));
    return Vec3<T>{velocity(s, i, r), velocity(s, i, r + 1), velocity(s, i, r + 2)};
  };
  sweep(t, rw, o, live, change, velocity, velocities, moved);
}

CS_END
