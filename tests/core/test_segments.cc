// collide/point_plane.h and collide/segments.h: closest points against a search, surfaces by hand, parallel segments, the tangent
// frame, adjoints against Dual, and every kink.
#include "../../core/ops/collide/segments.h"

#include "sample.h"
using namespace test;

using V = Vec3<double>;
using D = Dual<double>;
using Vector = std::vector<double>;

// roundings of numbers of size 1 in a few products; a distance that a search finds to the square root of that, squared again
constexpr double kRounding = 2e-14, kSearch = 1e-12;

static double length(V a) { return std::sqrt(dot(a, a)); }
static V at(const Segment<double>& g, double s) { return g.p + s * g.e; }
static double clamp(double x) { return std::fmin(std::fmax(x, -1), 1); }
static double middle(const Segment<double>& g, V p) {  // parameter of the closest point of a segment
  double n = dot(g.e, g.e);
  return n > 0 ? clamp(dot(g.e, p - g.p) / n) : 0;
}
static Segment<double> random_segment(Random& rng) {
  V p = random_vec(rng, 0.6), e = rng.uniform(0.1, 0.8) * random_unit(rng);
  return {p, e, rng.uniform(0.05, 0.3)};
}

// ---- values ------------------------------------------------------------------------------------------------------------
// smallest distance: a grid, then the best parameter of each segment in turn; the problem is convex
static double search(const Segment<double>& a, const Segment<double>& b) {
  double best = 1e30, s = 0;
  for (int i = 0; i <= 40; i++) {
    double si = i / 20.0 - 1, d = length(at(b, middle(b, at(a, si))) - at(a, si));
    if (d < best) best = d, s = si;
  }
  for (int i = 0; i < 20000; i++) s = middle(a, at(b, middle(b, at(a, s))));
  return length(at(b, middle(b, at(a, s))) - at(a, s));
}

// the contact's frame is orthonormal and right-handed; half a gap along the normal lie the surfaces of both, a behind and b ahead
static void check_touch(const Segment<double>& a, const Segment<double>& b, double tol, int point = 0) {
  Touch<double> y = segments(a, b, point);
  const Mat3<double>& C = y.frame;
  CHECK_NEAR(y.gap, search(a, b) - a.r - b.r, tol);
  CHECK_NEAR(distance(cross(C.r0, C.r1), C.r2) + std::fabs(dot(C.r0, C.r1)) + std::fabs(length(C.r0) - 1), 0, kRounding);
  V on_a = y.x - (0.5 * y.gap) * C.r0, on_b = y.x + (0.5 * y.gap) * C.r0;
  CHECK_NEAR(length(on_a - at(a, middle(a, on_a))), a.r, tol);
  CHECK_NEAR(length(on_b - at(b, middle(b, on_b))), b.r, tol);
  CHECK_NEAR(dot(C.r0, at(b, middle(b, on_b)) - at(a, middle(a, on_a))), y.gap + a.r + b.r, tol);
}

static void check_plane(Random& rng) {
  for (int trial = 0; trial < 20; trial++) {
    V origin = random_vec(rng), p = random_vec(rng);
    Mat3<double> R = matrix(random_quat(rng));
    double r = trial % 2 ? 0 : rng.uniform(0, 0.5);
    V normal = {R.r0.z, R.r1.z, R.r2.z}, t1 = {R.r0.x, R.r1.x, R.r2.x}, t2 = {R.r0.y, R.r1.y, R.r2.y};
    for (double spread : {0.0, 0.5, 1.0}) {
      Touch<double> y = point_plane(origin, R, p, r, spread);
      CHECK_NEAR(distance(y.frame, {normal, t1, t2}), 0, 0);
      CHECK_NEAR(dot(normal, y.x - origin), (1 - spread) * y.gap, kRounding);      // 1: on the plane
      CHECK_NEAR(distance(y.x + (spread * y.gap + r) * normal, p), 0, kRounding);  // 0: on the shape
    }
  }
  // exactly touching, by hand: a ball of 0.25 on the floor at height 1
  Mat3<double> upright = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  Touch<double> y = point_plane(V{7, 8, 1}, upright, V{2, 3, 1.25}, 0.25, 1.0);
  CHECK(y.gap == 0 && distance(y.x, {2, 3, 1}) == 0);
}

// two spheres, a sphere above the end of a capsule, capsules that cross: numbers one can see
static void check_by_hand() {
  Segment<double> ball = {{0, 0, 0}, {0, 0, 0}, 0.5}, other = {{3, 4, 0}, {0, 0, 0}, 1}, rod = {{0, 0, 2}, {1, 0, 0}, 0.25};
  Touch<double> y = segments(ball, other, 0);
  CHECK_NEAR(y.gap, 3.5, kRounding);
  CHECK_NEAR(distance(y.frame.r0, {0.6, 0.8, 0}) + distance(y.x, 2.25 * V{0.6, 0.8, 0}), 0, kRounding);
  CHECK_NEAR(segments(ball, rod, 0).gap, 1.25, kRounding);
  CHECK_NEAR(distance(segments(ball, rod, 0).frame.r0, {0, 0, 1}), 0, kRounding);
  CHECK_NEAR(segments(Segment<double>{{4, 0, 6}, {0, 0, 0}, 0.5}, rod, 0).gap, 5 - 0.75, kRounding);  // its end at (1, 0, 2)
  CHECK_NEAR(segments(Segment<double>{{0.5, 0.3, 0}, {0, 1, 0}, 0.5}, rod, 0).gap, 2 - 0.75, kRounding);
  CHECK(segments(ball, Segment<double>{{0.5, 0, 0}, {0, 0, 0}, 0}, 0).gap == 0);  // exactly touching
}

static void check_closest(Random& rng) {
  int seen[2][2] = {};  // which parameters are free
  for (int trial = 0; trial < 400; trial++) {
    Segment<double> a = random_segment(rng), b = random_segment(rng);
    if (trial % 4 == 1) a.e = {0, 0, 0};
    if (trial % 4 == 2) b.e = {0, 0, 0};
    check_touch(a, b, kSearch);
    Closest<double> f = closest(a, b, 0);
    if (trial % 4 == 0) seen[f.s_free > 0.5][f.t_free > 0.5]++;
    CHECK(!(f.s_free > 0.5 && std::fabs(f.s) >= 1) && !(f.t_free > 0.5 && std::fabs(f.t) >= 1));
  }
  CHECK(seen[0][0] > 0 && seen[0][1] > 0 && seen[1][0] > 0 && seen[1][1] > 0);
}

// parallel segments touch at both ends of their overlap, whichever way they point; others have no second point
static void check_parallel(Random& rng) {
  Segment<double> a = {{0, 0, 0}, {0.5, 0, 0}, 0.1}, b = {{0.4, 0.4, 0}, {0.2, 0, 0}, 0.1};
  for (double way : {1.0, -1.0})
    for (int point : {0, 1}) {
      b.e = {way * 0.2, 0, 0};
      Touch<double> y = segments(a, b, point), z = segments(b, a, point);
      CHECK_NEAR(y.gap, 0.2, kRounding);
      CHECK_NEAR(distance(y.x, {point ? 0.5 : 0.2, 0.2, 0}), 0, kRounding);
      CHECK_NEAR(distance(z.x, {(way < 0) != (point == 1) ? 0.5 : 0.2, 0.2, 0}), 0, kRounding);
      // end to end, and past each other: both points are the same
      CHECK_NEAR(segments(a, Segment<double>{{1.2, 0, 0}, {way * 0.4, 0, 0}, 0.1}, point).gap, 0.1, kRounding);
      CHECK_NEAR(segments(a, Segment<double>{{1.0, 0.3, 0}, {way * 0.1, 0, 0}, 0.1}, point).gap, 0.5 - 0.2, kRounding);
    }
  for (int trial = 0; trial < 40; trial++) {
    Quat<double> q = random_quat(rng);
    Segment<double> c = {rotate(q, b.p), rotate(q, b.e), 0.1}, d = {rotate(q, a.p), rotate(q, a.e), 0.1};
    for (int point : {0, 1}) check_touch(d, c, kSearch, point), check_touch(c, d, kSearch, point);
    CHECK(segments(random_segment(rng), c, 1).gap == kNowhere);
  }
  Segment<double> ball = {{0.1, 0.2, 0.3}, {0, 0, 0}, 0.1};
  CHECK(segments(a, ball, 1).gap == kNowhere && segments(ball, ball, 1).gap == kNowhere);
}

// segments count as parallel below a sine of sqrt(kParallel). The nearer of the two ends is then the closest point, up to what a turn by
// such an angle moves it along
static void check_almost_parallel() {
  for (double tilt : {0.1, 1e-2, 2e-3, 9e-4, 5e-4, 1e-5, 1e-8})
    for (double way : {1.0, -1.0}) {
      Segment<double> a = {{0, 0, 0}, {0.5, 0, 0}, 0.1},
                      b = {{0.2, 0.4, 0}, {way * 0.5 * std::cos(tilt), 0.5 * std::sin(tilt), 0}, 0.1};
      double gap = std::fmin(segments(a, b, 0).gap, segments(a, b, 1).gap),
             missed = tilt * tilt > kParallel<double> ? 0 : tilt * tilt;
      CHECK_NEAR(gap, search(a, b) - 0.2, missed + kSearch);
    }
}

// ---- the tangent frame -----------------------------------------------------------------------------------------------------
static void check_frame_at(V n, Random& rng) {
  Mat3<double> C = tangent_frame(n);
  CHECK_NEAR(distance(cross(C.r0, C.r1), C.r2), 0, kRounding);
  CHECK_NEAR(std::fabs(length(C.r1) - 1) + std::fabs(dot(C.r0, C.r1)), 0, kRounding);
  check_adjoint(
      "tangent_frame", flat(n), 9,
      [](const Duals& x, Duals& y) {
        Mat3<D> F = tangent_frame(vec3_at(x.data()));
        put(y.data(), F.r0), put(y.data() + 3, F.r1), put(y.data() + 6, F.r2);
      },
      [&](const Vector& g, Vector& x_bar) {
        V n_bar = {0, 0, 0};
        tangent_frame_adj(n, {vec3_at(g.data()), vec3_at(g.data() + 3), vec3_at(g.data() + 6)}, n_bar);
        put(x_bar.data(), n_bar);
      },
      rng);
}

static void check_frames(Random& rng) {
  for (int trial = 0; trial < 50; trial++) check_frame_at(random_unit(rng), rng);
  for (double z : {0.0, -0.0, 1e-16, -1e-16, 1e-8, -1e-8, 1e-3, -1e-3}) {
    double angle = rng.uniform(-3, 3), r = std::sqrt(1 - z * z);
    check_frame_at({r * std::cos(angle), r * std::sin(angle), z}, rng);
  }
  for (double tilt : {0.0, 1e-12, 1e-4})
    for (double z : {1.0, -1.0}) check_frame_at({std::sin(tilt), 0, z * std::cos(tilt)}, rng);
}

// ---- kinks: nothing but finite numbers, and the derivative that the header names ----------------------------------------------
static bool all_finite(const Segment<double>& g) { return std::isfinite(g.p.x + g.p.y + g.p.z + g.e.x + g.e.y + g.e.z + g.r); }
static Segment<double> no_bar() { return {{0, 0, 0}, {0, 0, 0}, 0}; }

static void check_kinks(Random& rng) {
  // coincident centres and crossing segments: normal z, depth the radii, no derivative by the places, all of it by the radii
  Segment<double> ball = {{1, 2, 3}, {0, 0, 0}, 0.3}, rod = {{1, 2, 3}, {0.2, 0, 0}, 0.2},
                  cross_rod = {{1, 2, 3}, {0, 0.4, 0}, 0.1};
  for (auto [a, b] : {std::pair{ball, ball}, std::pair{ball, rod}, std::pair{rod, cross_rod}, std::pair{rod, rod}}) {
    Touch<double> y = segments(a, b, 0);
    CHECK(y.gap == -a.r - b.r && distance(y.frame.r0, {0, 0, 1}) == 0);
    Segment<double> a_bar = no_bar(), b_bar = no_bar();
    segments_adj(a, b, 0, y, Touch<double>{1, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {0, 0, 0}}, a_bar, b_bar);
    CHECK(a_bar.r == -1 && b_bar.r == -1 && length(a_bar.p) + length(b_bar.p) == 0);
    Segment<double> c_bar = no_bar(), d_bar = no_bar();
    segments_adj(a, b, 0, y, Touch<double>{1, {random_vec(rng), random_vec(rng), random_vec(rng)}, random_vec(rng)}, c_bar,
                 d_bar);
    CHECK(all_finite(c_bar) && all_finite(d_bar));
  }
  // a capsule of no length is a sphere, to the last bit
  Segment<double> sphere = {random_vec(rng), {0, 0, 0}, 0.2}, c = random_segment(rng);
  Touch<double> one = segments(sphere, c, 0), two = segments(Segment<double>{sphere.p, {1e-300, 0, 0}, 0.2}, c, 0);
  CHECK(one.gap == two.gap && distance(one.x, two.x) == 0);
}

// (middles, halves, radii) -> gap, frame, point of parallel segments, at both points: given the features it is smooth
static void check_parallel_adj(Random& rng) {
  for (int trial = 0; trial < 40; trial++) {
    V u = random_unit(rng), p = random_vec(rng), q = random_vec(rng);
    double la = rng.uniform(0.2, 0.6), lb = rng.uniform(0.2, 0.6) * (trial % 2 ? -1 : 1);
    Vector x = flat(p);
    for (V part : {la * u, q, lb * u})
      for (double c : flat(part)) x.push_back(c);
    x.push_back(0.1), x.push_back(0.2);
    auto parts = [](const auto& z, auto& a, auto& b) {
      a = {vec3_at(&z[0]), vec3_at(&z[3]), z[12]}, b = {vec3_at(&z[6]), vec3_at(&z[9]), z[13]};
    };
    Segment<double> a, b;
    parts(x, a, b);
    for (int point : {0, 1})
      check_adjoint(
          "parallel segments", x, 13,
          [&](const Duals& in, Duals& out) {
            Segment<D> c, d;
            parts(in, c, d);
            Touch<D> y = segments(c, d, point);
            out[0] = y.gap, put(&out[1], y.frame.r0), put(&out[4], y.frame.r1), put(&out[7], y.frame.r2), put(&out[10], y.x);
          },
          [&](const Vector& g, Vector& bar) {
            Segment<double> a_bar = no_bar(), b_bar = no_bar();
            Touch<double> y_bar = {g[0], {vec3_at(&g[1]), vec3_at(&g[4]), vec3_at(&g[7])}, vec3_at(&g[10])};
            segments_adj(a, b, point, segments(a, b, point), y_bar, a_bar, b_bar);
            put(&bar[0], a_bar.p), put(&bar[3], a_bar.e), put(&bar[6], b_bar.p), put(&bar[9], b_bar.e);
            bar[12] = a_bar.r, bar[13] = b_bar.r;
          },
          rng);
  }
}

// a point exactly at the end of its range counts as held there
static void check_range_end() {
  Segment<double> rod = {{0, 0, 0}, {1, 0, 0}, 0.1}, ball = {{1, 0, 2}, {0, 0, 0}, 0.1};
  Closest<double> f = closest(rod, ball, 0);
  CHECK(f.s == 1 && f.s_free == 0 && f.t_free == 0);
  CHECK(closest(rod, Segment<double>{{0.999, 0, 2}, {0, 0, 0}, 0.1}, 0).s_free == 1);
}

int main() {
  Random rng(21);
  check_plane(rng), check_by_hand(), check_closest(rng), check_parallel(rng), check_almost_parallel();
  check_frames(rng), check_kinks(rng), check_parallel_adj(rng), check_range_end();
  return report("segments");
}
