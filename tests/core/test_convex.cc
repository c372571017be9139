// collide/convex.h: gap and normal against every pair of features and every axis, for all pairs of shapes, over six orders of magnitude;
// what is degenerate; manifolds of things that lie on each other; tables of faces and edges.
#include "../../core/ops/collide/convex.h"

#include "../../core/ops/collide/feature.h"
#include "solid_check.h"
using namespace test;

// of both solids: roundings, and normals of nearly parallel edges (sat.h); of the smaller one: kPreferFace
constexpr double kExact = 5e-9, kPreferred = 1.1 * kPreferFace;
constexpr double kHuge = 1e30;  // reach: as if it were not there

struct Contacts {
  int n;
  Feature f[4];
  Touch<double> y[4];
};

static Touch<double> touch(const Body& a, const Body& b, const Feature& f) {
  V x[7];
  for (int k = 0; k < 7; k++) {
    int side = feature_side(f, k);
    x[k] = side < 0 ? V{0, 0, 0} : (side ? b : a).x.at(size_t(f.v[k]));
  }
  return feature_touch(f, x, a.r(), b.r(), (f.swap ? a : b).type == kSphere);
}
static Contacts contacts(const Body& a, const Body& b, double reach = kHuge) {
  Contacts c;
  c.n = choose_convex(a.solid(), b.solid(), reach, c.f);
  for (int k = 0; k < c.n; k++) c.y[k] = touch(a, b, c.f[k]);
  return c;
}
static bool same(const Feature& f, const Feature& g) {
  bool equal = f.kind == g.kind && f.swap == g.swap;
  for (int k = 0; k < 7; k++) equal = equal && f.v[k] == g.v[k];
  return equal;
}
static Mat3<double> turned(V w) { return matrix(quat_exp(w)); }

// ---- one pair against the second way ----------------------------------------------------------------------------------------------
static bool check_first(const Body& a, const Body& b, const Contacts& c, double gap) {
  double both = a.extent() + b.extent(), tol = kExact * both + kPreferred * std::fmin(a.extent(), b.extent());
  CHECK(c.n >= 1 && c.n <= 4);
  if (c.n == 0) return false;
  V n = c.y[0].frame.r0;
  CHECK_NEAR(c.y[0].gap, gap, tol);
  CHECK_NEAR(length(n), 1, 1e-13);
  // only the right normal separates as far as the gap says
  CHECK_NEAR(separation(a, b, n) - a.r() - b.r(), gap, 3 * tol);
  return std::fabs(c.y[0].gap - gap) <= tol;
}
// further points: near the first in direction, none much deeper, no two in one place, all within reach
static void check_rest(const Body& a, const Body& b, const Contacts& c, double reach) {
  double small = std::fmin(a.extent(), b.extent());
  for (int k = 1; k < c.n; k++) {
    CHECK(std::isfinite(length(c.y[k].x)) && std::fabs(length(c.y[k].frame.r0) - 1) < 1e-13);
    CHECK(dot(c.y[k].frame.r0, c.y[0].frame.r0) > 0.95);
    CHECK(c.y[k].gap < reach && c.y[k].gap > c.y[0].gap - 0.06 * (a.extent() + b.extent()));
    for (int l = 0; l < k; l++) CHECK(length(c.y[k].x - c.y[l].x) > 0.1 * kTogether * small);
  }
}
static bool check_pair(const Body& a, const Body& b) {
  double gap = brute_gap(a, b), both = a.extent() + b.extent(), reach = gap + 1e-3 * both;
  Contacts c = contacts(a, b), near = contacts(a, b, reach);
  bool right = check_first(a, b, c, gap);
  check_rest(a, b, c, kHuge);
  CHECK(near.n >= 1 && same(near.f[0], c.f[0]));  // whatever reach is
  check_rest(a, b, near, reach);
  if (gap > 1e-5 * both) CHECK(contacts(a, b, gap - 1e-6 * both).n == 0);
  return right;
}

// ---- random pairs -----------------------------------------------------------------------------------------------------------------
enum Kind { kMarble, kRod, kBrick, kDrum, kRock, kChipped, kKinds };
static Body make(Random& rng, int kind, double s) {
  auto size = [&] { return s * rng.uniform(0.2, 1); };
  double x = size(), y = size(), z = size();
  switch (kind) {
    case kMarble: return Body(kSphere, {x, 0, 0});
    case kRod: return Body(kCapsule, {x, 1.5 * y, 0});
    case kBrick: return Body(kBox, {x, y, z});
    case kDrum: return Body(kCylinder, {x, y, 0});
    case kRock: return random_hull(rng, 4 + rng.below(8), {x, y, z});
    default: return cut_box({x, y, z}, std::fmin(x, std::fmin(y, z)) * rng.uniform(0.2, 1.5));
  }
}
// turns that leave faces parallel, exactly or almost, and any others
static Mat3<double> random_turn(Random& rng, int style) {
  if (style == 0) return turned({0, 0, 0});
  if (style == 1) return {{1, 0, 0}, {0, 0, -1}, {0, 1, 0}};
  if (style == 2) return turned(std::pow(10.0, rng.uniform(-12, -1)) * random_unit(rng));
  return matrix(random_quat(rng));
}
// anywhere; concentric; or moved until they almost touch along a direction, which may be normal to a face
static void arrange(Body& a, Body& b, Random& rng) {
  bool tidy = rng.below(2) == 0;
  double both = a.extent() + b.extent();
  Mat3<double> R_a = random_turn(rng, tidy ? rng.below(3) : 3),
               R_b = rng.below(6) ? random_turn(rng, tidy ? rng.below(3) : 3) : R_a;
  V p = rng.uniform(0, 2) * both * random_unit(rng), d = rng.below(8) ? random_unit(rng) : V{0, 0, 1};
  int way = rng.below(8);
  a.place(p, R_a), b.place(p + (way == 1 ? 0 : rng.uniform(0, 0.7) * both) * d, R_b);
  if (way < 3) return;
  if (way == 4 && a.t.faces()) d = a.normal(rng.below(a.t.faces()));
  if (way == 5 && b.t.faces()) d = -b.normal(rng.below(b.t.faces()));
  double gap = way == 3 ? 0 : both * std::pow(10.0, rng.uniform(-14, -1)) * (rng.below(2) ? 1 : -1);
  b.place(b.p + (gap - separation(a, b, d) + a.r() + b.r()) * d, R_b);
}
static void check_random(Random& rng) {
  for (int i = 0; i < kKinds; i++)
    for (int j = 0; j < kKinds; j++)
      for (int trial = 0; trial < (i > kRod || j > kRod ? 300 : 0); trial++) {
        double s = std::pow(10.0, rng.uniform(-3, 3)), ratio = trial % 3 ? std::pow(10.0, rng.uniform(-1, 1)) : 1;
        Body a = make(rng, i, s), b = make(rng, j, trial % 3 == 2 ? std::pow(10.0, rng.uniform(-3, 3)) : s * ratio);
        arrange(a, b, rng);
        if (!check_pair(a, b)) std::printf("  kinds %d and %d, trial %d\n", i, j, trial);
      }
}
// hulls of many vertices, apart and deep in each other
static void check_rocks(Random& rng) {
  for (int trial = 0; trial < 60; trial++) {
    Body a = random_hull(rng, 30, {1, 0.8, 0.6}), b = random_hull(rng, 30, {0.7, 0.9, 0.5});
    a.place({0, 0, 0}, matrix(random_quat(rng))), b.place(rng.uniform(0, 2) * random_unit(rng), matrix(random_quat(rng)));
    check_pair(a, b);
  }
}

// ---- degenerate arrangements ------------------------------------------------------------------------------------------------------
// every pair in one place, with the same axes, of the same size and of another
static void check_identical(Random& rng) {
  for (int i = kBrick; i < kKinds; i++)
    for (int j = 0; j < kKinds; j++)
      for (double s : {1.0, 1e-3, 1e3}) {
        Body a = make(rng, i, 1), b = make(rng, j, s);
        check_pair(a, b), check_pair(b, a), check_pair(a, a);
      }
}
// b moves along n through the place where it begins to touch: the gap falls with it, without a jump
static void check_through_zero(Random& rng) {
  for (int trial = 0; trial < 200; trial++) {
    Body a = make(rng, kBrick + rng.below(4), 1), b = make(rng, trial % 6, 1);
    arrange(a, b, rng);
    Contacts c = contacts(a, b);
    if (c.n == 0 || c.y[0].gap < 0.01) continue;
    V n = c.y[0].frame.r0, from = b.p;
    for (double s : {1e-3, 1e-6, 1e-9, 1e-11, 0.0, -1e-11, -1e-9, -1e-6}) {
      b.place(from + (s - c.y[0].gap) * n, b.R);
      Contacts near = contacts(a, b);
      // vertices and edges that meet point to point are deeper along n than they need to go to part
      CHECK(near.n > 0 && near.y[0].gap <= std::fmax(s, 0) + 1e-7 && near.y[0].gap >= std::fmin(s, 0) - 1e-7);
    }
  }
}
// an edge on an edge: crossing, and along each other
static void check_edges() {
  Body a(kBox, {1, 1, 1}), b(kBox, {1, 1, 1});
  double diagonal = std::sqrt(2.0);
  a.place({0, 0, 0}, turned({0.25 * M_PI, 0, 0}));
  for (double gap : {0.1, 1e-9, -1e-9, -0.1}) {
    b.place({0.1, 0.2, 2 * diagonal + gap}, turned({0, 0.25 * M_PI, 0}));
    Contacts c = contacts(a, b);
    CHECK(c.n == 1 && c.f[0].kind == kEdges);
    CHECK_NEAR(c.y[0].gap, gap, 1e-12);
    CHECK_NEAR(distance(c.y[0].frame.r0, {0, 0, 1}) + distance(c.y[0].x, {0.1, 0, diagonal + 0.5 * gap}), 0, 1e-12);
  }
  b.place({0.5, 0, 2 * diagonal + 0.1}, turned({0.25 * M_PI, 0, 0}));  // both ends of the part they share
  Contacts c = contacts(a, b);
  CHECK(c.n == 2);
  for (int k = 0; k < c.n; k++) CHECK_NEAR(c.y[k].gap, 0.1, 1e-12);
  CHECK_NEAR(std::fabs(c.y[0].x.x - c.y[1].x.x), 1.5, 1e-12);
}

// ---- things that lie on each other ---------------------------------------------------------------------------------------------------
static double spread_area(const Contacts& c) {  // twice the area of four points in the plane z
  auto area = [&](int i, int j, int k) {
    V e = c.y[j].x - c.y[i].x, f = c.y[k].x - c.y[i].x;
    return std::fabs(e.x * f.y - e.y * f.x);
  };
  return c.n < 4
             ? 0
             : std::fmax(area(0, 1, 2) + area(0, 1, 3), std::fmax(area(0, 2, 1) + area(0, 2, 3), area(0, 3, 1) + area(0, 3, 2)));
}
// equal boxes stacked: the same four corners whatever rounding does, far from the origin too
static void check_stack(Random& rng) {
  for (double s : {1e-3, 1.0, 1e3})
    for (V at : {V{0, 0, 0}, V{s, 2 * s, 3 * s}, V{1000 * s, -500 * s, 200 * s}})
      for (double gap : {1e-6, 0.0, -1e-6, -1e-3}) {
        Body a(kBox, {0.5 * s, 0.4 * s, 0.3 * s}), b = a;
        a.place(at, a.R), b.place(at + V{0, 0, (0.6 + gap) * s}, b.R);
        Contacts c = contacts(a, b);
        CHECK(c.n == 4);
        CHECK_NEAR(spread_area(c) / (s * s), 2 * 0.8, 1e-6);
        for (int k = 0; k < c.n; k++) CHECK(c.f[k].kind == kVertexFace && c.f[k].v[1] < 0);
        for (int k = 0; k < c.n; k++) CHECK_NEAR(c.y[k].gap, gap * s, 1e-12 * s + 1e-15 * length(at));
        for (int trial = 0; trial < 20; trial++) {
          double noise = 1e-15 * (s + length(at));
          b.place(at + V{0, 0, (0.6 + gap) * s} + noise * random_unit(rng), turned(1e-15 * random_unit(rng)));
          Contacts d = contacts(a, b);
          CHECK(d.n == 4);
          for (int k = 0; k < d.n; k++) CHECK(same(c.f[k], d.f[k]));
        }
      }
}
// what a solver leaves at rest, turned by less than its tolerance: faces rule, whose normals do not turn with the noise, and hold it
static void check_resting(Random& rng) {
  Body floor(kBox, {1, 1, 0.5});
  for (Body b : {Body(kBox, {0.5, 0.4, 0.5}), Body(kCylinder, {0.4, 0.5, 0}), cut_box({0.5, 0.4, 0.5}, 0.3)})
    for (double gap : {1e-7, 0.0, -1e-7, -1e-4})
      for (int trial = 0; trial < 20; trial++) {
        b.place({0.8, 0.2, 1 + gap}, turned(V{0, 0, trial % 2 ? 0.3 : 0} + 1e-8 * random_unit(rng)));
        for (const Contacts& c : {contacts(floor, b), contacts(b, floor)}) {
          CHECK(c.n == 4 && spread_area(c) > 0.3);
          for (int k = 0; k < c.n; k++) CHECK(c.f[k].kind == kVertexFace && std::fabs(c.y[k].gap - gap) < 1e-7);
        }
      }
}
// equal boxes one above the other, a little turned, still apart: no edges that are nearly parallel
static void check_falling(Random& rng) {
  Body a(kBox, {0.5, 0.4, 0.3}), b = a;
  for (double gap : {1e-5, 1e-3, 0.1})
    for (double yaw : {0.0, 1e-6, 1e-4, 2e-3})
      for (int trial = 0; trial < 50; trial++) {
        double way = trial % 4 < 2 ? 1 : -1;
        V axis = trial > 10 ? random_unit(rng) : trial % 2 ? V{way, 0, 0} : V{0, way, 0};
        b.place(V{0, 0, 0.6 + gap}, turned(V{0, 0, yaw} + 5e-8 * axis));
        Contacts c = contacts(a, b);
        CHECK(c.n == 4 && std::fabs(c.y[0].gap - gap) < 1e-7);
        if (c.f[0].kind != kEdges) continue;
        const int* v = c.f[0].v;
        V e = a.x[size_t(v[1])] - a.x[size_t(v[0])], f = b.x[size_t(v[3])] - b.x[size_t(v[2])];
        CHECK(length(cross(e, f)) > 0.01 * length(e) * length(f));
      }
}
// a brick that hangs over, turned by 30 degrees, tilted: always four points that hold it
static void check_bricks() {
  Body a(kBox, {1, 1, 0.5}), b(kBox, {0.5, 0.4, 0.5});
  for (double yaw : {0.0, 1e-5, 0.5})
    for (double tilt : {0.0, 1e-9, 1e-6, 1e-3, 0.02})
      for (double x : {0.0, 0.8}) {
        b.place({x, 0.1, 1.01}, matrix(mul(quat_exp(V{0.6 * tilt, 0.8 * tilt, 0}), quat_exp(V{0, 0, yaw}))));
        Contacts c = contacts(a, b), swapped = contacts(b, a);
        CHECK(c.n == 4 && swapped.n == 4);
        CHECK(spread_area(c) > (x > 0 ? 0.8 : 1.5) && spread_area(swapped) > (x > 0 ? 0.8 : 1.5));
        check_rest(a, b, c, kHuge), check_rest(b, a, swapped, kHuge);
        CHECK_NEAR(c.y[0].gap, swapped.y[0].gap, 1e-7);
      }
  // hanging over and tilted, so that edges rule: within 3 degrees of a face it holds as well, beyond the edges alone
  for (double tilt : {0.044, 0.2, 0.3}) {
    b.place({1, 0, 1.02}, matrix(mul(quat_exp(V{0.7 * tilt, tilt, 0}), quat_exp(V{0, 0, 0.3}))));
    Contacts c = contacts(a, b);
    V n = c.y[0].frame.r0;
    double cosine = std::fmax(n.z, dot(n, mul(b.R, V{0, 0, 1})));
    CHECK(c.f[0].kind == kEdges && (tilt < 0.1) == (cosine > std::cos(3 * M_PI / 180)) && (tilt < 0.1) == (c.n == 4));
  }
  b.place({0, 0, 0.5 + std::sqrt(0.5) * 0.9}, turned({0, 0.25 * M_PI, 0}));  // on an edge: its two ends
  CHECK(contacts(a, b).n == 2);
  b.place({0, 0, 1.01}, turned({0, 0, 0}));
  CHECK(contacts(a, b, 0.02).n == 4 && contacts(a, b, 0.005).n == 0);
  b.place({0, 0, 1.01}, turned({0, 0.02, 0}));  // one side within reach, then both
  CHECK(contacts(a, b, 0.005).n == 2 && contacts(a, b, 0.05).n == 4);
}
static void check_round() {
  Body floor(kBox, {1, 1, 0.5}), rod(kCapsule, {0.2, 0.4, 0}), drum(kCylinder, {0.3, 0.4, 0}), ball(kSphere, {0.2, 0, 0});
  V lying = {0, 0.5 * M_PI, 0};
  rod.place({0.1, 0.2, 0.69}, turned(lying));
  Contacts c = contacts(floor, rod);
  CHECK(c.n == 2 && c.f[0].v[1] < 0 && c.f[1].v[1] < 0);
  for (int k = 0; k < c.n; k++) CHECK_NEAR(c.y[k].gap, -0.01, 1e-12);
  rod.place({0.8, 0.2, 0.69}, turned(lying));  // one end hangs over: there the edge of the face holds it
  c = contacts(rod, floor);
  CHECK(c.n == 2 && (c.f[0].v[1] >= 0) != (c.f[1].v[1] >= 0));
  CHECK_NEAR(std::fmax(c.y[0].x.x, c.y[1].x.x), 1, 1e-12);
  for (int k = 0; k < c.n; k++) CHECK_NEAR(distance(c.y[k].frame.r0, {0, 0, -1}), 0, 1e-12);
  // along an edge, not over the face; then with one end beyond the end of the edge
  for (double y : {0.2, 0.8}) {
    rod.place({1.05, y, 0.7}, turned({0.5 * M_PI, 0, 0}));
    c = contacts(floor, rod);
    CHECK(c.n == 2);
    CHECK_NEAR(std::fmax(c.y[0].x.y, c.y[1].x.y), std::fmin(y + 0.4, 1), 1e-12);
    CHECK_NEAR(std::fmin(c.y[0].x.y, c.y[1].x.y), y - 0.4, 1e-12);
  }
  ball.place({0.1, 0.2, 0.65}, turned({0, 0, 0}));
  CHECK(contacts(floor, ball).n == 1);
  CHECK_NEAR(contacts(floor, ball).y[0].gap, -0.05, 1e-12);
  drum.place({0, 0, 0.9}, turned({0, 0, 0.1}));  // standing, then lying on one of its sixteen sides
  c = contacts(floor, drum);
  CHECK(c.n == 4 && spread_area(c) > 2 * 1.9 * 0.09);
  drum.place({0, 0, 0.5 + 0.3 * std::cos(M_PI / 16)}, matrix(mul(quat_exp(lying), quat_exp(V{0, 0, M_PI / 16}))));
  CHECK(contacts(floor, drum).n == 4);
}

// ---- tables ------------------------------------------------------------------------------------------------------------------------
static void check_tables(const Body& a, int faces, int edges, Random& rng) {
  const SolidTables& t = a.t;
  CHECK(t.faces() == faces && t.edges() == edges);
  for (int f = 0; f < faces; f++)
    for (V x : a.x) CHECK(dot(a.normal(f), x - a.x[size_t(t.plane[size_t(3 * f)])]) < 1e-12);  // outward, and flat below
  for (int e = 0; e < edges; e++) {
    const int* k = &t.edge[size_t(4 * e)];
    CHECK(dot(cross(a.normal(k[2]), a.normal(k[3])), a.x[size_t(k[1])] - a.x[size_t(k[0])]) > 0);
  }
  for (int trial = 0; trial < 200; trial++) {
    V d = random_unit(rng);
    CHECK_NEAR(dot(d, a.x[size_t(support(a.solid(), d))]), -least_along(a, -d), 1e-13);
    double cosine, most = -1;
    int f = facing(a.solid(), d, cosine);
    for (int g = 0; g < faces; g++) most = std::fmax(most, dot(a.normal(g), d));
    CHECK_NEAR(dot(a.normal(f), d), most, 1e-13);
    CHECK_NEAR(cosine, most, 1e-13);
  }
}
static bool refused(int n, const std::vector<int>& size, const std::vector<int>& loop, const std::vector<int>& plane = {}) {
  try {
    hull_tables(n, size, loop, plane);
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}
static void check_all_tables(Random& rng) {
  Body box(kBox, {0.3, 0.4, 0.5}), drum(kCylinder, {0.3, 0.4, 0}), chipped = cut_box({0.3, 0.4, 0.5}, 0.1);
  for (int trial = 0; trial < 5; trial++) {
    for (Body* b : {&box, &drum, &chipped}) b->place(random_vec(rng), matrix(random_quat(rng)));
    check_tables(box, 6, 12, rng), check_tables(drum, 18, 48, rng), check_tables(chipped, 7, 15, rng);
  }
  std::vector<int> tetra = {0, 1, 2, 0, 3, 1, 1, 3, 2, 2, 3, 0}, three = {3, 3, 3, 3};
  CHECK(!refused(4, three, tetra));
  CHECK(refused(4, {3, 3, 3}, {0, 1, 2, 0, 3, 1, 1, 3, 2}));                // open
  CHECK(refused(4, three, {0, 1, 2, 0, 1, 3, 1, 3, 2, 2, 3, 0}));           // one face the wrong way round
  CHECK(refused(3, three, tetra) && refused(5, three, tetra));              // a vertex too few, one that no face has
  CHECK(refused(4, {3, 3, 3, 4}, tetra) && refused(4, {3, 3, 3}, tetra));   // loops that do not fit
  CHECK(refused(4, {2, 3, 3, 4}, tetra) && refused(4, three, tetra, {0}));  // no face; a plane too short
}

int main() {
  Random rng(41);
  check_all_tables(rng), check_random(rng), check_rocks(rng), check_identical(rng), check_through_zero(rng);
  check_edges(), check_stack(rng), check_resting(rng), check_falling(rng), check_bricks(), check_round();
  return report("convex");
}
