// step.h with rows: contacts, limits, friction and servos on random scenes. Whole steps by hand, and their adjoint against Dual: exact
// mode as the solver ran, implicit mode where it converged; field by field, in both forms of H and for every kind of cone.
#include "step_check.h"
using namespace test;

// ---- by hand ----------------------------------------------------------------------------------------------------------------
// a ball of 2 kg and 0.5 m on the floor
static World ball(Random& rng) {
  Structure s;
  s.parent = {-1}, s.joint = {kFree}, s.shape_body = {-1, 0}, s.shape_type = {kPlane, kSphere}, s.pair_a = {0}, s.pair_b = {1};
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = 2, th.inertia[0] = {1, 1, 1, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.gravity[0] = {0, 0, -10};
  th.shape_quat[0] = th.shape_quat[1] = {1, 0, 0, 0}, th.shape_size[1] = {0.5, 0, 0};
  th.friction[0] = th.friction[1] = 0.3, th.rest[3] = 1;
  w.x[2] = 0.5, w.x[3] = 1, w.x[w.at_h()] = 0.01;
  return w;
}
struct Numbers {
  double vx, vz, fx, fz;
};
static Numbers after(const World& w, double cone = 0) {
  Asked a;
  a.relative_softness = 0, a.absolute_softness = 1e-30, a.cone = cone, a.tolerance = 1e-13;
  Scratch<double> s(w.t, 1e30, a);
  Vector y;
  step_of(w, w.x, s, y);
  bool some = s.rw.count[0] > 0;
  return {y[7], y[9], some ? y[13] : 0, some ? y[15] : 0};
}

static void check_ball(Random& rng) {
  constexpr double tol = 1e-12;
  World w = ball(rng);
  Params<double> th = w.theta();
  double *vx = &w.x[w.at_v()], *vz = vx + 2;
  Numbers n = after(w);  // at rest: it carries its weight
  CHECK_NEAR(n.vz, 0, tol);
  CHECK_NEAR(n.fz, 0.01 * 20, tol);
  *vz = -4;  // falls on the floor
  n = after(w);
  CHECK_NEAR(n.vz, 0, tol);
  CHECK_NEAR(n.fz, 8.2, tol);
  th.restitution[0] = th.restitution[1] = 0.5;  // and bounces
  n = after(w);
  CHECK_NEAR(n.vz, 2, tol);
  CHECK_NEAR(n.fz, 12.2, tol);
  *vz = -0.09;  // too slow for it
  CHECK_NEAR(after(w).vz, 0, tol);
  w.x[2] = 0.5005;  // and a gap of half a millimetre lets it come down to the floor
  CHECK_NEAR(after(w).vz, -0.05, tol);
  w.x[2] = 0.6;  // too far
  CHECK_NEAR(after(w).vz, -0.19, tol);
  // in the floor: out of it by a fifth of the depth, at most with push_speed
  *vz = 0, w.x[2] = 0.499;
  CHECK_NEAR(after(w).vz, 0.02, tol);
  w.x[2] = 0.4;
  CHECK_NEAR(after(w).vz, 0.5, tol);
  // soft: where it has sunk by softness * weight it stays
  th.softness[0] = 1e-4, w.x[2] = 0.5 - 1e-4 * 20;
  CHECK_NEAR(after(w).vz, 0, tol);
  // slides: mu times the normal impulse, which a square gives along its axes too, and a triangle less
  th.softness[0] = 0, w.x[2] = 0.5, *vx = 3;
  CHECK_NEAR(after(w).fx, -0.3 * 0.2, tol);
  CHECK_NEAR(after(w, 4.5).fx, -0.3 * 0.2, tol);
  CHECK_NEAR(after(w, 3).fx, -0.3 * 0.2 * 0.5, tol);
  // slowly: it starts to roll. The tangent's mass is 1 / (1/m + r^2/I) = 4/3
  *vx = 0.03;
  CHECK_NEAR(after(w).fx, -0.03 * 4 / 3, tol);
}

// ---- adjoints -------------------------------------------------------------------------------------------------------------------
// a box flat on the floor, at rest or sliding straight on, with the options of a user: four corners where three would do. What
// it does is smooth, though nobody knows how the corners share the load
static void check_box(double speed, const Asked& asked, Random& rng) {
  Structure s;
  s.parent = {-1}, s.joint = {kFree}, s.shape_body = {-1, 0}, s.shape_type = {kPlane, kBox}, s.pair_a = {0}, s.pair_b = {1};
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = 2, th.inertia[0] = {0.1, 0.2, 0.3, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.gravity[0] = {0.1, 0.2, -10};
  th.shape_quat[0] = th.shape_quat[1] = {1, 0, 0, 0}, th.shape_size[1] = {0.2, 0.3, 0.1};
  th.friction[0] = th.friction[1] = 0.5, th.rest[3] = 1;
  w.x[2] = 0.1 - 1e-4, w.x[3] = 1, w.x[w.at_v()] = speed, w.x[w.at_v() + 1] = 0.5 * speed, w.x[w.at_h()] = 0.01;
  Run r(w, asked);
  CHECK(r.solved() && r.s.rw.status->contacts == 4);
  Scratch<D> dual(w.t, 0, asked);
  int n = w.t.nq + w.t.nv,
      fixed = int(th.softness - w.x.data());  // softness shares the load: its derivative is as large as the load is vague
  Vector g = rng.vector(int(r.y.size())), dx = w.draw(rng), x_bar(w.size(), 0.0);
  for (size_t i = n; i < g.size(); i++) g[i] = 0;
  for (int i = fixed; i < w.size(); i++) dx[i] = 0;
  step_of_adj(w, r.s, r.y, g, x_bar);
  Duals x(w.size()), y;
  for (int i = 0; i < w.size(); i++) x[i] = {w.x[i], dx[i]};
  oracle(w, asked, r, x, dual, y);
  double forward = 0, reverse = 0, size = 0;
  for (int i = 0; i < n; i++) forward += g[i] * y[i].tangent, size += std::fabs(g[i] * y[i].tangent);
  for (int i = 0; i < w.size(); i++) reverse += x_bar[i] * dx[i], size += std::fabs(x_bar[i] * dx[i]);
  CHECK_NEAR(forward, reverse, kImplicit * size);
}

int main() {
  Random rng(26);
  check_ball(rng);
  for (double exact : {0, 1})
    for (double speed : {0.0, 2.0}) {
      Asked asked;
      asked.exact = exact;
      check_box(speed, asked, rng);
    }
  int converged = 0, trials = 72;
  const double cones[] = {0, 4.5, 5, 8};
  std::map<std::string, int> seen;
  for (int trial = 0; trial < trials; trial++) {
    Parts parts;
    parts.limits = parts.dry = parts.servos = trial % 3 != 0, parts.shapes = trial % 6 != 1;
    if (trial % 8 == 5) parts.max_contacts = 2;
    parts.moving_plane = trial % 7 == 3, parts.solids = trial / 2 % 2, parts.field = trial % 5 == 4;
    World w = random_scene(parts, trial % 2, rng);
    for (double cone : cones) {
      check_adj("exact, three sweeps", w, exact(3, 0, cone), kSweeps, rng);
      check_adj("exact, Newton", w, exact(7, 2, cone), kNewton, rng);
      if (!Run(w, implicit(cone)).solved()) continue;
      converged++;
      check_adj("exact, converged", w, exact(400, 4, cone), kNewton, rng);
      check_adj("implicit", w, implicit(cone), kImplicit, rng);
      check_modes(w, cone, rng);
    }
    if (Run(w, implicit(0)).solved()) check_fields(w, implicit(0), kImplicit, rng, seen);
    check_fields(w, exact(6, 1, cones[trial % 4]), kNewton, rng, seen);
    check_fallback(w, rng);
  }
  CHECK(converged > 3 * trials);
  CHECK(seen["hull_vertex"] && seen["height"]);
  World w = random_scene(Parts(), kSparse, rng);
  for (const auto& [name, range] : fields(w))
    if (range.second && !seen[name] && name != "torsion" && name != "rolling")  // those: test_turn_rows.cc
      std::printf("%s: never has a gradient\n", name.c_str()), failures++;
  return report("contact_step");
}
