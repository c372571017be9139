// turn_rows.h: torsional and rolling friction, by hand and in random scenes whose pairs have condim 1, 3, 4 and 6: adjoints against Dual in both
// modes, packs, large models. And overlap.h: links of a robot that overlap give way.
#include "lane_check.h"
#include "step_check.h"
using namespace test;

// a step by hand: some ten roundings of numbers around 1
constexpr double kHand = 1e-12;
// One body on a floor: some hundred roundings, and nothing that is redundant
constexpr double kLone = 1e-12;
// A large model adds up the same numbers in another order, through H^-1 and up to thirty sweeps (as in test_large.cc)
constexpr double kSame = 1e-11, kSameBars = 1e-10;

// ---- by hand ----------------------------------------------------------------------------------------------------------------
constexpr double kMass = 2, kInertia = 0.3, kRadius = 0.5, kGravity = 10, kStep = 0.01, kNormal = kStep * kMass * kGravity;

// a ball on the floor; condim of both
static World ball(int floor, int body, Random& rng, int type = kSphere) {
  Structure s;
  s.parent = {-1}, s.joint = {kFree}, s.shape_body = {-1, 0}, s.shape_type = {kPlane, type}, s.pair_a = {0}, s.pair_b = {1};
  s.shape_condim = {floor, body}, s.friction_rule = kMaximum;
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = kMass, th.inertia[0] = {kInertia, kInertia, kInertia, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0};
  th.gravity[0] = {0, 0, -kGravity}, th.shape_quat[0] = th.shape_quat[1] = {1, 0, 0, 0};
  th.shape_size[1] = {kRadius, 0.4, 0.3}, th.friction[0] = 0.8, th.friction[1] = 0.5, th.rest[3] = 1;
  th.torsion[0] = 0.02, th.torsion[1] = 0.05, th.rolling[0] = 0.03, th.rolling[1] = 0.01;
  w.x[2] = type == kSphere ? kRadius : 0.3, w.x[3] = 1, w.x[w.at_h()] = kStep;
  return w;
}
static Asked hard() {
  Asked a;
  a.relative_softness = 0, a.absolute_softness = 1e-30, a.tolerance = 1e-13;
  return a;
}
// v+ of the ball that moves with v
static Vector after(World w, const Vector& v) {
  for (int d = 0; d < 6; d++) w.x[w.at_v() + d] = v[d];
  Run r(w, hard());
  CHECK(r.solved());
  return Vector(r.y.begin() + 7, r.y.begin() + 13);
}

// turning about the normal: it loses h torsion N / I and stops; nothing else changes
static void check_torsion(Random& rng) {
  for (int dim : {4, 6})
    for (double spin : {3.0, -3.0, 0.02, 0.0}) {
      double lost = std::fmin(0.05 * kNormal / kInertia, std::fabs(spin));
      Vector v = after(ball(3, dim, rng), {0, 0, 0, 0, 0, spin});
      CHECK_NEAR(v[5], spin > 0 ? spin - lost : spin + lost, kHand);
      for (int d = 0; d < 5; d++) CHECK_NEAR(v[d], 0, kHand);
    }
  // whichever of the two asks; without being asked for it is not there
  CHECK_NEAR(after(ball(4, 3, rng), {0, 0, 0, 0, 0, 3})[5], 3 - 0.05 * kNormal / kInertia, kHand);
  for (int dim : {1, 3}) CHECK_NEAR(after(ball(dim, 3, rng), {0, 0, 0, 0, 0, 3})[5], 3, kHand);
  // a coefficient of zero is none
  World w = ball(4, 4, rng);
  w.theta().torsion[0] = w.theta().torsion[1] = 0;
  CHECK_NEAR(after(w, {0, 0, 0, 0, 0, 3})[5], 3, kHand);
}

// rolling: w loses h rolling N / (I + m r^2), and v what belongs to it; slowly it stops. A slope's pull below rolling / r of the normal holds
static void check_rolling(Random& rng) {
  double rolls = kInertia + kMass * kRadius * kRadius;
  for (double w : {2.0, 1e-3}) {
    Vector v = after(ball(3, 6, rng), {kRadius * w, 0, 0, 0, w, 0});
    double left = w - std::fmin(0.03 * kNormal / rolls, w);
    CHECK_NEAR(v[4], left, kHand);
    CHECK_NEAR(v[0], kRadius * left, kHand);
  }
  Vector free = after(ball(4, 4, rng), {kRadius * 2, 0, 0, 0, 2, 0});  // condim 4 does not mind
  CHECK_NEAR(free[4], 2, kHand);
  // about each tangent by itself: a product of intervals, not a disc
  Vector both = after(ball(6, 6, rng), {kRadius * 2, -kRadius * 2, 0, 2, 2, 0});
  CHECK_NEAR(both[3], 2 - 0.03 * kNormal / rolls, kHand);
  CHECK_NEAR(both[4], 2 - 0.03 * kNormal / rolls, kHand);
  for (double pull : {0.9, 1.2}) {
    World w = ball(3, 6, rng);
    w.theta().gravity[0].x = pull * 0.03 / kRadius * kGravity;
    double force = kMass * pull * 0.03 / kRadius * kGravity, turn = kStep * (kRadius * force - 0.03 * kMass * kGravity) / rolls;
    CHECK_NEAR(after(w, Vector(6, 0.0))[4], pull < 1 ? 0 : turn, kHand);
  }
}

// sliding and turning at once: friction takes mu N from the point of contact, rolling friction turns the other way
static void check_sliding(Random& rng) {
  Vector v = after(ball(3, 6, rng), {3, 0, 0, 0, 2, 1});
  CHECK_NEAR(v[0], 3 - 0.8 * kNormal / kMass, kHand);
  CHECK_NEAR(v[4], 2 + (0.8 * kRadius - 0.03) * kNormal / kInertia, kHand);
  CHECK_NEAR(v[5], 1 - 0.05 * kNormal / kInertia, kHand);
  v = after(ball(1, 1, rng), {3, 0, 0, 0, 2, 1});  // without friction
  CHECK_NEAR(v[0], 3, kHand);
  CHECK_NEAR(v[4], 2, kHand);
  // in the air there is no normal impulse, and so none against turning
  World up = ball(6, 6, rng);
  up.x[2] += 0.005, up.theta().gravity[0] = {0, 0, 0};
  CHECK_NEAR(after(up, {0, 0, 0.5, 1, 2, 3})[5], 3, kHand);
  // in a plane nobody asks
  Structure s = up.storage.s;
  s.planar = 1;
  CHECK(TreeStorage(s).view().turns == 0);
}

// what the blocks are: turning rows stand between limits and contacts, in the order of contacts and axes, and know theirs
static void check_blocks(Random& rng) {
  Run r(ball(3, 6, rng, kBox), Asked());
  const Rows<double>& rw = r.s.rw;
  int contacts = int(rw.status->contacts);
  CHECK(contacts == 4 && rw.count[0] == 4 * contacts && rw.count[1] == 6 * contacts);
  for (int i = 0; i < rw.count[0]; i++) {
    CHECK(rw.kind[i] == (i < 3 * contacts ? kTurnRow : kContactRows));
    if (i < 3 * contacts) CHECK(rw.axis[i] == i % 3 && rw.over[i] == 3 * contacts + i / 3 && rw.item[i] == rw.item[rw.over[i]]);
  }
}

// the same, leaning a little everywhere: step sizes of sweeps have a kink where both tangents of a ball weigh the same
static World lopsided(int dim, const Vector& v, Random& rng) {
  World w = ball(3, dim, rng);
  Params<double> th = w.theta();
  th.inertia[0] = {0.3, 0.34, 0.27, 0.02, -0.01, 0.015}, th.com[0] = {0.002, -0.001, 0.003};
  th.shape_quat[0] = {1, 0.002, -0.001, 0.4};
  for (int d = 0; d < 6; d++) w.x[w.at_v() + d] = v[d];
  return w;
}

// the adjoint of a lone ball, in both modes, at rest, turning and sliding: nothing is redundant, so nothing but rounding is lost. Impulses too
static void check_lone(Random& rng) {
  const Vector ways[] = {{0, 0, 0, 0, 0, 0}, {kRadius, 0, 0, 0, 1, 2}, {0.01, 0, 0, 0, 0.02, 0.001}, {3, 1, 0, 0.5, 0.2, -2}};
  for (int dim : {4, 6})
    for (const Vector& v : ways)
      for (double exact : {0, 1}) {
        World w = lopsided(dim, v, rng);
        Asked a = exact ? test::exact(400, 4, 0) : implicit(0);
        CHECK(Run(w, a).solved());
        check_adj("a lone ball", w, a, kLone, rng);
        std::map<std::string, int> seen;
        check_fields(w, a, 10 * kLone, rng, seen);
        if (v[5] > 1) CHECK(seen["torsion"]);
        if (dim == 6 && v[4] > 0.1) CHECK(seen["rolling"]);
      }
}

// ---- overlaps ---------------------------------------------------------------------------------------------------------------
// two links of one robot on rails along x, without weight: masses 2 and 3, balls of 0.5 and 0.3 m. deep: how far they overlap, over kDeepOverlap
static World links(double deep, double speed, Random& rng) {
  Structure s;
  s.parent = {-1, 0}, s.joint = {kPrismatic, kPrismatic}, s.shape_body = {0, 1}, s.shape_type = {kSphere, kSphere};
  s.pair_a = {0}, s.pair_b = {1};
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  for (int b : {0, 1}) {
    th.mass[b] = 2 + b, th.inertia[b] = {1, 1, 1, 0, 0, 0}, th.joint_axis[b] = {1, 0, 0};
    th.joint_quat[b] = th.shape_quat[b] = {1, 0, 0, 0}, th.shape_size[b] = {b ? 0.3 : 0.5, 0, 0};
  }
  w.x[1] = 0.8 - deep * kDeepOverlap, w.x[w.at_v() + 1] = speed, w.x[w.at_h()] = kStep;
  return w;
}

// R: none up to kDeepOverlap, lightness (times kYield) from twice that on; so much it gives way
static void check_overlap(Random& rng) {
  for (double deep : {0.0, 0.5, 1.25, 1.5, 2.0, 3.0})
    for (double speed : {0.0, -1.0}) {
      World w = links(deep, speed, rng);
      Run r(w, hard());
      double share = std::fmin(std::fmax(deep - 1, 0), 1), wish = std::fmin(0.2 * deep * kDeepOverlap / kStep, 0.5);
      // (1/m_a + 1/m_b + R) lambda = wish - speed
      CHECK_NEAR(r.s.rw.R[0], kYield * share * (0.5 + 1.0 / 3), kHand);
      CHECK_NEAR(r.y[3], speed + (wish - speed) / (1 + kYield * share), kHand);
      // what is soft anyway is not softer for it
      w.theta().softness[0] = 1e-4;
      CHECK_NEAR(Run(w, hard()).s.rw.R[0], 0.2 * 1e-4 / (kStep * kStep), kHand);
    }
  // nor does anything else give way: what is not of one tree
  World floor = ball(3, 3, rng);
  floor.x[2] -= 3 * kDeepOverlap;
  CHECK_NEAR(Run(floor, hard()).s.rw.R[0], 0, kHand);
}

// two links of a robot whose balls overlap, moving anyhow; the adjoint by everything, gap and masses too
static void check_overlap_adj(Random& rng) {
  std::map<std::string, int> seen;
  for (int trial = 0; trial < 12; trial++)
    for (double exact : {0, 1}) {
      Structure s;
      s.parent = {-1, 0}, s.joint = {kFree, trial % 2 ? kRevolute : kPrismatic}, s.shape_body = {0, 1};
      s.shape_type = {kSphere, kSphere}, s.pair_a = {0}, s.pair_b = {1}, s.shape_condim = {3, trial % 3 ? 3 : 6};
      World w(s, true, rng);
      Params<double> th = w.theta();
      for (int i : {0, 1}) {
        th.shape_size[i] = {rng.uniform(0.2, 0.5), 0, 0}, th.friction[i] = rng.uniform(0.1, 1), th.softness[i] = 0;
        th.restitution[i] = 0, th.torsion[i] = th.rolling[i] = rng.uniform(0, 0.05);
      }
      w.x[w.at_h()] = 0.01;
      Scratch<double> at(w.t);
      View<double> now(w, w.x);
      collide_all(w.t, now.th, now.in, at);
      th.shape_size[1].x += at.rw.gap[0] + kDeepOverlap * rng.uniform(1.1, 1.9);  // as large as it takes
      CHECK(th.shape_size[1].x > 0);
      Asked a = exact ? test::exact(400, 4, 0) : implicit(0);
      check_adj("an overlap", w, a, kLone, rng), check_fields(w, a, 10 * kLone, rng, seen);
    }
  CHECK(seen["mass"] && seen["shape_size"] && seen["q"]);
}

// ---- random scenes ------------------------------------------------------------------------------------------------------------
// which condim the shapes have: one for all, or mixtures in one model. deep: bodies that overlap by one to two margins
static World turning_scene(int trial, const Parts& parts, int form, double deep, Random& rng) {
  Structure s = scene_structure(parts, form, rng);
  const int kinds[5][2] = {{4, 4}, {6, 6}, {3, 6}, {1, 4}, {3, 4}};
  for (size_t i = 0; i < s.shape_body.size(); i++)
    s.shape_condim.push_back(flat_shape(s.shape_type[i]) ? 1 : kinds[trial % 5][rng.below(2)]);
  World w = scene_world(s, parts, rng);
  Params<double> th = w.theta();
  for (int i = 0; i < w.t.ns; i++) th.torsion[i] = rng.uniform(0, 0.1), th.rolling[i] = rng.uniform(0, 0.05);
  for (int b = 0; b < w.t.nb; b++)
    if (w.t.joint[b] == kFree) w.x[w.t.q_adr[b] + 2] -= deep * rng.uniform(0.005, 0.02);
  return w;
}

// how the rows of a run are: held, at a bound, without normal impulse, empty because the pair does not ask
struct States {
  int held = 0, turning = 0, open = 0, empty = 0, mixed = 0;
  void look(const Run& r) {
    const Rows<double>& rw = r.s.rw;
    int none = 0, some = 0;
    for (int i = 0; i < rw.count[0]; i++) {
      if (rw.kind[i] != kTurnRow) continue;
      double lo, hi, lam = rw.lam[rw.first_row[i]];
      row_bounds(rw, i, rw.lam, lo, hi);
      (rw.valid[i] < 0.5 ? none : some)++;
      (rw.valid[i] < 0.5 ? empty : hi <= 0 ? open : lam > lo && lam < hi ? held : turning)++;
    }
    mixed += none && some;
  }
};

static void check_scenes(Random& rng) {
  int converged = 0, trials = 100;
  const double cones[] = {0, 4.5, 5};
  std::map<std::string, int> seen;
  States states;
  for (int trial = 0; trial < trials; trial++) {
    Parts parts;
    parts.limits = parts.dry = parts.servos = trial % 3 == 0, parts.solids = trial / 2 % 2, parts.field = trial % 7 == 4;
    parts.moving_plane = trial % 6 == 3;
    if (trial % 8 == 5) parts.max_contacts = 3;
    World w = turning_scene(trial, parts, trial / 5 % 2, trial % 4 == 3, rng);
    double cone = cones[trial % 3];
    check_adj("exact, three sweeps", w, exact(3, 0, cone), kSweeps, rng);
    check_adj("exact, Newton", w, exact(7, 2, cone), kNewton, rng);
    check_fields(w, exact(6, 1, cone), kNewton, rng, seen);
    check_fallback(w, rng);
    Asked passes = exact(3, 2, cone);
    passes.form = kAlternate;
    check_adj("exact, alternating", w, passes, kNewton, rng);
    Run r(w, implicit(cone));
    if (!r.solved()) continue;
    converged++, states.look(r);
    check_adj("exact, converged", w, exact(400, 4, cone), kNewton, rng);
    check_adj("implicit", w, implicit(cone), kImplicit, rng);
    check_fields(w, implicit(cone), kImplicit, rng, seen);
    check_modes(w, cone, rng);
  }
  CHECK(converged > 0.8 * trials);
  CHECK(states.held > 20 && states.turning > 20 && states.open > 20 && states.empty > 20 && states.mixed > 5);
  CHECK(seen["torsion"] > 10 && seen["rolling"] > 5);
}

// lanes that hold pairs of different condim in one slot, some of them none at all. What trees touch in common (the floor) sums over blocks, whose order
// lane-mates change: so many trials
static void check_packs(Random& rng) {
  for (int trial = 0; trial < 50; trial++) {
    Parts parts;
    parts.limits = parts.dry = parts.servos = trial % 4 == 0, parts.solids = trial % 2, parts.floor_only = trial % 10 == 3;
    World w = turning_scene(trial, parts, trial / 5 % 2, trial % 3 == 1, rng);
    Asked asked;
    asked.relative_softness = 1e-6, asked.cone = trial % 3 == 2 ? 4.5 : 0, asked.exact = trial / 2 % 2, asked.form = trial % 3;
    check_lanes<Pack<double, 8>>(w, asked, rng);
    if (trial % 5 == 0) check_lanes<Pack<float, 16>>(w, asked, rng);
    check_asked(w, asked, rng);
    asked.iterations = 3, asked.polish = 1;  // some worlds are solved, some fall back to the exact mode
    check_lanes<Pack<double, 8>>(w, asked, rng);
  }
}

// the form without matrices: the same impulses after as many sweeps, the same bars, and Dual's
static void check_large(Random& rng) {
  std::map<std::string, int> seen;
  for (int trial = 0; trial < 10; trial++) {
    World scene = turning_scene(trial, Parts(), trial / 5 % 2, 0, rng);
    Structure s = scene.storage.s;
    Vector x = scene.x;
    auto form = [&](int large) {
      s.large = large;
      World w(s, true, rng);
      return w.x = x, w;
    };
    World ordinary = form(0), large = form(1);
    CHECK(!ordinary.t.large && large.t.large && large.t.turns == ordinary.t.turns);
    for (double iterations : {1, 4, 30}) {
      Asked asked = exact(iterations, 0, trial % 2 ? 4.5 : 0);
      asked.tolerance = 1e-300, asked.form = 1;
      Run a(ordinary, asked), b(large, asked, -1e20);
      double push = 1, size = 0, apart = 0;
      for (int r = 0; r < a.s.rw.count[1]; r++) push = std::fmax(push, std::fabs(a.s.rw.lam[r]));
      for (int r = 0; r < a.s.rw.count[1]; r++) CHECK_NEAR(a.s.rw.lam[r], b.s.rw.lam[r], kSame * push);
      Vector g = rng.vector(int(a.y.size())), one(large.size(), 0.0), two(large.size(), 0.0);
      step_of_adj(ordinary, a.s, a.y, g, one), step_of_adj(large, b.s, b.y, g, two);
      for (int i = 0; i < large.size(); i++) size += std::fabs(one[i]), apart += std::fabs(one[i] - two[i]);
      CHECK_NEAR(apart, 0, kSameBars * size);
      check_adj("large", large, asked, kSameBars, rng);
      if (iterations == 4) check_fields(large, asked, kSameBars, rng, seen);
    }
  }
  CHECK(seen["torsion"] && seen["rolling"]);
}

int main() {
  Random rng(41);
  check_torsion(rng), check_rolling(rng), check_sliding(rng), check_blocks(rng), check_lone(rng);
  check_overlap(rng), check_overlap_adj(rng);
  check_scenes(rng), check_packs(rng), check_large(rng);
  return report("turn_rows");
}
