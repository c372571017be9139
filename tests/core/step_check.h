// The adjoint of a whole step against Dual: exact mode as the solver ran, implicit mode where it converged; all together, and field by field.
#pragma once
#include <map>
#include <string>

#include "scene.h"

namespace test {

using D = Dual<double>;
using Vector = std::vector<double>;

// The exact mode repeats the solver's own arithmetic; Newton steps pass through a factored K. The implicit mode is as good as the
// residual it starts from, here 1e-13 m/s, over the softness of the softest direction; both modes agree as far as the solver got
constexpr double kSweeps = 1e-12, kNewton = 1e-11, kImplicit = 1e-10, kModes = 1e-6;
// A longer way to the solution turns with every rounding; what the exact mode says of it is true and useless
constexpr double kShort = 30;

inline Asked exact(double iterations, double polish, double cone) {
  Asked a;
  a.iterations = iterations, a.polish = polish, a.cone = cone, a.exact = 1, a.relative_softness = 1e-3,
  a.absolute_softness = 1e-2;
  return a;
}
inline Asked implicit(double cone) {
  Asked a = exact(400, 4, cone);
  a.exact = 0, a.tolerance = 1e-13;
  return a;
}

struct Run {
  Scratch<double> s;
  Vector y;
  Run(const World& w, const Asked& asked, double dirt = 1e30) : s(w.t, dirt, asked) {
    step_of(w, w.x, s, y);
    int events = 0;  // what the solver wrote down fits into its memory
    while (constrained(w.t) && s.rw.count[0] && s.rw.event[events]) events++;
    CHECK(events <= max_events(s.o));
  }
  bool solved() const { return s.rw.status->solved > 0.5; }
};

// the oracle of each mode: Dual through the solver, or at its solution
inline void oracle(const World& w, const Asked& asked, const Run& r, const Duals& x, Scratch<D>& s, Duals& y) {
  if (asked.exact)
    step_of(w, x, s, y);
  else
    step_at(w, x, r.s.rw.lam, s, y);
  CHECK(y.size() == r.y.size());  // the same blocks
}

inline void check_adj(const char* name, const World& w, const Asked& asked, double tol, Random& rng) {
  Run r(w, asked);
  if (asked.exact && r.s.rw.status->sweeps > kShort) return;
  Scratch<D> dual(w.t, 0, asked);
  check_adjoint(
      name, w.x, int(r.y.size()), [&](const Duals& x, Duals& y) { oracle(w, asked, r, x, dual, y); },
      [&](const Vector& g, Vector& x_bar) { step_of_adj(w, r.s, r.y, g, x_bar); }, rng, tol);
}

// parts of x, each with a name
inline std::vector<std::pair<std::string, std::pair<int, int>>> fields(const World& w) {
  const Tree& t = w.t;
  std::vector<std::pair<std::string, std::pair<int, int>>> all = {{"q", {0, t.nq}},
                                                                  {"v", {w.at_v(), t.nv}},
                                                                  {"u", {w.at_u(), t.nu}},
                                                                  {"h", {w.at_h(), 1}},
                                                                  {"external", {w.at_ext(), 6 * t.nb}}};
  int at = w.at_theta();
#define CS_FIELD(name, per, width, type) \
  all.push_back({#name, {at, width * per_count(t, Per::per)}}), at += width * per_count(t, Per::per);
  CS_FIELDS(CS_FIELD)
#undef CS_FIELD
  return all;
}

// each field alone: a small bar cannot hide behind a large one. tol is relative to the field's own terms, and a hundredth of it to all
inline void check_fields(const World& w, const Asked& asked, double tol, Random& rng, std::map<std::string, int>& seen) {
  Run r(w, asked);
  Scratch<D> dual(w.t, 0, asked);
  Vector g = rng.vector(int(r.y.size())), dx = w.draw(rng), x_bar(w.size(), 0.0);
  step_of_adj(w, r.s, r.y, g, x_bar);
  double whole = 0;
  for (int i = 0; i < w.size(); i++) whole += std::fabs(x_bar[i] * dx[i]);
  for (const auto& [name, range] : fields(w)) {
    Duals x(w.x.begin(), w.x.end()), y;
    double reverse = 0, forward = 0, size = 0.01 * whole;
    for (int i = range.first; i < range.first + range.second; i++) {
      x[i].tangent = dx[i], reverse += x_bar[i] * dx[i], size += std::fabs(x_bar[i] * dx[i]);
    }
    if (range.second == 0) continue;
    oracle(w, asked, r, x, dual, y);
    for (size_t i = 0; i < y.size(); i++) forward += g[i] * y[i].tangent, size += std::fabs(g[i] * y[i].tangent);
    if (!(std::fabs(forward - reverse) <= tol * size)) {
      std::printf("%s: Dual gives %.17g, the adjoint %.17g\n", name.c_str(), forward, reverse);
      failures++;
    }
    seen[name] += reverse != 0;
  }
}

// a world that is not solved takes the exact mode, to the last bit; asking twice, or in dirty memory, changes nothing
inline void check_fallback(const World& w, Random& rng) {
  Asked few = exact(2, 0, 0), fallback = few;
  fallback.exact = 0;
  Run a(w, few), b(w, fallback, -1e20);
  CHECK(a.y == b.y);
  Vector g = rng.vector(int(a.y.size())), one(w.size(), 0.0), two(w.size(), 0.0), three(w.size(), 0.0);
  step_of_adj(w, a.s, a.y, g, one);
  if (!a.solved()) {
    step_of_adj(w, b.s, b.y, g, two);
    CHECK(one == two);
  }
  step_of_adj(w, a.s, a.y, g, three);
  CHECK(one == three);
}

// both modes agree where the solver converged
inline void check_modes(const World& w, double cone, Random& rng) {
  Asked in = implicit(cone), ex = in;
  ex.exact = 1;
  Run a(w, in), b(w, ex);
  if (!a.solved() || a.s.rw.status->sweeps > kShort) return;
  Vector g = rng.vector(int(a.y.size())), one(w.size(), 0.0), two(w.size(), 0.0), again(w.size(), 0.0);
  step_of_adj(w, a.s, a.y, g, one), step_of_adj(w, b.s, b.y, g, two), step_of_adj(w, a.s, a.y, g, again);
  CHECK(one == again);
  double size = 0, apart = 0;
  for (int i = 0; i < w.size(); i++) size += std::fabs(two[i]), apart += std::fabs(one[i] - two[i]);
  CHECK_NEAR(apart, 0, kModes * size);
}

}  // namespace test
