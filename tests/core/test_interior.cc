// interior.h, interior_pairs.h: against closed forms and tightly converged sweeps, over redundant rows and masses of six orders
// of magnitude; lanes against scalars; the adjoint against Dual, central differences and that of the natural map.
#include "row_problem.h"
using namespace test;

using D = Dual<double>;

// both solvers go far below the tolerance where they can; what is left is rounding over the softest direction
constexpr double kAgree = 1e-8;
// lambda by hand
constexpr double kByHand = 1e-12;
// Dual takes Newton's last step at a residual of 1e-10 m/s and less; differences over 2e-6 of numbers that are good to 1e-13
constexpr double kDual = 1e-7, kDifferences = 1e-5;

// ---- values ------------------------------------------------------------------------------------------------------------------
// a ball of 2 kg that falls onto the floor and moves along it: sticks or slides
static void check_by_hand() {
  for (bool planar : {false, true})
    for (double speed : {0.3, -3.0}) {
      Problem p(planar, 0, 1, planar ? 2 : 3);
      for (int r = 0; r < p.n; r++) p.J[r * p.nv + r] = 1, p.D[r] = 0.5;
      p.b[0] = -1, p.b[1] = speed, p.mu[0] = 0.5;
      Solved s(p, options(p, 8));
      CHECK(s.solved());
      double stick = -2 * speed, most = 0.5 * 2;
      CHECK_NEAR(s.rw.lam[0], 2, kByHand);
      CHECK_NEAR(s.rw.lam[1], std::fabs(stick) < most ? stick : most, kByHand);
      if (!planar) CHECK_NEAR(s.rw.lam[2], 0, kByHand);
    }
  // rows on one dof each: within its bounds, beyond them, without any, held; a limit that opens
  Problem p(false, 5, 0, 5);
  for (int r = 0; r < 5; r++) p.J[r * 5 + r] = 1;
  p.b = {-0.5, -3, 7, 0.3, 1};
  p.lo = {-1, -1, -kUnbounded, 0.2, 0}, p.hi = {1, 2, kUnbounded, 0.2, kUnbounded};
  Solved s(p, options(p, 4));
  double expected[] = {0.5, 2, -7, 0.2, 0};
  CHECK(s.solved());
  for (int r = 0; r < 5; r++) CHECK_NEAR(s.rw.lam[r], expected[r], kByHand);
  // nothing to do: no steps
  p.b = {0, 0, 0, 0, 1};
  Solved still(p, options(p, 4));
  CHECK(still.solved() && still.rw.status->sweeps == 0 && still.rw.lam[3] == 0.2);
}

struct Count {
  int solved = 0, all = 0, compared = 0, same = 0;
  double steps = 0;
};

// the velocities that tightly converged sweeps end with
static void check_sweeps(const Problem& p, double cone, Count& count) {
  Solved s(p, options(p, cone));
  count.all++, count.solved += s.solved(), count.steps += s.rw.status->sweeps;
  // what the status says is the residual of lambda, whichever way it came
  double residual = s.rw.status->residual;
  CHECK_NEAR(natural_residual(s.rw, s.o), residual, 1e-15);
  CHECK((residual <= s.o.tolerance) == s.solved());
  Memory<double> other(p, options(p, cone, 4000));
  other.load(p);
  for (int i = 0; i < p.blocks(); i++) block_rho(other.rw, i, other.rw.A, p.n, 0);
  relax(p.t, other.rw, other.o, false);
  if (!s.solved() || other.rw.status->solved < 0.5) return;
  count.compared++;
  double apart = 0;
  for (int r = 0; r < p.n; r++) {
    double d = 0;
    for (int k = 0; k < p.n; k++) d += s.rw.A[r * p.n + k] * (s.rw.lam[k] - other.rw.lam[k]);
    apart = std::fmax(apart, std::fabs(d));
  }
  count.same += apart < kAgree;
}

static void check_values() {
  for (double cone : {4.0, 8.0, 4.5, 2.0})  // 4.5: a square; 2: planar
    for (double spread : {0.0, 3.0})
      for (double dofs : {1.3, 0.5}) {
        Random rng(11);
        Count count;
        for (int k = 0; k < 40; k++)
          check_sweeps(random_problem(cone == 2, rng.below(4), 1 + rng.below(20), dofs, spread, rng), cone, count);
        // measured: all, and 98% of those with masses over six orders of magnitude and twice as many rows as dofs; 9 to 16 steps
        CHECK(count.solved >= (spread > 0 && dofs < 1 ? 38 : 40));
        CHECK(count.compared >= 36 && count.steps < 20 * count.all);
        // with friction there may be several solutions
        CHECK(count.same >= (spread > 0 && dofs < 1 ? count.compared - 1 : count.compared));
      }
}

// too few steps: the best lambda so far, its residual, and no claim
static void check_unsolved(Random& rng) {
  Problem p = random_problem(false, 2, 6, 0.5, 0, rng);
  Solved s(p, options(p, 4, 2)), good(p, options(p, 4));
  CHECK(!s.solved() && s.rw.status->sweeps == 2 && good.solved());
  CHECK(s.rw.status->residual > s.o.tolerance && s.rw.status->residual < 10);
  double residual = s.rw.status->residual;
  CHECK_NEAR(natural_residual(s.rw, s.o), residual, 1e-15);
}

// float: as close as its rounding allows
static void check_float(Random& rng) {
  for (int k = 0; k < 20; k++) {
    Problem p = random_problem(k % 2, rng.below(3), 1 + rng.below(8), 1.3, 0, rng);
    Options o = options(p, 4);
    Solved good(p, o);
    o.tolerance = 1e-5;
    Memory<float> s(p, o);
    s.load(p), s.solve();
    CHECK(s.rw.status->solved > 0.5f);
    for (int r = 0; r < p.n; r++) {
      double apart = 0;
      for (int j = 0; j < p.n; j++) apart += p.A(r, j) * (double(s.rw.lam[j]) - good.rw.lam[j]);
      CHECK_NEAR(apart, 0, 1e-3);
    }
  }
}

// ---- lanes -------------------------------------------------------------------------------------------------------------------
template <class E, int N> static void check_lanes(double cone, int steps, double tolerance, Random& rng) {
  using P = Pack<E, N>;
  int singles = rng.below(3), most = 6;
  std::vector<Problem> lanes;
  for (int l = 0; l < N; l++) lanes.push_back(random_problem(cone == 2, singles, rng.below(most + 1), 0.7, 1, rng));
  Problem all = random_problem(cone == 2, singles, most, 0.7, 1, rng);
  Options o = options(all, cone, steps);
  o.tolerance = tolerance;
  Memory<P> pack(all, o);
  for (int l = 0; l < N; l++) pack.load(lanes[l], l);
  pack.solve();
  for (int l = 0; l < N; l++) {
    const Problem& p = lanes[l];
    Memory<E> one(p, o, -7);
    one.load(p), one.solve();
    CHECK(lane(pack.rw.status->residual, l) == one.rw.status->residual &&
          lane(pack.rw.status->sweeps, l) == one.rw.status->sweeps);
    CHECK(lane(pack.rw.status->solved, l) == one.rw.status->solved);
    for (int r = 0; r < p.n; r++) CHECK(lane(pack.rw.lam[r], l) == one.rw.lam[r]);
    for (int r = p.n; r < all.n; r++) CHECK(lane(pack.rw.lam[r], l) == 0);
  }
}

// two islands in one world, or both in one: the same numbers. Which rows share an island depends on lane-mates
static void check_islands(Random& rng) {
  Problem a = random_problem(false, 2, 3, 0.7, 0, rng), b = random_problem(false, 0, 4, 0.7, 1, rng), both(false, 2, 7, 1);
  Solved x(a, options(a, 4)), y(b, options(b, 4));
  Memory<double> apart(both, options(both, 4)), together(both, options(both, 4));
  int n = both.n;
  for (Memory<double>* m : {&apart, &together}) {
    auto& rw = m->rw;
    bool two = m == &apart;
    if (two) {
      rw.count[2] = 2, rw.island_block[1] = a.blocks(), rw.island_block[2] = both.blocks(), rw.island_A[1] = a.n * a.n;
      rw.island_A[2] = a.n * a.n + b.n * b.n, rw.island_singles[1] = 0;
    }
    for (int r = 0; r < n; r++) {
      const Rows<double>& from = r < a.n ? x.rw : y.rw;
      int k = r < a.n ? r : r - a.n;
      rw.b[r] = from.b[k], rw.lo[r] = from.lo[k], rw.hi[r] = from.hi[k], rw.rho[r] = from.rho[k], rw.inv_rho[r] = from.inv_rho[k];
    }
    for (int i = 0; i < both.blocks(); i++) rw.valid[i] = 1, rw.block_mu[i] = i < a.blocks() ? a.mu[i] : b.mu[i - a.blocks()];
    for (int k = 0; k < n * n && !two; k++) rw.A[k] = 0;
    for (int i = 0; i < a.n; i++)
      for (int k = 0; k < a.n; k++) rw.A[two ? i * a.n + k : i * n + k] = x.rw.A[i * a.n + k];
    for (int i = 0; i < b.n; i++)
      for (int k = 0; k < b.n; k++) rw.A[two ? a.n * a.n + i * b.n + k : (a.n + i) * n + a.n + k] = y.rw.A[i * b.n + k];
    interior(rw, m->o);
    CHECK(rw.status->solved == 1);
  }
  for (int r = 0; r < n; r++) CHECK(apart.rw.lam[r] == together.rw.lam[r]);
  CHECK(apart.rw.status->residual == together.rw.status->residual && apart.rw.status->sweeps == together.rw.status->sweeps);
}

// ---- adjoint -----------------------------------------------------------------------------------------------------------------
// a direction in which everything moves that a problem depends on: A by the masses
static Problem direction(const Problem& p, Random& rng) {
  Problem d = p;
  d.b = rng.vector(p.n), d.D = rng.vector(p.nv, -0.5, 0.5), d.lo.assign(p.n, 0.0), d.hi = d.lo;
  for (double& x : d.mu) x = x > 0 ? rng.uniform() : 0;
  for (int i = 0; i < p.singles; i++) {
    if (std::fabs(p.hi[i]) < 1e20) d.hi[i] = rng.uniform();
    if (std::fabs(p.lo[i]) < 1e20) d.lo[i] = p.lo[i] == p.hi[i] ? d.hi[i] : rng.uniform();
  }
  return d;
}

// lam_bar of something that rows do to velocities: of redundant rows this is what is determined
static Vector velocity_bar(const Problem& p, Random& rng) {
  Vector u = rng.vector(p.nv), g(p.n, 0.0);
  for (int r = 0; r < p.n; r++)
    for (int d = 0; d < p.nv; d++) g[r] += p.J[r * p.nv + d] * u[d];
  return g;
}

// the derivative along d by the adjoint of the natural map
static double by_adjoint(const Problem& p, const Problem& d, const Vector& g, Solved& s) {
  const Rows<double>& rw = s.rw;
  const RowBars<double>& rb = s.rb;
  for (int r = 0; r < p.n; r++) rb.z[r] = g[r], rb.lo[r] = rb.hi[r] = 0;
  for (int i = 0; i < p.blocks(); i++) rb.block_mu[i] = 0;
  natural_residual(rw, s.o);
  natural_slope(rw, s.o, 0, 0.0);
  natural_adj(rw, s.o, 0, rb);
  double sum = 0;
  for (int r = 0; r < p.n; r++) {
    double y = d.b[r];  // of dA lambda + db
    for (int k = 0; k < p.n; k++) y += (d.A(r, k)) * rw.lam[k];
    sum += rb.lo[r] * d.lo[r] + rb.hi[r] * d.hi[r] - rb.w[r] * y;
    CHECK(std::isfinite(rb.w[r]));
  }
  for (int i = 0; i < p.blocks(); i++) sum += rb.block_mu[i] * d.mu[i];
  return sum;
}

static double by_dual(const Problem& p, const Problem& d, const Vector& g, const Options& o) {
  Memory<D> s(p, o);
  s.load(p);
  for (int r = 0; r < p.n; r++) {
    s.rw.b[r].tangent = d.b[r], s.rw.lo[r].tangent = d.lo[r], s.rw.hi[r].tangent = d.hi[r];
    for (int k = 0; k < p.n; k++) s.rw.A[r * p.n + k].tangent = d.A(r, k);
  }
  for (int i = 0; i < p.blocks(); i++) s.rw.block_mu[i].tangent = d.mu[i];
  s.solve();
  double sum = 0;
  for (int r = 0; r < p.n; r++) sum += g[r] * s.rw.lam[r].tangent;
  return sum;
}

// one-sided and central; false at a kink
static bool by_differences(Problem p, const Problem& d, const Vector& g, const Options& o, double& out) {
  auto at = [&](double h) {
    Problem q = p;
    for (int r = 0; r < p.n; r++) q.b[r] += h * d.b[r], q.lo[r] += h * d.lo[r], q.hi[r] += h * d.hi[r];
    for (int i = 0; i < p.blocks(); i++) q.mu[i] += h * d.mu[i];
    for (int k = 0; k < p.nv; k++) q.D[k] += h * d.D[k];
    Solved s(q, o);
    double sum = 0;
    for (int r = 0; r < p.n; r++) sum += g[r] * s.rw.lam[r];
    return sum;
  };
  double h = 1e-6, left = at(-h), here = at(0), right = at(h);
  out = (right - left) / (2 * h);
  return std::fabs(right + left - 2 * here) / h < 1e-3 * (1 + std::fabs(out));
}

static void check_adj() {
  int smooth = 0, all = 0;
  for (double cone : {4.0, 8.0, 4.5, 2.0})
    for (double dofs : {1.3, 0.5})
      for (int k = 0; k < 12; k++, all++) {
        Random rng(1000 * int(2 * cone) + int(10 * dofs) + 7 * k);
        Problem p = random_problem(cone == 2, rng.below(4), 1 + rng.below(8), dofs, 0.5, rng), d = direction(p, rng);
        Vector g = velocity_bar(p, rng);
        Solved s(p, options(p, cone));
        double differences;
        if (!s.solved() || !by_differences(p, d, g, s.o, differences)) continue;
        smooth++;
        double natural = by_adjoint(p, d, g, s), size = 1 + std::fabs(natural);
        CHECK_NEAR(natural, differences, kDifferences * size);
        CHECK_NEAR(by_dual(p, d, g, s.o), natural, kDual * size);
      }
  CHECK(smooth > 0.9 * all);
}

// touching without pressing, on the rim without slipping, redundant without softness: finite
static void check_kinks() {
  for (bool planar : {false, true}) {
    Problem p(planar, 1, 3, 3);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < p.width; j++) p.J[p.row(1 + i) * 3 + j] = 1;  // all three the same
    p.J[0] = 1, p.lo[0] = -1, p.hi[0] = 1, p.mu = {0, 0.5, 0.5, 0};
    for (double push : {0.0, 1.0}) {
      for (int i = 1; i < 4; i++) p.b[p.row(i)] = -push, p.b[p.row(i) + 1] = 0.5 * push;
      Problem d = p;
      d.D.assign(3, 0.0), d.b.assign(p.n, 1.0), d.lo.assign(p.n, 0.0), d.hi = d.lo;
      for (double& r : p.R) r = 1e-12;
      Solved s(p, options(p, 4));
      CHECK(s.solved());
      Vector g(p.n, 1.0);
      CHECK(std::isfinite(by_adjoint(p, d, g, s)));
    }
  }
}

// memory may hold anything
static void check_dirt(Random& rng) {
  Problem p = random_problem(false, 2, 5, 0.5, 0, rng), d = direction(p, rng);
  Vector g = velocity_bar(p, rng);
  Solved a(p, options(p, 8), 1e30), b(p, options(p, 8), std::nan(""));
  for (int r = 0; r < p.n; r++) CHECK(a.rw.lam[r] == b.rw.lam[r]);
  CHECK(by_adjoint(p, d, g, a) == by_adjoint(p, d, g, b));
}

int main() {
  Random rng(3);
  check_by_hand();
  check_values();
  check_unsolved(rng);
  check_float(rng);
  for (int k = 0; k < 6; k++)
    for (double cone : {4.0, 8.0, 2.0}) {
      // few steps: some lanes are not solved. A tolerance as small as rounding: some can never be
      int steps = k % 3 ? 100 : 12;
      double tight = k % 3 == 2 ? 1e-6 : 1;
      check_lanes<double, 8>(cone, steps, 1e-10 * tight, rng), check_lanes<double, 4>(cone, steps, 1e-10 * tight, rng);
      check_lanes<float, 8>(cone, steps, 1e-5 * tight, rng);
    }
  check_islands(rng);
  check_adj();
  check_kinks();
  check_dirt(rng);
  return report("interior");
}
