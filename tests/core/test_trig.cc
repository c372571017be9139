// trig.h: sincos and atan_ratio against long double, in units of the last place; lanes, kinks, derivatives.
#include <cstring>
#include <limits>

#include "../../core/math/trig.h"
#include "check.h"

using costate::Dual;
using costate::Pack;
using test::Random;

// Bounds in units of the last place (ulp), with the largest error seen over 5e7 points on AVX-512, AVX2 and SSE2.
//   small    |x| <= pi/4: the series and one product                      seen 1.11
//   reduced  up to `range`: two more roundings in x - k pi/2              seen 2.79 in double, 2.80 in float
//   atan     two halvings, each a square root, a quotient, products      seen 5.02 in double, 4.88 in float
constexpr double kSmallUlps = 1.5, kReducedUlps = 3, kAtanUlps = 6;

// up to where the reduction is exact enough (trig.h): k times a piece of pi/2 must fit a significand
template <class E> constexpr double kRange = sizeof(E) == 8 ? 1e6 : 1e4;

// distance of y from the exact value, in units of the last place of the exact value
template <class E> static double ulps(E y, long double exact) {
  E near = E(std::fabs(exact));
  long double ulp = (long double)(std::nextafter(near, std::numeric_limits<E>::infinity())) - (long double)(near);
  return double(std::fabs((long double)(y)-exact) / ulp);
}

// the worst error seen so far, and where
template <class E> struct Worst {
  double sin = 0, cos = 0;
  E sin_at = 0, cos_at = 0;
  void add(E x) {
    E s, c;
    costate::sincos(x, s, c);
    double es = ulps(s, sinl((long double)(x))), ec = ulps(c, cosl((long double)(x)));
    // not <=: a NaN must count as the worst
    if (!(es <= sin)) sin = es, sin_at = x;
    if (!(ec <= cos)) cos = ec, cos_at = x;
  }
};

template <class E> static E nudge(E x, int ulps_away) {
  for (; ulps_away > 0; ulps_away--) x = std::nextafter(x, std::numeric_limits<E>::infinity());
  for (; ulps_away < 0; ulps_away++) x = std::nextafter(x, -std::numeric_limits<E>::infinity());
  return x;
}

static const long double kPi = 3.14159265358979323846264338327950288L;

// |x| <= pi/4 densely, and down to the smallest numbers
template <class E> static Worst<E> sweep_small(Random& rng) {
  Worst<E> worst;
  for (int i = -100000; i <= 100000; i++) worst.add(E(kPi / 4 * i / 100000));
  for (int i = 0; i < 100000; i++) worst.add(E(std::exp(rng.uniform(-80, std::log(0.78)))));
  return worst;
}

// all of the range; both sides of the borders between quadrants and of the zeros of sin and cos, where the reduced argument
// loses most digits
template <class E> static Worst<E> sweep_range(Random& rng) {
  Worst<E> worst;
  const double range = kRange<E>;
  for (int i = 0; i < 200000; i++) worst.add(E(rng.uniform(-range, range)));
  for (int i = 0; i < 100000; i++) worst.add(E(std::exp(rng.uniform(-80, std::log(range)))));
  int last = int(range / (kPi / 4));
  for (int i = 0; i < 100000; i++) {
    int k = i < 2000 ? i : rng.below(last);
    E x = E(kPi / 4 * k);  // even k: a zero of sin or cos; odd k: a border between quadrants
    worst.add(nudge(x, rng.below(9) - 4)), worst.add(x), worst.add(-x), worst.add(E(x + rng.uniform() * 1e-6));
  }
  return worst;
}

template <class E> static void check_sincos(const char* name, const Worst<E>& worst, double bound) {
  std::printf("%s: sin within %.3f ulp (worst at %.17g), cos within %.3f ulp (worst at %.17g)\n", name, worst.sin,
              double(worst.sin_at), worst.cos, double(worst.cos_at));
  CHECK(worst.sin <= bound && worst.cos <= bound);
}

template <class E> static void check_atan(const char* name, Random& rng) {
  double worst = 0;
  auto add = [&](E y) {
    long double t = sqrtl((long double)(y)), exact = t < 1e-6L ? 1 - t * t / 3 : atanl(t) / t;
    double e = ulps(costate::atan_ratio(y), exact);
    if (!(e <= worst)) worst = e;
  };
  for (int i = 0; i <= 200000; i++) add(E(i / 200000.0));
  for (int i = 0; i < 50000; i++) add(E(std::exp(rng.uniform(-80, 0))));
  add(nudge(E(1), 1)), add(nudge(E(1), 4));  // rounding may leave y just above 1
  std::printf("%s: atan_ratio within %.3f ulp\n", name, worst);
  CHECK(worst <= kAtanUlps && costate::atan_ratio(E(0)) == E(1));
}

// by hand: zeros, signs, symmetry, and no number for no number
template <class E> static void check_special(Random& rng) {
  using L = std::numeric_limits<E>;
  E s, c;
  costate::sincos(E(0), s, c);
  CHECK(s == E(0) && !std::signbit(s) && c == E(1));
  costate::sincos(-E(0), s, c);
  CHECK(s == E(0) && std::signbit(s) && c == E(1));
  for (E x : {L::quiet_NaN(), L::infinity(), -L::infinity()}) {
    costate::sincos(x, s, c);
    CHECK(s != s && c != c);
  }
  // beyond the range the digits are lost, but sin and cos stay sines and cosines
  for (int i = 0; i < 10000; i++) {
    costate::sincos(i ? E(std::pow(10.0, rng.uniform(4, L::max_exponent10))) : L::max(), s, c);
    CHECK(std::fabs(s) <= E(1) && std::fabs(c) <= E(1));
  }
  CHECK(costate::atan_ratio(L::quiet_NaN()) != costate::atan_ratio(L::quiet_NaN()));
  for (int i = 0; i < 10000; i++) {
    E x = E(rng.uniform(-1000, 1000)), sm, cm;
    costate::sincos(x, s, c), costate::sincos(-x, sm, cm);
    CHECK(sm == -s && cm == c);
    CHECK(std::fabs(s * s + c * c - E(1)) <= 4 * L::epsilon());
  }
}

template <class E> static bool same(E a, E b) { return (a != a && b != b) || std::memcmp(&a, &b, sizeof(E)) == 0; }

// every lane equals the scalar, next to NaN and inf too
template <class P> static void check_lanes(Random& rng) {
  using E = costate::ElementOf<P>;
  constexpr int n = costate::lanes<P>;
  int wrong = 0;
  for (int i = 0; i < 2000; i++) {
    std::vector<E> x(n), y(n);
    for (int l = 0; l < n; l++) x[l] = E(rng.uniform(-1, 1) * std::pow(10.0, rng.below(8) - 2)), y[l] = E(rng.uniform(0, 1));
    if (i % 4 == 0) x[rng.below(n)] = std::numeric_limits<E>::quiet_NaN(), y[rng.below(n)] = std::numeric_limits<E>::infinity();
    P xp, yp, s, c;
    for (int l = 0; l < n; l++) set_lane(xp, l, x[l]), set_lane(yp, l, y[l]);
    sincos(xp, s, c);
    P a = atan_ratio(yp);
    for (int l = 0; l < n; l++) {
      E sl, cl;
      costate::sincos(x[l], sl, cl);
      wrong += !same(lane(s, l), sl) + !same(lane(c, l), cl) + !same(lane(a, l), costate::atan_ratio(y[l]));
    }
  }
  CHECK(wrong == 0);
}

// the series' own derivative, term by term: a few roundings more than the value
constexpr double kDerivative = 1e-14;

static void check_derivatives(Random& rng) {
  for (int i = 0; i < 200; i++) {
    double x = rng.uniform(-100, 100), dx = rng.uniform();
    Dual<double> s, c;
    sincos(Dual<double>(x, dx), s, c);
    CHECK_NEAR(s.tangent, std::cos(x) * dx, kDerivative);
    CHECK_NEAR(c.tangent, -std::sin(x) * dx, kDerivative);
    // sincos_adj: (s, c) -> x, and it adds
    test::check_adjoint(
        "sincos", {x}, 2, [](const test::Duals& in, test::Duals& out) { sincos(in[0], out[0], out[1]); },
        [&](const std::vector<double>& w, std::vector<double>& x_bar) {
          costate::sincos_adj(s.value, c.value, w[0], w[1], x_bar[0]);
        },
        rng);
    double bar = 5;
    costate::sincos_adj(s.value, c.value, 1.0, 0.0, bar);
    CHECK_NEAR(bar, 5 + std::cos(x), kDerivative);
    // d/dy of atan(sqrt y)/sqrt y is (1/(1 + y) - atan_ratio)/(2 y), and -1/3 at 0
    double y = rng.uniform(0.1, 1), exact = (1 / (1 + y) - std::atan(std::sqrt(y)) / std::sqrt(y)) / (2 * y);
    CHECK_NEAR(atan_ratio(Dual<double>(y, 1)).tangent, exact, kDerivative);
  }
  CHECK_NEAR(atan_ratio(Dual<double>(0, 1)).tangent, -1.0 / 3, kDerivative);
}

int main() {
  Random rng(3);
  check_sincos("double, small", sweep_small<double>(rng), kSmallUlps),
      check_sincos("float, small", sweep_small<float>(rng), kSmallUlps);
  check_sincos("double", sweep_range<double>(rng), kReducedUlps), check_sincos("float", sweep_range<float>(rng), kReducedUlps);
  check_atan<double>("double", rng), check_atan<float>("float", rng);
  check_special<double>(rng), check_special<float>(rng);
  check_lanes<Pack<double, 2>>(rng), check_lanes<Pack<double, 4>>(rng), check_lanes<Pack<double, 8>>(rng);
  check_lanes<Pack<float, 4>>(rng), check_lanes<Pack<float, 8>>(rng), check_lanes<Pack<float, 16>>(rng);
  check_derivatives(rng);
  return test::report("trig");
}
