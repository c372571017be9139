// actuate.h, passive.h, integrate.h, prepare.h: what happens joint by joint. Values by hand, adjoints against Dual.
#include "sample.h"
#include "world.h"
using namespace test;

using V = Vec3<double>;
using Q = Quat<double>;
using Vector = std::vector<double>;

// a few roundings at numbers of size 1
constexpr double kRounding = 1e-14;
static const double* const kNull = nullptr;

static World one(int kind, Random& rng) { return World({-1}, {kind}, {}, false, kSparse, rng); }
static Vector difference_of(const World& w, const Vector& a, const Vector& b) {
  Vector d(w.t.nv);
  difference(w.t, a.data(), b.data(), d.data());
  return d;
}
static double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += std::fabs(a[i] - b[i]);
  return sum;
}

// ---- values ----------------------------------------------------------------------------------------------------------
static void check_actuate(Random& rng) {
  // two motors on dof 1, one on dof 0
  World w({-1, 0}, {kRevolute, kPrismatic}, {1, 0, 1}, true, kSparse, rng);
  double* gear = params_map(w.t, w.x.data() + w.at_theta()).gear;
  gear[0] = 2, gear[1] = -3, gear[2] = 5;
  View<double> a(w, w.x);
  Vector u = {1, 10, 100}, tau = {1e30, 1e30}, D = tau;
  actuate(w.t, a.th, a.in.q, u.data(), a.in.h, tau.data(), D.data());
  CHECK(tau[0] == -30 && tau[1] == 502 && D[0] == a.th.damping[0] && D[1] == a.th.damping[1]);
  actuate(w.t, a.th, a.in.q, kNull, a.in.h, tau.data(), D.data());
  CHECK(tau[0] == 0 && tau[1] == 0);
}

static Vector spring(const World& w, const Vector& q) {
  View<double> a(w, w.x);
  Vector unit(w.t.nq), tau(w.t.nv, 0.0), at_rest(w.t.nv, 0.0);
  normalise(w.t, q.data(), unit.data());
  passive(w.t, a.th, a.th.damping, unit.data(), at_rest.data(), tau.data());
  return tau;
}

// a ball pulled by phi from its rest, a slider by 0.3; dampers against the rate; nothing at rest, and nothing without stiffness
static void check_passive(Random& rng) {
  for (double turn : {0.0, 1e-9, 1e-3, 0.5, 3.0}) {
    World w = one(kBall, rng);
    Params<double> raw = params_map(w.t, w.x.data() + w.at_theta());
    V phi = turn * random_unit(rng);
    Q rest = quat_normalise(quat_at(raw.rest)), q = mul(rest, quat_exp(phi));
    Vector tau = spring(w, flat(q));
    CHECK_NEAR(test::distance(vec3_at(tau.data()), raw.stiffness[0] * phi), 0, kRounding);
    raw.stiffness[0] = 0;
    CHECK(distance(spring(w, flat(q)), {0, 0, 0}) == 0);
  }
  World w = one(kPrismatic, rng);
  Params<double> raw = params_map(w.t, w.x.data() + w.at_theta());
  CHECK_NEAR(spring(w, {raw.rest[0] + 0.3})[0], 0.3 * raw.stiffness[0], kRounding);
  CHECK(spring(w, {raw.rest[0]})[0] == 0);
  View<double> a(w, w.x);
  double tau = 7, rate = 2;
  passive(w.t, a.th, a.th.damping, a.th.rest, &rate, &tau);
  CHECK_NEAR(tau, 7 + 2 * raw.damping[0], kRounding);
}

static void check_manifold(const World& w, Random& rng) {
  const Tree& t = w.t;
  Vector q(t.nq), again(t.nq), next(t.nq), v = rng.vector(t.nv), zero(t.nv, 0.0);
  normalise(t, w.x.data(), q.data()), normalise(t, q.data(), again.data());
  CHECK_NEAR(distance(q, again), 0, kRounding * t.nq);
  // there and back: difference(q, q (+) h v) = h v, and nothing for no motion
  integrate(t, q.data(), 0.7, v.data(), next.data());
  Vector d = difference_of(w, q, next);
  for (int i = 0; i < t.nv; i++) CHECK_NEAR(d[i], 0.7 * v[i], kRounding);
  CHECK_NEAR(distance(difference_of(w, q, q), zero), 0, kRounding * t.nq);
  integrate(t, q.data(), 0.0, v.data(), again.data());
  CHECK_NEAR(distance(q, again), 0, kRounding * t.nq);
  // quaternions leave with unit length
  normalise(t, next.data(), again.data());
  CHECK_NEAR(distance(next, again), 0, kRounding * t.nq);
}

// unit axes and quaternions where the joint has them, everything else as given; an unused axis may be zero
static void check_prepare(World w) {
  const Tree& t = w.t;
  double* raw = w.x.data() + w.at_theta();
  Params<double> from = params_map(t, raw);
  for (int b = 0; b < t.nb; b++)
    if (!joint_has_axis(t.joint[b])) from.joint_axis[b] = {0, 0, 0};
  View<double> a(w, w.x);
  for (int b = 0; b < t.nb; b++) {
    CHECK_NEAR(test::distance(a.th.joint_quat[b], quat_normalise(from.joint_quat[b])), 0, 0);
    bool axis = joint_has_axis(t.joint[b]);
    CHECK_NEAR(dot(a.th.joint_axis[b], a.th.joint_axis[b]), axis, kRounding);
    CHECK_NEAR(test::distance(cross(a.th.joint_axis[b], from.joint_axis[b]), {0, 0, 0}), 0, kRounding);
  }
  CHECK(Vector(a.theta.data(), &a.th.joint_quat->w) == Vector(raw, &from.joint_quat->w));
  CHECK(Vector(&a.th.joint_anchor->x, &a.th.joint_axis->x) == Vector(&from.joint_anchor->x, &from.joint_axis->x));
  CHECK(Vector(a.th.stiffness, a.th.rest) == Vector(from.stiffness, from.rest));
  CHECK(Vector(a.th.damping, a.th.gear + t.nu) == Vector(from.damping, from.gear + t.nu));
}

// ---- adjoints: the whole flat x of a world, of which each op reads its share --------------------------------------------
enum Op { kActuate, kPassive, kIntegrate, kNormalise, kPrepare };
static const char* const kNames[] = {"actuate", "passive", "integrate", "normalise", "prepare"};

static int out_size(const World& w, Op op) {
  return op == kPrepare ? params_size(w.t) : op == kIntegrate || op == kNormalise ? w.t.nq : op == kActuate ? 2 * w.t.nv : w.t.nv;
}

template <class T> static void forward(const World& w, Op op, const std::vector<T>& x, std::vector<T>& y) {
  const Tree& t = w.t;
  View<T> a(w, x);
  std::vector<T> q(t.nq);
  normalise(t, a.in.q, q.data());
  if (op == kActuate) actuate(t, a.th, q.data(), a.in.u, a.in.h, y.data(), y.data() + t.nv);
  if (op == kPassive) {
    for (T& tau : y) tau = T(0);
    passive(t, a.th, a.th.damping, q.data(), a.in.v, y.data());
  }
  if (op == kIntegrate) integrate(t, q.data(), a.in.h, a.in.v, y.data());
  if (op == kNormalise) y = q;
  if (op == kPrepare) y = a.theta;
}

static void adjoint(const World& w, Op op, const Vector& g, Vector& x_bar) {
  const Tree& t = w.t;
  View<double> a(w, w.x);
  BarView b(w, x_bar);
  Vector q(t.nq), y(out_size(w, op)), tangent(t.nv, 0.0);
  normalise(t, a.in.q, q.data());
  forward(w, op, w.x, y);
  if (op == kActuate) actuate_adj(t, a.th, q.data(), a.in.u, a.in.h, g.data(), g.data() + t.nv, b.th, b.in.q, b.in.u, b.in.h);
  if (op == kPassive) passive_adj(t, a.th, a.th.damping, q.data(), a.in.v, g.data(), b.th, b.th.damping, b.in.q, b.in.v);
  if (op == kIntegrate) {
    tangent_bars(t, y.data(), g.data(), tangent.data());
    integrate_adj(t, a.in.h, a.in.v, tangent.data(), b.in.q, b.in.h, b.in.v);
  }
  if (op == kNormalise) tangent_bars(t, q.data(), g.data(), b.in.q);
  if (op == kPrepare) b.theta = g, b.th = params_map(t, b.theta.data());
  b.finish(w, x_bar);
}

static void check_op(const World& w, Op op, Random& rng) {
  check_adjoint(
      kNames[op], w.x, out_size(w, op), [&](const Duals& x, Duals& y) { forward(w, op, x, y); },
      [&](const Vector& g, Vector& x_bar) { adjoint(w, op, g, x_bar); }, rng);
}

// (q1, q2) -> q2 (-) q1, both as given
static void check_difference_adj(const World& w, Random& rng, double apart) {
  const Tree& t = w.t;
  int n = t.nq;
  Vector x(2 * n), d = rng.vector(t.nv), unit(2 * n);
  normalise(t, w.x.data(), x.data());
  integrate(t, x.data(), apart, d.data(), x.data() + n);
  for (double& c : x) c *= 1.5;  // not normalised
  normalise(t, x.data(), unit.data()), normalise(t, x.data() + n, unit.data() + n);
  check_adjoint(
      "difference", x, t.nv,
      [&](const Duals& in, Duals& out) {
        Duals u(2 * n);
        normalise(t, in.data(), u.data()), normalise(t, in.data() + n, u.data() + n);
        difference(t, u.data(), u.data() + n, out.data());
      },
      [&](const Vector& g, Vector& x_bar) {
        Vector q1_bar(t.nv, 0.0), q2_bar(t.nv, 0.0);
        difference_adj(t, unit.data(), unit.data() + n, g.data(), q1_bar.data(), q2_bar.data());
        normalise_adj(t, x.data(), q1_bar.data(), x_bar.data()), normalise_adj(t, x.data() + n, q2_bar.data(), x_bar.data() + n);
      },
      rng);
}

// the derivative by a stiffness that is zero, where the forward skips the spring: phi . tau_bar
static void check_slack(Random& rng) {
  World w = one(kBall, rng);
  params_map(w.t, w.x.data() + w.at_theta()).stiffness[0] = 0;
  Vector g = rng.vector(3), x_bar(w.size(), 0.0), q(4);
  adjoint(w, kPassive, g, x_bar);
  View<double> a(w, w.x);
  normalise(w.t, a.in.q, q.data());
  V phi = quat_log(mul(conj(quat_at(a.th.rest)), quat_at(q.data())));
  CHECK_NEAR(params_map(w.t, x_bar.data() + w.at_theta()).stiffness[0], dot(phi, vec3_at(g.data())), kRounding);
}

int main() {
  Random rng(8);
  check_actuate(rng), check_passive(rng), check_slack(rng);
  for (int trial = 0; trial < 12; trial++) {
    World w = trial == 0   ? World({}, {}, {}, true, kSparse, rng)
              : trial == 1 ? World({-1, 0}, {kFixed, kFixed}, {}, true, kSparse, rng)
              : trial < 7  ? World({-1}, {trial - 1}, {0, 0}, true, kSparse, rng)
                           : World::random(10, true, kSparse, rng);
    check_manifold(w, rng), check_prepare(w);
    for (Op op : {kActuate, kPassive, kIntegrate, kNormalise, kPrepare}) check_op(w, op, rng);
    for (double apart : {0.0, 1e-9, 0.05, 1.5}) check_difference_adj(w, rng, apart);
    // springs at rest: the logarithm of no turn; and a step of no time
    Params<double> raw = params_map(w.t, w.x.data() + w.at_theta());
    for (int i = 0; i < w.t.nq; i++) raw.rest[i] = w.x[i];
    w.x[w.at_h()] = 0;
    check_op(w, kPassive, rng), check_op(w, kIntegrate, rng);
  }
  return report("joint_space");
}
