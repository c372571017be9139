// Complementarity problems without a world, for tests of solvers: contacts and joint rows in random directions.
#pragma once
#include "world.h"
// and, after the headers of a step
#include "../../core/ops/interior.h"

namespace test {

using Vector = std::vector<double>;

// A problem without a world: contacts and joint rows in random directions J of nv dofs with inverse masses D
struct Problem {
  Tree t{};
  int singles, contacts, width, n, nv;
  Vector J, D, b, R, lo, hi, mu;

  Problem(bool planar, int singles, int contacts, int nv)
      : singles(singles), contacts(contacts), width(planar ? 2 : 3), n(singles + width * contacts), nv(nv) {
    t.planar = planar, t.n_dry = singles, t.max_slots = t.max_contacts = contacts;
    J.assign(n * nv, 0.0), D.assign(nv, 1.0), b.assign(n, 0.0), R.assign(n, 0.0), lo.assign(n, 0.0), hi.assign(n, kUnbounded);
    mu.assign(blocks(), 0.0);
  }
  int blocks() const { return singles + contacts; }
  int row(int i) const { return i < singles ? i : singles + width * (i - singles); }
  double A(int r, int s) const {
    double sum = 0;
    for (int d = 0; d < nv; d++) sum += J[r * nv + d] * D[d] * J[s * nv + d];
    return sum;
  }
};

// spread: masses over 10^(+-spread)
inline Problem random_problem(bool planar, int singles, int contacts, double dofs_per_row, double spread, Random& rng) {
  int rows = singles + (planar ? 2 : 3) * contacts;
  Problem p(planar, singles, contacts, std::max(3, int(dofs_per_row * rows)));
  for (double& x : p.J) x = rng.uniform();
  for (double& x : p.D) x = std::pow(10, rng.uniform(-spread, spread));
  Vector v = rng.vector(p.nv);
  for (int r = 0; r < p.n; r++) {
    for (int d = 0; d < p.nv; d++) p.b[r] += p.J[r * p.nv + d] * v[d];
    p.R[r] = 1e-9 * p.A(r, r);
  }
  // friction and servos, a force, a motor without limits, a limit
  for (int i = 0; i < singles; i++) {
    double size = 1 / p.A(i, i);
    int kind = rng.below(5);
    if (kind == 0) p.hi[i] = rng.uniform(0, 1) * size, p.lo[i] = -p.hi[i];
    if (kind == 1) p.lo[i] = rng.uniform(-1, 0) * size, p.hi[i] = rng.uniform(0, 1) * size;
    if (kind == 2) p.lo[i] = p.hi[i] = rng.uniform() * size;
    if (kind == 3) p.lo[i] = -kUnbounded;
  }
  for (int i = singles; i < p.blocks(); i++) {
    p.mu[i] = rng.below(8) ? rng.uniform(0, 0.5) : 0;
    if (rng.below(3) == 0) p.b[p.row(i)] += rng.uniform(0, 2);
  }
  return p;
}

// cone 4.5: a square; in planar problems there is but one
inline Options options(const Problem& p, double cone, double iterations = 100) {
  Asked a;
  a.cone = p.t.planar ? 4 : cone, a.iterations = iterations, a.polish = 12, a.method = kInterior;
  return a.read(p.t);
}

// memory for one problem per lane, all with the same numbers of blocks; lane l has the first `contacts` of them
template <class T> struct Memory {
  using E = ElementOf<T>;
  std::vector<T> memory;
  Rows<T> rw;
  RowBars<T> rb;
  Options o;
  Memory(const Problem& p, const Options& o, double dirt = 1e30) : o(o) {
    Arena<T> count{nullptr, 0};
    map(p.t, count);
    memory.assign(count.used, T(E(dirt)));
    Arena<T> arena{memory.data(), 0};
    map(p.t, arena);
    rw.count[0] = p.blocks(), rw.count[1] = p.n, rw.count[2] = 1, rw.count[3] = 0;
    rw.island_block[0] = rw.island_A[0] = 0, rw.island_block[1] = p.blocks(), rw.island_A[1] = p.n * p.n;
    rw.island_singles[0] = p.singles;
    for (int i = 0; i <= p.blocks(); i++) rw.kind[i] = i < p.singles ? kDryRow : kContactRows, rw.first_row[i] = p.row(i);
    for (int i = 0; i < p.blocks(); i++) rw.item[i] = rw.mark + i;  // slots one after the other
  }
  void map(Tree t, Arena<T>& m) {
    t.max_contacts = t.max_slots;
    rw = rows_map(t, o, true, m), rb = row_bars_map(t, o, m);
  }
  // rows that a lane does not have: nothing acts on them
  void load(const Problem& p, int l = 0) {
    auto set = [&](T& to, double x) { set_lane(to, l, E(x)); };
    for (int r = 0; r < rw.count[1]; r++) {
      bool own = r < p.n, tangent = r >= p.singles && (r - p.singles) % p.width;
      set(rw.b[r], own ? p.b[r] : 0), set(rw.R[r], own ? p.R[r] : 0);
      set(rw.lo[r], own ? p.lo[r] : tangent ? 1e30 : 0), set(rw.hi[r], own ? p.hi[r] : kUnbounded);
      for (int s = 0; s < rw.count[1]; s++) set(rw.A[r * rw.count[1] + s], own && s < p.n ? p.A(r, s) : 0);
    }
    for (int i = 0; i < rw.count[0]; i++) set(rw.valid[i], i < p.blocks()), set(rw.block_mu[i], i < p.blocks() ? p.mu[i] : 0);
  }
  void solve() {
    for (int i = 0; i < rw.count[0]; i++) block_rho(rw, i, rw.A, rw.count[1], 0);
    interior(rw, o);
  }
};

// one problem, solved
struct Solved : Memory<double> {
  Solved(const Problem& p, const Options& o, double dirt = 1e30) : Memory(p, o, dirt) { load(p), solve(); }
  bool solved() const { return rw.status->solved > 0.5; }
};

}  // namespace test
