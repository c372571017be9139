// step.h with ties, couplings and servos, together with contacts, limits and dry friction: the adjoint of whole steps against Dual, in both
// modes, with and without projection; field by field; and small worlds by hand.
#include "step_check.h"
#include "tie_scene.h"
using namespace test;

// Through A of the equality rows too, and once more for each projection
constexpr double kRows = 10;

static Asked projected(Asked a, int steps) {
  a.project = steps;
  return a;
}

// a body of 2 kg that slides along z of a tie to the world, which an actuator drives. No gravity, h = 0.01
static World carriage(int type, bool bound, Random& rng) {
  Structure s;
  s.parent = {-1}, s.joint = {kFree}, s.motor_dof = {-1}, s.motor_tie = {0}, s.actuator = {type}, s.bound = {bound ? 0 : -1};
  add_tie(s, -1, 0, {0, 1, 4, 5, 6}, kSlideAxis);
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = 2, th.inertia[0] = {1, 1, 1, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.rest[3] = 1, th.gear[0] = 2;
  th.tie_quat[0] = th.tie_quat[1] = {1, 0, 0, 0}, th.tie_length[0] = 1;
  if (type == kServo) th.gain[0] = 10, th.max_speed[0] = 3;
  if (type == kPosition) th.kp[0] = 50;
  if (type == kPosition || type == kVelocity) th.kd[0] = 5;
  if (bound) th.force_lower[0] = -4, th.force_upper[0] = 4;
  w.x[2] = 0.1, w.x[3] = 1, w.x[w.at_v() + 2] = 0.2, w.x[w.at_h()] = 0.01;
  return w;
}
static double speed_after(const World& w) {
  Asked a;
  a.relative_softness = 0, a.absolute_softness = 1e-30, a.tolerance = 1e-14;
  return Run(w, a).y[w.t.nq + 2];
}
static void check_carriage(Random& rng) {
  double m = 2, h = 0.01, g = 2, z = 0.1, v = 0.2;
  for (double u : {-9.0, 0.0, 0.3, 0.61, 9.0})
    for (bool bound : {false, true}) {
      auto kept = [&](double f) { return bound ? std::fmin(std::fmax(f, -4), 4) : f; };
      for (int type : {kMotor, kPosition, kVelocity, kServo}) {
        if (type == kServo && !bound) continue;
        World w = carriage(type, bound, rng);
        w.x[w.at_u()] = u;
        double after = speed_after(w), force = u;
        // what it would take; springs and dampers act at the end of the step
        if (type == kPosition) force = 50 * (u - g * (z + h * after)) - 5 * g * after;
        if (type == kVelocity) force = 5 * (u - g * after);
        if (type == kServo) force = m / (h * g) * (std::fmin(std::fmax(10 * (u - g * z), -3), 3) / g - v);
        CHECK_NEAR(after, v + h * g * kept(force) / m, 1e-11);
      }
    }
}

// a strong servo's speed depends on the mass by its softness alone
static void check_servo_softness(Random& rng) {
  std::map<std::string, int> seen;
  for (double exact : {0, 1}) {
    World w = carriage(kServo, true, rng);
    w.theta().force_lower[0] = -1e6, w.theta().force_upper[0] = 1e6, w.x[w.at_u()] = 0.3;
    Asked a;
    a.exact = exact;
    check_fields(w, a, kImplicit, rng, seen);
  }
  CHECK(seen["mass"] == 2);
}

// a motor on a tie at rest and without control: the control's derivative is that of its force, in both modes
static void check_motor_at_rest(Random& rng) {
  for (double exact : {0, 1}) {
    World w = carriage(kMotor, false, rng);
    w.x[w.at_v() + 2] = 0;
    Asked a;
    a.exact = exact;
    Run r(w, a);
    Vector g(r.y.size(), 0.0), bar(w.size(), 0.0);
    g[w.t.nq + 2] = 1;
    step_of_adj(w, r.s, r.y, g, bar);
    CHECK_NEAR(bar[w.at_u()], 0.01 * 2 / 2, 1e-8);
  }
}

// two links of a pendulum, one on the world by a point, the other on the first by a hinge constraint
static void check_pendulum(Random& rng) {
  Structure s;
  s.parent = {-1, -1}, s.joint = {kFree, kFree};
  add_tie(s, -1, 0, {0, 1, 2}), add_tie(s, 0, 1, {0, 1, 2, 8, 9}, kHingeAxis);
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  for (int b : {0, 1}) {
    th.mass[b] = 1, th.inertia[b] = {0.1, 0.1, 0.1, 0, 0, 0}, th.joint_quat[b] = {1, 0, 0, 0};
    th.rest[7 * b + 3] = w.x[7 * b + 3] = 1, w.x[7 * b] = 0.5 + b;
    th.tie_pos[2 * b + 1] = {-0.5, 0, 0}, th.tie_length[b] = 1;
  }
  th.tie_pos[2] = {0.5, 0, 0};
  for (int f = 0; f < 4; f++) th.tie_quat[f] = {std::sqrt(0.5), std::sqrt(0.5), 0, 0};
  th.gravity[0] = {0, 0, -10}, w.x[w.at_h()] = 1e-3;
  Run r(w, Asked());
  // both hang by their ends: m (a + alpha / 2) and so on, solved by hand for the angular accelerations
  double A = 0.1 + 0.25 + 1, B = 0.5, C = 0.1 + 0.25, f = 10 * 1.5, g = 10 * 0.5, det = A * C - B * B;
  double first = (C * f - B * g) / det, second = (A * g - B * f) / det;
  CHECK_NEAR(r.y[w.t.nq + 4] / 1e-3, first, 1e-3);
  CHECK_NEAR(r.y[w.t.nq + 10] / 1e-3, second, 1e-3);
}

// with nothing to project on, the option changes no bit
static void check_without_ties(Random& rng) {
  World w = random_scene(Parts(), kSparse, rng);
  Run none(w, projected(Asked(), 0)), some(w, projected(Asked(), 3));
  CHECK(none.y == some.y);
}

// exactly half a turn off, or without any distance: finite, forward and back
static void check_kinks(Random& rng) {
  for (int kind : {0, 1})
    for (double exact : {0, 1}) {
      Structure s;
      s.parent = {-1, -1}, s.joint = {kFree, kFree};
      add_tie(s, 0, 1, kind ? std::vector<int>{3} : std::vector<int>{0, 1, 2, 4, 5, 6});
      World w(s, true, rng);
      Params<double> th = w.theta();
      for (int i = 0; i < 14; i++) w.x[i] = i % 7 == 3;
      for (int f : {0, 1}) th.tie_pos[f] = {0, 0, 0}, th.tie_quat[f] = {1, 0, 0, 0};
      th.tie_length[0] = 0.2, th.tie_softness[0] = 0;
      if (!kind) th.tie_quat[1] = {0, 0, 1, 0};
      Asked a;
      a.exact = exact, a.project = 2;
      Run r(w, a);
      Vector bar(w.size(), 0.0);
      step_of_adj(w, r.s, r.y, rng.vector(int(r.y.size())), bar);
      for (double x : r.y) CHECK(std::isfinite(x));
      for (double x : bar) CHECK(std::isfinite(x));
    }
}

// what is in a scene that must have been seen: servos that are clipped or not, that hold or not; every actuator on both kinds of ties
struct Seen {
  int clipped[2] = {}, held[2] = {}, on_tie[4][2] = {};
  void look(const World& w, const Run& r) {
    const Tree& t = w.t;
    const Rows<double>& rw = r.s.rw;
    View<double> a(w, w.x);
    for (int i = 0; i < rw.count[0]; i++) {
      if (rw.kind[i] != kMotorRow) continue;
      int k = t.row_motor[rw.item[i][0]], n = rw.first_row[i], tie = t.motor_tie[k];
      if (tie >= 0) on_tie[t.actuator[k]][t.tie_axis[tie] == kSlideAxis]++;
      if (t.actuator[k] != kServo) continue;
      double x = tie < 0 ? 0 : tie_axis(t, r.s.tr, rw.eq.now, tie).x;
      double wish = motor_row(t, a.th, motor_place(t, a.th, r.s.tr.q, a.in.u, k, x), a.in.u, a.in.h, k).target;
      clipped[std::fabs(wish) < a.th.max_speed[t.servo[k]]]++, held[rw.lam[n] > rw.lo[n] && rw.lam[n] < rw.hi[n]]++;
    }
  }
  void check() const {
    for (int i : {0, 1}) {
      CHECK(clipped[i] > 5 && held[i] > 5);
      for (int type = 0; type < 4; type++) CHECK(on_tie[type][i] > 0);
    }
  }
};

int main() {
  Random rng(34);
  check_carriage(rng), check_motor_at_rest(rng), check_servo_softness(rng), check_pendulum(rng), check_without_ties(rng),
      check_kinks(rng);
  int converged = 0, trials = 80;
  std::map<std::string, int> seen;
  Seen states;
  for (int trial = 0; trial < trials; trial++) {
    World w = tie_trial(trial, 0.01, rng);
    double cone = trial % 3 == 2 ? 4.5 : 0;
    for (int steps : {0, 1, 2}) {
      check_adj("exact, three sweeps", w, projected(exact(3, 0, cone), steps), kSweeps * kRows, rng);
      check_adj("exact, Newton", w, projected(exact(7, 2, cone), steps), kNewton * kRows, rng);
      Run r(w, projected(implicit(cone), steps));
      if (!r.solved()) continue;
      converged++, states.look(w, r);
      check_adj("exact, converged", w, projected(exact(400, 4, cone), steps), kNewton * kRows, rng);
      check_adj("implicit", w, projected(implicit(cone), steps), kImplicit * kRows, rng);
    }
    check_modes(w, cone, rng), check_fallback(w, rng);
    if (Run(w, implicit(0)).solved()) check_fields(w, implicit(0), kImplicit * kRows, rng, seen);
    check_fields(w, exact(6, 1, cone), kNewton * kRows, rng, seen);
  }
  CHECK(converged > 2 * trials);
  states.check();
  for (const auto& [name, count] : seen)
    if (!count && name != "torsion" && name != "rolling")  // those: test_turn_rows.cc
      std::printf("%s: never has a gradient\n", name.c_str()), failures++;
  for (const char* name :
       {"gain", "max_speed", "tie_pos", "tie_quat", "tie_length", "tie_softness", "coupling", "coupling_softness"})
    CHECK(seen.count(name));
  return report("equality_step");
}
