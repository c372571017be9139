// ops/joint/: each joint's pose by hand, its S as the derivative of the pose, its adjoints against Dual.
//
// A joint as one flat function: x = (displacement of the joint frame 6, anchor 3, axis as given 3, step along the dofs nv)
// -> y = (p 3, quat 4, S 6 nv), at a fixed frame and a fixed q. Displacements are about the tree's origin, like the engine's.
#include "../../core/ops/kinematics.h"
#include "sample.h"
using namespace test;

using V = Vec3<double>;
using Q = Quat<double>;

// products of a few rotations at positions of size 1
constexpr double kRounding = 1e-14;
static const double kPi = 3.14159265358979323846;
static const char* const kNames[] = {"fixed", "revolute", "prismatic", "ball", "free", "planar"};
// angles and slides: zero, tiny, quarter, half and whole turns, many turns
static const double kSizes[] = {0, 1e-9, -1e-4, 0.3, kPi / 2, -kPi / 2, kPi, 2 * kPi, 100.3, -1000};

struct Setup {
  int kind;
  JointFrame<double> pre;
  std::vector<double> q, x;
  int nv() const { return joint_nv(kind); }
  int ny() const { return 7 + 6 * nv(); }
};

static Setup random_setup(int kind, double size, Random& rng) {
  Setup s = {kind, {random_quat(rng), random_vec(rng)}, {}, rng.vector(12 + joint_nv(kind))};
  for (int i = 0; i < joint_lin(kind); i++) s.q.push_back(kind == kFree || (kind == kPlanar && i < 2) ? rng.uniform() : size);
  if (joint_turns(kind))
    for (double c : flat(quat_exp(size * random_unit(rng)))) s.q.push_back(c);
  for (int i = 0; i < int(s.x.size()); i++)
    if (i < 6 || i >= 12) s.x[i] = 0;  // displacements count from where the joint is
  return s;
}

template <class T>
static void place(int kind, const JointFrame<T>& pre, const JointArgs<T>& j, Quat<T>& quat, Mat3<T>& R, Vec3<T>& p) {
  if (kind == kFixed) fixed_place(pre, quat, R, p);
  if (kind == kRevolute) revolute_place(pre, j, quat, R, p);
  if (kind == kPrismatic) prismatic_place(pre, j, quat, R, p);
  if (kind == kBall) ball_place(pre, j, quat, R, p);
  if (kind == kFree) free_place(j, quat, R, p);
  if (kind == kPlanar) planar_place(pre, j, quat, R, p);
}
template <class T>
static void subspace(int kind, const JointFrame<T>& pre, const JointArgs<T>& j, const Mat3<T>& R, Vec3<T> p, Motion<T>* S) {
  if (kind == kRevolute) revolute_subspace(j, R, p, S);
  if (kind == kPrismatic) prismatic_subspace(j, R, S);
  if (kind == kBall) ball_subspace(j, R, p, S);
  if (kind == kFree) free_subspace(R, p, S);
  if (kind == kPlanar) planar_subspace(pre, j, R, p, S);
}

// one joint with all its numbers, placed
template <class T> struct Placed {
  T q[7];
  JointFrame<T> pre;
  JointArgs<T> j;
  Quat<T> quat;
  Vec3<T> p;
  Mat3<T> R;
  Motion<T> S[6];

  Placed(const Setup& s, const T* x) {
    Vec3<T> w = vec3_at(x), p0 = lift<T>(s.pre.p);
    pre = {mul(quat_exp(w), lift<T>(s.pre.quat)), p0 + cross(w, p0) + vec3_at(x + 3)};
    int n = joint_lin(s.kind);
    for (int i = 0; i < n; i++) q[i] = T(s.q[i]) + x[12 + i];
    if (joint_turns(s.kind)) put(q + n, mul(lift<T>(quat_at(s.q.data() + n)), quat_exp(vec3_at(x + 12 + n))));
    j = {vec3_at(x + 6), vec_normalise(vec3_at(x + 9)), q};
    place(s.kind, pre, j, quat, R, p);
    subspace(s.kind, pre, j, R, p, S);
  }
  Placed(const Placed&) = delete;  // j points into q
};

static void forward(const Setup& s, const Duals& x, Duals& y) {
  Placed<Dual<double>> a(s, x.data());
  put(y.data(), a.p), put(y.data() + 3, a.quat);
  for (int d = 0; d < s.nv(); d++) put(&y[7 + 6 * d], a.S[d].w), put(&y[10 + 6 * d], a.S[d].v);
}

static void adjoint(const Setup& s, const std::vector<double>& w, std::vector<double>& x_bar) {
  Placed<double> a(s, s.x.data());
  V one = {1, 1, 1}, p_bar = vec3_at(w.data()), axis_bar = {0, 0, 0};  // bars add to what is there: one
  for (double& bar : x_bar) bar = 1;
  JointBars<double> bar = {one, one, x_bar.data() + 12};
  Force<double> S_bar[6], X = {mul(a.R, tangent_bar(a.quat, quat_at(&w[3]))) + cross(a.p, p_bar), p_bar}, X_pre = {one, one};
  for (int d = 0; d < s.nv(); d++) S_bar[d] = {vec3_at(&w[7 + 6 * d]), vec3_at(&w[10 + 6 * d])};
  if (s.kind == kFixed) fixed_place_adj(X, X_pre);
  if (s.kind == kRevolute)
    revolute_subspace_adj(a.j, a.R, a.p, a.S, S_bar, bar, X), revolute_place_adj(a.pre, a.j, a.R, a.p, X, bar, X_pre);
  if (s.kind == kPrismatic) prismatic_subspace_adj(a.R, a.S, S_bar, bar, X), prismatic_place_adj(a.j, a.R, X, bar, X_pre);
  if (s.kind == kBall) ball_subspace_adj(a.R, a.S, S_bar, bar, X), ball_place_adj(a.pre, a.j, a.R, a.p, X, bar, X_pre);
  if (s.kind == kFree) free_subspace_adj(a.S, S_bar, X), free_place_adj(a.R, a.p, X, bar);
  if (s.kind == kPlanar)
    planar_subspace_adj(a.R, a.S, S_bar, bar, X, X_pre), planar_place_adj(a.pre, a.j, a.R, a.p, X, bar, X_pre);
  put(&x_bar[0], X_pre.n), put(&x_bar[3], X_pre.f), put(&x_bar[6], bar.anchor);
  vec_normalise_adj(vec3_at(&s.x[9]), bar.axis - one, axis_bar);
  put(&x_bar[9], axis_bar + one);
  for (double& bar : x_bar) bar -= 1;
}

// (c) all of the joint's inputs at once, then the pose alone and S alone
static void check_adjoints(const Setup& s, Random& rng) {
  for (int part = 0; part < 3; part++) {
    auto in_part = [&](int i) { return part == 0 || (part == 1) == (i < 7); };
    check_adjoint(
        kNames[s.kind], s.x, s.ny(),
        [&](const Duals& x, Duals& y) {
          forward(s, x, y);
          for (int i = 0; i < s.ny(); i++)
            if (!in_part(i)) y[i] = 0.0;
        },
        [&](std::vector<double> w, std::vector<double>& x_bar) {
          for (int i = 0; i < s.ny(); i++)
            if (!in_part(i)) w[i] = 0;
          adjoint(s, w, x_bar);
        },
        rng);
  }
}

// (a) S_d is the motion of the body per unit of v_d: omega from quat_dot = (0, omega) quat / 2, and the speed at the tree's origin
static void check_subspace(const Setup& s) {
  for (int d = 0; d < s.nv(); d++) {
    Duals x(s.x.size()), y(s.ny());
    for (size_t i = 0; i < x.size(); i++) x[i] = {s.x[i], int(i) == 12 + d ? 1.0 : 0.0};
    forward(s, x, y);
    Q quat = {y[3].value, y[4].value, y[5].value, y[6].value},
      quat_dot = {y[3].tangent, y[4].tangent, y[5].tangent, y[6].tangent};
    V p = {y[0].value, y[1].value, y[2].value}, p_dot = {y[0].tangent, y[1].tangent, y[2].tangent};
    V omega = 2.0 * vec(mul(quat_dot, conj(quat)));
    Duals::value_type* S = &y[7 + 6 * d];
    Motion<double> got = {{S[0].value, S[1].value, S[2].value}, {S[3].value, S[4].value, S[5].value}};
    CHECK_NEAR(distance(got, Motion<double>{omega, p_dot - cross(omega, p)}), 0, kRounding);
  }
}

// the point a joint turns about stays where the frame has it
static void check_anchor(const Setup& s) {
  Placed<double> a(s, s.x.data());
  V slide = s.kind == kPlanar ? V{a.q[0], a.q[1], 0} : V{0, 0, 0};
  CHECK_NEAR(distance(a.p + rotate(a.quat, a.j.anchor), a.pre.p + rotate(a.pre.quat, a.j.anchor + slide)), 0, kRounding);
}

static void check_by_hand(int kind, std::vector<double> q, V anchor, V axis, Q quat, V p) {
  JointFrame<double> pre = {{1, 0, 0, 0}, {0, 0, 10}};
  Q got;
  V at;
  Mat3<double> R;
  place(kind, pre, {anchor, axis, q.data()}, got, R, at);
  CHECK_NEAR(distance(R, matrix(quat)), 0, kRounding);
  CHECK_NEAR(distance(got, quat), 0, kRounding);
  CHECK_NEAR(distance(at, p), 0, kRounding);
}

int main() {
  Random rng(6);
  for (int kind = kFixed; kind <= kPlanar; kind++)
    for (double size : kSizes)
      for (int i = 0; i < 5; i++) {
        Setup s = random_setup(kind, size, rng);
        check_adjoints(s, rng);
        check_subspace(s);
        if (kind == kRevolute || kind == kBall || kind == kPlanar) check_anchor(s);
      }
  // a quarter turn about z through (1, 0, 0), of a frame at height 10
  double r = std::sqrt(0.5);
  V x = {1, 0, 0}, z = {0, 0, 1};
  check_by_hand(kFixed, {}, x, z, {1, 0, 0, 0}, {0, 0, 10});
  check_by_hand(kRevolute, {kPi / 2}, x, z, {r, 0, 0, r}, {1, -1, 10});
  check_by_hand(kPrismatic, {2}, x, x, {1, 0, 0, 0}, {2, 0, 10});
  check_by_hand(kBall, {r, 0, 0, r}, x, z, {r, 0, 0, r}, {1, -1, 10});
  check_by_hand(kFree, {1, 2, 3, r, 0, r, 0}, x, z, {r, 0, r, 0}, {1, 2, 3});
  check_by_hand(kPlanar, {5, 6, kPi / 2}, x, x, {r, 0, 0, r}, {6, 5, 10});
  return report("joints");
}
