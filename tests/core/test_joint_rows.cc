// actuate.h, limits.h, joint_rows.h: actuators of every kind, joint limits, dry friction. Values by hand, adjoints against Dual.
#include "tie_scene.h"
using namespace test;

using V = Vec3<double>;
using D = Dual<double>;
using Vector = std::vector<double>;

constexpr double kRounding = 1e-14;
constexpr double kStep = 1e-11;  // a whole step: some hundred roundings, over h
static const double* const kNull = nullptr;

// a slider of mass 2 along x without gravity, friction, spring or wrench; h = 0.01, q = 0.3, v = 0.5
static World slider(Structure s, Random& rng) {
  s.parent = {-1}, s.joint = {kPrismatic};
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = 2, th.inertia[0] = {1, 1, 1, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.joint_axis[0] = {1, 0, 0};
  w.x[0] = 0.3, w.x[w.at_v()] = 0.5, w.x[w.at_h()] = 0.01;
  for (int k = 0; k < w.t.nu; k++) th.gear[k] = 1;
  return w;
}
// rows as hard as they can be
static Asked hard() {
  Asked asked;
  asked.relative_softness = 0, asked.absolute_softness = 1e-30, asked.tolerance = 1e-14;
  return asked;
}
static double speed_after(const World& w, const Asked& asked = hard()) {
  Scratch<double> s(w.t, 1e30, asked);
  Vector y;
  step_of(w, w.x, s, y);
  return y[w.t.nq];
}

// ---- actuators ---------------------------------------------------------------------------------------------------------
static World one_actuator(int type, bool clip, bool bound, Random& rng) {
  Structure s;
  s.motor_dof = {0}, s.actuator = {type}, s.clip = {clip ? 0 : -1}, s.bound = {bound ? 0 : -1};
  World w = slider(s, rng);
  Params<double> th = w.theta();
  th.gear[0] = 3;
  if (type == kPosition) th.kp[0] = 40;
  if (type != kMotor) th.kd[0] = 7;
  if (clip) th.control_lower[0] = -1, th.control_upper[0] = 2;
  if (bound) th.force_lower[0] = -5, th.force_upper[0] = 4;
  return w;
}

// (M + h D) v+ = M v + h tau: the force of a spring and damper at the end of the step, gear and all
static void check_actuators_by_hand(Random& rng) {
  double m = 2, h = 0.01, q = 0.3, v = 0.5, g = 3, kp = 40, kd = 7;
  for (bool clip : {false, true})
    for (double u : {-3.0, 0.5, 3.0}) {
      double c = clip ? std::fmin(std::fmax(u, -1), 2) : u;
      World motor = one_actuator(kMotor, clip, false, rng), spring = one_actuator(kPosition, clip, false, rng);
      World damper = one_actuator(kVelocity, clip, false, rng);
      motor.x[motor.at_u()] = spring.x[spring.at_u()] = damper.x[damper.at_u()] = u;
      CHECK_NEAR(speed_after(motor), v + h * g * c / m, kStep);
      double after = speed_after(spring), force = kp * (c - g * (q + h * after)) - kd * g * after;
      CHECK_NEAR(after, v + h * g * force / m, kStep);
      after = speed_after(damper), force = kd * (c - g * after);
      CHECK_NEAR(after, v + h * g * force / m, kStep);
    }
}

// force limits: nothing changes inside, and the limit's own force acts outside
static void check_force_limits(Random& rng) {
  double m = 2, h = 0.01, v = 0.5, g = 3;
  for (int type : {kMotor, kPosition, kVelocity})
    for (double u : {-9.0, 1.0, 1.6, 9.0}) {
      World free = one_actuator(type, false, false, rng), held = one_actuator(type, false, true, rng);
      free.x[free.at_u()] = held.x[held.at_u()] = u;
      double after = speed_after(free), force = (after - v) * m / (h * g);
      double kept = std::fmin(std::fmax(force, -5), 4);
      CHECK_NEAR(speed_after(held), v + h * g * kept / m, kStep);
      // wide limits are none
      held.theta().force_lower[0] = -1e6, held.theta().force_upper[0] = 1e6;
      CHECK_NEAR(speed_after(held), after, kStep);
    }
}

// a servo reaches its speed while its force suffices, up to its softness, and pushes with all of it where not
static void check_servo(Random& rng) {
  double m = 2, h = 0.01, v = 0.5, g = 3, q = 0.3, R = kServoSoftness / m;
  for (double u : {-3.0, 0.85, 0.9, 0.93, 3.0})
    for (double most : {4.0, 1e6}) {
      World w = one_actuator(kServo, false, true, rng);
      Params<double> th = w.theta();
      w.x[w.at_u()] = u, th.kd[0] = 0, th.gain[0] = 10, th.max_speed[0] = 2, th.force_lower[0] = -most, th.force_upper[0] = most;
      double wish = std::fmin(std::fmax(10 * (u - g * q), -2), 2), lam = (wish - g * v) / (g * g / m + R);
      CHECK_NEAR(speed_after(w), v + g * std::fmin(std::fmax(lam, -h * most), h * most) / m, kStep);
      if (most > 4) CHECK_NEAR(g * speed_after(w), wish, 1e-6);
    }
}

// exactly at the largest speed the derivative is that of the inside: none by max_speed
static void check_servo_kink(Random& rng) {
  World w = one_actuator(kServo, false, true, rng);
  Params<double> th = w.theta();
  th.kd[0] = 0, th.gear[0] = 2, th.gain[0] = 4, th.max_speed[0] = 2;
  for (double sign : {-1.0, 1.0}) {
    double u = 0.5 + sign * 0.5, x = 0.25, x_bar = 0, u_bar = 0, h_bar = 0;  // gain (u - gear x) = +-2
    Vector theta_bar(params_size(w.t), 0.0);
    Params<double> bar = params_map(w.t, theta_bar.data());
    CHECK(motor_row(w.t, th, x, &u, 0.01, 0).target == -sign * 2);
    motor_row_adj(w.t, th, x, &u, 0.01, 0, {0, 1, 0, 0, 0}, bar, x_bar, &u_bar, h_bar);
    CHECK(u_bar == -4 && x_bar == 8 && bar.max_speed[0] == 0 && bar.gain[0] == -sign * 0.5 && bar.gear[0] == 1);
  }
}

// all kinds on a random tree. The u block and theta as they come, limits in order
static World random_actuators(Random& rng) {
  Structure s;
  s.parent = {-1, 0, 1, 0, -1}, s.joint = {kPlanar, kRevolute, kBall, kPrismatic, kFree};
  add_rows(s, {false, false, true, true, -1}, rng);
  for (int d : {0, 3, 7, 8})
    s.motor_dof.push_back(d), s.actuator.push_back(kPosition), s.clip.push_back(-1), s.bound.push_back(-1);
  World w(s, true, rng);
  physical_numbers(w, rng);
  return w;
}

static void check_actuate_adj(const World& w, Random& rng) {
  const Tree& t = w.t;
  auto run = [&](auto& x, auto& y) {
    using T = std::decay_t<decltype(x[0])>;
    View<T> a(w, x);
    std::vector<T> q(t.nq);
    normalise(t, a.in.q, q.data());
    actuate(t, a.th, q.data(), a.in.u, a.in.h, y.data(), y.data() + t.nv);
  };
  check_adjoint(
      "actuate", w.x, 2 * t.nv, run,
      [&](const Vector& g, Vector& x_bar) {
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        Vector q(t.nq);
        normalise(t, a.in.q, q.data());
        actuate_adj(t, a.th, q.data(), a.in.u, a.in.h, g.data(), g.data() + t.nv, b.th, b.in.q, b.in.u, b.in.h);
        b.finish(w, x_bar);
      },
      rng);
}

// exactly at a limit the derivative is that of the inside: u's, none of the limit's
static void check_control_kink(Random& rng) {
  World w = one_actuator(kMotor, true, true, rng);
  View<double> a(w, w.x);
  for (double u : {-1.0, 2.0}) {
    Vector theta_bar(params_size(w.t), 0.0);
    Params<double> th_bar = params_map(w.t, theta_bar.data());
    double u_bar = 0;
    control_adj(w.t, a.th, &u, 0, 1.0, th_bar, &u_bar);
    CHECK(u_bar == 1 && th_bar.control_lower[0] == 0 && th_bar.control_upper[0] == 0);
  }
  // no control at all counts as zero, and has no bar
  double tau = 1e30, D = 1e30;
  actuate(w.t, a.th, a.in.q, kNull, 0.01, &tau, &D);
  CHECK(tau == 0);
}

// ---- rows of friction and force limits ---------------------------------------------------------------------------------------
// numbers of all dry rows, then of all actuators as if they were rows: kinds, limits and saturation as they come. The coordinate of an
// actuator is that of its dof, or any number
static int row_count(const Tree& t) { return t.n_dry + t.nu; }
static int place_of(const Tree& t, int k) { return t.motor_q[k] >= 0 ? t.motor_q[k] : t.nq + k % t.nv; }  // in x

template <class T> static void joint_rows_of(const World& w, const std::vector<T>& x, std::vector<T>& y) {
  const Tree& t = w.t;
  View<T> a(w, x);
  for (int i = 0; i < row_count(t); i++) {
    int k = i - t.n_dry;
    RowValues<T> r = k < 0 ? dry_row(a.th, a.in.h, i) : motor_row(t, a.th, x[place_of(t, k)], a.in.u, a.in.h, k);
    T* to = &y[5 * i];
    to[0] = r.J, to[1] = r.target, to[2] = r.R, to[3] = r.lo, to[4] = r.hi;
  }
}

static void check_joint_rows(const World& w, Random& rng) {
  const Tree& t = w.t;
  check_adjoint(
      "dry_row and motor_row", w.x, 5 * row_count(t), [&](const Duals& x, Duals& y) { joint_rows_of(w, x, y); },
      [&](const Vector& g, Vector& x_bar) {
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        for (int i = 0; i < row_count(t); i++) {
          int k = i - t.n_dry;
          RowValues<double> y_bar = {g[5 * i], g[5 * i + 1], g[5 * i + 2], g[5 * i + 3], g[5 * i + 4]};
          if (k < 0)
            dry_row_adj(a.th, a.in.h, i, y_bar, b.th, b.in.h);
          else
            motor_row_adj(t, a.th, w.x[place_of(t, k)], a.in.u, a.in.h, k, y_bar, b.th, x_bar[place_of(t, k)], b.in.u, b.in.h);
        }
        b.finish(w, x_bar);
      },
      rng);
}

// a sliding mass loses h F / m, and never more than it has; at rest it stays
static void check_dry_friction(Random& rng) {
  Structure s;
  s.dry_dof = {0};
  World w = slider(s, rng);
  for (double v : {0.5, -0.5, 0.01, 0.0}) {
    w.x[w.at_v()] = v, w.theta().dry_friction[0] = 30;
    double lost = std::fmin(0.01 * 30 / 2, std::fabs(v));
    CHECK_NEAR(speed_after(w), v > 0 ? v - lost : v + lost, kStep);
  }
  w.theta().dry_friction[0] = 0;  // none at all
  CHECK_NEAR(speed_after(w), w.x[w.at_v()], kStep);
}

// ---- limits ----------------------------------------------------------------------------------------------------------------
static void check_limits_by_hand(Random& rng) {
  Structure s;
  s.limit_body = {0}, s.limit_dof = {0};
  World w = slider(s, rng);
  Params<double> th = w.theta();
  auto distance_at = [&](double q, double& J, double v = 0) {
    Scratch<double> scratch(w.t, 1e30);
    View<double> a(w, w.x);
    limits(w.t, a.th, &q, &v, 0.01, scratch.rw);
    J = scratch.rw.limit_J[0].x;
    return scratch.rw.distance[0];
  };
  th.limit_lower[0] = -1, th.limit_upper[0] = 3;
  double J;
  CHECK(distance_at(2.5, J) == 0.5 && J == -1);
  CHECK(distance_at(0.5, J) == 1.5 && J == 1);
  CHECK(distance_at(3.5, J) == -0.5 && J == -1);
  CHECK(distance_at(-1.5, J) == -0.5 && J == 1);
  CHECK(distance_at(1.0, J) == 2 && J == 1);          // the middle belongs to the lower limit
  CHECK(distance_at(0.5, J, 400) == 2.5 && J == -1);  // what counts is the end of the step
  // a hit stops at the limit within the step; a violation is left at its pace; leaving is free
  th.limit_upper[0] = 0.302, th.limit_lower[0] = 0;
  CHECK_NEAR(speed_after(w), 0.002 / 0.01, kStep);
  th.limit_upper[0] = 0.299;
  CHECK_NEAR(speed_after(w), -0.2 * 0.001 / 0.01, kStep);  // recovery: a fifth of it
  th.limit_upper[0] = 0.2;
  CHECK_NEAR(speed_after(w), -0.5, kStep);  // no faster than push_speed
  w.x[w.at_v()] = -3;
  CHECK_NEAR(speed_after(w), -3, kStep);
}

// one ball joint turned by phi: the distance, and J v the rate of it; at rest no axis, and nothing but finite numbers
static void check_ball_limit(Random& rng) {
  Structure s;
  s.parent = {-1}, s.joint = {kBall}, s.limit_body = {0}, s.limit_dof = {0};
  for (double turn : {0.0, 1e-12, 1e-6, 0.3, 1.5, 3.0, 3.14}) {
    World w(s, true, rng);
    V phi = turn * random_unit(rng), v = random_vec(rng);
    w.theta().limit_upper[0] = 1;
    Quat<double> q = quat_exp(phi);
    if (turn == 3.0) q = {-q.w, -q.x, -q.y, -q.z};  // the same rotation
    Scratch<double> r(w.t, 1e30);
    View<double> a(w, w.x);
    limits(w.t, a.th, flat(q).data(), a.in.v, a.in.h, r.rw);
    V J = r.rw.limit_J[0];
    CHECK_NEAR(r.rw.distance[0], 1 - (turn > kNoAngle ? turn : 0), kRounding * 10);
    if (turn <= kNoAngle) {
      CHECK(J.x == 0 && J.y == 0 && J.z == 0);
      continue;
    }
    // q exp(t v) at t = 0 + 1 eps
    Quat<D> moved = mul(lift<D>(q), quat_exp(D(0, 1) * lift<D>(v)));
    Duals qd = {moved.w, moved.x, moved.y, moved.z}, xd(w.x.begin(), w.x.end());
    Scratch<D> d(w.t);
    View<D> ad(w, xd);
    limits(w.t, ad.th, qd.data(), ad.in.v, ad.in.h, d.rw);
    CHECK_NEAR(dot(J, v), d.rw.distance[0].tangent, turn < 1e-3 ? 1e-8 : 1e-12);
  }
}

// q, limits -> distance and J of every limit
template <class T> static void limits_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  View<T> a(w, x);
  normalise(w.t, a.in.q, s.tr.q);
  limits(w.t, a.th, s.tr.q, a.in.v, a.in.h, s.rw);
  for (int i = 0; i < w.t.n_limit; i++) y[4 * i] = s.rw.distance[i], put(&y[4 * i + 1], s.rw.limit_J[i]);
}
static void check_limits_adj(const World& w, Random& rng) {
  Scratch<D> dual(w.t);
  Scratch<double> real(w.t, 1e30);
  check_adjoint(
      "limits", w.x, 4 * w.t.n_limit, [&](const Duals& x, Duals& y) { limits_of(w, x, dual, y); },
      [&](const Vector& g, Vector& x_bar) {
        Vector y = g;
        limits_of(w, w.x, real, y);
        BarView b(w, x_bar);
        for (int i = 0; i < w.t.n_limit; i++) real.rb.distance[i] = g[4 * i], real.rb.limit_J[i] = vec3_at(&g[4 * i + 1]);
        limits_adj(w.t, real.tr.q, real.rw, real.rb, b.th, b.in.q);
        b.finish(w, x_bar);
      },
      rng);
}

// ---- the velocity that a gap asks for ------------------------------------------------------------------------------------------
static void check_target(Random& rng) {
  Options o = Asked().read();
  double h = 0.01, e = 0.7;
  struct {
    double gap, Jv, Jv_star, soft, value;
  } cases[] = {
      {0.02, -1, -1.1, 0, 2},           // apart
      {-0.001, -0.05, -0.1, 0, -0.02},  // shallow
      {-0.5, 0.1, 0.2, 0, -0.5},        // deep
      {-0.5, 0.1, 0.2, 1e-3, -10},      // deep and soft: a spring has no push_speed
      {0.005, -1, -1.1, 0, -0.7},       // a hit
      {0.0005, -0.09, -0.2, 0, 0.05},   // one too slow to bounce
      {-0.001, -1, -1.1, 0, -0.7},      // a hit in the floor
      {-0.01, -0.2, -0.3, 0, -0.2},     // one that would leave more slowly than the recovery
  };
  for (auto c : cases) {
    Target<double> y = contact_target(c.gap, c.Jv, c.Jv_star, e, c.soft, h, h, 1.0, o);
    CHECK_NEAR(y.value, c.value, kRounding);
    check_adjoint(
        "contact_target", {c.gap, c.Jv, e, h}, 1,
        [&](const Duals& x, Duals& out) {
          out[0] = contact_target(x[0], x[1], D(c.Jv_star), x[2], D(c.soft), x[3], x[3], D(1), o).value;
        },
        [&](const Vector& g, Vector& bar) { bar = {g[0] * y.gap, g[0] * y.v, g[0] * y.e, g[0] * (y.h + y.full)}; }, rng);
  }
  // exactly touching: the outside's slope; a gap of nothing asks for nothing
  Target<double> y = contact_target(0.0, 1.0, 1.0, e, 0.0, h, h, 1.0, o);
  CHECK(y.value == 0 && y.gap == 1 / h);
}

int main() {
  Random rng(23);
  check_actuators_by_hand(rng), check_force_limits(rng), check_servo(rng), check_servo_kink(rng), check_control_kink(rng),
      check_dry_friction(rng);
  check_limits_by_hand(rng), check_ball_limit(rng), check_target(rng);
  for (int trial = 0; trial < 20; trial++) {
    check_actuate_adj(random_actuators(rng), rng);
    World w = random_scene(Parts(), trial % 2, rng);
    check_actuate_adj(w, rng), check_joint_rows(w, rng), check_limits_adj(w, rng);
    World tied = tie_trial(trial, 0.1, rng);
    check_actuate_adj(tied, rng), check_joint_rows(tied, rng);
  }
  return report("joint_rows");
}
