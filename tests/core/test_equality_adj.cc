// Adjoints of equality.h, project.h, settle.h and lightness.h against Dual, each op alone. The whole step is in test_equality_step.cc.
#include "tie_scene.h"
using namespace test;

using D = Dual<double>;
using Vector = std::vector<double>;

// sums over bodies; and through the factors of H and A, where redundant rows stand on a softness of a thousandth
constexpr double kSums = 1e-12, kSolved = 1e-10;

static Asked soft(int steps) {
  Asked a;
  a.relative_softness = 1e-3, a.absolute_softness = 1e-2, a.project = steps;
  return a;
}

// ---- lightness: of bodies, dofs and pairs -------------------------------------------------------------------------------------
template <class T> static void lightness_of(const World& w, const std::vector<T>& x, std::vector<T>& y) {
  const Tree& t = w.t;
  View<T> a(w, x);
  int n = 0;
  for (int b = -1; b < t.nb; b++)
    for (bool turns : {false, true}) {
      y[n++] = body_lightness(a.th, b, turns);
      y[n++] = pair_lightness(a.th, b, (b + 2) % t.nb, turns);
    }
  for (int d = -1; d < t.nv; d++) y[n++] = dof_lightness(t, a.th, d);
}
static void check_lightness(const World& w, Random& rng) {
  const Tree& t = w.t;
  check_adjoint(
      "lightness", w.x, 4 * (t.nb + 1) + t.nv + 1, [&](const Duals& x, Duals& y) { lightness_of(w, x, y); },
      [&](const Vector& g, Vector& x_bar) {
        View<double> a(w, w.x);
        BarView bars(w, x_bar);
        int n = 0;
        for (int b = -1; b < t.nb; b++)
          for (bool turns : {false, true}) {
            body_lightness_adj(a.th, b, turns, g[n], bars.th);
            pair_lightness_adj(a.th, b, (b + 2) % t.nb, turns, g[n + 1], bars.th), n += 2;
          }
        for (int d = -1; d < t.nv; d++) dof_lightness_adj(t, a.th, d, g[n++], bars.th);
        bars.finish(w, x_bar);
      },
      rng, kSums);
}
// the world and bodies without mass count for nothing, and have no derivative
static void check_massless(World w) {
  Params<double> th = w.theta();
  th.mass[0] = 0, th.inertia[0] = {0, 0, 0, 0, 0, 0}, th.mass[1] = 4, th.inertia[1] = {1, 2, 3, 0.5, 0.5, 0.5};
  Vector bar(params_size(w.t), 0.0);
  for (bool turns : {false, true}) {
    CHECK(body_lightness(th, -1, turns) == 0 && body_lightness(th, 0, turns) == 0);
    CHECK_NEAR(body_lightness(th, 1, turns), turns ? 0.5 : 0.25, 1e-15);
    body_lightness_adj(th, 0, turns, 1.0, params_map(w.t, bar.data()));
    body_lightness_adj(th, -1, turns, 1.0, params_map(w.t, bar.data()));
  }
  for (double b : bar) CHECK(b == 0);
}

// ---- equality: (J, target, R) of every row, and the velocity v** that they lead to --------------------------------------------------
// everything that equality rows need before them
template <class T> static void before_rows(const World& w, const View<T>& a, Scratch<T>& s) {
  const Tree& t = w.t;
  normalise(t, a.in.q, s.tr.q);
  actuate(t, a.th, s.tr.q, a.in.u, a.in.h, s.tr.tau, s.tr.D);
  kinematics(t, a.th, s.tr), inertia(t, a.th, s.tr), factor(t, a.th, s.tr, a.in.h);
}
// and the adjoint of that, from s.bar
static void before_rows_adj(const World& w, const View<double>& a, Scratch<double>& s, BarView& b) {
  const Tree& t = w.t;
  Vector none(t.nv, 0.0);
  inertia_adj(t, a.th, s.tr, s.bar, b.th), kinematics_adj(t, a.th, s.tr, s.bar, b.th);
  actuate_adj(t, a.th, s.tr.q, a.in.u, a.in.h, none.data(), s.bar.D, b.th, s.bar.q, b.in.u, b.in.h);
  for (int d = 0; d < t.nv; d++) b.in.q[d] += s.bar.q[d];
}
static void clear_frames(const Tree& t, Scratch<double>& s) {
  for (int f = 0; f < 2 * t.n_tie; f++) s.rb.eq.frame[f] = zero_force<double>();
}

template <class T> static void numbers_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  const Tree& t = w.t;
  View<T> a(w, x);
  before_rows(w, a, s);
  std::vector<T> v(t.nv, T(0)), dv(t.nv);
  equality(t, a.th, s.tr, s.rw.eq, a.in.h, a.in.h, s.o, v.data(), dv.data());  // v* = 0: b is the target
  int n = t.item_J[t.n_item];
  for (int i = 0; i < n; i++) y[i] = s.rw.eq.J[i];
  for (int r = 0; r < t.ne; r++) y[n + r] = s.rw.eq.b[r], y[n + t.ne + r] = s.rw.eq.softness[r] + s.rw.eq.floor[r];
}
static void check_numbers(const World& w, Random& rng) {
  const Tree& t = w.t;
  Scratch<D> dual(t, 0, soft(1));
  Scratch<double> s(t, 1e30, soft(1));
  int n = t.item_J[t.n_item];
  check_adjoint(
      "equality, numbers of rows", w.x, n + 2 * t.ne, [&](const Duals& x, Duals& y) { numbers_of(w, x, dual, y); },
      [&](const Vector& g, Vector& x_bar) {
        Vector y = g;
        numbers_of(w, w.x, s, y);
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        bars_clear(t, s.bar), clear_frames(t, s);
        for (int i = 0; i < n; i++) s.rb.eq.J[i] = g[i];
        for (int r = 0; r < t.ne; r++) s.rb.eq.w[r] = -g[n + r], s.rb.eq.R[r] = g[n + t.ne + r];
        equality_adj(t, a.th, s.tr, s.rw.eq, a.in.h, a.in.h, s.o, s.rb.eq, s.bar, b.th, b.in.h, b.in.h);
        ties_adj(t, a.th, s.tr, s.rw.eq.now, s.rb.eq.frame, s.bar, b.th);
        before_rows_adj(w, a, s, b);
        b.finish(w, x_bar);
      },
      rng, kSums * 10);
}

template <class T> static void velocity_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  View<T> a(w, x);
  before_rows(w, a, s);
  std::vector<T> dv(w.t.nv);
  for (int d = 0; d < w.t.nv; d++) y[d] = a.in.v[d];
  equality(w.t, a.th, s.tr, s.rw.eq, a.in.h, a.in.h, s.o, y.data(), dv.data());
}
// with w = A^-1 J H^-1 v_bar and u = H^-1 (v_bar - J^T w) the derivative is that of -u . (H dv - J^T lambda) - w . (J v** + target + R lambda)
static void check_velocity(const World& w, Random& rng) {
  const Tree& t = w.t;
  Scratch<D> dual(t, 0, soft(1));
  Scratch<double> s(t, 1e30, soft(1));
  check_adjoint(
      "equality", w.x, t.nv, [&](const Duals& x, Duals& y) { velocity_of(w, x, dual, y); },
      [&](const Vector& g, Vector& x_bar) {
        Vector v(t.nv), dv(t.nv), u = g, Jw(t.nv, 0.0);
        velocity_of(w, w.x, s, v);
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        EqualityBars<double>& eb = s.rb.eq;
        bars_clear(t, s.bar), equality_bars_clear(t, eb), clear_frames(t, s);
        constrained_solve(t, s.tr, s.rw, u.data(), eb.w);
        equality_bars(t, eb, s.rw.eq.lam, eb.w, u.data(), v.data());
        for (int i = 0; i < t.n_item; i++) {
          Item it = item_at(t, i);
          for (int r = 0; r < it.n; r++)
            for (int k = 0; k < it.m; k++) Jw[it.list[k]] += s.rw.eq.J[it.J + r * it.m + k] * eb.w[it.row + r];
        }
        for (int d = 0; d < t.nv; d++) {
          dv[d] = v[d] - a.in.v[d], u[d] = -u[d], b.in.v[d] += g[d] - Jw[d];
          b.th.armature[d] += u[d] * dv[d], s.bar.D[d] += a.in.h * u[d] * dv[d], b.in.h += s.tr.D[d] * u[d] * dv[d];
        }
        mass_form_adj(t, s.tr, u.data(), dv.data(), static_cast<const int*>(nullptr), t.nb, s.rb, s.bar);
        equality_adj(t, a.th, s.tr, s.rw.eq, a.in.h, a.in.h, s.o, eb, s.bar, b.th, b.in.h, b.in.h);
        ties_adj(t, a.th, s.tr, s.rw.eq.now, eb.frame, s.bar, b.th);
        before_rows_adj(w, a, s, b);
        b.finish(w, x_bar);
      },
      rng, kSolved);
}

// ---- project ------------------------------------------------------------------------------------------------------------------------
template <class T> static void project_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  View<T> a(w, x);
  T rate = T(s.o.recovery) / a.in.h;
  before_rows(w, a, s);
  equality_setup(w.t, a.th, s.tr, s.rw.eq, rate / a.in.h, s.o);
  for (int d = 0; d < w.t.nv; d++) y[d] = a.in.v[d];
  project(w.t, a.th, s.tr, s.rw.eq, a.in.h, a.in.h, s.o.project, y.data());
}
static void check_project(const World& w, int steps, Random& rng) {
  const Tree& t = w.t;
  Scratch<D> dual(t, 0, soft(steps));
  Scratch<double> s(t, 1e30, soft(steps));
  check_adjoint(
      "project", w.x, t.nv, [&](const Duals& x, Duals& y) { project_of(w, x, dual, y); },
      [&](const Vector& g, Vector& x_bar) {
        Vector v(t.nv), v_bar = g;
        project_of(w, w.x, s, v);
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        bars_clear(t, s.bar), equality_bars_clear(t, s.rb.eq);
        project_adj(t, a.th, s.tr, s.rw, a.in.h, a.in.h, steps, v_bar.data(), s.rb, s.bar, b.th, b.in.h, b.in.h);
        clear_frames(t, s);
        for (int r = 0; r < t.ne; r++) s.rb.eq.w[r] = 0;
        equality_adj(t, a.th, s.tr, s.rw.eq, a.in.h, a.in.h, s.o, s.rb.eq, s.bar, b.th, b.in.h, b.in.h);
        ties_adj(t, a.th, s.tr, s.rw.eq.now, s.rb.eq.frame, s.bar, b.th);
        before_rows_adj(w, a, s, b);
        for (int d = 0; d < t.nv; d++) b.in.v[d] += v_bar[d];
        b.finish(w, x_bar);
      },
      rng, kSolved);
}

// ---- errors and settle -----------------------------------------------------------------------------------------------------------------
static void check_errors(const World& w, Random& rng) {
  const Tree& t = w.t;
  Scratch<D> dual(t);
  Scratch<double> s(t, 1e30);
  check_adjoint(
      "errors", w.x, t.ne,
      [&](const Duals& x, Duals& y) {
        View<D> a(w, x);
        errors(t, a.th, dual.tr, dual.rw.eq, a.in.q, y.data());
      },
      [&](const Vector& g, Vector& x_bar) {
        Vector y(t.ne);
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        errors(t, a.th, s.tr, s.rw.eq, a.in.q, y.data());
        errors_adj(t, a.th, s.tr, s.rw.eq, g.data(), s.rb.eq, s.bar, b.th, b.in.q);
        b.finish(w, x_bar);
      },
      rng, kSums);
}

// softness only says which rows count: where it is zero it has no derivative, elsewhere next to none
static void settle_bars(const World& w, const Vector& g, Vector& x_bar) {
  const Tree& t = w.t;
  Scratch<double> s(t, 1e30);
  Vector delta(t.nv), q(t.nq), tangent(t.nv, 0.0), q_bar(t.nv, 1e30);
  View<double> a(w, w.x);
  BarView b(w, x_bar);
  settle(t, a.th, s.tr, s.rw, a.in.q, delta.data(), q.data());
  tangent_bars(t, q.data(), g.data(), tangent.data());
  settle_adj(t, a.th, s.tr, s.rw, delta.data(), tangent.data(), s.rb, s.bar, b.th, q_bar.data());
  for (int d = 0; d < t.nv; d++) b.in.q[d] += q_bar[d];
  b.finish(w, x_bar);
}
static void check_settle(const World& w, Random& rng) {
  const Tree& t = w.t;
  Scratch<D> dual(t);
  int softness = t.n_tie + 5 * t.n_coupling + t.n_coupling, first = w.size() - softness;  // the last fields
  Vector g = rng.vector(t.nq), dx = w.draw(rng), bar(w.size(), 0.0);
  Duals x(w.size()), delta(t.nv), y(t.nq);
  for (int i = 0; i < w.size(); i++) {
    bool of_softness = i >= first && (i < first + t.n_tie || i >= w.size() - t.n_coupling);
    x[i] = {w.x[i], of_softness ? 0 : dx[i]};
  }
  View<D> a(w, x);
  settle(t, a.th, dual.tr, dual.rw, a.in.q, delta.data(), y.data());
  settle_bars(w, g, bar);
  double forward = 0, reverse = 0, size = 0;
  for (int i = 0; i < t.nq; i++) forward += g[i] * y[i].tangent, size += std::fabs(g[i] * y[i].tangent);
  for (int i = 0; i < w.size(); i++) reverse += bar[i] * x[i].tangent, size += std::fabs(bar[i] * x[i].tangent);
  CHECK_NEAR(forward, reverse, kSolved * size);
  for (int i = 0; i < w.size(); i++)
    if (i >= first && x[i].tangent == 0) CHECK_NEAR(bar[i], 0, 1e-12 * size);
}

int main() {
  Random rng(33);
  for (int trial = 0; trial < 60; trial++) {
    World w = tie_trial(trial, trial % 4 ? 0.02 : 2, rng);
    check_lightness(w, rng), check_numbers(w, rng), check_velocity(w, rng), check_errors(w, rng);
    for (int steps : {0, 1, 2, 3}) check_project(w, steps, rng);
    check_settle(closed_arm(trial % 2, rng), rng);
  }
  check_massless(tie_trial(1, 0.01, rng));
  return report("equality_adj");
}
