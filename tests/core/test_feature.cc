// collide/feature.h: values by hand and by second algorithms, adjoints against Dual and central differences for every kind of feature,
// edges that pass through each other, sizes from 1e-4 to 1e4, and features that are none.
#include "../../core/ops/collide/feature.h"

#include "sample.h"
using namespace test;

using V = Vec3<double>;
using D = Dual<double>;
using Vector = std::vector<double>;

// roundings of numbers of size 1 in a few products; and of quotients of such, where angles are above 0.2
constexpr double kRounding = 1e-14, kQuotient = 1e-12;

static double length(V a) { return std::sqrt(dot(a, a)); }

// a feature in a place: x[7], radii, and whether its point is a sphere's
struct Case {
  Feature f;
  V x[7];
  double r_a, r_b;
  bool on_shape;
};
static Touch<double> touch(const Case& c) { return feature_touch(c.f, c.x, c.r_a, c.r_b, c.on_shape); }
static Feature make(int kind, int swap, std::vector<int> v) {
  Feature f = {kind, swap, {-1, -1, -1, -1, -1, -1, -1}};
  for (size_t k = 0; k < v.size(); k++) f.v[k] = v[k];
  return f;
}

constexpr int kVariants = 13;
static const char* kNames[kVariants] = {
    "vertex on a",     "vertex on b",     "sphere on a", "sphere on b",     "cut edge on a",   "cut edge on b", "vertices",
    "vertex and edge", "edge and vertex", "segments",    "edges, positive", "edges, negative", "rim on a"};
static double sine(V a, V b) { return length(cross(a, b)) / (length(a) * length(b)); }

// well-conditioned features of each kind, of the given size: no angle below 0.3
static Case random_case(int variant, Random& rng, double size = 1) {
  static const Feature kinds[kVariants] = {make(kVertexFace, 0, {3, -1, 0, 1, 2}),
                                           make(kVertexFace, 1, {3, -1, 0, 1, 2}),
                                           make(kVertexFace, 0, {0, -1, 5, 6, 7}),
                                           make(kVertexFace, 1, {0, -1, 5, 6, 7}),
                                           make(kVertexFace, 0, {3, 4, 0, 1, 2, 1, 9}),
                                           make(kVertexFace, 1, {3, 4, 0, 1, 2, 1, 9}),
                                           make(kSegments, 0, {3, 3, 5, 5}),
                                           make(kSegments, 0, {3, 3, 5, 6}),
                                           make(kSegments, 0, {3, 4, 5, 5}),
                                           make(kSegments, 0, {3, 4, 5, 6}),
                                           make(kEdges, 0, {3, 4, 5, 6, 1}),
                                           make(kEdges, 0, {3, 4, 5, 6, -1}),
                                           make(kRim, int(rng.below(2)), {32, 33, 0, 1, 2})};
  Case c = {kinds[variant], {}, size * rng.uniform(0.05, 0.3), size * rng.uniform(0.05, 0.3), variant == 2 || variant == 3};
  for (;;) {
    for (V& x : c.x) x = random_vec(rng, size);
    V n = face_normal(c.x + 2), e = c.x[1] - c.x[0], m = cross(c.x[6] - c.x[5], n), d = c.x[2] - c.x[0];
    bool face = sine(c.x[3] - c.x[2], c.x[4] - c.x[2]) > 0.3, cut = std::fabs(dot(m, e)) > 0.3 * length(m) * length(e);
    bool lines = sine(e, c.x[3] - c.x[2]) > 0.3, apart = length(d) > 0.3 * size, rim = sine(n, e) > 0.3;
    int kind = c.f.kind;
    if (kind == kSegments) {
      for (int k : {0, 2})
        if (c.f.v[k + 1] == c.f.v[k]) c.x[k + 1] = c.x[k];
      if (touch(c).gap < -0.25 * size || !apart) continue;  // their axes are apart
      if (c.f.v[0] != c.f.v[1] && c.f.v[2] != c.f.v[3] && !lines) continue;
      return c;
    }
    if (kind == kEdges ? lines && length(e) > 0.3 * size : face && rim && (c.f.v[1] < 0 || kind == kRim || cut)) return c;
  }
}

// ---- values ------------------------------------------------------------------------------------------------------------
// the foot of p on the plane through x[0], x[1], x[2]: two normal equations, no normal
static V foot(const V* x, V p) {
  V a = x[1] - x[0], b = x[2] - x[0], w = p - x[0];
  double A = dot(a, a), B = dot(a, b), C = dot(b, b), det = A * C - B * B, wa = dot(w, a), wb = dot(w, b);
  return x[0] + ((C * wa - B * wb) / det) * a + ((A * wb - B * wa) / det) * b;
}
static double above(const V* x, V p) {  // which side: the sign of a volume
  return dot(cross(x[1] - x[0], x[2] - x[0]), p - x[0]) > 0 ? 1 : -1;
}
static void check_frame(const Case& c, V n, double tol) {
  Mat3<double> C = touch(c).frame;
  CHECK_NEAR(distance(C.r0, n), 0, tol);
  CHECK_NEAR(distance(cross(C.r0, C.r1), C.r2) + std::fabs(dot(C.r0, C.r1)) + std::fabs(length(C.r0) - 1), 0, kRounding);
}
// a point p with radius r against the face of c
static void check_face(const Case& c, V p, double r) {
  V q = foot(c.x + 2, p);
  double side = above(c.x + 2, p);
  V n = (side / length(p - q)) * (p - q);
  Touch<double> y = touch(c);
  CHECK_NEAR(y.gap, side * length(p - q) - r, kQuotient);
  CHECK_NEAR(distance(y.x, c.on_shape ? p - r * n : q), 0, kQuotient);
  if (length(p - q) > 0.01) check_frame(c, c.f.swap ? -n : n, 100 * kQuotient);
}
// where an edge leaves the side of a face: halve an interval that is long enough for every case here
static V cut_by_halving(const Case& c) {
  V q6 = foot(c.x + 2, c.x[6]), q5 = foot(c.x + 2, c.x[5]), d = q6 - q5;
  auto side = [&](double s) {  // of the projection of both into the plane of the face
    V q = foot(c.x + 2, c.x[0] + s * (c.x[1] - c.x[0])) - q5;
    return dot(cross(d, q), cross(c.x[3] - c.x[2], c.x[4] - c.x[2]));
  };
  double lo = -100, hi = 100;
  for (int i = 0; i < 100; i++) ((side(lo) > 0) == (side(0.5 * (lo + hi)) > 0) ? lo : hi) = 0.5 * (lo + hi);
  return c.x[0] + lo * (c.x[1] - c.x[0]);
}
// the deepest point of a rim: the smallest height over all angles, by nested search
static V rim_by_search(const Case& c, double r) {
  V axis = vec_normalise(c.x[0] - c.x[1]), n = vec_normalise(cross(c.x[3] - c.x[2], c.x[4] - c.x[2]));
  Mat3<double> C = tangent_frame(axis);
  auto at = [&](double angle) { return c.x[0] + (r * std::cos(angle)) * C.r1 + (r * std::sin(angle)) * C.r2; };
  double best = 0, width = 3.2;
  for (int round = 0; round < 12; round++, width *= 0.2) {
    double centre = best;
    for (int i = -10; i <= 10; i++)
      if (dot(n, at(centre + 0.1 * i * width)) < dot(n, at(best))) best = centre + 0.1 * i * width;
  }
  return at(best);
}
// closest points of two lines by their normal equations
static void check_lines(const Case& c) {
  V a = c.x[1] - c.x[0], b = c.x[3] - c.x[2], w = c.x[2] - c.x[0];
  double A = dot(a, a), B = dot(a, b), C = dot(b, b), det = A * C - B * B;
  V c_a = c.x[0] + ((C * dot(a, w) - B * dot(b, w)) / det) * a, c_b = c.x[2] + ((B * dot(a, w) - A * dot(b, w)) / det) * b;
  double same = dot(cross(a, b), w) * c.f.v[4] > 0 ? 1 : -1, d = same * length(c_b - c_a);
  V n = (1 / d) * (c_b - c_a);
  Touch<double> y = touch(c);
  CHECK_NEAR(y.gap, d - c.r_a - c.r_b, kQuotient);
  if (std::fabs(d) > 0.01) {
    CHECK_NEAR(distance(y.x, 0.5 * (c_a + c.r_a * n + (c_b - c.r_b * n))), 0, 100 * kQuotient);
    check_frame(c, n, 100 * kQuotient);
  }
}
static Segment<double> segment(V p, V q, double r) { return {0.5 * (p + q), 0.5 * (q - p), r}; }

static void check_values(Random& rng) {
  for (int trial = 0; trial < 100; trial++)
    for (int variant = 0; variant < kVariants; variant++) {
      Case c = random_case(variant, rng);
      double r = c.f.swap ? c.r_a : c.r_b;
      if (c.f.kind == kVertexFace) check_face(c, c.f.v[1] < 0 ? c.x[0] : cut_by_halving(c), r);
      if (c.f.kind == kEdges) check_lines(c);
      if (c.f.kind == kRim) {
        V p = rim_by_search(c, r), n = face_normal(c.x + 2);
        Touch<double> y = touch(c);
        CHECK_NEAR(y.gap, dot(n, p - c.x[2]), kQuotient);  // a minimum: its place is known to the root of that only
        CHECK_NEAR(distance(y.x, foot(c.x + 2, p)), 0, 1e-6);
        check_frame(c, c.f.swap ? -n : n, kRounding);
      }
      if (c.f.kind == kSegments) {
        Touch<double> y = touch(c), z = segments(segment(c.x[0], c.x[1], c.r_a), segment(c.x[2], c.x[3], c.r_b), 0);
        CHECK_NEAR(std::fabs(y.gap - z.gap) + distance(y.x, z.x) + distance(y.frame, z.frame), 0, kQuotient);
      }
    }
}

static void check_by_hand() {
  V floor[3] = {{0, 0, 1}, {2, 0, 1}, {0, 3, 1}};
  // a point of 0.25 around it, 0.75 above the floor
  Case c = {make(kVertexFace, 0, {7, -1, 0, 1, 2}), {{4, 5, 1.75}, {}, floor[0], floor[1], floor[2], {}, {}}, 9, 0.25, false};
  Touch<double> y = touch(c);
  CHECK(y.gap == 0.5 && distance(y.x, {4, 5, 1}) == 0 && distance(y.frame.r0, {0, 0, 1}) == 0);
  c.on_shape = true;
  CHECK(distance(touch(c).x, {4, 5, 1.5}) == 0);
  c.f.swap = 1, c.r_a = 0.25, c.r_b = 9;
  CHECK(touch(c).gap == 0.5 && distance(touch(c).frame.r0, {0, 0, -1}) == 0 && distance(touch(c).x, {4, 5, 1.5}) == 0);
  // an edge from (-2, 0.5, 0) to (2, 0.5, 2) leaves a face at its side x = 1, at height 1.5
  c = {make(kVertexFace, 0, {0, 1, 0, 1, 2, 3, 4}),
       {{-2, 0.5, 0}, {2, 0.5, 2}, floor[0], floor[1], floor[2], {1, 0, 1}, {1, 1, 1}},
       0,
       0,
       false};
  CHECK(touch(c).gap == 0.5 && distance(touch(c).x, {1, 0.5, 1}) == 0);
  // a rim of radius 5 about (0, 0, 10), its axis tilted towards x by 3 : 4; the deepest point 3 below and 4 to the side
  c = {make(kRim, 0, {32, 33, 0, 1, 2}), {{0, 0, 10}, {-6, 0, 2}, floor[0], floor[1], floor[2], {}, {}}, 0, 5, false};
  CHECK_NEAR(touch(c).gap, 10 - 3 - 1, 1e-14);
  CHECK_NEAR(distance(touch(c).x, {4, 0, 1}), 0, 1e-14);
  // edges along x at height 0 and along y at height 1
  c = {make(kEdges, 0, {0, 1, 2, 3, 1}), {{-1, 0, 0}, {3, 0, 0}, {1, -2, 1}, {1, 1, 1}, {}, {}, {}}, 0.25, 0.5, false};
  CHECK(touch(c).gap == 0.25 && distance(touch(c).x, {1, 0, 0.375}) == 0 && distance(touch(c).frame.r0, {0, 0, 1}) == 0);
}

// an edge pulled through another along their common perpendicular: gap, point and normal stay straight lines
static void check_through(Random& rng) {
  for (int trial = 0; trial < 40; trial++) {
    Case c = random_case(10 + trial % 2, rng);
    c.r_a = c.r_b = 0;
    Touch<double> y = touch(c);
    V n = y.frame.r0, x2 = c.x[2], x3 = c.x[3], x_0 = y.x - (0.5 * y.gap) * n;
    for (double gap : {0.1, 1e-6, 1e-13, 0.0, -1e-13, -1e-6, -0.1}) {
      c.x[2] = x2 + (gap - y.gap) * n, c.x[3] = x3 + (gap - y.gap) * n;
      Touch<double> z = touch(c);
      CHECK_NEAR(z.gap, gap, kQuotient);
      CHECK_NEAR(distance(z.x, x_0 + (0.5 * gap) * n) + distance(z.frame, y.frame), 0, 100 * kQuotient);
    }
  }
}

// ---- adjoints ----------------------------------------------------------------------------------------------------------
template <class T> static void outputs(const Feature& f, const T* in, bool on_shape, T* out) {
  Vec3<T> x[7];
  for (int k = 0; k < 7; k++) x[k] = vec3_at(in + 3 * k);
  Touch<T> y = feature_touch(f, x, in[21], in[22], on_shape);
  out[0] = y.gap, put(out + 1, y.frame.r0), put(out + 4, y.frame.r1), put(out + 7, y.frame.r2), put(out + 10, y.x);
}
static Vector inputs(const Case& c) {
  Vector in(23);
  for (int k = 0; k < 7; k++) put(&in[3 * k], c.x[k]);
  in[21] = c.r_a, in[22] = c.r_b;
  return in;
}
static void bars(const Case& c, const Vector& g, Vector& in_bar) {
  V x_bar[7];
  for (int k = 0; k < 7; k++) x_bar[k] = vec3_at(&in_bar[3 * k]);
  Touch<double> y_bar = {g[0], {vec3_at(&g[1]), vec3_at(&g[4]), vec3_at(&g[7])}, vec3_at(&g[10])};
  feature_touch_adj(c.f, c.x, c.r_a, c.r_b, c.on_shape, touch(c), y_bar, x_bar, in_bar[21], in_bar[22]);
  for (int k = 0; k < 7; k++) put(&in_bar[3 * k], x_bar[k]);
}

static void check_adjoints(Random& rng) {
  for (int trial = 0; trial < 200; trial++)
    for (int variant = 0; variant < kVariants; variant++) {
      double size = trial % 4 ? 1 : std::pow(10, rng.uniform(-4, 4));
      Case c = random_case(variant, rng, size);
      check_adjoint(
          kNames[variant], inputs(c), 13, [&](const Duals& in, Duals& out) { outputs(c.f, in.data(), c.on_shape, out.data()); },
          [&](const Vector& g, Vector& in_bar) { bars(c, g, in_bar); }, rng);
    }
}

// a fourth-order central difference along a random direction; what is left is h^4 and rounding/h
static void check_differences(Random& rng) {
  constexpr double kStep = 3e-4, kDifference = 1e-9;
  for (int trial = 0; trial < 20; trial++)
    for (int variant = 0; variant < kVariants; variant++) {
      Case c = random_case(variant, rng);
      if (std::fabs(touch(c).frame.r0.z) < 0.01) continue;  // the tangents jump
      if (c.f.kind == kSegments) {                          // an end that is about to become free
        Closest<double> s = closest(feature_segment(c.x, c.f.v, 0.0), feature_segment(c.x + 2, c.f.v + 2, 0.0), 0);
        bool far = true;
        for (double u : {0.98, 0.99, 1.01, 1.02})
          for (int k = 0; k < 4; k++) {
            V x[4] = {c.x[0], c.x[1], c.x[2], c.x[3]};
            x[k] = u * x[k];
            Closest<double> z = closest(feature_segment(x, c.f.v, 0.0), feature_segment(x + 2, c.f.v + 2, 0.0), 0);
            far = far && z.s_free == s.s_free && z.t_free == s.t_free;
          }
        if (!far) continue;
      }
      Vector in = inputs(c), g = rng.vector(13), dx = rng.vector(23), in_bar(23, 0.0);
      for (int k = 0; k < 7; k++)  // a vertex that is listed twice stays one
        if (c.f.kind == kSegments && (k == 1 || k == 3) && c.f.v[k] == c.f.v[k - 1])
          for (int i = 0; i < 3; i++) dx[3 * k + i] = dx[3 * k - 3 + i];
      bars(c, g, in_bar);
      auto loss = [&](double h) {
        Vector at(23), out(13);
        for (int i = 0; i < 23; i++) at[i] = in[i] + h * dx[i];
        outputs(c.f, at.data(), c.on_shape, out.data());
        double sum = 0;
        for (int i = 0; i < 13; i++) sum += g[i] * out[i];
        return sum;
      };
      double slope = (8 * (loss(kStep) - loss(-kStep)) - (loss(2 * kStep) - loss(-2 * kStep))) / (12 * kStep), sum = 0, scale = 1;
      for (int i = 0; i < 23; i++) sum += in_bar[i] * dx[i], scale += std::fabs(in_bar[i] * dx[i]);
      CHECK_NEAR(sum, slope, kDifference * scale * scale * scale);
    }
}

// bars add to what is there, and only where the feature has a vertex or a radius
static void check_bars(Random& rng) {
  for (int variant = 0; variant < kVariants; variant++) {
    Case c = random_case(variant, rng);
    Vector g = rng.vector(13), one(23, 0.0), dirty = rng.vector(23), two = dirty;
    bars(c, g, one), bars(c, g, two);
    for (int i = 0; i < 23; i++) CHECK_NEAR(two[i], dirty[i] + one[i], kQuotient * (1 + std::fabs(one[i])));
    for (int k = 0; k < 7; k++)
      if (feature_side(c.f, k) < 0) CHECK(length(vec3_at(&one[3 * k])) == 0);
    if (c.f.kind == kVertexFace || c.f.kind == kRim) CHECK(one[c.f.swap ? 22 : 21] == 0);
  }
}

static void check_sides() {
  auto sides = [](const Feature& f) {
    std::vector<int> side;
    for (int k = 0; k < 7; k++) side.push_back(feature_side(f, k));
    return side;
  };
  using Sides = std::vector<int>;
  CHECK((sides(make(kVertexFace, 0, {3, -1, 0, 1, 2})) == Sides{1, -1, 0, 0, 0, -1, -1}));
  CHECK((sides(make(kVertexFace, 1, {3, -1, 0, 1, 2})) == Sides{0, -1, 1, 1, 1, -1, -1}));
  CHECK((sides(make(kVertexFace, 0, {3, 4, 0, 1, 2, 1, 2})) == Sides{1, 1, 0, 0, 0, 0, 0}));
  CHECK((sides(make(kVertexFace, 1, {3, 4, 0, 1, 2, 1, 2})) == Sides{0, 0, 1, 1, 1, 1, 1}));
  CHECK((sides(make(kSegments, 0, {3, 3, 0, 1})) == Sides{0, 0, 1, 1, -1, -1, -1}));
  CHECK((sides(make(kEdges, 0, {3, 4, 0, 1, 1})) == Sides{0, 0, 1, 1, -1, -1, -1}));
  CHECK((sides(make(kRim, 0, {32, 33, 0, 1, 2})) == Sides{1, 1, 0, 0, 0, -1, -1}));
  CHECK((sides(make(kRim, 1, {32, 33, 0, 1, 2})) == Sides{0, 0, 1, 1, 1, -1, -1}));
  CHECK((sides(make(kNoFeature, 0, {3, 4, 0, 1, 2, 5, 6})) == Sides(7, -1)));
}

// no feature is far away and has no derivative; nor have faces, edges and axes that are none, which must not give a NaN either
static void check_none(Random& rng) {
  Case c = random_case(0, rng);
  c.f.kind = kNoFeature;
  Vector g = rng.vector(13), in_bar(23, 0.0);
  bars(c, g, in_bar);
  CHECK(touch(c).gap == kNowhere && distance(touch(c).frame, tangent_frame(V{0, 0, 1})) == 0 && length(touch(c).x) == 0);
  for (double b : in_bar) CHECK(b == 0);
  for (int variant = 0; variant < kVariants; variant++) {
    Case z = random_case(variant, rng);
    for (V& x : z.x) x = {0.1, 0.2, 0.3};
    Vector z_bar(23, 0.0);
    bars(z, g, z_bar);
    Touch<double> y = touch(z);
    bool good = std::isfinite(y.gap) && std::isfinite(length(y.x)) && length(y.frame.r0) == 1;
    for (double b : z_bar) good = good && std::isfinite(b);
    CHECK(good);
  }
}

// float sees the same at every size, thin and long bodies together included: no square leaves its range
static void check_sizes(Random& rng) {
  constexpr double kFloat =
      2e-5;  // a few hundred roundings of float: angles are above 0.3, but squares of sines are products of small ones
  for (int trial = 0; trial < 400; trial++) {
    double size = std::pow(10, rng.uniform(-4, 4));
    Case c = random_case(trial % kVariants, rng, size);
    if (c.f.kind == kEdges) {  // a long edge across a short one, in their middle
      V e = c.x[1] - c.x[0], x = c.x[2];
      double shorter = std::pow(10, rng.uniform(-4, 4)) / size;
      c.x[0] = x - (0.4 * shorter) * e, c.x[1] = x + (0.6 * shorter) * e;
    }
    Vector in = inputs(c), out(13);
    std::vector<float> in_f(in.begin(), in.end()), out_f(13);
    for (int i = 0; i < 23; i++) in[i] = in_f[i];
    outputs(c.f, in.data(), c.on_shape, out.data()), outputs(c.f, in_f.data(), c.on_shape, out_f.data());
    double scale = std::fmax(size, length(c.x[1] - c.x[0]));
    for (int i = 0; i < 13; i++) {
      bool in_metres = i == 0 || i >= 10;
      if (i >= 4 && i < 10 && std::fabs(out[3]) < 0.01) continue;  // the tangents jump
      CHECK_NEAR(out_f[i], out[i], kFloat * (in_metres ? scale : 1) * (c.f.kind == kVertexFace && c.f.v[1] >= 0 ? 10 : 1));
    }
  }
}

// an almost upright cylinder: the rim's point stays in the plane of the rim, in float as well
static void check_upright(Random& rng) {
  constexpr double kFloat = 1e-6;  // some ten roundings
  for (int trial = 0; trial < 200; trial++) {
    double tilt = std::pow(10, rng.uniform(-6, 0));
    V n = random_unit(rng), t = vec_normalise(cross(n, random_unit(rng))), a = vec_normalise(n + tilt * t), x0 = random_vec(rng);
    Mat3<double> C = tangent_frame(n);
    Case c = {make(kRim, 0, {32, 33, 0, 1, 2}), {x0, x0 - a, {0, 0, 0}, C.r1, C.r2, {}, {}}, 0, 0.5, false};
    double tan = length(cross(n, a)) / dot(n, a), gap = dot(n, x0) - 0.5 * tan / std::sqrt(1 + tan * tan);
    CHECK_NEAR(touch(c).gap, gap, kRounding);
    Vector in = inputs(c);
    std::vector<float> in_f(in.begin(), in.end()), out_f(13);
    outputs(c.f, in_f.data(), false, out_f.data());
    CHECK_NEAR(out_f[0], gap, kFloat);
  }
}

// almost parallel edges that cross near their middles: float still knows their gap
static void check_grazing(Random& rng) {
  constexpr double kFloat = 2e-6;  // some thirty roundings
  for (int trial = 0; trial < 200; trial++) {
    double angle = std::pow(10, rng.uniform(-4, 0)), gap = rng.uniform(-0.01, 0.01);
    V n = random_unit(rng), a = vec_normalise(cross(n, random_unit(rng))),
      b = std::cos(angle) * a + std::sin(angle) * cross(n, a);
    V c_a = random_vec(rng, 0.2), c_b = c_a + gap * n;
    Case c = {
        make(kEdges, 0, {0, 1, 2, 3, 1}), {c_a - 0.4 * a, c_a + 0.6 * a, c_b - 0.7 * b, c_b + 0.3 * b, {}, {}, {}}, 0, 0, false};
    CHECK_NEAR(touch(c).gap, gap, 100 * kRounding);
    Vector in = inputs(c);
    std::vector<float> in_f(in.begin(), in.end()), out_f(13);
    outputs(c.f, in_f.data(), false, out_f.data());
    CHECK_NEAR(out_f[0], gap, kFloat);
  }
}

int main() {
  Random rng(31);
  check_by_hand(), check_values(rng), check_through(rng);
  check_adjoints(rng), check_differences(rng), check_bars(rng);
  check_sides(), check_none(rng), check_sizes(rng), check_upright(rng), check_grazing(rng);
  return report("feature");
}
