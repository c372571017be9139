// spatial.h: the identities of motions and forces, and inertias against a cloud of point masses and against 6x6 matrices.
#include "sample.h"
using namespace test;

using V = Vec3<double>;
using M = Motion<double>;
using F = Force<double>;

// sums of up to 36 products of numbers of size 1
constexpr double kRounding = 1e-14;
static const V kZero = {0, 0, 0};

static void check_identities(Random& rng) {
  for (int i = 0; i < 100; i++) {
    M a = random_motion(rng), b = random_motion(rng), c = random_motion(rng);
    F f = random_force(rng);
    double s = rng.uniform();
    // carried along together, power does not change
    CHECK_NEAR(dot(cross(a, b), f), -dot(b, cross(a, f)), kRounding);
    // antisymmetric, Jacobi, and the same for forces: a x* b x* f - b x* a x* f = (a x b) x* f
    CHECK_NEAR(distance(cross(a, b), -1.0 * cross(b, a)), 0, kRounding);
    CHECK_NEAR(distance(cross(a, cross(b, c)) + cross(b, cross(c, a)) + cross(c, cross(a, b)), zero_motion<double>()), 0,
               kRounding);
    CHECK_NEAR(distance(cross(a, cross(b, f)) - cross(b, cross(a, f)), cross(cross(a, b), f)), 0, kRounding);
    // the bars written in spatial.h: of (a x b) . f by a, by b; of m . (a x* f) by a, by f
    CHECK_NEAR(dot(a, cross(b, f)), dot(cross(a, b), f), kRounding);
    CHECK_NEAR(dot(a, -1.0 * cross(c, f)), dot(c, cross(a, f)), kRounding);
    CHECK_NEAR(dot(cross(c, a), f), dot(c, cross(a, f)), kRounding);
    CHECK_NEAR(distance(fma(s, a, b), s * a + b), 0, kRounding);
    CHECK_NEAR(distance(fma(s, f, f), s * f + f), 0, kRounding);
    CHECK_NEAR(dot(a, f), dot(a.w, f.n) + dot(a.v, f.f), kRounding);
  }
}

// by hand: spinning about z through the point (1, 0, 0), the material point at the origin moves along -y
static void check_by_hand() {
  V axis = {0, 0, 1}, point = {1, 0, 0};
  M spin = {axis, cross(point, axis)};
  CHECK(distance(spin.v, V{0, -1, 0}) == 0);
  // the velocity it gives to `point` itself is zero, and a force through `point` has no power
  CHECK(distance(spin.v + cross(spin.w, point), kZero) == 0);
  V push = {3, 4, 5};
  CHECK(dot(spin, F{cross(point, push), push}) == 0);
}

struct Cloud {
  Inertia<double> I;
  std::vector<double> mass;
  std::vector<V> at;
};

static Cloud random_cloud(Random& rng) {
  Cloud cloud = {{0, kZero, {0, 0, 0, 0, 0, 0}}, {}, {}};
  for (int i = 0; i < 5; i++) {
    double m = rng.uniform(0.1, 1);
    V c = random_vec(rng);
    cloud.mass.push_back(m), cloud.at.push_back(c);
    Sym3<double> I = {m * (c.y * c.y + c.z * c.z),
                      m * (c.x * c.x + c.z * c.z),
                      m * (c.x * c.x + c.y * c.y),
                      -m * c.x * c.y,
                      -m * c.x * c.z,
                      -m * c.y * c.z};
    cloud.I += Inertia<double>{m, m * c, I};
  }
  return cloud;
}

// a 6x6 matrix by its columns: what it makes of the six unit motions
using Matrix6 = std::vector<std::vector<double>>;
static std::vector<double> six(F f) { return {f.n.x, f.n.y, f.n.z, f.f.x, f.f.y, f.f.z}; }
static std::vector<double> six(M m) { return {m.w.x, m.w.y, m.w.z, m.v.x, m.v.y, m.v.z}; }
template <class I> static Matrix6 dense(const I& inertia) {
  Matrix6 columns;
  for (int k = 0; k < 6; k++) {
    double e[6] = {0, 0, 0, 0, 0, 0};
    e[k] = 1;
    columns.push_back(six(mul(inertia, M{{e[0], e[1], e[2]}, {e[3], e[4], e[5]}})));
  }
  return columns;
}
static double difference(const Matrix6& a, const Matrix6& b) {
  double worst = 0;
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) worst = std::fmax(worst, std::fabs(a[i][j] - b[i][j]));
  return worst;
}

// [ I  [h] ; [h]^T  m 1 ], written out
static Matrix6 written_out(const Inertia<double>& I) {
  const Sym3<double>& s = I.I;
  V h = I.h;
  double m = I.m;
  return {{s.xx, s.xy, s.xz, 0, -h.z, h.y}, {s.xy, s.yy, s.yz, h.z, 0, -h.x}, {s.xz, s.yz, s.zz, -h.y, h.x, 0},
          {0, h.z, -h.y, m, 0, 0},          {-h.z, 0, h.x, 0, m, 0},          {h.y, -h.x, 0, 0, 0, m}};
}

static void check_inertia(Random& rng) {
  for (int i = 0; i < 20; i++) {
    Cloud cloud = random_cloud(rng);
    M v = random_motion(rng);
    // momentum, particle by particle
    F momentum = zero_force<double>();
    double twice_energy = 0;
    for (size_t k = 0; k < cloud.at.size(); k++) {
      V c = cloud.at[k], p = cloud.mass[k] * (v.v + cross(v.w, c));
      momentum += F{cross(c, p), p};
      twice_energy += dot(p, p) / cloud.mass[k];
    }
    CHECK_NEAR(distance(mul(cloud.I, v), momentum), 0, kRounding);
    CHECK_NEAR(dot(v, mul(cloud.I, v)), twice_energy, kRounding);
    CHECK_NEAR(difference(dense(cloud.I), written_out(cloud.I)), 0, 0);
  }
}

static void check_articulated(Random& rng) {
  for (int i = 0; i < 20; i++) {
    Inertia<double> I = random_cloud(rng).I, J = random_cloud(rng).I;
    ArticulatedInertia<double> A = articulated(I);
    CHECK_NEAR(difference(dense(A), dense(I)), 0, 0);
    // sum
    Inertia<double> both = I;
    both += J;
    add(A, articulated(J));
    CHECK_NEAR(difference(dense(A), dense(both)), 0, kRounding);
    // k U U^T
    F U = random_force(rng);
    double k = rng.uniform();
    Matrix6 expected = dense(A);
    for (int r = 0; r < 6; r++)
      for (int c = 0; c < 6; c++) expected[r][c] += k * six(U)[r] * six(U)[c];
    add_outer(A, k, U);
    CHECK_NEAR(difference(dense(A), expected), 0, kRounding);
    // symmetric also after that
    M x = random_motion(rng), y = random_motion(rng);
    CHECK_NEAR(dot(x, mul(A, y)), dot(y, mul(A, x)), kRounding);
  }
}

// x . I y by the ten numbers of I, against Dual; and the bar of y is I x
static void check_form_adj(Random& rng) {
  for (int i = 0; i < 20; i++) {
    M x = random_motion(rng), y = random_motion(rng);
    std::vector<double> at = rng.vector(16);
    for (int k = 0; k < 6; k++) at[10 + k] = six(y)[k];
    auto inertia_at = [](auto* p) {
      using T = std::decay_t<decltype(*p)>;
      return Inertia<T>{p[0], {p[1], p[2], p[3]}, {p[4], p[5], p[6], p[7], p[8], p[9]}};
    };
    check_adjoint(
        "inertia_form", at, 1,
        [&](const Duals& in, Duals& out) {
          Motion<Dual<double>> xd = {lift<Dual<double>>(x.w), lift<Dual<double>>(x.v)}, yd = {vec3_at(&in[10]), vec3_at(&in[13])};
          out[0] = dot(xd, mul(inertia_at(in.data()), yd));
        },
        [&](const std::vector<double>& w, std::vector<double>& bar) {
          Inertia<double> I_bar = {0, kZero, {0, 0, 0, 0, 0, 0}};
          inertia_form_adj(w[0] * x, y, I_bar);
          const Sym3<double>& s = I_bar.I;
          F y_bar = mul(inertia_at(at.data()), w[0] * x);
          bar = {I_bar.m, I_bar.h.x, I_bar.h.y, I_bar.h.z, s.xx, s.yy, s.zz, s.xy, s.xz, s.yz};
          for (double b : six(y_bar)) bar.push_back(b);
        },
        rng);
  }
}

int main() {
  Random rng(5);
  check_identities(rng), check_by_hand(), check_inertia(rng), check_articulated(rng), check_form_adj(rng);
  return report("spatial");
}
