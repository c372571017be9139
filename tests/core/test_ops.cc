// ops/: the values of each op against a second algorithm or by hand, on random, degenerate and empty trees.
#include "sample.h"
#include "world.h"
using namespace test;

using V = Vec3<double>;
using D = Dual<double>;

// sums over a tree of up to 14 bodies, relative to numbers of size 1 to 100
constexpr double kRounding = 1e-12;

// the first half of a step, in dirty memory
template <class T> struct Run {
  Scratch<T> s;
  View<T> a;
  Run(const World& w, const std::vector<T>& x) : s(w.t, 1e30), a(w, x) {
    normalise(w.t, a.in.q, s.tr.q);
    kinematics(w.t, a.th, s.tr);
    velocity(w.t, s.tr, a.in.v);
    inertia(w.t, a.th, s.tr);
    composite(w.t, s.tr);
  }
};

// no body, no dof, one body of each kind, two trees, a massless body between two joints; then random ones
static std::vector<World> worlds(int form, Random& rng) {
  std::vector<World> all;
  auto add = [&](std::vector<int> parent, std::vector<int> joint) {
    all.emplace_back(parent, joint, std::vector<int>{}, false, form, rng);
  };
  add({}, {}), add({-1}, {kFixed}), add({-1, 0, 1}, {kFixed, kFixed, kFixed}), add({-1, -1}, {kFree, kFree});
  for (int kind = kRevolute; kind <= kPlanar; kind++) add({-1}, {kind});
  add({-1, 0, 1}, {kFixed, kRevolute, kFixed}), add({-1, 0}, {kRevolute, kBall});
  double* theta = all.back().x.data() + all.back().at_theta();
  params_map(all.back().t, theta).mass[0] = 0, params_map(all.back().t, theta).com[0] = {0, 0, 0};
  params_map(all.back().t, theta).inertia[0] = {0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 5; i++) all.push_back(World::random(6 + 2 * i, false, form, rng));
  return all;
}

// ---- kinematics by products of poses, each turn from its axis and angle --------------------------------------------
struct Pose {
  Mat3<double> R;
  V p;
};
static Pose operator*(const Pose& a, const Pose& b) {
  V x, y, z;
  columns(b.R, x, y, z);
  x = mul(a.R, x), y = mul(a.R, y), z = mul(a.R, z);
  return {{{x.x, y.x, z.x}, {x.y, y.y, z.y}, {x.z, y.z, z.z}}, a.p + mul(a.R, b.p)};
}
static Pose shift(V p) { return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, p}; }
static Pose turn(V u, double angle) {
  double s = std::sin(angle), c = 1 - std::cos(angle);
  return {{{1 - c * (u.y * u.y + u.z * u.z), c * u.x * u.y - s * u.z, c * u.x * u.z + s * u.y},
           {c * u.x * u.y + s * u.z, 1 - c * (u.x * u.x + u.z * u.z), c * u.y * u.z - s * u.x},
           {c * u.x * u.z - s * u.y, c * u.y * u.z + s * u.x, 1 - c * (u.x * u.x + u.y * u.y)}},
          {0, 0, 0}};
}
static Pose turn(const double* q) {  // a quaternion of any length
  double n = std::sqrt(q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  return turn((1 / n) * V{q[1], q[2], q[3]}, 2 * std::atan2(n, q[0]));
}

static Pose joint_pose(int kind, const double* q, V anchor, V axis) {
  V u = (1 / std::sqrt(dot(axis, axis))) * axis;
  Pose there = shift(anchor), back = shift(-anchor);
  if (kind == kRevolute) return there * turn(u, q[0]) * back;
  if (kind == kPrismatic) return shift(q[0] * u);
  if (kind == kBall) return there * turn(q) * back;
  if (kind == kPlanar) return there * shift({q[0], q[1], 0}) * turn({0, 0, 1}, q[2]) * back;
  return shift({0, 0, 0});
}

static void check_kinematics(const World& w) {
  Run<double> r(w, w.x);
  Params<double> raw = params_map(w.t, const_cast<double*>(w.x.data()) + w.at_theta());
  std::vector<Pose> X;
  for (int b = 0; b < w.t.nb; b++) {
    const double* q = w.x.data() + w.t.q_adr[b];
    Pose local = shift(raw.joint_pos[b]) * turn(&raw.joint_quat[b].w) *
                 joint_pose(w.t.joint[b], q, raw.joint_anchor[b], raw.joint_axis[b]);
    if (w.t.joint[b] == kFree)
      X.push_back(shift({q[0], q[1], q[2]}) * turn(q + 3));
    else
      X.push_back(w.t.parent[b] < 0 ? local : X[w.t.parent[b]] * local);
    CHECK_NEAR(distance(r.s.tr.origin[w.t.root[b]] + r.s.tr.p[b], X[b].p), 0, kRounding);
    CHECK_NEAR(distance(r.s.tr.R[b], X[b].R), 0, kRounding);
    CHECK_NEAR(distance(matrix(r.s.tr.quat[b]), X[b].R), 0, kRounding);
  }
}

// ---- Newton's law: wrenches are rates of momentum about the world's origin, taken by Dual along the motion -----------
struct Momentum {
  Vec3<D> angular, linear, com;
};
static Momentum momentum(const World& w, const Run<D>& r, int b) {
  const Trace<D>& tr = r.s.tr;
  Vec3<D> arm = mul(tr.R[b], r.a.th.com[b]), x = tr.origin[w.t.root[b]] + tr.p[b] + arm;
  Vec3<D> P = r.a.th.mass[b] * (tr.v[b].v + cross(tr.v[b].w, tr.p[b] + arm));
  Vec3<D> spin = mul(tr.R[b], mul(r.a.th.inertia[b], tmul(tr.R[b], tr.v[b].w)));
  return {spin + cross(x, P), P, x};
}
static V value(Vec3<D> a) { return {a.x.value, a.y.value, a.z.value}; }
static V rate(Vec3<D> a) { return {a.x.tangent, a.y.tangent, a.z.tangent}; }

// the world at time h = 0, moving with v and accelerating with the u block
static std::vector<D> moving(const World& w) {
  std::vector<D> x(w.x.begin(), w.x.end()), q(w.t.nq), next(w.t.nq);
  normalise(w.t, x.data(), q.data());
  integrate(w.t, q.data(), D(0, 1), x.data() + w.at_v(), next.data());
  for (int i = 0; i < w.t.nq; i++) x[i] = next[i];
  for (int d = 0; d < w.t.nv; d++) x[w.at_v() + d].tangent = w.x[w.at_u() + d];
  return x;
}

// a body's velocity is the rate of its pose: omega from quat_dot = (0, omega) quat / 2
static void check_velocity(const World& w) {
  std::vector<D> x = moving(w);
  Run<D> r(w, x);
  for (int b = 0; b < w.t.nb; b++) {
    Vec3<D> at = r.s.tr.origin[w.t.root[b]] + r.s.tr.p[b], p = r.s.tr.p[b];
    Quat<D> q = r.s.tr.quat[b];
    Motion<D> v = r.s.tr.v[b];
    V omega = 2.0 * vec(mul(Quat<double>{q.w.tangent, q.x.tangent, q.y.tangent, q.z.tangent},
                            Quat<double>{q.w.value, -q.x.value, -q.y.value, -q.z.value}));
    CHECK_NEAR(distance(value(v.w), omega), 0, kRounding);
    CHECK_NEAR(distance(value(v.v + cross(v.w, p)), rate(at)), 0, kRounding);
  }
}

static void check_newton(const World& w) {
  const Tree& t = w.t;
  std::vector<D> x = moving(w);
  Run<D> r(w, x);
  Run<double> a(w, w.x);
  std::vector<Force<double>> f(t.nb);
  V g = a.a.th.gravity[0];
  double twice_energy = 0;
  for (int b = t.nb - 1; b >= 0; b--) {
    Momentum m = momentum(w, r, b);
    V c = value(m.com), weight = a.a.th.mass[b] * g, push = vec3_at(a.a.in.external + 6 * b + 3);
    f[b] += Force<double>{rate(m.angular) - cross(c, weight + push) - vec3_at(a.a.in.external + 6 * b),
                          rate(m.linear) - weight - push};
    if (t.parent[b] >= 0) f[t.parent[b]] += f[b];
    Motion<double> v = a.s.tr.v[b];
    twice_energy += dot(v, mul(a.s.tr.I[b], v));
  }
  std::vector<double> tau(t.nv), M(t.nv * t.nv);
  inverse_dynamics(t, a.a.th, a.s.tr, a.a.in.v, a.a.in.u, a.a.in.external, tau.data());
  mass_rows(t, a.a.th, a.s.tr, M.data());
  for (int d = 0; d < t.nv; d++) {
    int b = t.dof_body[d];
    Motion<double> S = a.s.tr.S[d];
    S.v += cross(a.s.tr.origin[t.root[b]], S.w);  // about the world's origin
    CHECK_NEAR(tau[d], dot(S, f[b]), kRounding * 100);
    for (int j = 0; j < t.nv; j++)
      twice_energy -= a.a.in.v[d] * (M[d * t.nv + j] - (d == j ? a.a.th.armature[d] : 0)) * a.a.in.v[j];
  }
  CHECK_NEAR(twice_energy, 0, kRounding * 100);
}

// ---- mass matrix and solve -------------------------------------------------------------------------------------------
// column j of M is what inverse dynamics asks for a unit acceleration of dof j at rest, without gravity
static void check_mass(World w) {
  const Tree& t = w.t;
  params_map(t, w.x.data() + w.at_theta()).gravity[0] = {0, 0, 0};
  for (int d = 0; d < t.nv; d++) w.x[w.at_v() + d] = 0;
  Run<double> r(w, w.x);
  std::vector<double> M(t.nv * t.nv), tau(t.nv), unit(t.nv, 0.0);
  mass_rows(t, r.a.th, r.s.tr, M.data());
  for (int j = 0; j < t.nv; j++) {
    unit[j] = 1;
    inverse_dynamics(t, r.a.th, r.s.tr, r.a.in.v, unit.data(), static_cast<const double*>(nullptr), tau.data());
    for (int d = 0; d < t.nv; d++) CHECK_NEAR(M[d * t.nv + j], tau[d] + (d == j ? r.a.th.armature[d] : 0), kRounding);
    unit[j] = 0;
  }
}

static void check_solve(const World& w, Random& rng) {
  const Tree& t = w.t;
  Run<double> r(w, w.x);
  std::vector<double> H(t.nv * t.nv), b = rng.vector(t.nv), x;
  mass_rows(t, r.a.th, r.s.tr, H.data());
  for (int d = 0; d < t.nv; d++) H[d * t.nv + d] += r.a.in.h * r.a.th.damping[d];
  for (int d = 0; d < t.nv; d++) r.s.tr.D[d] = r.a.th.damping[d];
  factor(t, r.a.th, r.s.tr, r.a.in.h);
  for (int again = 0; again < 2; again++) {
    x = b;
    solve(t, r.s.tr, x.data());
    for (int d = 0; d < t.nv; d++) {
      double sum = 0, size = 1;
      for (int j = 0; j < t.nv; j++) sum += H[d * t.nv + j] * x[j], size += std::fabs(H[d * t.nv + j] * x[j]);
      CHECK_NEAR(sum, b[d], kRounding * size);
    }
  }
}

// null accelerations and null wrenches are zeros, to the last bit
static void check_null(const World& w) {
  const Tree& t = w.t;
  Run<double> r(w, w.x);
  std::vector<double> zero(t.nv, 0.0), still(6 * t.nb, 0.0), tau(t.nv), same(t.nv);
  const double* null = nullptr;
  inverse_dynamics(t, r.a.th, r.s.tr, r.a.in.v, zero.data(), still.data(), tau.data());
  inverse_dynamics(t, r.a.th, r.s.tr, r.a.in.v, null, null, same.data());
  CHECK(tau == same);
}

int main() {
  Random rng(7);
  for (int form : {kSparse, kArticulated})
    for (const World& w : worlds(form, rng)) {
      check_kinematics(w);
      check_velocity(w);
      check_newton(w);
      check_mass(w);
      check_solve(w, rng);
      check_null(w);
    }
  return report("ops");
}
