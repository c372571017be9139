// pack.h, scalar.h, dual.h: every lane of a Pack is the scalar, bit by bit, whatever its neighbours hold; Dual's calculus.
#include <cstring>
#include <limits>
#include <type_traits>

#include "../../core/base/pack.h"
#include "check.h"

using costate::Dual;
using costate::Pack;
using test::Random;

// The words under test, looked up in costate for scalars too: the C library has an fma and a sqrt of its own
namespace words {
using costate::finite;
using costate::fma;
using costate::fnma;
using costate::select;
using costate::sqrt;

// name, arguments, expression: a functor that works for float, double, Pack and Dual
#define WORD(name, expression)                                                                                \
  struct name {                                                                                               \
    template <class T> T operator()([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) const { \
      return expression;                                                                                      \
    }                                                                                                         \
  };
WORD(Add, a + b)
WORD(Subtract, a - b)
WORD(Multiply, a* b)
WORD(Divide, a / b)
WORD(Negate, -a)
WORD(AddTo, a += b)
WORD(SubtractFrom, a -= b)
WORD(MultiplyBy, a *= b)
WORD(Fma, fma(a, b, c))
WORD(Fnma, fnma(a, b, c))
WORD(Sqrt, sqrt(a))
WORD(Less, select(a < b, a, c))
WORD(Greater, select(a > b, a, c))
WORD(Equal, select(a == b, T(1), c))
WORD(And, select((a < b) & (b < c), a, b))
WORD(Or, select((a < b) | (b < c), a, b))
WORD(Finite, select(finite(a), a, T(0)))
#undef WORD
}  // namespace words

// the same number; one NaN is as good as another (its sign and payload are the hardware's business)
template <class E> static bool same(E a, E b) { return (a != a && b != b) || std::memcmp(&a, &b, sizeof(E)) == 0; }

// ordinary numbers of all sizes, and every special one
template <class E> static E number(Random& rng) {
  using L = std::numeric_limits<E>;
  const E special[] = {E(0),           -E(0),           E(1),     -E(1),    L::infinity(), -L::infinity(),
                       L::quiet_NaN(), L::denorm_min(), L::min(), L::max(), -L::max()};
  if (rng.below(3) == 0) return special[rng.below(int(sizeof(special) / sizeof(E)))];
  return E(std::ldexp(rng.uniform(), rng.below(40) - 20));
}

template <class P> using Element = costate::ElementOf<P>;

template <class P> static P load(const std::vector<Element<P>>& x) {
  P p;
  for (int l = 0; l < costate::lanes<P>; l++) set_lane(p, l, x[l]);
  return p;
}

// (b) each lane equals the scalar run; special numbers sit beside ordinary ones, so a leak between lanes shows too
template <class P, class Word> static void check_word(const char* name, Random& rng) {
  using E = Element<P>;
  constexpr int n = costate::lanes<P>;
  Word f;
  int wrong = 0;
  for (int trial = 0; trial < 2000; trial++) {
    std::vector<E> a(n), b(n), c(n);
    for (int l = 0; l < n; l++) a[l] = number<E>(rng), b[l] = rng.below(4) ? number<E>(rng) : a[l], c[l] = number<E>(rng);
    P y = f(load<P>(a), load<P>(b), load<P>(c));
    for (int l = 0; l < n; l++) wrong += !same(lane(y, l), f(a[l], b[l], c[l]));
  }
  if (wrong) std::printf("%s: %d lanes of %d differ from the scalar (%d bytes each)\n", name, wrong, 2000 * n, int(sizeof(E)));
  CHECK(wrong == 0);
}

template <class P> static void check_words(Random& rng) {
  using namespace words;
  check_word<P, Add>("+", rng), check_word<P, Subtract>("-", rng), check_word<P, Multiply>("*", rng),
      check_word<P, Divide>("/", rng);
  check_word<P, AddTo>("+=", rng), check_word<P, SubtractFrom>("-=", rng), check_word<P, MultiplyBy>("*=", rng);
  check_word<P, Negate>("negate", rng), check_word<P, Fma>("fma", rng), check_word<P, Fnma>("fnma", rng),
      check_word<P, Sqrt>("sqrt", rng);
  check_word<P, Less>("<", rng), check_word<P, Greater>(">", rng), check_word<P, Equal>("==", rng);
  check_word<P, And>("&", rng), check_word<P, Or>("|", rng), check_word<P, Finite>("finite", rng);
}

// broadcast, lane access, masks: values by hand
template <class P> static void check_lanes() {
  using E = Element<P>;
  using L = std::numeric_limits<E>;
  constexpr int n = costate::lanes<P>;
  static_assert(sizeof(P) == n * sizeof(E), "drivers read packs as arrays of lanes");
  static_assert(std::is_trivially_default_constructible<P>::value, "scratch memory is carved into packs");
  for (E s : {E(0), -E(0), E(2.5), L::infinity(), L::quiet_NaN(), L::denorm_min()}) {
    P p(s);
    for (int l = 0; l < n; l++) CHECK(same(lane(p, l), s));
  }
  P p(E(0));
  for (int l = 0; l < n; l++) set_lane(p, l, E(l));
  auto low = p < P(E(1)), first = p == P(E(0)), none = low & (p > P(E(0)));
  for (int l = 0; l < n; l++) {
    CHECK(lane(p, l) == E(l));
    CHECK(costate::test(low, l) == (l == 0) && costate::test(first, l) == (l == 0));
    CHECK(!costate::test(none, l) && costate::test(low | (p > P(E(0))), l));
  }
  // a NaN compares with nothing, and select then takes the second side
  P nan(L::quiet_NaN()), one(E(1)), two(E(2));
  for (int l = 0; l < n; l++) {
    CHECK(lane(select(nan < one, one, two), l) == E(2) && lane(select(nan == nan, one, two), l) == E(2));
    CHECK(!costate::test(finite(nan), l) && !costate::test(finite(P(-L::infinity())), l) &&
          costate::test(finite(P(L::max())), l));
  }
}

// a long chain of operations with one poisoned lane: the others do not notice
template <class P> static void check_isolation(Random& rng) {
  using namespace words;
  using E = Element<P>;
  using L = std::numeric_limits<E>;
  constexpr int n = costate::lanes<P>;
  auto chain = [](P x) {
    P y = x;
    for (int i = 0; i < 8; i++) y = select(y < x, fma(y, x, P(E(1))), sqrt(fnma(x, y, P(E(3))))) / (x - P(E(0.5)) * y);
    return y;
  };
  for (E poison : {L::quiet_NaN(), L::infinity(), -L::infinity(), E(0), L::max()})
    for (int bad = 0; bad < n; bad++) {
      std::vector<E> x(n);
      for (E& v : x) v = E(rng.uniform(1, 2));
      P clean = chain(load<P>(x));
      x[bad] = poison;
      P dirty = chain(load<P>(x));
      for (int l = 0; l < n; l++) CHECK(l == bad || same(lane(clean, l), lane(dirty, l)));
    }
}

template <class P> static void check_pack(Random& rng) {
  check_lanes<P>();
  check_words<P>(rng);
  check_isolation<P>(rng);
}

// fma rounds once where the hardware has it and twice elsewhere: never a mixture within one instruction set
template <class E> static void check_fused() {
  E e = std::numeric_limits<E>::epsilon(), exact = -e * e;  // (1 + e)(1 - e) - 1
  CHECK(costate::fma(E(1) + e, E(1) - e, E(-1)) == (CS_FUSED ? exact : E(0)));
  CHECK(costate::fnma(E(1) + e, E(1) - e, E(1)) == (CS_FUSED ? -exact : E(0)));
}

// two roundings of the value and a few of the tangent, at numbers of size 1
constexpr double kRounding = 1e-15;

static void check_dual(Random& rng) {
  using D = Dual<double>;
  for (int trial = 0; trial < 100; trial++) {
    double x = rng.uniform(0.5, 2), y = rng.uniform(0.5, 2), dx = rng.uniform(), dy = rng.uniform(), z = rng.uniform(),
           dz = rng.uniform();
    D a{x, dx}, b{y, dy}, c{z, dz};
    auto is = [&](D got, double value, double tangent) {
      CHECK_NEAR(got.value, value, kRounding * (1 + std::fabs(value)));
      CHECK_NEAR(got.tangent, tangent, 4 * kRounding * (1 + std::fabs(tangent)));
    };
    is(a + b, x + y, dx + dy), is(a - b, x - y, dx - dy), is(-a, -x, -dx), is(a * b, x * y, dx * y + x * dy);
    is(a / b, x / y, dx / y - x * dy / (y * y)), is(sqrt(a), std::sqrt(x), dx / (2 * std::sqrt(x)));
    is(fma(a, b, c), x * y + z, dx * y + x * dy + dz), is(fnma(a, b, c), z - x * y, dz - dx * y - x * dy);
    // the rational function (x^2 + 3) / (x + 2), and compound assignment
    is((a * a + D(3)) / (a + D(2)), (x * x + 3) / (x + 2), dx * (x * x + 4 * x - 3) / ((x + 2) * (x + 2)));
    D sum = a;
    sum += b, sum *= c, sum -= a;
    is(sum, (x + y) * z - x, (dx + dy) * z + (x + y) * dz - dx);
    // values decide, tangents follow
    CHECK((a < b) == (x < y) && (a > b) == (x > y) && a == D(x, dx + 1));
    is(select(a < b, a, b), x < y ? x : y, x < y ? dx : dy);
  }
  double inf = std::numeric_limits<double>::infinity();
  CHECK(finite(D(1, 2)) && !finite(D(inf, 0)) && !finite(D(0, inf)) && D(3).tangent == 0);
  CHECK(costate::lanes<D> == 1 && (std::is_same<costate::ElementOf<D>, double>::value));
}

int main() {
  Random rng(2);
  check_pack<Pack<double, 2>>(rng), check_pack<Pack<double, 4>>(rng), check_pack<Pack<double, 8>>(rng);
  check_pack<Pack<float, 4>>(rng), check_pack<Pack<float, 8>>(rng), check_pack<Pack<float, 16>>(rng);
  check_fused<double>(), check_fused<float>();
  check_dual(rng);
  return test::report("pack");
}
