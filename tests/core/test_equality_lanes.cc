// Steps with ties, couplings and servos in packs whose worlds have different contacts (lane_check.h); errors and settle in packs too.
#include "lane_check.h"
#include "tie_scene.h"
using namespace test;

// y = (errors, bars of q and theta; settled q, its bars)
template <class T>
static std::vector<T> settle_and_adjoint(const World& w, const std::vector<T>& x, const std::vector<T>& g, double dirt) {
  const Tree& t = w.t;
  View<T> a(w, x);
  Scratch<T> s(t, dirt);
  int theta = params_size(t), sizes[] = {t.ne, t.nv, theta, t.nq, t.nv, theta}, at[7] = {0};
  for (int i = 0; i < 6; i++) at[i + 1] = at[i] + sizes[i];
  std::vector<T> out(at[6], T(0)), delta(t.nv), tangent(t.nv, T(0));
  T* o = out.data();
  errors(t, a.th, s.tr, s.rw.eq, a.in.q, o);
  errors_adj(t, a.th, s.tr, s.rw.eq, g.data(), s.rb.eq, s.bar, params_map(t, o + at[2]), o + at[1]);
  settle(t, a.th, s.tr, s.rw, a.in.q, delta.data(), o + at[3]);
  tangent_bars(t, o + at[3], g.data(), tangent.data());
  settle_adj(t, a.th, s.tr, s.rw, delta.data(), tangent.data(), s.rb, s.bar, params_map(t, o + at[5]), o + at[4]);
  return out;
}

template <class P> static void check_settle_lanes(const World& w, Random& rng) {
  std::vector<Lane<P>> xs = neighbours<P>(w, rng), gs;
  for (int l = 0; l < lanes<P>; l++) gs.push_back(converted<ElementOf<P>>(rng.vector(std::max(w.t.ne, w.t.nq))));
  std::vector<P> packs = settle_and_adjoint(w, gather<P>(xs), gather<P>(gs), 1e30);
  for (int l = 0; l < lanes<P>; l++) {
    Lane<P> scalar = settle_and_adjoint(w, xs[l], gs[l], -1e20);
    int wrong = 0;
    for (size_t i = 0; i < scalar.size(); i++) wrong += !same(lane(packs[i], l), scalar[i]);
    CHECK(wrong == 0);
  }
}

int main() {
  Random rng(35);
  int floats = 0;
  for (int trial = 0; trial < 12; trial++) {
    World w = tie_trial(trial, 0.01, rng);
    Asked asked;
    asked.relative_softness = 1e-6, asked.cone = trial % 3 == 2 ? 4.5 : 0, asked.exact = trial / 2 % 2,
    asked.form = trial / 4 % 3;
    asked.project = trial % 3;
    check_lanes<Pack<double, 2>>(w, asked, rng), check_lanes<Pack<double, 8>>(w, asked, rng);
    check_lanes<Pack<float, 16>>(w, asked, rng);
    check_settle_lanes<Pack<double, 4>>(w, rng), check_settle_lanes<Pack<float, 8>>(w, rng);
    check_asked(w, asked, rng);
    asked.iterations = 3, asked.polish = 1;  // some worlds are solved, some fall back to the exact mode
    check_lanes<Pack<double, 8>>(w, asked, rng);
    check_asked(w, asked, rng);
    for (int again = 0; again < 4; again++) floats += check_float(tie_trial(trial, 0.01, rng), asked, rng);
  }
  CHECK(floats > 12);
  return report("equality_lanes");
}
