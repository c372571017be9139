// actuate.h, joint_rows.h, rows.h: general actuators, f = gain u + bias - kp L - kd dL/dt: by hand; as a part of H, as rows with force limits and on
// ties in random scenes, whose adjoints are compared with Dual in both modes; packs.
#include "lane_check.h"
#include "step_check.h"
#include "tie_scene.h"
using namespace test;

constexpr double kHand = 1e-11;  // a whole step: some hundred roundings, over h
constexpr double kTies = 10;     // through A of the equality rows too (as in test_equality_step.cc)

// a slider of 2 kg along x, or (on a tie) a free body that slides along z of the world; gear 3, q = 0.3, v = 0.5, h = 0.01
constexpr double kMass = 2, kStep = 0.01, kPlace = 0.3, kSpeed = 0.5, kGear = 3;
static World driven(bool tie, bool clip, bool bound, Random& rng, int type = kGeneral) {
  Structure s;
  s.parent = {-1}, s.joint = {tie ? kFree : kPrismatic}, s.actuator = {type};
  s.motor_dof = {tie ? -1 : 0}, s.motor_tie = {tie ? 0 : -1}, s.clip = {clip ? 0 : -1}, s.bound = {bound ? 0 : -1};
  if (tie) add_tie(s, -1, 0, {0, 1, 4, 5, 6}, kSlideAxis);
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = kMass, th.inertia[0] = {1, 1, 1, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.joint_axis[0] = {1, 0, 0};
  th.gear[0] = kGear, w.x[w.at_h()] = kStep;
  if (clip) th.control_lower[0] = -1, th.control_upper[0] = 2;
  if (bound) th.force_lower[0] = -5, th.force_upper[0] = 4;
  if (tie) th.rest[3] = w.x[3] = 1, th.tie_quat[0] = th.tie_quat[1] = {1, 0, 0, 0}, th.tie_length[0] = 1;
  w.x[tie ? 2 : 0] = kPlace, w.x[w.at_v() + (tie ? 2 : 0)] = kSpeed;
  return w;
}
static void set(World& w, double gain, double bias, double kp, double kd, double u) {
  Params<double> th = w.theta();
  if (w.t.n_general) th.control_gain[0] = gain, th.control_bias[0] = bias;
  th.kp[0] = kp, th.kd[0] = kd, w.x[w.at_u()] = u;
}
static double speed_after(const World& w) {
  Asked a;
  a.relative_softness = 0, a.absolute_softness = 1e-30, a.tolerance = 1e-14;
  return Run(w, a).y[w.t.nq + (w.t.n_tie ? 2 : 0)];
}

// m v+ = m v + h gear f, with f at the end of the step, within its limits, of a control within its own
static void check_by_hand(Random& rng) {
  for (bool tie : {false, true})
    for (bool clip : {false, true})
      for (bool bound : {false, true})
        for (double u : {-3.0, 0.0, 0.4, 3.0})
          for (double kp : {0.0, 40.0})
            for (double kd : {0.0, 7.0}) {
              if (kp + kd == 0 && (tie || bound)) continue;  // no row without a spring or a damper
              double gain = 11, bias = -6, c = clip ? std::fmin(std::fmax(u, -1), 2) : u;
              World w = driven(tie, clip, bound, rng);
              set(w, gain, bias, kp, kd, u);
              double f0 = gain * c + bias - kp * kGear * kPlace, k = kd + kStep * kp;
              double inside = (kSpeed + kStep * kGear * f0 / kMass) / (1 + kStep * kGear * kGear * k / kMass);
              double force = f0 - k * kGear * inside;
              if (bound) force = std::fmin(std::fmax(force, -5), 4);
              CHECK_NEAR(speed_after(w), kSpeed + kStep * kGear * force / kMass, kHand);
            }
}

// what the other kinds are special cases of, to the last digits: with gains of theirs a general actuator does the same
static void check_others(Random& rng) {
  for (bool tie : {false, true})
    for (bool bound : {false, true})
      for (double u : {-1.0, 0.95, 3.0}) {
        World general = driven(tie, false, bound, rng), spring = driven(tie, false, bound, rng, kPosition);
        World damper = driven(tie, false, bound, rng, kVelocity);
        set(general, 40, 0, 40, 7, u), set(spring, 0, 0, 40, 7, u);
        CHECK_NEAR(speed_after(general), speed_after(spring), kHand);
        set(general, 7, 0, 0, 7, u), set(damper, 0, 0, 0, 7, u);
        CHECK_NEAR(speed_after(general), speed_after(damper), kHand);
      }
}

// ---- random scenes ------------------------------------------------------------------------------------------------------------
// most actuators become general ones; those of dofs that turn in space have no kp
static World general_scene(int trial, bool ties, Random& rng) {
  Parts parts;
  parts.shapes = trial % 3 != 1;
  TieParts tied;
  tied.ties = 2 + trial % 3, tied.couplings = trial % 2, tied.motors = 3;
  Structure s = scene_structure(parts, trial % 2, rng);
  if (ties) add_ties(s, tied, rng);
  for (size_t k = 0; k < s.actuator.size(); k++)
    if (s.actuator[k] != kServo && rng.below(4)) s.actuator[k] = kGeneral;
  World w = scene_world(s, parts, rng);
  if (ties) place_ties(w, tied.off, rng), place_actuators(w, rng);
  Params<double> th = w.theta();
  for (int k = 0; k < w.t.nu; k++) {
    int i = w.t.general[k];
    if (i < 0) continue;
    th.control_gain[i] = rng.uniform(-5, 5), th.control_bias[i] = rng.uniform(-2, 2);
    bool place = w.t.motor_q[k] >= 0 || w.t.motor_tie[k] >= 0;
    th.kp[k] = place && rng.below(3) ? rng.uniform(1, 50) : 0, th.kd[k] = th.kp[k] > 0 && rng.below(2) ? 0 : rng.uniform(0.5, 5);
  }
  return w;
}

// which forms of it there were: a part of H, a row on a dof, a row on a tie; within its limits and at one of them
struct Forms {
  int plain = 0, row = 0, tie = 0, held = 0, bound = 0;
  void look(const World& w, const Run& r) {
    const Rows<double>& rw = r.s.rw;
    for (int k = 0; k < w.t.nu; k++) plain += w.t.actuator[k] == kGeneral && !is_row(w.t, k);
    for (int i = 0; constrained(w.t) && i < rw.count[0]; i++) {
      if (rw.kind[i] != kMotorRow) continue;
      int k = w.t.row_motor[rw.item[i][0]], n = rw.first_row[i];
      if (w.t.actuator[k] != kGeneral) continue;
      (w.t.motor_tie[k] < 0 ? row : tie)++;
      (rw.lam[n] > rw.lo[n] && rw.lam[n] < rw.hi[n] ? held : bound)++;
    }
  }
};

static void check_scenes(Random& rng) {
  int converged = 0, trials = 72;
  std::map<std::string, int> seen;
  Forms forms;
  for (int trial = 0; trial < trials; trial++) {
    bool ties = trial % 2;
    World w = general_scene(trial / 2, ties, rng);
    double loose = ties ? kTies : 1;
    check_adj("exact, three sweeps", w, exact(3, 0, 0), kSweeps * loose, rng);
    check_adj("exact, Newton", w, exact(7, 2, 0), kNewton * loose, rng);
    check_fields(w, exact(6, 1, 0), kNewton * loose, rng, seen);
    check_fallback(w, rng);
    Run r(w, implicit(0));
    if (!r.solved()) continue;
    converged++, forms.look(w, r);
    check_adj("exact, converged", w, exact(400, 4, 0), kNewton * loose, rng);
    check_adj("implicit", w, implicit(0), kImplicit * loose, rng);
    check_fields(w, implicit(0), kImplicit * loose, rng, seen);
  }
  CHECK(converged > 0.8 * trials);
  CHECK(forms.plain > 10 && forms.row > 10 && forms.tie > 5 && forms.held > 5 && forms.bound > 5);
  for (const char* name : {"control_gain", "control_bias", "kp", "kd", "gear", "u", "control_lower", "force_upper"})
    CHECK(seen[name] > 5);
}

static void check_packs(Random& rng) {
  for (int trial = 0; trial < 6; trial++) {
    World w = general_scene(trial, trial % 2, rng);
    Asked asked;
    asked.relative_softness = 1e-6, asked.exact = trial / 2 % 2, asked.form = trial % 2;
    check_lanes<Pack<double, 8>>(w, asked, rng), check_lanes<Pack<float, 16>>(w, asked, rng);
    check_asked(w, asked, rng);
  }
}

int main() {
  Random rng(42);
  check_by_hand(rng), check_others(rng), check_scenes(rng), check_packs(rng);
  return report("general");
}
