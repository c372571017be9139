// shapes.h and collide.h: all candidates of a scene and their adjoint by everything that moves or shapes them, against Dual; the
// coefficients of pairs.
#include "../../core/ops/collide.h"

#include "scene.h"
using namespace test;

using D = Dual<double>;
using Vector = std::vector<double>;

// roundings of numbers of size 1; the same through closest points, whose place is only as sharp as their distance is flat
constexpr double kRounding = 2e-14, kGap = 1e-12, kPlace = 1e-9;

// ---- adjoints of all candidates of a scene by everything that moves or shapes them --------------------------------------------
// shapes of every kind on the world, two free bodies and a link, and a field; every pair that there is, in both orders
static World every_pair(Random& rng) {
  Structure s;
  s.parent = {-1, -1, 0}, s.joint = {kFree, kFree, kRevolute};
  for (int body : {-1, 0, 1, 2})
    for (int type : {kPlane, kSphere, kCapsule, kBox, kCylinder, kHull}) add_shape(s, body, type, rng);
  add_field(s, -1, 5, 4);
  int n = int(s.shape_body.size());
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) {
      bool flat = flat_shape(s.shape_type[a]) && flat_shape(s.shape_type[b]);
      if (s.shape_body[a] != s.shape_body[b] && !flat) s.pair_a.push_back(a), s.pair_b.push_back(b);
    }
  s.friction_rule = rng.below(5), s.restitution_rule = rng.below(5);
  World w(s, false, rng);
  for (double* p : {w.theta().friction, w.theta().restitution})
    for (int i = 0; i < n; i++) p[i] = rng.uniform(0.1, 1);
  Params<double> th = w.theta();
  for (int i = 0; i < n; i++) {
    th.shape_size[i] = {rng.uniform(0.1, 0.3), rng.uniform(0.1, 0.6), rng.uniform(0.1, 0.3)};
    if (s.shape_type[i] == kHull) put_hull(w.t, th, i, random_vec(rng, 0.1) + Vec3<double>{0.2, 0.2, 0.2});
    if (s.shape_type[i] == kField) th.shape_size[i] = {4, 3, 0}, th.shape_pos[i].z = -1;
  }
  return w;
}

// y of a candidate, as users count them: gap, frame 9, point in the world 3, mu, e, softness, 1/m of both bodies
constexpr int kNumbers = 17;
template <class T> static void collide_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  View<T> a(w, x);
  collide_all(w.t, a.th, a.in, s);
  for (T& number : y) number = T(0);
  for (int k = 0; k < s.rw.count[6]; k++) {
    T* to = &y[kNumbers * shown(w.t, s.rw, k)];
    int b = w.t.shape_body[w.t.pair_b[s.rw.cand_pair[k]]];
    const Mat3<T>& C = s.rw.frame[k];
    to[0] = s.rw.gap[k], put(to + 1, C.r0), put(to + 4, C.r1), put(to + 7, C.r2);
    put(to + 10, s.rw.point[k] + (b < 0 ? zero3<T>() : s.tr.origin[w.t.root[b]]));
    to[13] = s.rw.mu[k], to[14] = s.rw.e[k], to[15] = s.rw.soft[k], to[16] = s.rw.lightness[k];
    // a point that does not exist: capsules that are not parallel have no second one
    for (int i = 0; i < kNumbers; i++) to[i] = select(s.rw.gap[k] > T(0.5 * kNowhere), T(0), to[i]);
  }
}
static void collide_of_adj(const World& w, Scratch<double>& s, const Vector& g, Vector& x_bar) {
  View<double> a(w, w.x);
  BarView b(w, x_bar);
  bars_clear(w.t, s.bar);
  for (int i = 0; i < w.t.ns; i++) s.rb.shape[i] = zero_force<double>();
  for (int k = 0; k < s.rw.count[6]; k++) {
    const double* from = &g[kNumbers * shown(w.t, s.rw, k)];
    s.rw.used[k] = s.rw.gap[k] < 0.5 * kNowhere;
    s.rb.gap[k] = from[0], s.rb.frame[k] = {vec3_at(from + 1), vec3_at(from + 4), vec3_at(from + 7)};
    s.rb.point[k] = vec3_at(from + 10), s.rb.mu[k] = from[13], s.rb.e[k] = from[14], s.rb.soft[k] = from[15],
    s.rb.lightness[k] = from[16];
  }
  collide_adj(w.t, a.th, s.rw, s.rb, b.th);
  shapes_adj(w.t, a.th, s.tr, s.rw, s.rb, s.bar, b.th);
  kinematics_adj(w.t, a.th, s.tr, s.bar, b.th);
  for (int d = 0; d < w.t.nv; d++) b.q[d] += s.bar.q[d];
  b.finish(w, x_bar);
}

static void check_scene(const World& w, Random& rng) {
  Scratch<D> dual(w.t);
  Scratch<double> real(w.t, 1e30), again(w.t, -1e20);
  int n = kNumbers * w.t.nk;
  Vector y(n), z(n);
  collide_of(w, w.x, real, y);
  check_adjoint(
      "collide", w.x, n, [&](const Duals& x, Duals& out) { collide_of(w, x, dual, out); },
      [&](const Vector& g, Vector& x_bar) { collide_of_adj(w, real, g, x_bar); }, rng);
  // dirty buffers twice, the same answer
  Vector g = rng.vector(n), one(w.size(), 0.0), two(w.size(), 0.0);
  collide_of(w, w.x, again, z), collide_of(w, w.x, again, z);
  CHECK(y == z);
  collide_of_adj(w, real, g, one), collide_of_adj(w, again, g, two);
  CHECK(one == two);
  // a pair given the other way round has the same gap and the opposite normal; where they touch is the same place. Of points that are
  // chosen the first is the closest
  const Tree& t = w.t;
  for (int p = 0; p < t.np; p++)
    for (int q = 0; q < t.np; q++) {
      if (t.pair_a[p] != t.pair_b[q] || t.pair_b[p] != t.pair_a[q]) continue;
      int k = t.pair_first[p], j = t.pair_first[q];
      CHECK_NEAR(y[kNumbers * k], y[kNumbers * j], kGap);
      CHECK_NEAR(distance(vec3_at(&y[kNumbers * k + 1]), -vec3_at(&y[kNumbers * j + 1])), 0, kPlace);
      CHECK_NEAR(distance(vec3_at(&y[kNumbers * k + 10]), vec3_at(&y[kNumbers * j + 10])), 0, kPlace);
    }
}

// every lane is the scalar run of its world
static void check_lanes(const World& w, Random& rng) {
  using P = Pack<double, 4>;
  Scratch<P> packs(w.t);
  Scratch<double> real(w.t);
  std::vector<Vector> xs(4, w.x);
  std::vector<P> x(w.size()), y(kNumbers * w.t.nk);
  Vector scalar(y.size());
  for (int l = 0; l < 4; l++)
    for (int i = 0; i < w.size(); i++) xs[l][i] *= rng.uniform(0.8, 1.2), set_lane(x[i], l, xs[l][i]);
  collide_of(w, x, packs, y);
  for (int l = 0; l < 4; l++) {
    collide_of(w, xs[l], real, scalar);
    int wrong = 0;
    for (size_t i = 0; i < y.size(); i++) wrong += lane(y[i], l) != scalar[i];
    CHECK(wrong == 0);
  }
}

// ---- coefficients ----------------------------------------------------------------------------------------------------------
static void check_rules(Random& rng) {
  double a = 0.2, b = 0.8, expected[] = {0.4, 0.8, 0.2, 0.5, 0.16};
  for (int rule = kGeometric; rule <= kProduct; rule++) {
    CHECK_NEAR(pair_rule(rule, a, b), expected[rule], kRounding);
    CHECK_NEAR(pair_rule(rule, b, a), expected[rule], kRounding);
    for (Vector x : {Vector{a, b}, Vector{b, a}})
      check_adjoint(
          "pair_rule", x, 1, [&](const Duals& in, Duals& y) { y[0] = pair_rule(rule, in[0], in[1]); },
          [&](const Vector& g, Vector& bar) { pair_rule_adj(rule, x[0], x[1], g[0], bar[0], bar[1]); }, rng);
    // ties share nothing: the whole derivative is there once. zeros stay finite
    double one = 0, two = 0, zero_a = 0, zero_b = 0;
    pair_rule_adj(rule, 0.5, 0.5, 1.0, one, two);
    CHECK_NEAR(one + two, 1, kRounding);
    pair_rule_adj(rule, 0.0, 0.5, 1.0, zero_a, zero_b);
    CHECK(std::isfinite(zero_a) && std::isfinite(zero_b) && std::isfinite(pair_rule(rule, 0.0, 0.0)));
    pair_rule_adj(rule, 0.0, 0.0, 1.0, zero_a, zero_b);
    CHECK(std::isfinite(zero_a) && std::isfinite(zero_b));
  }
}

// 1/m of both, where they have any
static void check_lightness(Random& rng) {
  World w = every_pair(rng);
  w.theta().mass[0] = 2, w.theta().mass[1] = 0, w.theta().mass[2] = 4;
  Params<double> th = w.theta();
  for (int p = 0; p < w.t.np; p++) {
    double sum = 0;
    int a = w.t.shape_body[w.t.pair_a[p]], b = w.t.shape_body[w.t.pair_b[p]];
    for (int body : {a, b}) sum += body < 0 || th.mass[body] == 0 ? 0 : 1 / th.mass[body];
    CHECK_NEAR(pair_lightness(th, a, b, false), sum, kRounding);
    Vector bars(params_size(w.t), 0.0);
    Params<double> th_bar = params_map(w.t, bars.data());
    pair_lightness_adj(th, a, b, false, 1.0, th_bar);
    CHECK(std::isfinite(th_bar.mass[0]) && th_bar.mass[1] == 0 && std::isfinite(th_bar.mass[2]));
  }
}

int main() {
  Random rng(28);
  check_rules(rng), check_lightness(rng);
  for (int trial = 0; trial < 12; trial++) {
    World w = every_pair(rng);
    check_scene(w, rng);
    if (trial < 3) check_lanes(w, rng);
  }
  return report("collide");
}
