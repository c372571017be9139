// step.h in the plane: circles, rectangles and polygons on a half plane, on each other and on ties, whose contacts have two rows. Whole steps
// by hand, their adjoint against Dual in both modes, all together and field by field, and packs, each lane bit by bit its world.
#include "lane_check.h"
#include "step_check.h"
#include "tie_scene.h"
using namespace test;

constexpr double kRows = 10;  // with ties: through A of the equality rows too, and once more for each projection
constexpr double kDegree = 3.14159265358979323846 / 180;
// a half plane is solid below its z axis, which is the world's y turned by `angle`
static Quat<double> line_quat(double angle) {
  return mul(Quat<double>{std::cos(angle / 2), 0, 0, std::sin(angle / 2)}, Quat<double>{std::sqrt(0.5), -std::sqrt(0.5), 0, 0});
}

// ---- by hand ----------------------------------------------------------------------------------------------------------------
// a body of 2 kg on the line y = 0: a circle of 0.5 m, or a rectangle of 1 m by 0.4 m
static World single(int shape, Random& rng) {
  Structure s;
  s.planar = 1, s.parent = {-1}, s.joint = {kPlanar}, s.shape_body = {-1, 0}, s.shape_type = {kPlane, shape}, s.pair_a = {0};
  s.pair_b = {1};
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = 2, th.inertia[0] = {0.5, 0.5, 1, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.gravity[0] = {0, -10, 0};
  th.joint_axis[0] = {0, 0, 1}, th.shape_quat[0] = line_quat(0), th.shape_quat[1] = {1, 0, 0, 0};
  th.shape_size[1] = shape == kSphere ? Vec3<double>{0.5, 0, 0} : Vec3<double>{0.5, 0.2, 0};
  th.friction[0] = th.friction[1] = 0.3;
  w.x[1] = shape == kSphere ? 0.5 : 0.2, w.x[w.at_h()] = 0.01;
  return w;
}
static Vector after(const World& w, int& contacts) {
  Asked a;
  a.relative_softness = 0, a.absolute_softness = 1e-30, a.tolerance = 1e-13;
  Run r(w, a);
  contacts = r.s.rw.count[0];
  CHECK(contacts == 0 || r.s.rw.first_row[1] == 2);  // a normal and one tangent
  return {r.y.begin() + 3, r.y.end()};               // v+, and impulses
}

static void check_circle(Random& rng) {
  constexpr double tol = 1e-12;
  World w = single(kSphere, rng);
  Params<double> th = w.theta();
  double *vx = &w.x[w.at_v()], *vy = vx + 1;
  int n;
  Vector y = after(w, n);  // at rest: it carries its weight
  CHECK(n == 1 && y.size() == 6);
  CHECK_NEAR(y[1], 0, tol);
  CHECK_NEAR(y[4], 0.01 * 20, tol);
  *vy = -4, th.restitution[0] = th.restitution[1] = 0.5;  // it bounces
  y = after(w, n);
  CHECK_NEAR(y[1], 2, tol);
  CHECK_NEAR(y[4], 12.2, tol);
  *vy = 0;
  for (double side : {-1.0, 1.0}) {
    *vx = 3 * side;  // it slides: mu times the normal impulse
    y = after(w, n);
    CHECK_NEAR(y[3], -0.3 * 0.2 * side, tol);
    *vx = 0.03 * side;  // it starts to roll: the tangent's mass is 1 / (1/m + r^2/I) = 4/3
    y = after(w, n);
    CHECK_NEAR(y[3], -0.03 * 4 / 3 * side, tol);
    CHECK_NEAR(y[2], -y[0] / 0.5, tol);
  }
  // the same on a line that is turned, with everything else
  Vector level = after(w, n);
  double turn = 25 * kDegree, c = std::cos(turn), s = std::sin(turn);
  auto turned = [&](double x, double z) { return std::pair<double, double>{c * x - s * z, s * x + c * z}; };
  auto [gx, gy] = turned(0, -10);
  auto [qx, qy] = turned(w.x[0], w.x[1]);
  auto [ux, uy] = turned(*vx, *vy);
  th.gravity[0] = {gx, gy, 0}, th.shape_quat[0] = line_quat(turn), w.x[0] = qx, w.x[1] = qy, *vx = ux, *vy = uy;
  y = after(w, n);
  for (int k : {0, 3}) {
    auto [x, z] = turned(level[k], level[k + 1]);
    CHECK_NEAR(y[k], x, tol);
    CHECK_NEAR(y[k + 1], z, tol);
  }
  CHECK_NEAR(y[2], level[2], tol);
}

static void check_rectangle(Random& rng) {
  constexpr double tol = 1e-9;  // two corners with nothing but 1e-30 to share friction
  World w = single(kRectangle, rng);
  Params<double> th = w.theta();
  int n;
  th.com[0] = {0.1, 0, 0};  // its corners bear 2/5 and 3/5 of the weight
  Vector y = after(w, n);
  CHECK(n == 2);
  CHECK_NEAR(std::fabs(y[0]) + std::fabs(y[1]) + std::fabs(y[2]), 0, tol);
  CHECK_NEAR(std::fmin(y[4], y[7]), 0.2 * 0.4, tol);
  CHECK_NEAR(std::fmax(y[4], y[7]), 0.2 * 0.6, tol);
  th.com[0] = {0.6, 0, 0};  // beyond a corner: it tips, turning clockwise
  y = after(w, n);
  CHECK(y[2] < -1e-3);
  th.com[0] = {0, 0, 0}, w.x[w.at_v()] = 3;  // it slides as one
  y = after(w, n);
  CHECK_NEAR(y[0], 3 - 0.3 * 10 * 0.01, tol);
  CHECK_NEAR(y[3] + y[6], -0.3 * 0.2, tol);
}

// ---- random scenes ----------------------------------------------------------------------------------------------------------
static void add_flat(Structure& s, int body, Random& rng) {
  int type = rng.below(3);
  s.shape_body.push_back(body), s.shape_type.push_back(type == 0 ? kSphere : type == 1 ? kRectangle : kPolygon);
  if (type == 2) s.shapes.hull_vertices.push_back(3 + rng.below(4)), s.shapes.hull_faces.push_back(0);
}

static Structure flat_structure(const Parts& parts, bool ties, int form, Random& rng) {
  Structure s;
  s.planar = 1, s.form = form, s.max_contacts = parts.max_contacts, s.one_group = !parts.floor_only;
  s.shape_body = {-1}, s.shape_type = {kPlane};
  auto body = [&](int parent, int joint) {
    s.parent.push_back(parent), s.joint.push_back(joint);
    int b = int(s.parent.size()) - 1;
    add_flat(s, b, rng);
    return b;
  };
  int torso = body(-1, kPlanar), hip = body(torso, kRevolute);
  body(hip, rng.below(2) ? kRevolute : kFixed), body(torso, kPrismatic);
  int first = body(-1, kPlanar), second = body(-1, kPlanar);
  if (rng.below(2)) body(-1, kPlanar);
  int base = body(-1, rng.below(2) ? kRevolute : kPrismatic);
  body(base, kPlanar);
  if (parts.moving_plane) s.shape_body.push_back(base), s.shape_type.push_back(kPlane);
  add_pairs(s, parts.floor_only, rng), add_rows(s, parts, rng);
  s.friction_rule = rng.below(5), s.restitution_rule = rng.below(5);
  if (!ties) return s;
  add_tie(s, hip, first, {0, 1}, kHingeAxis), add_tie(s, first, second, {0, 1, kLockTurn + 2}), add_tie(s, -1, second, {1});
  add_tie(s, torso, base, {kLockDistance}), add_tie(s, -1, first, {0, 1});
  add_motor(s, -1, 0, rng.below(4), rng);
  return s;
}

static void level(Vec3<double>& x) { x.z = 0; }
static void upright(Quat<double>& q) { q.x = q.y = 0; }
// convex and counterclockwise
static void put_polygon(const Tree& t, const Params<double>& th, int s, Random& rng) {
  int n = t.solid_n[3 * s];
  double r = rng.uniform(0.15, 0.3), turn = rng.uniform(0, 6);
  for (int k = 0; k < n; k++) {
    double a = turn + (k + rng.uniform(-0.2, 0.2)) * 360 * kDegree / n;
    th.hull_vertex[t.hull_adr[s] + k] = {r * std::cos(a), r * std::sin(a), 0};
  }
}

// all numbers in the plane; every tree is moved until its lowest shape is about where the line is
static void flatten(World& w, Random& rng) {
  const Tree& t = w.t;
  Params<double> th = w.theta();
  for (int b = 0; b < t.nb; b++) {
    level(th.com[b]), level(th.joint_pos[b]), level(th.joint_anchor[b]), upright(th.joint_quat[b]);
    th.joint_quat[b].w += 1.5, level(th.joint_axis[b]);
    if (t.joint[b] != kPrismatic) th.joint_axis[b] = {0, 0, 1};
    double* f = w.x.data() + w.at_ext() + 6 * b;
    f[0] = f[1] = f[5] = 0;
  }
  for (int s = 0; s < t.ns; s++) {
    level(th.shape_pos[s]), upright(th.shape_quat[s]), th.shape_quat[s].w += 1.5;
    if (t.shape_type[s] == kPlane) th.shape_quat[s] = line_quat(rng.uniform(-0.05, 0.05));
    if (t.shape_type[s] == kPolygon) put_polygon(t, th, s, rng);
  }
  th.shape_pos[0] = {0, rng.uniform(-0.01, 0.01), 0}, th.gravity[0] = {0.3, -9.81, 0};
  for (int k = 0; k < t.n_tie; k++)
    for (int side : {0, 1})
      level(th.tie_pos[2 * k + side]), upright(th.tie_quat[2 * k + side]), th.tie_quat[2 * k + side].w += 1.5;
  Scratch<double> s(t);
  View<double> a(w, w.x);
  normalise(t, a.in.q, s.tr.q), kinematics(t, a.th, s.tr), shapes(t, a.th, s.tr, s.rw);
  for (int r = 0; r < t.nb; r++) {
    double y = 1e9;
    for (int i = 0; i < t.ns; i++)
      for (int k = 0; t.shape_body[i] >= 0 && t.root[t.shape_body[i]] == r && t.shape_type[i] != kPlane && k < t.solid_n[3 * i];
           k++)
        y = std::fmin(y, (s.rw.shape_p[i] + mul(s.rw.shape_R[i], shape_vertex(t, a.th, i, k))).y + s.tr.origin[r].y -
                             shape_radius(t, a.th, i));
    if (t.root[r] == r) th.joint_pos[r].y += rng.uniform(-0.02, 0.02) - y;
  }
}

static World flat_scene(int trial, bool ties, int form, Random& rng) {
  Parts parts;
  parts.limits = parts.dry = parts.servos = trial % 3 != 0, parts.moving_plane = trial % 7 == 3;
  if (trial % 8 == 5) parts.max_contacts = 2;
  World w(flat_structure(parts, ties, form, rng), true, rng);
  physical_numbers(w, rng);
  double pace = rng.below(2) ? 2 : 0.2;  // some worlds slide, some stick
  for (int i = 0; i < w.t.nv; i++) w.x[w.at_v() + i] *= pace;
  w.x[w.at_h()] = rng.uniform(0.005, 0.02);
  if (ties) place_ties(w, 0.01, rng), place_actuators(w, rng);
  flatten(w, rng);
  return w;
}

// nothing leaves the plane: all contacts lie in it, and bodies stay
static void check_level(const World& w, const Run& r) {
  const Tree& t = w.t;
  CHECK(r.s.rw.width == 2);
  for (int i = 0; i < r.s.rw.count[0]; i++)
    if (r.s.rw.kind[i] == kContactRows)
      CHECK_NEAR(std::fabs(r.s.rw.C[i].r0.z) + std::fabs(r.s.rw.C[i].r1.z) + std::fabs(r.s.rw.x_b[i].z), 0, 1e-14);
  for (int b = 0; b < t.nb; b++) CHECK_NEAR(std::fabs(r.s.tr.p[b].z) + std::fabs(r.s.tr.R[b].r2.z - 1), 0, 1e-14);
}

int main() {
  Random rng(41);
  check_circle(rng), check_rectangle(rng);
  int converged = 0, trials = 60, contacts = 0;
  std::map<std::string, int> seen;
  for (int trial = 0; trial < trials; trial++) {
    World w = flat_scene(trial, trial % 2, trial / 2 % 2, rng);
    Run r(w, implicit(0));
    check_level(w, r), contacts += int(r.s.rw.status->contacts);
    double rows = w.t.ne ? kRows : 1;
    check_adj("exact, three sweeps", w, exact(3, 0, 0), rows * kSweeps, rng);
    check_adj("exact, Newton", w, exact(7, 2, 0), rows * kNewton, rng);
    check_fields(w, exact(6, 1, 0), rows * kNewton, rng, seen);
    check_fallback(w, rng);
    if (!r.solved()) continue;
    converged++;
    check_adj("exact, converged", w, exact(400, 4, 0), rows * kNewton, rng);
    check_adj("implicit", w, implicit(0), rows * kImplicit, rng);
    check_fields(w, implicit(0), rows * kImplicit, rng, seen);
    check_modes(w, 0, rng);
  }
  CHECK(converged > 3 * trials / 4 && contacts > 3 * trials);
  for (const char* name : {"hull_vertex", "shape_size", "tie_pos", "tie_length", "friction", "restitution", "limit_upper", "com"})
    CHECK(seen[name] > 0);
  int floats = 0;
  for (int trial = 0; trial < 10; trial++) {
    World w = flat_scene(trial, trial % 2, trial / 2 % 2, rng);
    Asked asked;
    asked.relative_softness = 1e-6, asked.exact = trial / 2 % 2, asked.form = trial / 4 % 2;
    check_lanes<Pack<double, 2>>(w, asked, rng), check_lanes<Pack<double, 8>>(w, asked, rng);
    check_lanes<Pack<float, 16>>(w, asked, rng);
    check_asked(w, asked, rng);
    asked.iterations = 3, asked.polish = 1;  // some worlds are solved, some fall back to the exact mode
    check_lanes<Pack<double, 8>>(w, asked, rng);
    for (int again = 0; again < 4; again++) floats += check_float(flat_scene(trial, false, trial % 2, rng), asked, rng);
  }
  CHECK(floats > 5);
  return report("planar");
}
