// A whole step and its adjoint in every width: each lane is the scalar run of its world, bit by bit, whatever the others do;
// bars nobody asks for change nothing; float follows double.
#include <cstring>
#include <limits>

#include "world.h"
using namespace test;

// what is asked of an adjoint: everything, or only the bars of q and v
enum Wanted { kAll, kState };

// y = (q+, v+), then the bars of q (tangent), v, u, h, external, theta
template <class T> static std::vector<T> step_and_adjoint(const World& w, const std::vector<T>& x, const std::vector<T>& g,
                                                          Wanted asked, double dirt) {
  const Tree& t = w.t;
  View<T> a(w, x);
  Scratch<T> s(t, dirt);
  int sizes[] = {t.nq, t.nv, t.nv, t.nv, t.nu, 1, 6 * t.nb, params_size(t)}, at[9] = {0};
  for (int i = 0; i < 8; i++) at[i + 1] = at[i] + sizes[i];
  std::vector<T> out(at[8], T(0)), v_bar(g.begin() + t.nv, g.end());
  T* o = out.data();
  step(t, a.th, s.tr, s.rw, s.o, a.in, o, o + at[1]);
  bool all = asked == kAll;
  InputBars<T> bar = {o + at[2], o + at[3], all ? o + at[4] : nullptr, T(0), all ? o + at[6] : nullptr};
  Params<T> th_bar = params_map(t, all ? o + at[7] : nullptr);
  step_adj(t, a.th, s.tr, s.rw, s.o, a.in, o + at[1], g.data(), v_bar.data(), s.bar, s.rb, th_bar, bar);
  o[at[5]] = bar.h;
  return out;
}

template <class E> static bool same(E a, E b) { return (a != a && b != b) || std::memcmp(&a, &b, sizeof(E)) == 0; }

// numbers of lane l out of packs; into[l] = from
template <class P> using Lane = std::vector<ElementOf<P>>;
template <class P> static std::vector<P> gather(const std::vector<Lane<P>>& from) {
  std::vector<P> x(from[0].size(), P(ElementOf<P>(0)));
  for (int l = 0; l < lanes<P>; l++)
    for (size_t i = 0; i < x.size(); i++) set_lane(x[i], l, from[l][i]);
  return x;
}

template <class E> static std::vector<E> converted(const std::vector<double>& x) { return std::vector<E>(x.begin(), x.end()); }

// worlds of one tree: each lane its own state, parameters and h
template <class P> static std::vector<Lane<P>> neighbours(const World& w, Random& rng) {
  std::vector<Lane<P>> xs;
  for (int l = 0; l < lanes<P>; l++) {
    std::vector<double> x = w.x;
    for (double& c : x) c *= rng.uniform(0.9, 1.1);
    Params<double> th = params_map(w.t, x.data() + w.at_theta());
    for (int b = 0; b < w.t.nb; b++)
      if (rng.below(3) == 0) th.stiffness[b] = 0;  // springs are skipped only where no lane has one
    xs.push_back(converted<ElementOf<P>>(x));
  }
  return xs;
}

// +0 and -0 count as equal in bars: a spring that is skipped adds no zero
template <class P> static int differing(const std::vector<P>& packs, int l, const Lane<P>& scalar, int first) {
  int wrong = 0;
  for (size_t i = first; i < scalar.size(); i++) wrong += !(same(lane(packs[i], l), scalar[i]) || lane(packs[i], l) == scalar[i]);
  return wrong;
}

template <class P> static void check_lanes(const World& w, Random& rng) {
  using E = ElementOf<P>;
  std::vector<Lane<P>> xs = neighbours<P>(w, rng), gs;
  for (int l = 0; l < lanes<P>; l++) gs.push_back(converted<E>(rng.vector(2 * w.t.nv)));
  std::vector<P> g = gather<P>(gs);
  for (Wanted asked : {kAll, kState}) {
    std::vector<P> clean = step_and_adjoint(w, gather<P>(xs), g, asked, 1e30);
    for (int l = 0; l < lanes<P>; l++) CHECK(differing(clean, l, step_and_adjoint(w, xs[l], gs[l], asked, -1e20), 0) == 0);
    // one lane goes wrong: it shows there, and nowhere else
    for (E poison : {std::numeric_limits<E>::quiet_NaN(), std::numeric_limits<E>::infinity()}) {
      std::vector<Lane<P>> poisoned = xs;
      int bad = rng.below(lanes<P>);
      if (w.t.nv == 0) continue;
      poisoned[bad][w.at_v() + rng.below(w.t.nv)] = poison;
      std::vector<P> dirty = step_and_adjoint(w, gather<P>(poisoned), g, asked, 1e30);
      bool shows = false;
      for (int d = 0; d < w.t.nv; d++) shows = shows || !costate::test(finite(dirty[w.t.nq + d]), bad);
      CHECK(shows);
      for (int l = 0; l < lanes<P>; l++)
        for (size_t i = 0; i < clean.size(); i++) CHECK(l == bad || same(lane(clean[i], l), lane(dirty[i], l)));
    }
  }
}

// bars of q and v do not depend on whether the others are asked for
static void check_asked(const World& w, Random& rng) {
  std::vector<double> g = rng.vector(2 * w.t.nv);
  std::vector<double> all = step_and_adjoint(w, w.x, g, kAll, 0), state = step_and_adjoint(w, w.x, g, kState, 0);
  int first = w.t.nq + w.t.nv;
  for (int i = 0; i < first + 2 * w.t.nv; i++) CHECK(all[i] == state[i]);
}

// float loses digits, not sense: the relative error of a step of up to 12 bodies, and of its bars, which pass through H^-1 twice
constexpr double kFloatStep = 1e-5, kFloatBars = 1e-4;

static void check_float(const World& w, Random& rng) {
  std::vector<double> g = rng.vector(2 * w.t.nv), exact = step_and_adjoint(w, w.x, g, kAll, 0);
  std::vector<float> y = step_and_adjoint(w, converted<float>(w.x), converted<float>(g), kAll, 0);
  double step_size = 1, bar_size = 1;
  int bars = w.t.nq + w.t.nv;
  for (int i = 0; i < int(y.size()); i++) (i < bars ? step_size : bar_size) += std::fabs(exact[i]);
  for (int i = 0; i < int(y.size()); i++) CHECK_NEAR(y[i], exact[i], i < bars ? kFloatStep * step_size : kFloatBars * bar_size);
}

int main() {
  Random rng(10);
  for (int trial = 0; trial < 6; trial++)
    for (int form : {kSparse, kArticulated}) {
      World w = trial == 0   ? World({-1, 0}, {kFixed, kFixed}, {}, true, form, rng)
                : trial == 1 ? World({-1}, {kFree}, {0, 4}, true, form, rng)
                             : World::random(6 + trial, true, form, rng);
      check_lanes<Pack<double, 2>>(w, rng), check_lanes<Pack<double, 4>>(w, rng), check_lanes<Pack<double, 8>>(w, rng);
      check_lanes<Pack<float, 4>>(w, rng), check_lanes<Pack<float, 8>>(w, rng), check_lanes<Pack<float, 16>>(w, rng);
      check_asked(w, rng), check_float(w, rng);
    }
  return report("lanes");
}
