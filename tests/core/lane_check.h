// A step with rows and its adjoint in packs: each lane is the scalar run of its world, bit by bit, whatever the others touch, and
// however long their solvers run; a world that goes wrong stays alone; float follows double.
#pragma once
#include <cstring>
#include <limits>

#include "scene.h"

namespace test {

constexpr int kStatus = 8;

// what is asked of an adjoint: everything, or only the bars of q and v
enum Wanted { kAll, kState };

// bars of q+ and v+ (tangent), and of the impulse of every candidate
template <class T> struct Incoming {
  std::vector<T> state, impulse;
};

// y = (q+, v+, status), then the bars of q (tangent), v, u, h, external, theta
template <class T> std::vector<T> step_and_adjoint(const World& w, const std::vector<T>& x, const Incoming<T>& g,
                                                   const Asked& asked, Wanted wanted, double dirt) {
  const Tree& t = w.t;
  View<T> a(w, x);
  Scratch<T> s(t, dirt, asked);
  int sizes[] = {t.nq, t.nv, kStatus, t.nv, t.nv, t.nu, 1, 6 * t.nb, params_size(t)}, at[10] = {0};
  for (int i = 0; i < 9; i++) at[i + 1] = at[i] + sizes[i];
  std::vector<T> out(at[9], T(0)), v_bar(g.state.begin() + t.nv, g.state.end());
  T* o = out.data();
  step(t, a.th, s.tr, s.rw, s.o, a.in, o, o + at[1]);
  const Status<T>& u = *s.rw.status;
  T status[kStatus] = {u.residual, u.sweeps, u.contacts, u.wanted, u.penetration, u.drift, u.contradiction, u.solved};
  for (int i = 0; i < kStatus; i++) o[at[2] + i] = status[i];
  for (int i = 0; i < s.rw.count[0]; i++) {
    s.rb.impulse[i] = zero3<T>();
    for (int l = 0; s.rw.kind[i] == kContactRows && l < lanes<T>; l++)
      for (int j = 0; s.rw.item[i][l] >= 0 && j < 3; j++)
        set_lane((&s.rb.impulse[i].x)[j], l, lane(g.impulse[3 * shown(t, s.rw, s.rw.item[i][l]) + j], l));
  }
  bool all = wanted == kAll;
  InputBars<T> bar = {o + at[3], o + at[4], all ? o + at[5] : nullptr, T(0), all ? o + at[7] : nullptr};
  Params<T> th_bar = params_map(t, all ? o + at[8] : nullptr);
  step_adj(t, a.th, s.tr, s.rw, s.o, a.in, o + at[1], g.state.data(), v_bar.data(), s.bar, s.rb, th_bar, bar);
  o[at[6]] = bar.h;
  return out;
}

template <class P> using Lane = std::vector<ElementOf<P>>;
template <class P> std::vector<P> gather(const std::vector<Lane<P>>& from) {
  std::vector<P> x(from[0].size(), P(ElementOf<P>(0)));
  for (int l = 0; l < lanes<P>; l++)
    for (size_t i = 0; i < x.size(); i++) set_lane(x[i], l, from[l][i]);
  return x;
}
template <class E> std::vector<E> converted(const std::vector<double>& x) { return std::vector<E>(x.begin(), x.end()); }

// worlds of one tree, each with its own state, parameters and h; heights differ by more than the margin, so contacts do
template <class P> std::vector<Lane<P>> neighbours(const World& w, Random& rng) {
  std::vector<Lane<P>> xs;
  for (int l = 0; l < lanes<P>; l++) {
    std::vector<double> x = w.x;
    for (double& c : x) c *= rng.uniform(0.9, 1.1);
    for (int b = 0; b < w.t.nb; b++)
      if (w.t.joint[b] == kFree) x[w.t.q_adr[b] + 2] += rng.uniform(-0.05, 0.05);
    if (l == 1)  // one that touches nothing
      for (int b = 0; b < w.t.nb; b++)
        if (w.t.joint[b] == kFree) x[w.t.q_adr[b] + 2] += 100 * (b + 1);
    xs.push_back(converted<ElementOf<P>>(x));
  }
  return xs;
}

// the same number; +0 and -0 count as equal, a row of another lane adds a zero
template <class E> bool same(E a, E b) { return a == b || (a != a && b != b); }

// how many numbers differ, forward and adjoint. A world that went wrong is wrong wherever its lane-mates have joined its trees
template <class P> bool differs(const World& w, const std::vector<P>& packs, int l, const Lane<P>& scalar) {
  int forward = 0, adjoint = 0, first = w.t.nq + w.t.nv + kStatus;
  bool sound = true;
  for (int i = 0; i < first; i++) sound = sound && std::isfinite(scalar[i]);
  for (int i = 0; i < int(scalar.size()); i++) (i < first ? forward : adjoint) += !same(lane(packs[i], l), scalar[i]);
  bool any = forward || (adjoint && sound);
  if (any) std::printf("lane %d of %d: %d numbers differ, and %d of the adjoint\n", l, lanes<P>, forward, adjoint);
  return any;
}

template <class P> void check_lanes(const World& w, const Asked& asked, Random& rng) {
  using E = ElementOf<P>;
  constexpr int n = lanes<P>;
  std::vector<Lane<P>> xs = neighbours<P>(w, rng), states, impulses;
  for (int l = 0; l < n; l++) {
    states.push_back(converted<E>(rng.vector(2 * w.t.nv)));
    impulses.push_back(converted<E>(rng.vector(3 * w.t.nk)));
  }
  Incoming<P> g = {gather<P>(states), gather<P>(impulses)};
  for (Wanted wanted : {kAll, kState}) {
    std::vector<P> clean = step_and_adjoint(w, gather<P>(xs), g, asked, wanted, 1e30);
    for (int l = 0; l < n; l++) {
      Incoming<E> mine = {states[l], impulses[l]};
      CHECK(!differs(w, clean, l, step_and_adjoint(w, xs[l], mine, asked, wanted, -1e20)));
    }
    // one lane goes wrong: it shows there, and nowhere else
    for (E poison : {std::numeric_limits<E>::quiet_NaN(), std::numeric_limits<E>::infinity()}) {
      std::vector<Lane<P>> poisoned = xs;
      int bad = rng.below(n);
      poisoned[bad][w.at_v() + rng.below(w.t.nv)] = poison;
      std::vector<P> dirty = step_and_adjoint(w, gather<P>(poisoned), g, asked, wanted, 1e30);
      bool shows = false;
      for (int d = 0; d < w.t.nv; d++) shows = shows || !costate::test(finite(dirty[w.t.nq + d]), bad);
      CHECK(shows);
      int others = 0;
      for (int l = 0; l < n; l++)
        for (size_t i = 0; i < clean.size(); i++) others += l != bad && !same(lane(clean[i], l), lane(dirty[i], l));
      CHECK(others == 0);
    }
  }
}

// bars of q and v do not depend on whether the others are asked for
inline void check_asked(const World& w, const Asked& asked, Random& rng) {
  Incoming<double> g = {rng.vector(2 * w.t.nv), rng.vector(3 * w.t.nk)};
  std::vector<double> all = step_and_adjoint(w, w.x, g, asked, kAll, 0), state = step_and_adjoint(w, w.x, g, asked, kState, 0);
  for (int i = 0; i < w.t.nq + 3 * w.t.nv + kStatus; i++) CHECK(all[i] == state[i]);
}

// float loses digits, not sense. Rows amplify: gaps are divided by h, and softness keeps redundant ones apart
constexpr double kFloatStep = 1e-3, kFloatBars = 2e-2;

inline int check_float(const World& w, Asked asked, Random& rng) {
  asked.relative_softness = asked.absolute_softness = 1e-2, asked.iterations = 100;
  Incoming<double> g = {rng.vector(2 * w.t.nv), rng.vector(3 * w.t.nk)};
  Incoming<float> f = {converted<float>(g.state), converted<float>(g.impulse)};
  asked.tolerance = 1e-5;
  std::vector<double> exact = step_and_adjoint(w, w.x, g, asked, kAll, 0);
  std::vector<float> y = step_and_adjoint(w, converted<float>(w.x), f, asked, kAll, 0);
  double step_size = 1, bar_size = 1;
  int bars = w.t.nq + w.t.nv + kStatus, status = w.t.nq + w.t.nv;
  if (exact[bars - 1] < 0.5 || y[bars - 1] < 0.5f) return 0;  // not solved
  for (int i = 0; i < int(y.size()); i++) (i < bars ? step_size : bar_size) += std::fabs(exact[i]);
  for (int i = 0; i < int(y.size()); i++)
    if (i < status || i >= bars) CHECK_NEAR(y[i], exact[i], i < bars ? kFloatStep * step_size : kFloatBars * bar_size);
  return 1;
}

}  // namespace test
