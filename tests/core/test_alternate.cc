// Rounds that alternate (ops/alternate.h, ops/inverse.h): inverses, the solution where sweeps find one too, and the adjoint of the passes as they ran, against Dual.
#include "step_check.h"
using namespace test;

// K^-1 K is the identity; lanes do not see each other
static void check_inverse(Random& rng) {
  using P = Pack<double, 4>;
  for (int n = 1; n <= 20; n++) {
    std::vector<P> K(n * n);
    std::vector<Pivots<P>> g(n);
    std::vector<Vector> A(4, Vector(n * n)), alone = A;
    for (int l = 0; l < 4; l++) {
      Vector B = rng.vector(n * n);
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
          for (int k = 0; k < n; k++) A[l][i * n + j] += B[i * n + k] * B[j * n + k];
        }
      for (int k = 0; k < n * n; k++) set_lane(K[k], l, A[l][k]);
      std::vector<Pivots<double>> g1(n);
      alone[l] = A[l], invert(alone[l].data(), n, g1.data(), [](int) { return 0.1; });
    }
    invert(K.data(), n, g.data(), [](int) { return P(0.1); });
    for (int l = 0; l < 4; l++)
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
          double sum = 0, size = 0;
          for (int k = 0; k < n; k++)
            sum += (A[l][i * n + k] + (i == k ? 0.1 : 0)) * lane(K[k * n + j], l), size += std::fabs(A[l][i * n + k]);
          CHECK_NEAR(sum, i == j, 1e-13 * size * n / 0.1);
          CHECK(lane(K[i * n + j], l) == lane(K[j * n + i], l));
          CHECK(lane(K[i * n + j], l) == alone[l][i * n + j]);
        }
  }
}

static Asked alternating(Asked a) { return a.form = kAlternate, a; }
// that count, or that were taken back
static int rounds(const Run& r, bool count = true) {
  int n = 0;
  for (int e = 0; r.s.rw.count[0] && r.s.rw.event[e]; e++)
    n += r.s.rw.event[e] >= kAlternateEvent && (r.s.rw.took[e] > 0) == count;
  return n;
}

// as check_adj, however long the way was
static void check_passes(const char* name, const World& w, const Asked& asked, double tol, Random& rng) {
  Run r(w, asked);
  Scratch<D> dual(w.t, 0, asked);
  check_adjoint(
      name, w.x, int(r.y.size()), [&](const Duals& x, Duals& y) { oracle(w, asked, r, x, dual, y); },
      [&](const Vector& g, Vector& x_bar) { step_of_adj(w, r.s, r.y, g, x_bar); }, rng, tol);
}

// the same velocities as sweeps find
static bool check_solution(const World& w, double cone) {
  Asked asked = implicit(cone);
  asked.tolerance = 1e-12;
  Run swept(w, asked), passed(w, alternating(asked));
  if (!swept.solved() || !passed.solved() || !swept.s.rw.count[0]) return false;
  for (int d = 0; d < w.t.nv; d++) CHECK_NEAR(passed.s.rw.dv[d], swept.s.rw.dv[d], 1e-8 * (1 + std::fabs(swept.s.rw.dv[d])));
  return true;
}

// Newton steps that lead away from the solution are taken back, which few worlds need, and rounds that end worse than one before; what stays unsolved is moved into
// its cones, which can change its residual a little
static void check_taken_back(const Parts& parts, Random& rng) {
  int back = 0;
  for (int trial = 0; trial < 1200; trial++) {
    World w = random_scene(parts, trial % 2, rng);
    Params<double> th = w.theta();
    for (int i = 0; i < w.t.ns && trial % 3 < 2; i++) th.friction[i] = trial % 3 ? 4 : 1.5;
    auto residual = [&](int polish, int n = 1) { return Run(w, alternating(exact(3 * n, polish, 0))).s.rw.status->residual; };
    double passed = residual(0), once = residual(1);
    CHECK(residual(3) <= std::max(1.1 * passed, 1e-10));
    for (int n = 2; n <= 4; n++) {
      CHECK(residual(0, n) <= std::max(passed, 1e-10));
      CHECK(residual(1, n) <= std::max(1.1 * once, 1e-10));
    }
    Asked four = alternating(exact(12, trial % 3, 0));
    if (!rounds(Run(w, four), false)) continue;
    back++;
    check_passes("exact, rounds taken back", w, four, kNewton, rng);
  }
  std::printf("rounds are taken back in %d worlds\n", back);
  CHECK(back > 2);
}

int main() {
  Random rng(31);
  check_inverse(rng);
  const double cones[] = {0, 4.5, 3, 8};
  Parts parts;
  check_taken_back(parts, rng);
  std::map<std::string, int> seen;
  int same = 0, open = 0, once = 0, more = 0, solved = 0, swept = 0, trials = 240;
  for (int trial = 0; trial < trials; trial++) {
    World w = random_scene(parts, trial % 2, rng);
    double cone = cones[trial % 4];
    Params<double> th = w.theta();
    for (int i = 0; i < w.t.ns && trial % 3 == 0; i++) th.friction[i] = 1.5;  // hard to solve
    // against sweeps of robots: Coulomb's conditions can have several solutions, and the Newton steps of heaps find another one in two of the worlds
    int chained = w.t.chained;
    w.t.chained = 0;
    same += check_solution(w, cone);
    w.t.chained = chained;
    Asked few = alternating(exact(3, 0, cone)), newton = alternating(exact(3, 3, cone)), two = alternating(exact(6, 1, cone));
    Asked one = alternating(exact(3, 1, cone));  // mostly not enough
    check_passes("exact, passes", w, few, kSweeps, rng);
    check_passes("exact, passes and Newton steps", w, newton, kNewton, rng);
    check_passes("exact, a Newton step", w, one, kNewton, rng);
    check_passes("exact, two rounds", w, two, kNewton, rng);
    open += Run(w, one).s.rw.status->residual > few.tolerance;
    int n = rounds(Run(w, two));
    once += n == 1, more += n == 2;
    Asked asked = implicit(cone);
    swept += Run(w, asked).solved(), solved += Run(w, alternating(asked)).solved();
    if (Run(w, alternating(asked)).solved()) check_passes("implicit", w, alternating(asked), kImplicit, rng);
    if (trial % 8 == 0) check_fields(w, newton, kNewton, rng, seen);
  }
  std::printf("%d of %d worlds are solved, %d by sweeps; the same solution in %d; one round in %d, two in %d\n", solved, trials,
              swept, same, once, more);
  CHECK(same > trials / 2);
  CHECK(open > 5);
  CHECK(once > 20);
  CHECK(more > 20);
  for (const char* name : {"q", "v", "u", "h", "friction", "mass"}) CHECK(seen[name] > 5);
  return report("alternate");
}
