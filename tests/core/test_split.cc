// split.h: steps that are split at impacts, in space and in the plane. A bounce by hand; the adjoint against Dual of the same parts, whose durations follow
// from the gaps that end them, and against central differences of the whole step; packs, each lane bit by bit its world.
#include "../../core/split.h"

#include "lane_check.h"
#include "step_check.h"
using namespace test;

constexpr double kImpacts = 8;
// Durations are roots to 1e-12 m, which the step's curvature multiplies; differences lose half of the digits, and what they do not agree on
// among themselves is a kink
constexpr double kParts = 1e-8, kDifferences = 2e-5, kAgree = 1e-5;

static Asked split_options(double exact) {
  Asked a = test::exact(60, 4, 0);
  a.impacts = kImpacts, a.exact = exact, a.tolerance = 1e-13;
  return a;
}

// ---- a split step as a flat function: y = (q+, v+) ----------------------------------------------------------------------------
template <class T> struct Splitter {
  Scratch<T> s;
  std::vector<T> memory;
  Split<T> parts;
  Splitter(const Tree& t, const Asked& asked, double dirt = 0) : s(t, dirt, asked) {
    Arena<T> count{nullptr, 0};
    split_map(t, s.o, true, count);
    memory.assign(count.used, T(ElementOf<T>(dirt)));
    Arena<T> arena{memory.data(), 0};
    parts = split_map(t, s.o, true, arena);
  }
  std::vector<T> forward(const World& w, const std::vector<T>& x) {
    View<T> a(w, x);
    std::vector<T> y(w.t.nq + w.t.nv);
    split_step(w.t, a.th, s.tr, s.rw, s.o, a.in, y.data(), y.data() + w.t.nq, parts);
    return y;
  }
};

// after forward on the same splitter; g: bars of y
static Vector backward(const World& w, Splitter<double>& f, const Vector& y, Vector g) {
  const Tree& t = w.t;
  Vector x_bar(w.size(), 0.0), q_tan(t.nv, 0.0);
  View<double> a(w, w.x);
  BarView b(w, x_bar);
  tangent_bars(t, y.data(), g.data(), q_tan.data());
  auto show = [&](int) {
    for (int i = 0; i < f.s.rw.count[0]; i++) f.s.rb.impulse[i] = zero3<double>();
  };
  Vector v_bar(g.begin() + t.nq, g.end());
  split_step_adj(t, a.th, f.s.tr, f.s.rw, f.s.o, a.in, q_tan.data(), v_bar.data(), f.s.bar, f.s.rb, b.th, b.in, f.parts, show);
  for (int d = 0; d < t.nv; d++) b.q[d] += q_tan[d], x_bar[w.at_v() + d] += v_bar[d];
  b.finish(w, x_bar);
  return x_bar;
}

// ---- worlds -----------------------------------------------------------------------------------------------------------------
// things that fall on the floor and on each other within the step
static World falling(const Parts& parts, int form, Random& rng) {
  World w = random_scene(parts, form, rng);
  Params<double> th = w.theta();
  for (int s = 0; s < w.t.ns; s++) th.restitution[s] = rng.uniform(0.3, 1), th.softness[s] = 0;
  for (int b = 0; b < w.t.nb; b++)
    if (w.t.joint[b] == kFree) w.x[w.t.q_adr[b] + 2] += rng.uniform(0.02, 0.15), w.x[w.at_v() + w.t.v_adr[b] + 2] -= 2;
  w.x[w.at_h()] = rng.uniform(0.02, 0.06);
  return w;
}

// circles, rectangles and a polygon between two walls and a floor
static World planar(Random& rng) {
  Structure s;
  s.planar = 1;
  for (int i = 0; i < 3; i++) s.shape_body.push_back(-1), s.shape_type.push_back(kPlane);
  for (int shape : {kSphere, kRectangle, kSphere}) {
    s.parent.push_back(-1), s.joint.push_back(kPlanar);
    s.shape_body.push_back(int(s.parent.size()) - 1), s.shape_type.push_back(shape);
  }
  for (int a = 0; a < 6; a++)
    for (int b = std::max(a + 1, 3); b < 6; b++) s.pair_a.push_back(a), s.pair_b.push_back(b);
  World w(s, true, rng);
  Params<double> th = w.theta();
  constexpr double half = 1.5707963267948966, out[3][3] = {{0, -0.5, 0}, {0.8, 0, half}, {-0.8, 0, -half}};
  for (int i = 0; i < 3; i++) {
    // z of a half plane is its outward normal
    Quat<double> turn = {std::cos(out[i][2] / 2), 0, 0, std::sin(out[i][2] / 2)}, up = {std::sqrt(0.5), -std::sqrt(0.5), 0, 0};
    th.shape_pos[i] = {out[i][0], out[i][1], 0}, th.shape_quat[i] = mul(turn, up);
  }
  for (int b = 0; b < 3; b++) {
    th.joint_pos[b] = th.com[b] = th.shape_pos[3 + b] = {0, 0, 0}, th.joint_quat[b] = th.shape_quat[3 + b] = {1, 0, 0, 0};
    th.joint_axis[b] = {0, 0, 1}, th.joint_anchor[b] = {0, 0, 0}, th.stiffness[b] = 0,
    th.inertia[b] = {1, 1, rng.uniform(0.005, 0.02), 0, 0, 0};
    th.shape_size[3 + b] = {rng.uniform(0.08, 0.15), rng.uniform(0.05, 0.1), 0};
    double* q = &w.x[3 * b];
    q[0] = 0.5 * (b - 1) + rng.uniform(-0.03, 0.03), q[1] = rng.uniform(-0.3, -0.1), q[2] = rng.uniform(-1, 1);
    double* v = &w.x[w.at_v() + 3 * b];
    v[0] = rng.uniform(-5, 5), v[1] = rng.uniform(-5, 1), v[2] = rng.uniform(-8, 8);
  }
  for (int d = 0; d < w.t.nv; d++) th.damping[d] = th.armature[d] = 0;
  for (int i = 0; i < 6; i++) th.friction[i] = rng.uniform(0.1, 0.6), th.restitution[i] = rng.uniform(0.4, 1), th.softness[i] = 0;
  th.gravity[0] = {0.2, -9.81, 0}, w.x[w.at_h()] = rng.uniform(0.03, 0.06);
  for (int i = 0; i < 18; i++) w.x[w.at_ext() + i] *= 0.1;
  return w;
}

// ---- by hand ----------------------------------------------------------------------------------------------------------------
// a ball of 0.5 m, 0.1 m above the floor: it meets it at tau, and leaves with e times its speed
static void check_bounce(Random& rng) {
  Structure s;
  s.parent = {-1}, s.joint = {kFree}, s.shape_body = {-1, 0}, s.shape_type = {kPlane, kSphere}, s.pair_a = {0}, s.pair_b = {1};
  World w(s, true, rng);
  for (double& x : w.x) x = 0;
  Params<double> th = w.theta();
  th.mass[0] = 2, th.inertia[0] = {1, 1, 1, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.gravity[0] = {0, 0, -10};
  th.shape_quat[0] = th.shape_quat[1] = {1, 0, 0, 0}, th.shape_size[1] = {0.5, 0, 0}, th.rest[3] = 1;
  th.restitution[0] = th.restitution[1] = 0.5;
  double z = 0.6, v = -3, h = 0.1, hit = std::sqrt(9 + 2 * 10 * 0.1), tau = (hit - 3) / 10, left = h - tau;
  w.x[2] = z, w.x[3] = 1, w.x[w.at_v() + 2] = v, w.x[w.at_h()] = h;
  Asked a;
  a.relative_softness = 0, a.absolute_softness = 1e-30, a.impacts = kImpacts;
  Splitter<double> f(w.t, a, 1e30);
  Vector y = f.forward(w, w.x);
  constexpr double tol = 1e-11;
  CHECK(f.parts.parts == 2 && f.s.rw.status->impacts == 1);
  CHECK_NEAR(f.parts.h[0], tau, tol);
  CHECK_NEAR(y[2], 0.5 + 0.5 * hit * left - 5 * left * left, tol);
  CHECK_NEAR(y[9], 0.5 * hit - 10 * left, tol);
  // dz+/dz = e v+ ... by the closed form's own derivative
  Vector g(13, 0.0);
  g[2] = 1;
  Vector x_bar = backward(w, f, y, g);
  double dtau = 1 / hit, dhit = 10 / hit;
  CHECK_NEAR(x_bar[2], 0.5 * (dhit * left - hit * dtau) + 10 * left * dtau, 1e-9);
  CHECK_NEAR(x_bar[w.at_h()], 0.5 * hit - 10 * left, 1e-9);
}

// ---- adjoint: Dual of the same parts ------------------------------------------------------------------------------------------
// the gap in which part k of f ends, as a Dual, for its start and duration in d.parts; the part's end stays in d.parts.q_end, v_end
static D gap_at_end(const World& w, const Duals& x, const Splitter<double>& f, Splitter<D>& d, int k) {
  View<D> a(w, x);
  Split<D>& s = d.parts;
  step(w.t, a.th, d.s.tr, d.s.rw, d.s.o, part_inputs(w.t, d.s.o, a.in, s, k), s.q_end, s.v_end);
  if (f.parts.hit[k] < 0) return D(0);
  normalise(w.t, s.q_end, s.way.tr.q);
  look_at(w.t, a.th, s.way, s.v_end, static_cast<const D*>(nullptr));
  int n = look_at_pair(w.t, a.th, d.s.rw, s.way, f.parts.hit[k], 1);
  D gap = D(1e300);
  const Tree& t = w.t;
  int p = f.parts.hit[k];
  bool chosen = pair_chosen(t.shape_type[t.pair_a[p]], t.shape_type[t.pair_b[p]]);
  for (int c = 0; c < n; c++)
    if (chosen ? meets_at(d.s.o, s.way, n, c) : f.parts.point[k] == c) gap = s.way.rw.gap[c];
  return gap;
}

// y and its tangents along those of x: each duration moves so that the gap at the end of its part stays closed
static Duals same_parts(const World& w, const Duals& x, const Splitter<double>& f, Splitter<D>& d) {
  const Tree& t = w.t;
  Split<D>& s = d.parts;
  s.full = x[w.at_h()];
  D left = x[w.at_h()];
  for (int i = 0; i < t.nq; i++) s.q[i] = x[i];
  for (int i = 0; i < t.nv; i++) s.v[i] = x[w.at_v() + i];
  for (int k = 0; k < f.parts.parts; k++) {
    bool hits = f.parts.hit[k] >= 0;
    s.left[k] = left, s.h[k] = hits ? D(f.parts.h[k]) : left;
    for (int i = 0; i < t.nv; i++) {
      s.after[k * t.nv + i] = D(f.parts.after[k * t.nv + i]);
      s.later[k * t.nv + i] = D(f.parts.later[k * t.nv + i]);
    }
    if (hits) {
      D still = gap_at_end(w, x, f, d, k);
      s.h[k].tangent = 1;
      double rate = gap_at_end(w, x, f, d, k).tangent - still.tangent;
      s.h[k].tangent = -still.tangent / rate;
      D met = gap_at_end(w, x, f, d, k);
      CHECK_NEAR(met.value, 0, 1e-9);
      CHECK_NEAR(met.tangent, 0, 1e-9 * (1 + std::fabs(still.tangent)));
    } else {
      gap_at_end(w, x, f, d, k);
    }
    left = left - s.h[k];
    for (int i = 0; i < t.nq && k < s.parts; i++) s.q[(k + 1) * t.nq + i] = s.q_end[i];
    for (int i = 0; i < t.nv && k < s.parts; i++) s.v[(k + 1) * t.nv + i] = s.v_end[i];
  }
  Duals y(s.q_end, s.q_end + t.nq);
  y.insert(y.end(), s.v_end, s.v_end + t.nv);
  return y;
}

// 1 if the step had impacts
static int check_parts(const World& w, Random& rng) {
  Asked asked = split_options(1);
  Splitter<double> f(w.t, asked, 1e30);
  Vector y = f.forward(w, w.x);
  int parts = f.parts.parts;
  if (parts == 1 || parts > int(kImpacts) || f.parts.began[0] >= 0) return 0;
  for (int k = 0; k < parts; k++)
    if (f.parts.hit[k] >= 0 && f.parts.h[k] < 1e-6) return 0;  // met within rounding: 1 / h would drown it
  Vector g = rng.vector(int(y.size())), x_bar = backward(w, f, y, g);
  CHECK(f.forward(w, w.x) == y);              // the adjoint has left nothing behind,
  CHECK(backward(w, f, y, g) == x_bar);       // asking twice changes nothing,
  Splitter<double> dirty(w.t, asked, -1e20);  // nor do other traces in memory
  CHECK(dirty.forward(w, w.x) == y && backward(w, dirty, y, g) == x_bar);
  Splitter<D> d(w.t, asked);
  d.parts.parts = parts;
  Vector dx = w.draw(rng);
  for (const auto& [name, range] : fields(w)) {
    Duals x(w.x.begin(), w.x.end());
    double forward = 0, reverse = 0, size = 1e-30, whole = 0;
    for (int i = 0; i < w.size(); i++) whole += std::fabs(x_bar[i] * dx[i]);
    for (int i = range.first; i < range.first + range.second; i++)
      x[i].tangent = dx[i], reverse += x_bar[i] * dx[i], size += std::fabs(x_bar[i] * dx[i]);
    Duals z = same_parts(w, x, f, d);
    for (size_t i = 0; i < z.size(); i++) forward += g[i] * z[i].tangent, size += std::fabs(g[i] * z[i].tangent);
    if (!(std::fabs(forward - reverse) <= kParts * (size + 0.01 * whole))) {
      std::printf("%s, %d parts: Dual of the parts gives %.17g, the adjoint %.17g\n", name.c_str(), parts, forward, reverse);
      failures++;
    }
  }
  return 1;
}

// ---- adjoint: central differences of the whole --------------------------------------------------------------------------------
static int check_differences(const World& w, double exact, Random& rng) {
  Asked asked = split_options(exact);
  Splitter<double> f(w.t, asked);
  Vector y = f.forward(w, w.x), g = rng.vector(int(y.size())), x_bar = backward(w, f, y, g), dx = w.draw(rng);
  int parts = f.parts.parts, theta = w.at_theta();
  if (parts == 1 || f.parts.began[0] >= 0) return 0;
  for (int i = theta; i < w.size(); i++) dx[i] *= w.x[i];  // masses stay masses
  double reverse = 0, size = 0, slopes[3];
  for (int i = 0; i < w.size(); i++) reverse += x_bar[i] * dx[i], size += std::fabs(x_bar[i] * dx[i]);
  for (int n = 0; n < 3; n++) {
    double h = n == 0 ? 1e-5 : n == 1 ? 1e-6 : 1e-7, sum = 0;
    for (double side : {1.0, -1.0}) {
      Vector x = w.x;
      for (int i = 0; i < w.size(); i++) x[i] += side * h * dx[i];
      Splitter<double> other(w.t, asked);
      Vector z = other.forward(w, x);
      if (other.parts.parts != parts) return 0;
      for (size_t i = 0; i < z.size(); i++) sum += side * g[i] * (z[i] - y[i]);
    }
    slopes[n] = sum / (2 * h);
  }
  if (std::fabs(slopes[0] - slopes[1]) > kAgree * size && std::fabs(slopes[1] - slopes[2]) > kAgree * size) return 0;
  double error =
      std::fmin(std::fabs(slopes[0] - reverse), std::fmin(std::fabs(slopes[1] - reverse), std::fabs(slopes[2] - reverse)));
  if (!(error <= kDifferences * size)) {
    std::printf("%d parts: differences give %.9g %.9g %.9g, the adjoint %.9g\n", parts, slopes[0], slopes[1], slopes[2], reverse);
    failures++;
  }
  return 1;
}

// ---- lanes ------------------------------------------------------------------------------------------------------------------
// (q+, v+, impacts), then the bars of q (tangent), v, u, h, external, theta
template <class T> static std::vector<T> split_and_adjoint(const World& w, const std::vector<T>& x, const std::vector<T>& g,
                                                           const Asked& asked, double dirt) {
  const Tree& t = w.t;
  View<T> a(w, x);
  Splitter<T> f(t, asked, dirt);
  std::vector<T> out = f.forward(w, x);
  out.push_back(f.s.rw.status->impacts);
  int at = int(out.size()), n = 2 * t.nv + t.nu + 6 * t.nb + params_size(t);
  out.resize(at + n + 1, T(0));
  T* o = out.data() + at;
  InputBars<T> bar = {nullptr, nullptr, o + 2 * t.nv, T(0), o + 2 * t.nv + t.nu};
  Params<T> th_bar = params_map(t, o + 2 * t.nv + t.nu + 6 * t.nb);
  auto show = [&](int) {
    for (int i = 0; i < f.s.rw.count[0]; i++) f.s.rb.impulse[i] = zero3<T>();
  };
  for (int d = 0; d < 2 * t.nv; d++) o[d] = g[d];
  split_step_adj(t, a.th, f.s.tr, f.s.rw, f.s.o, a.in, o, o + t.nv, f.s.bar, f.s.rb, th_bar, bar, f.parts, show);
  o[n] = bar.h;
  return out;
}

template <class P> static int check_split_lanes(const World& w, const Asked& asked, bool free, Random& rng) {
  using E = ElementOf<P>;
  constexpr int n = lanes<P>;
  std::vector<Lane<P>> xs, gs;
  for (int l = 0; l < n; l++) {
    std::vector<double> x = w.x;
    for (double& c : x) c *= rng.uniform(0.95, 1.05);
    if (free && l == 1) x[2] += 100;  // one that meets nothing there
    xs.push_back(converted<E>(x)), gs.push_back(converted<E>(rng.vector(2 * w.t.nv)));
  }
  std::vector<P> packs = split_and_adjoint(w, gather<P>(xs), gather<P>(gs), asked, 1e30);
  int some = 0, most = 0, count = w.t.nq + w.t.nv;
  for (int l = 0; l < n; l++) {
    Lane<P> alone = split_and_adjoint(w, xs[l], gs[l], asked, -1e20);
    int forward = 0, adjoint = 0;
    for (int i = 0; i < int(alone.size()); i++) (i <= count ? forward : adjoint) += !same(lane(packs[i], l), alone[i]);
    if (forward || adjoint)
      std::printf("lane %d of %d: %d numbers differ, and %d of the adjoint\n", l, n, forward, adjoint), failures++;
    some += alone[count] > 0, most = std::max(most, int(alone[count]));
  }
  return some > 0 && most > 0;
}

int main() {
  Random rng(31);
  check_bounce(rng);
  int split = 0, agreed = 0, packs = 0, trials = 40;
  for (int trial = 0; trial < trials; trial++) {
    Parts parts;
    parts.limits = parts.dry = parts.servos = trial % 3 != 0, parts.solids = trial % 4 == 1, parts.field = trial % 8 == 5;
    World w = trial % 2 ? falling(parts, trial / 2 % 2, rng) : planar(rng);
    split += check_parts(w, rng);
    for (double exact : {0, 1}) agreed += check_differences(w, exact, rng);
    if (trial % 5) continue;
    Asked asked = split_options(trial / 5 % 2);
    packs += check_split_lanes<Pack<double, 2>>(w, asked, trial % 2, rng) +
             check_split_lanes<Pack<double, 8>>(w, asked, trial % 2, rng);
    asked.relative_softness = asked.absolute_softness = 1e-2, asked.tolerance = 1e-5;
    packs += check_split_lanes<Pack<float, 16>>(w, asked, trial % 2, rng);
  }
  std::printf("%d of %d steps with parts, %d of %d with differences, %d packs with impacts\n", split, trials, agreed, 2 * trials,
              packs);
  CHECK(split > trials / 2 && agreed > trials / 2 && packs > 10);
  return report("split");
}
