// A minimal test kit: CHECK, random numbers, and the dot-product test of an adjoint against Dual.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "../../core/base/dual.h"

namespace test {

inline int failures = 0;

#define CHECK(cond)                                                  \
  do {                                                               \
    if (!(cond)) {                                                   \
      std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
      test::failures++;                                              \
    }                                                                \
  } while (0)

#define CHECK_NEAR(a, b, tol)                                                                                           \
  do {                                                                                                                  \
    double a_ = (a), b_ = (b), tol_ = (tol);                                                                            \
    if (!(std::fabs(a_ - b_) <= tol_)) {                                                                                \
      std::printf("%s:%d: %s = %.17g, %s = %.17g, differ by more than %g\n", __FILE__, __LINE__, #a, a_, #b, b_, tol_); \
      test::failures++;                                                                                                 \
    }                                                                                                                   \
  } while (0)

// splitmix64: the same numbers on every machine
struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform(double lo = -1, double hi = 1) { return lo + (hi - lo) * double(next() >> 11) * 0x1p-53; }
  int below(int n) { return int(next() % uint64_t(n)); }
  std::vector<double> vector(int n, double lo = -1, double hi = 1) {
    std::vector<double> x(n);
    for (double& v : x) v = uniform(lo, hi);
    return x;
  }
};

using Duals = std::vector<costate::Dual<double>>;

// <w, J dx> by Dual equals <J^T w, dx> by the adjoint, for one flat function x -> y. Relative to the size of the sum's terms
inline void check_adjoint(const char* name, const std::vector<double>& x, int ny,
                          const std::function<void(const Duals&, Duals&)>& f,
                          const std::function<void(const std::vector<double>& w, std::vector<double>& x_bar)>& f_adj, Random& rng,
                          double tol = 1e-12) {
  std::vector<double> w = rng.vector(ny), dx = rng.vector(int(x.size())), x_bar(x.size(), 0.0);
  Duals xd(x.size()), y(ny);
  for (size_t i = 0; i < x.size(); i++) xd[i] = {x[i], dx[i]};
  f(xd, y);
  f_adj(w, x_bar);
  double forward = 0, reverse = 0, size = 1e-30;
  for (int i = 0; i < ny; i++) forward += w[i] * y[i].tangent, size += std::fabs(w[i] * y[i].tangent);
  for (size_t i = 0; i < x.size(); i++) reverse += x_bar[i] * dx[i], size += std::fabs(x_bar[i] * dx[i]);
  if (!(std::fabs(forward - reverse) <= tol * size)) {
    std::printf("%s: Dual gives %.17g, the adjoint %.17g (relative %g)\n", name, forward, reverse,
                std::fabs(forward - reverse) / size);
    failures++;
  }
}

inline int report(const char* name) {
  std::printf("%s: %s\n", name, failures ? "FAILED" : "ok");
  return failures != 0;
}

}  // namespace test
