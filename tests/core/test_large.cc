// large.h: small scenes swept without matrices give the impulses and velocities that the ordinary form has after as many sweeps; their adjoint
// is that of the ordinary exact mode, and Dual's.
#include "step_check.h"
using namespace test;

// both forms add up the same numbers in another order, through H^-1; their adjoints pass through up to thirty sweeps
constexpr double kSame = 1e-11, kSameBars = 1e-10;

static Asked sweeps(double iterations, double cone) {
  Asked a = exact(iterations, 0, cone);
  a.tolerance = 1e-300, a.form = 1;  // never done
  return a;
}

// ---- scenes ------------------------------------------------------------------------------------------------------------------
// balls, boxes and other solids on a plane and on each other, and a small robot with limits, dry friction and servos among them
static Structure pile_structure(int form, Random& rng) {
  Structure s;
  s.form = form;
  auto body = [&](int parent, int joint, int shape) {
    s.parent.push_back(parent), s.joint.push_back(joint);
    add_shape(s, int(s.parent.size()) - 1, shape, rng);
    return int(s.parent.size()) - 1;
  };
  add_shape(s, -1, kPlane, rng);
  for (int i = 5 + rng.below(4); i > 0; i--) body(-1, kFree, rng.below(2) ? kBox : 1 + rng.below(5));
  int torso = body(-1, kFree, kBox), hip = body(torso, kBall, kCapsule);
  body(hip, kRevolute, kSphere), body(torso, kPrismatic, kSphere);
  int base = body(-1, kPrismatic, kCapsule);
  body(base, kRevolute, kBox);
  add_pairs(s, false, rng), add_rows(s, Parts(), rng);
  return s;
}

// free bodies stand close together, in layers that touch
static World pile(const Structure& s, uint64_t seed) {
  Random rng(seed);
  World w = scene_world(s, Parts(), rng);
  for (int b = 0, k = 0; b < w.t.nb; b++) {
    if (w.t.joint[b] != kFree) continue;
    double* q = &w.x[w.t.q_adr[b]];
    q[0] = 0.35 * (k % 2) + rng.uniform(-0.1, 0.1), q[1] = 0.35 * (k / 2 % 2) + rng.uniform(-0.1, 0.1), q[2] += 0.4 * (k / 4);
    k++;
  }
  return w;
}

// ---- checks ------------------------------------------------------------------------------------------------------------------
static int check_forward(const World& ordinary, const World& large, const Asked& asked) {
  Run a(ordinary, asked), b(large, asked);
  const Rows<double>&x = a.s.rw, &y = b.s.rw;
  CHECK(x.count[0] == y.count[0] && x.count[1] == y.count[1] && x.count[2] == y.count[2] && x.count[4] == y.count[4]);
  double size = 1, push = 1;
  for (int r = 0; r < x.count[1]; r++) push = std::fmax(push, std::fabs(x.lam[r]));
  for (double v : a.y) size = std::fmax(size, std::fabs(v));
  for (int r = 0; r < x.count[1]; r++) {
    CHECK_NEAR(x.b[r], y.b[r], kSame * size);
    CHECK_NEAR(x.inv_rho[r], y.inv_rho[r], kSame * x.inv_rho[r]);
    CHECK_NEAR(x.lam[r], y.lam[r], kSame * push);
  }
  for (size_t i = 0; i < a.y.size(); i++) CHECK_NEAR(a.y[i], b.y[i], kSame * std::fmax(size, push));
  const Status<double>&s = *x.status, &t = *y.status;
  CHECK(s.sweeps == t.sweeps && s.sweeps == asked.iterations && s.contacts == t.contacts && s.wanted == t.wanted);
  CHECK(s.penetration == t.penetration && s.solved == t.solved);
  CHECK_NEAR(s.residual, t.residual, 1e3 * kSame * (1 + s.residual));  // A lam + b of numbers that cancel
  return x.count[4];
}

static void check_bars(const World& ordinary, const World& large, const Asked& asked, Random& rng) {
  Run a(ordinary, asked), b(large, asked, -1e20);
  Vector g = rng.vector(int(a.y.size())), one(ordinary.size(), 0.0), two(large.size(), 0.0), again(large.size(), 0.0);
  step_of_adj(ordinary, a.s, a.y, g, one), step_of_adj(large, b.s, b.y, g, two);
  double size = 0, apart = 0;
  for (int i = 0; i < ordinary.size(); i++) size += std::fabs(one[i]), apart += std::fabs(one[i] - two[i]);
  CHECK_NEAR(apart, 0, kSameBars * size);
  // asking twice changes nothing
  step_of_adj(large, b.s, b.y, g, again);
  CHECK(two == again);
  // nor does the mode: there is only one
  Asked other = asked;
  other.exact = 0;
  Run c(large, other);
  Vector three(large.size(), 0.0);
  step_of_adj(large, c.s, c.y, g, three);
  CHECK(two == three);
}

// solved before its sweeps are used up: it stops, and says so
static void check_end(const World& large) {
  Asked asked;
  asked.iterations = 20000, asked.tolerance = 1e-9, asked.relative_softness = asked.absolute_softness = 0.1;
  Run a(large, asked);
  const Status<double>& s = *a.s.rw.status;
  CHECK(s.solved == 1 && s.residual <= 1e-9 && s.sweeps < 20000);
  asked.iterations = 1, asked.tolerance = 1e-14;
  CHECK(!Run(large, asked).solved() || a.s.rw.count[4] == 0);
}

// far apart: no rows, free fall and its adjoint
static void check_nothing(World w, Random& rng) {
  for (int b = 0; b < w.t.nb; b++)
    if (w.t.joint[b] == kFree) w.x[w.t.q_adr[b] + 2] += 100 * (b + 1);
  w.theta().shape_pos[0].z -= 50;
  check_adj("large, nothing touches", w, sweeps(3, 0), kSweeps, rng);
}

int main() {
  Random rng(31);
  int contacts = 0, between = 0, trials = 24;
  std::map<std::string, int> seen;
  const double cones[] = {0, 4.5, 5, 8};
  for (int trial = 0; trial < trials; trial++) {
    Structure s = pile_structure(trial % 2, rng);
    s.large = 0;
    uint64_t seed = rng.next();
    World ordinary = pile(s, seed);
    s.large = 1;
    World large = pile(s, seed);
    CHECK(!ordinary.t.large && large.t.large && ordinary.x == large.x);
    CHECK(large.t.max_list >= ordinary.t.max_list);
    for (double iterations : {1, 4, 30}) {
      Asked asked = sweeps(iterations, cones[trial / 2 % 4]);
      contacts += check_forward(ordinary, large, asked);
      check_bars(ordinary, large, asked, rng);
      check_adj("large", large, asked, kSameBars, rng);
    }
    check_fields(large, sweeps(5, cones[trial / 2 % 4]), kSameBars, rng, seen);
    check_end(large), check_nothing(large, rng);
    Run r(large, sweeps(1, 0));
    for (int i = 0; i < r.s.rw.count[0]; i++) {
      if (r.s.rw.kind[i] != kContactRows) continue;
      int a, b;
      cand_bodies(large.t, r.s.rw, r.s.rw.item[i][0], a, b);
      between += a >= 0 && b >= 0;
    }
  }
  CHECK(contacts > 3 * 10 * trials && between > 4 * trials);
  for (const char* name :
       {"hull_vertex", "shape_size", "friction", "softness", "limit_upper", "dry_friction", "armature", "mass"})
    CHECK(seen[name]);
  return report("large");
}
