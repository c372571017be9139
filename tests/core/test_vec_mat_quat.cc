// vec3.h, mat3.h, quat.h: identities, exp and log at every size of turn, and their adjoints against Dual.
#include <limits>

#include "sample.h"
using namespace test;

using V = Vec3<double>;
using Q = Quat<double>;

// a handful of roundings at numbers of size 1
constexpr double kRounding = 3e-15;
static const double kPi = 3.14159265358979323846;
static const V kZero = {0, 0, 0};
// sizes of turn: zero, tiny (the square underflows), both sides of the series' end at 0.1, ordinary, nearly half a turn
static const double kTurns[] = {
    0,      1e-300,      1e-160,           1e-12, 1e-9, 1e-6, 1e-3, 0.0999999999, 0.1, 0.1000000001, 0.5, 1, 2, 3,
    3.1415, 3.141592653, kPi * (1 - 2e-15)};

static void check_vectors(Random& rng) {
  V x = {1, 0, 0}, y = {0, 1, 0}, z = {0, 0, 1};
  CHECK(distance(cross(x, y), z) == 0 && distance(cross(y, z), x) == 0 && distance(cross(z, x), y) == 0);
  for (int i = 0; i < 50; i++) {
    V a = random_vec(rng), b = random_vec(rng), c = random_vec(rng), u = random_unit(rng);
    CHECK_NEAR(dot(a, cross(b, c)), dot(b, cross(c, a)), kRounding);
    CHECK_NEAR(distance(cross(a, cross(b, c)), dot(a, c) * b - dot(a, b) * c), 0, kRounding);
    CHECK_NEAR(distance(fma(2.0, a, b), a + a + b), 0, kRounding);
    CHECK(distance(-a, kZero - a) == 0);
    CHECK_NEAR(distance(vec_normalise(rng.uniform(0.01, 100) * u), u), 0, kRounding);
    V sum = a;
    sum += b, sum -= c;
    CHECK(distance(sum, a + b - c) == 0);
  }
}

static void check_matrices(Random& rng) {
  for (int i = 0; i < 50; i++) {
    Mat3<double> R = {random_vec(rng), random_vec(rng), random_vec(rng)};
    Sym3<double> S = {rng.uniform(), rng.uniform(), rng.uniform(), rng.uniform(), rng.uniform(), rng.uniform()};
    Mat3<double> full = {{S.xx, S.xy, S.xz}, {S.xy, S.yy, S.yz}, {S.xz, S.yz, S.zz}};
    V a = random_vec(rng), b = random_vec(rng), e[3];
    columns(R, e[0], e[1], e[2]);
    CHECK_NEAR(distance(mul(R, a), a.x * e[0] + a.y * e[1] + a.z * e[2]), 0, kRounding);
    CHECK_NEAR(dot(tmul(R, a), b), dot(a, mul(R, b)), kRounding);
    CHECK_NEAR(distance(mul(S, a), mul(full, a)), 0, kRounding);
    // R S R^T by three products
    CHECK_NEAR(distance(mul(conjugate(R, S), a), mul(R, mul(S, tmul(R, a)))), 0, 4 * kRounding);
    // a . S b as a sum over the six stored numbers
    Sym3<double> o = sym_outer(a, b);
    CHECK_NEAR(o.xx * S.xx + o.yy * S.yy + o.zz * S.zz + o.xy * S.xy + o.xz * S.xz + o.yz * S.yz, dot(a, mul(S, b)), kRounding);
  }
}

// rotate, matrix, mul and conj are four views of one rotation
static void check_rotation(Random& rng) {
  for (int i = 0; i < 50; i++) {
    Q p = random_quat(rng), q = random_quat(rng);
    V x = random_vec(rng), y = random_vec(rng), e[3];
    CHECK_NEAR(distance(rotate(q, x), mul(matrix(q), x)), 0, kRounding);
    CHECK_NEAR(distance(rotate(mul(p, q), x), rotate(p, rotate(q, x))), 0, kRounding);
    CHECK_NEAR(distance(rotate(conj(q), rotate(q, x)), x), 0, kRounding);
    CHECK_NEAR(distance(mul(q, conj(q)), Q{1, 0, 0, 0}), 0, kRounding);
    CHECK_NEAR(distance(tmul(matrix(q), x), rotate(conj(q), x)), 0, kRounding);
    CHECK_NEAR(dot(rotate(q, x), rotate(q, y)), dot(x, y), kRounding);
    columns(matrix(q), e[0], e[1], e[2]);
    CHECK_NEAR(distance(cross(e[0], e[1]), e[2]), 0, kRounding);
    CHECK_NEAR(distance(quat_normalise(Q{3 * q.w, 3 * q.x, 3 * q.y, 3 * q.z}), q), 0, kRounding);
  }
  // by hand: a quarter turn about z takes x to y
  double r = std::sqrt(0.5);
  CHECK_NEAR(distance(rotate(Q{r, 0, 0, r}, V{1, 0, 0}), V{0, 1, 0}), 0, kRounding);
  CHECK_NEAR(distance(quat_exp(V{0, 0, kPi / 2}), Q{r, 0, 0, r}), 0, kRounding);
}

// log(exp(phi)) = phi up to half a turn, to relative precision also for tiny turns
static void check_round_trip(Random& rng) {
  CHECK(distance(quat_exp(kZero), Q{1, 0, 0, 0}) == 0 && distance(quat_log(Q{1, 0, 0, 0}), kZero) == 0);
  CHECK(distance(quat_log(Q{-1, 0, 0, 0}), kZero) == 0);
  for (double turn : kTurns)
    for (int i = 0; i < 20; i++) {
      V phi = turn * random_unit(rng);
      Q q = quat_exp(phi);
      CHECK_NEAR(q.w * q.w + dot(vec(q), vec(q)), 1, kRounding);
      CHECK_NEAR(q.w, std::cos(turn / 2), kRounding);
      CHECK_NEAR(distance(quat_log(q), phi), 0, 2 * kRounding * turn);
      // -q is the same rotation
      CHECK_NEAR(distance(quat_log(Q{-q.w, -q.x, -q.y, -q.z}), phi), 0, 2 * kRounding * turn);
    }
  for (double turn : {3.3, 5.0, 2 * kPi - 1e-3}) {
    V u = random_unit(rng), phi = quat_log(quat_exp(turn * u));
    CHECK_NEAR(distance(phi, (turn - 2 * kPi) * u), 0, 4 * kRounding);  // the shorter way back
  }
}

// kink: the half turn. The branch w >= 0 is taken at w = 0 (either zero); just beyond, the shorter way is the other one
static void check_half_turn(Random& rng) {
  for (int i = 0; i < 20; i++) {
    V u = random_unit(rng);
    CHECK_NEAR(distance(quat_log(Q{0, u.x, u.y, u.z}), kPi * u), 0, kRounding);
    CHECK_NEAR(distance(quat_log(Q{-0.0, u.x, u.y, u.z}), kPi * u), 0, kRounding);
    CHECK_NEAR(distance(quat_log(Q{-1e-300, u.x, u.y, u.z}), -kPi * u), 0, kRounding);
  }
}

static void check_exp_adj(V phi, Random& rng) {
  check_adjoint(
      "quat_exp", flat(phi), 4, [](const Duals& in, Duals& out) { put(out.data(), quat_exp(vec3_at(in.data()))); },
      [&](const std::vector<double>& w, std::vector<double>& bar) {
        V phi_bar = kZero;
        quat_exp_adj(phi, tangent_bar(quat_exp(phi), quat_at(w.data())), phi_bar);
        put(bar.data(), phi_bar);
      },
      rng);
}

// in tangent coordinates: theta -> log(q exp(theta)) at theta = 0
static void check_log_adj(Q q, Random& rng) {
  check_adjoint(
      "quat_log", {0, 0, 0}, 3,
      [&](const Duals& in, Duals& out) { put(out.data(), quat_log(mul(lift<Dual<double>>(q), quat_exp(vec3_at(in.data()))))); },
      [&](const std::vector<double>& w, std::vector<double>& bar) {
        V theta_bar = kZero;
        quat_log_adj(quat_log(q), vec3_at(w.data()), theta_bar);
        put(bar.data(), theta_bar);
      },
      rng);
}

static void check_normalise_adj(double size, Random& rng) {
  Q u = random_quat(rng), q = {size * u.w, size * u.x, size * u.y, size * u.z};
  check_adjoint(
      "quat_normalise", flat(q), 4, [](const Duals& in, Duals& out) { put(out.data(), quat_normalise(quat_at(in.data()))); },
      [&](const std::vector<double>& w, std::vector<double>& bar) {
        Q q_bar = {0, 0, 0, 0};
        quat_normalise_adj(q, tangent_bar(quat_normalise(q), quat_at(w.data())), q_bar);
        put(bar.data(), q_bar);
      },
      rng);
  V a = size * random_unit(rng);
  check_adjoint(
      "vec_normalise", flat(a), 3, [](const Duals& in, Duals& out) { put(out.data(), vec_normalise(vec3_at(in.data()))); },
      [&](const std::vector<double>& w, std::vector<double>& bar) {
        V a_bar = kZero;
        vec_normalise_adj(a, vec3_at(w.data()), a_bar);
        put(bar.data(), a_bar);
      },
      rng);
}

static void check_adjoints(Random& rng) {
  for (int i = 0; i < 10; i++) {
    for (double turn : kTurns) check_exp_adj(turn * random_unit(rng), rng), check_log_adj(quat_exp(turn * random_unit(rng)), rng);
    for (double turn : {4.0, 6.2, 2 * kPi, 10.0, 100.0}) check_exp_adj(turn * random_unit(rng), rng);
    for (double size : {1e-3, 0.5, 1.0, 20.0, 1e3}) check_normalise_adj(size, rng);
    // at the half turn itself the branch w >= 0 is differentiated
    V u = random_unit(rng);
    check_log_adj({0, u.x, u.y, u.z}, rng);
    Q q = random_quat(rng);
    check_log_adj({-q.w, -q.x, -q.y, -q.z}, rng);
  }
  // adjoints add to what is there
  V bar = {1, 2, 3};
  quat_exp_adj(kZero, V{1, 1, 1}, bar), quat_log_adj(kZero, V{1, 1, 1}, bar);
  CHECK(distance(bar, V{3, 4, 5}) == 0);
}

// sum of (-1)^k x^k / (2k + first)!, all in long double: free of cancellation for the turns below 2
static long double series(long double x, int first) {
  long double term = 1, sum = 0;
  for (int i = 2; i <= first; i++) term /= i;
  for (int k = 0; k < 20; k++, term *= -x / ((2 * k + first - 1) * (2 * k + first))) sum += term;
  return sum;
}

// the coefficients against their power series; errors count as they enter: right_b and inverse_b are multiplied by phi^2
template <class E> static void check_coefficients(E turn) {
  TurnCoefficients<E> k = turn_coefficients(Vec3<E>{0, turn, 0});
  const double eps = 4 * std::numeric_limits<E>::epsilon();
  long double x = (long double)(turn)*turn, quarter = x / 4, s = series(quarter, 1), c = series(quarter, 0);
  CHECK_NEAR(k.half_cos, c, eps);
  CHECK_NEAR(k.exp_sinc, s / 2, eps);
  CHECK_NEAR(k.right_a, series(x, 2), eps);
  CHECK_NEAR(x * k.right_b, x * series(x, 3), eps * turn);
  // 1 - (theta/2) cot(theta/2) = (sinc - cos)/sinc, the difference as its own series: sum of (-1)^(k+1) (x/4)^k 2k/(2k + 1)!
  long double difference = 0, term = quarter / 6;
  for (int i = 1; i < 20; i++, term *= -quarter / ((2 * i) * (2 * i + 1))) difference += 2 * i * term;
  CHECK_NEAR(x * k.inverse_b, difference / s, eps);
}

int main() {
  Random rng(4);
  check_vectors(rng), check_matrices(rng), check_rotation(rng);
  check_round_trip(rng), check_half_turn(rng), check_adjoints(rng);
  for (double turn : {0.0, 1e-12, 1e-6, 1e-3, 0.03, 0.0999999, 0.1 * (1 - 1e-15), 0.1, 0.1000001, 0.3, 1.0, 2.0})
    check_coefficients(turn), check_coefficients(float(turn));
  // both sides of the switch: the next number, and no jump
  double low = std::sqrt(0.01) * (1 - 1e-15), high = std::sqrt(0.01) * (1 + 1e-15);
  TurnCoefficients<double> a = turn_coefficients(V{low, 0, 0}), b = turn_coefficients(V{high, 0, 0});
  const double kJump = 1e-12;  // the closed form of right_b loses 3 digits at theta = 0.1
  CHECK_NEAR(a.half_cos, b.half_cos, kRounding);
  CHECK_NEAR(a.exp_sinc, b.exp_sinc, kRounding);
  CHECK_NEAR(a.right_a, b.right_a, kRounding);
  CHECK_NEAR(a.right_b, b.right_b, kJump);
  CHECK_NEAR(a.inverse_b, b.inverse_b, kJump);
  return report("vec_mat_quat");
}
