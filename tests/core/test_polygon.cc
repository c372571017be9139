// collide/polygon.h: gap and normal of planar shapes against every pair of features and every axis, over six orders of
// magnitude; both orders of a pair; what lies flat, at any offset, and whatever rounding does; degenerate arrangements; half
// planes.
#include "../../core/ops/collide/polygon.h"

#include <algorithm>

#include "../../core/ops/collide/feature.h"
#include "sample.h"
using namespace test;

using V = Vec3<double>;
// of both shapes: roundings; of the smaller one: kPreferFace
constexpr double kExact = 1e-11, kPreferred = 1.1 * kPreferFace;
constexpr double kHuge = 1e30;  // reach: as if it were not there

static double length(V a) { return std::sqrt(dot(a, a)); }
static V right(V e) { return V{e.y, -e.x, 0}; }
// owns what a Solid points to
struct Flatland {
  int type;
  double r = 0;
  std::vector<V> local, x;
  V p{0, 0, 0};
  double angle = 0;
  explicit Flatland(double radius) : type(kSphere), r(radius), local(1, V{0, 0, 0}) { place(p, 0); }
  explicit Flatland(V half) : type(kRectangle) {
    for (int i = 0; i < 4; i++) local.push_back(size_vertex(kRectangle, half, i)), place(p, 0);
  }
  explicit Flatland(std::vector<V> vertices) : type(kPolygon), local(std::move(vertices)) { place(p, 0); }
  void place(V p_, double angle_, double scale = 1) {
    p = p_, angle = angle_, x.clear();
    double c = scale * std::cos(angle), s = scale * std::sin(angle);
    for (V l : local) x.push_back(p + V{c * l.x - s * l.y, s * l.x + c * l.y, 0});
  }
  int n() const { return int(x.size()); }
  V at(int id) const { return id < n() ? x.at(size_t(id)) : x.at(size_t(id - n())) + V{0, 0, 1}; }  // raised ones too
  V next(int k) const { return x[size_t(k + 1 < n() ? k + 1 : 0)]; }
  V normal(int k) const { return vec_normalise(right(next(k) - x[size_t(k)])); }
  Solid solid() const {
    return {type, n(), r, p, {r, 0, 0}, {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, x.data(), 0, 0, nullptr, nullptr, nullptr, nullptr};
  }
  double extent() const {
    double most = 0;
    for (V v : x) most = std::fmax(most, length(v - x[0]));
    return most + r;
  }
};

struct Contacts {
  int n;
  Feature f[2];
  Touch<double> y[2];
};
static Contacts contacts(const Flatland& a, const Flatland& b, double reach = kHuge, double rounding = 0) {
  Contacts c = {};
  Solid s = a.solid(), t = b.solid();
  s.rounding = t.rounding = rounding;
  c.n = choose_polygon(s, t, reach, c.f);
  for (int i = 0; i < c.n; i++) {
    V x[7] = {};
    for (int k = 0; k < 7; k++)
      if (int side = feature_side(c.f[i], k); side >= 0) x[k] = (side ? b : a).at(c.f[i].v[k]);
    c.y[i] = feature_touch(c.f[i], x, a.r, b.r, (c.f[i].swap ? a : b).type == kSphere);
  }
  return c;
}
static bool same(const Feature& f, const Feature& g) {
  return f.kind == g.kind && f.swap == g.swap && std::equal(f.v, f.v + 7, g.v);
}

// ---- the second way: all pairs of features, all axes -----------------------------------------------------------------------
static double least_along(const Flatland& b, V n) {
  double least = 1e300;
  for (V x : b.x) least = std::fmin(least, dot(n, x - b.x[0]));
  return least + dot(n, b.x[0]);
}
static double separation(const Flatland& a, const Flatland& b, V n) { return least_along(b, n) + least_along(a, -n); }
static double least_distance(const Flatland& a, const Flatland& b) {  // of vertices of b to edges of a
  double least = 1e300;
  for (int k = 0; k < a.n() && a.n() > 1; k++)
    for (V p : b.x) {
      V d = p - a.at(k), e = a.next(k) - a.at(k);
      least = std::fmin(least, length(d - std::fmin(std::fmax(dot(d, e) / dot(e, e), 0), 1) * e));
    }
  return least;
}
static double brute_gap(const Flatland& a, const Flatland& b) {
  double s = -1e300;
  for (int k = 0; k < a.n() && a.n() > 1; k++) s = std::fmax(s, separation(a, b, a.normal(k)));
  for (int k = 0; k < b.n() && b.n() > 1; k++) s = std::fmax(s, separation(a, b, -b.normal(k)));
  return (s > 0 ? std::fmin(least_distance(a, b), least_distance(b, a)) : s) - a.r - b.r;
}

// ---- one pair --------------------------------------------------------------------------------------------------------------
constexpr double kAside = 1e-5;  // twice the root of what counts as equal
static double size_of(const Flatland& a, const Flatland& b, double gap) { return a.extent() + b.extent() + std::fabs(gap); }
// vertices that exist; an edge and its raised vertex; a unit normal in the plane, to the last bit
static void check_form(const Flatland& a, const Flatland& b, const Contacts& c) {
  CHECK(c.n >= 0 && c.n <= 2);
  for (int k = 0; k < c.n; k++) {
    const Feature& f = c.f[k];
    const Flatland &on = f.swap ? b : a, &other = f.swap ? a : b;
    CHECK(c.y[k].frame.r0.z == 0 && std::fabs(length(c.y[k].frame.r0) - 1) < 1e-14);
    CHECK(std::isfinite(c.y[k].gap) && std::isfinite(length(c.y[k].x)));
    if (f.kind == kSegments) {
      CHECK(f.swap == 0 && f.v[0] == f.v[1] && f.v[2] == f.v[3] && f.v[0] < a.n() && f.v[2] < b.n());
      continue;
    }
    CHECK(f.kind == kVertexFace && f.v[0] < other.n() && f.v[1] == -1 && f.v[5] == -1 && f.v[6] == -1);
    CHECK(f.v[2] < on.n() && f.v[3] < on.n() && f.v[2] != f.v[3] && f.v[4] == f.v[2] + on.n());
    // outward: nothing of its own shape lies above an edge. The vertex lies over it, of second ones up to what edges lean; or a
    // corner is taken for the edge: sqrt(gap^2 + d^2) - gap is a rounding
    V n = f.swap ? -c.y[k].frame.r0 : c.y[k].frame.r0, e = on.at(f.v[3]) - on.at(f.v[2]), w = other.at(f.v[0]) - on.at(f.v[2]);
    CHECK(-least_along(on, -n) - dot(n, on.at(f.v[2])) < 1e-10 * on.extent() + 2e-14 * length(on.p));
    double t = dot(w, e) / length(e), lean = k * 1.03 * kSteepest * std::fabs(c.y[k].gap) + kAside * size_of(a, b, c.y[k].gap);
    CHECK(t > -lean && t < length(e) + lean);
  }
}
static void check_second(const Flatland& a, const Flatland& b, const Contacts& c, double reach) {
  if (c.n < 2) return;
  V n = c.y[0].frame.r0, d = c.y[1].x - c.y[0].x;
  CHECK(a.n() > 1 && b.n() > 1 && c.f[1].kind == kVertexFace);
  CHECK(dot(c.y[1].frame.r0, n) > 0.95 && c.y[1].gap < reach && c.y[1].gap > c.y[0].gap - 0.06 * size_of(a, b, c.y[0].gap));
  CHECK(std::fabs(dot(right(n), d)) > 0.2 * kTogether * std::fmin(a.extent(), b.extent()));
}
static void check_pair(const Flatland& a, const Flatland& b) {
  double gap = brute_gap(a, b), both = a.extent() + b.extent(), r = a.r + b.r, reach = gap + 1e-3 * both, tol = kExact * both;
  if (gap + r > 0 && gap + r < kResting * both) tol += kPreferred * std::fmin(a.extent(), b.extent());
  Contacts c = contacts(a, b), near = contacts(a, b, reach);
  CHECK(c.n >= 1 && near.n >= 1 && same(near.f[0], c.f[0]));  // whatever reach is
  CHECK_NEAR(c.y[0].gap, gap, tol);
  CHECK_NEAR(separation(a, b, c.y[0].frame.r0) - r, gap, 3 * tol);  // only the right normal separates as far as the gap says
  check_form(a, b, c), check_form(a, b, near), check_second(a, b, c, kHuge), check_second(a, b, near, reach);
  if (gap > 1e-5 * both) CHECK(contacts(a, b, gap - 1e-6 * both).n == 0);
}
// the same points with reversed normals; where edges are parallel they are those of the other shape, and in either order
static void check_swapped(const Flatland& a, const Flatland& b) {
  double tol = 1e-9 * (a.extent() + b.extent()), small = std::fmin(a.extent(), b.extent());
  Contacts c = contacts(a, b), d = contacts(b, a);
  CHECK(c.n == d.n && c.n > 0 && std::fabs(c.y[0].gap - d.y[0].gap) <= tol);
  V t = right(c.y[0].frame.r0);
  int turned = c.n == 2 && std::fabs(dot(t, c.y[0].x - d.y[0].x)) > std::fabs(dot(t, c.y[0].x - d.y[1].x));
  for (int k = 0; k < c.n; k++) {
    const Feature &f = c.f[k], &g = d.f[turned ? 1 - k : k];
    const Touch<double>&y = c.y[k], &z = d.y[turned ? 1 - k : k];
    bool exact = f.kind == kSegments ? f.v[0] == g.v[2] && f.v[2] == g.v[0] : f.swap != g.swap && f.v[0] == g.v[0];
    CHECK(std::fabs(y.gap - z.gap) <= tol && length(y.frame.r0 + z.frame.r0) < kAside);
    CHECK_NEAR(dot(t, y.x - z.x), 0, exact ? tol : kTogether * small + kAside * size_of(a, b, y.gap));
  }
}

// ---- random pairs ----------------------------------------------------------------------------------------------------------
// corners on an ellipse
static Flatland random_polygon(Random& rng, int n, double s) {
  std::vector<double> angle = rng.vector(n, 0, 2 * M_PI);
  std::vector<V> v;
  double x = s * rng.uniform(0.2, 1), y = s * rng.uniform(0.2, 1);
  std::sort(angle.begin(), angle.end());
  for (double w : angle) v.push_back({x * std::cos(w), y * std::sin(w), 0});
  return Flatland(v);
}
constexpr int kKinds = 5;  // a circle, a rectangle, a triangle, a stone, a wheel
static Flatland make(Random& rng, int kind, double s) {
  double x = s * rng.uniform(0.2, 1), y = s * rng.uniform(0.2, 1);
  if (kind < 2) return kind ? Flatland(V{x, y, 0}) : Flatland(x);
  return random_polygon(rng, kind == 2 ? 3 : kind == 3 ? 4 + rng.below(9) : kMaxVertices, s);
}
static V random_way(Random& rng) {
  double w = rng.uniform(0, 2 * M_PI);
  return {std::cos(w), std::sin(w), 0};
}
// anywhere; concentric; or moved until they almost touch along a direction, which may be normal to an edge; turned by anything,
// or so that edges are parallel, exactly or almost
static int arrange(Flatland& a, Flatland& b, Random& rng) {
  double both = a.extent() + b.extent(), turn = rng.uniform(0, 7), almost = std::pow(10.0, rng.uniform(-14, -1));
  int style = rng.below(4), way = rng.below(8);
  double other = style == 0 ? turn : style == 1 ? turn + 0.5 * M_PI : style == 2 ? turn + almost : rng.uniform(0, 7);
  V p = rng.uniform(0, 2) * both * random_way(rng), d = random_way(rng);
  a.place(p, rng.below(3) ? turn : 0), b.place(p + (way == 1 ? 0 : rng.uniform(0, 0.7) * both) * d, rng.below(3) ? other : 0);
  if (way < 3) return way;
  if (way == 4 && a.n() > 1) d = a.normal(rng.below(a.n()));
  if (way == 5 && b.n() > 1) d = -b.normal(rng.below(b.n()));
  double gap = way == 3 ? 0 : both * std::pow(10.0, rng.uniform(-14, -1)) * (rng.below(2) ? 1 : -1);
  b.place(b.p + (gap - separation(a, b, d) + a.r + b.r) * d, b.angle);
  return way;
}
static void check_random(Random& rng) {
  int apart = 0, overlapping = 0, two = 0, corners = 0;
  for (int i = 0; i < kKinds; i++)
    for (int j = 0; j < kKinds; j++)
      for (int trial = 0; trial < (i || j ? 850 : 0); trial++) {
        double s = std::pow(10.0, rng.uniform(-3, 3)), ratio = trial % 3 ? std::pow(10.0, rng.uniform(-1, 1)) : 1;
        Flatland a = make(rng, i, s), b = make(rng, j, trial % 3 == 2 ? std::pow(10.0, rng.uniform(-3, 3)) : s * ratio);
        int way = arrange(a, b, rng), before = failures;
        check_pair(a, b);
        if (way != 1) check_swapped(a, b);  // in one place there are two ways out that are equally good
        if (failures > before) std::printf("  kinds %d and %d, trial %d\n", i, j, trial);
        Contacts c = contacts(a, b);
        (c.y[0].gap + a.r + b.r > 0 ? apart : overlapping)++, two += c.n == 2, corners += c.f[0].kind == kSegments;
      }
  CHECK(apart > 4000 && overlapping > 4000 && two > 4000 && corners > 2000);  // all ways were taken
}

// ---- things that lie on each other -----------------------------------------------------------------------------------------
// a rectangle as a polygon, every side in so many parts
static Flatland split(V h, int parts) {
  std::vector<V> c = {{h.x, h.y, 0}, {-h.x, h.y, 0}, {-h.x, -h.y, 0}, {h.x, -h.y, 0}}, v;
  for (size_t k = 0; k < 4; k++)
    for (int i = 0; i < parts; i++) v.push_back(c[k] + double(i) / parts * (c[(k + 1) % 4] - c[k]));
  return Flatland(v);
}
// both ends of what a floor and a brick above it have in common, seen along `up`: from lo to hi
static void check_ends(const Flatland& a, const Flatland& b, V up, double lo, double hi, double gap, double tol) {
  Contacts c = contacts(a, b);
  CHECK(c.n == 2);
  double u0 = dot(right(up), c.y[0].x), u1 = dot(right(up), c.y[1].x);
  CHECK(std::fabs(std::fmin(u0, u1) - lo) <= tol && std::fabs(std::fmax(u0, u1) - hi) <= tol);
  for (int k = 0; k < 2; k++)
    CHECK(c.f[k].kind == kVertexFace && std::fabs(c.y[k].gap - gap) <= tol && length(c.y[k].frame.r0 - up) < 1e-7);
  check_form(a, b, c);
}
// a brick on a floor, at any offset: aligned, flush at one end, of the same size, hanging over; far from the origin, turned
// together; rounding changes no vertex, the noise of a solver no place
static void check_stack(const Flatland& floor, const Flatland& brick, double wide, double narrow, double high, Random& rng) {
  double sum = wide + narrow, flush = wide - narrow;
  for (double s : {1e-3, 1.0, 1e3})
    for (double x : {0.0, flush, -flush, 0.3 * flush, flush + 0.1, -0.5 * sum, 0.9 * sum, -0.99 * sum})
      for (double gap : {1e-2, 1e-6, 1e-12, 0.0, -1e-6, -1e-3})
        for (double turn : {0.0, 0.5 * M_PI, 0.7}) {
          V up = {-std::sin(turn), std::cos(turn), 0}, along = right(up), at = (rng.below(2) ? 0 : 100 * s) * random_way(rng);
          Flatland a = floor, b = brick;
          V to = at + s * (high + gap) * up + s * x * along;
          a.place(at, turn, s), b.place(to, turn, s);
          double lo = dot(along, at) + s * std::fmax(-wide, x - narrow), hi = dot(along, at) + s * std::fmin(wide, x + narrow);
          double rounding = 1e-15 * (s + length(at)), tol = 20 * rounding + 2 * kInside * s;
          Contacts c = contacts(a, b);
          check_ends(a, b, up, lo, hi, gap * s, tol), check_ends(b, a, -up, -hi, -lo, gap * s, tol);
          for (int trial = 0; trial < 6; trial++) {
            b.place(to + rounding * random_way(rng), turn + 1e-15 * rng.uniform(), s);
            Contacts e = contacts(a, b);
            CHECK(e.n == 2 && same(e.f[0], c.f[0]) && same(e.f[1], c.f[1]));
            double noise = std::pow(10.0, rng.uniform(-11, -8)), single = 1e-7, loose = tol + 4 * noise * s;
            b.place(to + noise * s * random_way(rng), turn + noise * rng.uniform(), s);
            check_ends(a, b, up, lo, hi, gap * s, loose), check_ends(b, a, -up, -hi, -lo, gap * s, loose);
            b.place(to + single * s * random_way(rng), turn + single * rng.uniform(), s);  // float
            CHECK(contacts(a, b, kHuge, 5e-7).n == 2);
          }
        }
}
static void check_stacks(Random& rng) {
  Flatland floor(V{1, 0.2, 0}), brick(V{0.4, 0.3, 0}), twin(V{0.4, 0.3, 0}), tile = split({0.4, 0.3, 0}, 1);
  check_stack(floor, brick, 1, 0.4, 0.5, rng), check_stack(brick, floor, 0.4, 1, 0.5, rng);
  check_stack(brick, twin, 0.4, 0.4, 0.6, rng), check_stack(tile, brick, 0.4, 0.4, 0.6, rng);
  // further vertices on the edges change nothing
  check_stack(split({1, 0.2, 0}, 7), brick, 1, 0.4, 0.5, rng), check_stack(floor, split({0.4, 0.3, 0}, 3), 1, 0.4, 0.5, rng);
  check_stack(split({0.4, 0.3, 0}, 16), split({0.4, 0.3, 0}, 5), 0.4, 0.4, 0.6, rng);
}
// turned a little: the second point stays until the edges are too steep, or it is out of reach
static void check_tilted() {
  Flatland floor(V{1, 0.2, 0}), brick(V{0.4, 0.3, 0});
  for (double way : {1.0, -1.0})
    for (double x : {0.0, 0.8, -0.8})
      for (double tilt : {1e-9, 1e-6, 1e-3, 0.03, 0.18, 0.25, 0.6}) {
        brick.place({x, 0.51 + 0.4 * std::sin(tilt) + 0.3 * (std::cos(tilt) - 1), 0}, way * tilt);
        check_pair(floor, brick), check_pair(brick, floor), check_swapped(floor, brick);
        Contacts c = contacts(floor, brick);
        CHECK(c.n == (tilt < 0.2 ? 2 : 1));
        if (c.n < 2) continue;
        CHECK(std::fabs(c.y[0].x.x - c.y[1].x.x) > (x == 0 ? 0.8 : 0.6) - 0.5 * tilt);
        double rise = c.y[1].gap - c.y[0].gap;
        CHECK(rise > 0.5 * tilt && rise < 0.85 * tilt);
        CHECK(contacts(floor, brick, c.y[0].gap + 0.9 * rise).n == 1 && contacts(floor, brick, c.y[0].gap + 1.1 * rise).n == 2);
      }
  // less in common than counts; nothing in common; the lowest corner beyond the end of the floor, the other one over it
  brick.place({1.4 - 1e-6, 0.51, 0}, 0);
  CHECK(contacts(floor, brick).n == 1);
  brick.place({1.41, 0.51, 0}, 0);
  Contacts c = contacts(floor, brick);
  CHECK(c.n == 1 && c.f[0].kind == kSegments && std::fabs(c.y[0].gap - std::sqrt(2.0) * 0.01) < 1e-15);
  brick.place({0.6062, 0.52, 0}, -0.02);
  c = contacts(floor, brick);
  CHECK(c.n == 2 && c.f[0].kind == kSegments && std::fabs(c.y[1].gap - c.y[0].gap - 0.8 * std::sin(0.02)) < 1e-5);
}

// ---- degenerate arrangements -----------------------------------------------------------------------------------------------
static void check_degenerate(Random& rng) {
  Flatland square(V{1, 1, 0}), other = square, disc(0.5), dot_(0.0), kite({{0, -1, 0}, {1, 0, 0}, {0, 1, 0}, {-1, 0, 0}});
  // in one place, of the same size and of another
  for (int i = 0; i < kKinds; i++)
    for (int j = 0; j < kKinds; j++)
      for (double s : {1.0, 1e-3, 1e3}) {
        Flatland a = make(rng, i, 1), b = make(rng, j, s);
        if (i || j) check_pair(a, b), check_pair(b, a);
        if (i) check_pair(a, a);
      }
  // the centre of a circle inside, on an edge, at a corner, in the middle
  for (V x : {V{0.9, 0.2, 0}, V{1, 0.2, 0}, V{1, 1, 0}, V{1 + 1e-12, 1 + 1e-12, 0}, V{0, 0, 0}, V{0, -1, 0}, V{0.5, 0.5, 0}})
    for (Flatland* c : {&disc, &dot_}) {
      c->place(x, 0), check_pair(square, *c), check_pair(*c, square), check_swapped(square, *c);
      CHECK(contacts(square, *c).n == 1);
    }
  // a corner on an edge, and in it; corners that meet; the contact is there and nowhere else
  for (double gap : {0.0, 1e-13, 1e-11, 1e-9, 1e-8, 1e-5, -1e-13, -0.1}) {
    kite.place({2 + gap, 0.3, 0}, 0), check_pair(square, kite), check_swapped(square, kite);
    Contacts c = contacts(square, kite);
    CHECK(c.n == 1 && c.f[0].kind == kVertexFace && length(c.y[0].x - V{1, 0.3, 0}) < 1e-12);
    other.place({2 + gap, 2 + gap, 0}, 0), check_pair(square, other), check_swapped(square, other);
    c = contacts(square, other);
    CHECK(c.f[0].kind == (gap > 1e-7 ? kSegments : kVertexFace));
    CHECK(gap < -1e-3 || length(c.y[0].x - V{1, 1, 0}) < 1e-12 + 2 * gap);
  }
  // tips of needles
  Flatland brick(V{0.4, 0.3, 0}), needle({{0, 0, 0}, {-1, 1e-3, 0}, {-1, -1e-3, 0}}), against = needle;
  for (double gap : {1e-3, 1e-6, 1e-8, 1e-10, 0.0, -1e-6})
    against.place({gap, 0, 0}, M_PI), check_pair(needle, against), check_swapped(needle, against);
  // vertices in one place, exactly and almost; vertices almost on a line
  Flatland doubled({{1, 1, 0}, {1, 1, 0}, {-1, 1, 0}, {-1, 1, 0}, {-1, 1, 0}, {-1, -1, 0}, {1, -1, 0}, {1, -1, 0}});
  for (int trial = 0; trial < 50; trial++) {
    Flatland a = doubled, c = split({1, 1, 0}, 7);
    for (V& l : a.local) l = l + (trial ? 1e-14 : 0) * random_way(rng);
    for (V& l : c.local) l = l + 1e-10 * random_way(rng);
    a.place({0, 0, 0}, 0), c.place({0, 0, 0}, 0);
    brick.place({0.2, 1.3, 0}, 0), check_ends(a, brick, {0, 1, 0}, -0.2, 0.6, 0, 1e-9);
    brick.place({0.8, 1.3, 0}, 0), check_ends(brick, a, {0, -1, 0}, -1, -0.4, 0, 1e-9);
    brick.place({0.7, 1.31, 0}, 1e-3 * rng.uniform());
    CHECK_NEAR(contacts(c, brick).y[0].gap, std::fmin(least_distance(c, brick), least_distance(brick, c)), 1e-9);
  }
  // of two edges that are almost flat the flat one carries, on either side of the other
  Flatland west({{-0.4, 0, 0}, {0, 0, 0}, {0.4, 1e-4, 0}, {0, 1, 0}}), east({{0.4, 0, 0}, {0, 1, 0}, {-0.4, 1e-4, 0}, {0, 0, 0}});
  west.place({0, 1, 0}, -5e-8), check_ends(square, west, {0, 1, 0}, -0.4, 0, 0, 1e-7);
  east.place({0, 1, 0}, 5e-8), check_ends(square, east, {0, 1, 0}, 0, 0.4, 0, 1e-7);
  // what is no number has no features
  brick.place({NAN, 0, 0}, 0);
  CHECK(contacts(square, brick).n == 0 && contacts(brick, square).n == 0);
}

// ---- half planes -----------------------------------------------------------------------------------------------------------
struct Line {
  V p, n;
  double height(const Flatland& g, int i) const { return dot(n, g.at(i) - p) - g.r; }
};
static int on_line(const Line& l, const Flatland& g, double reach, Feature* f) {
  V t = right(l.n), up = cross(l.n, t);  // axes: along the line, out of the plane, n
  Mat3<double> R = {{t.x, up.x, l.n.x}, {t.y, up.y, l.n.y}, {t.z, up.z, l.n.z}};
  Solid plane = {kPlane, 0, 0, l.p, {0, 0, 0}, R, nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr};
  int n = choose_line(plane, g.solid(), reach, f);
  for (int k = 0; k < n; k++) {
    CHECK(f[k].kind == kVertexFace && f[k].swap == 0 && f[k].v[0] >= 0 && f[k].v[0] < g.n() && f[k].v[1] == -1);
    V x[7] = {g.at(f[k].v[0]), {0, 0, 0}, l.p, l.p + t, l.p + up, {0, 0, 0}, {0, 0, 0}};
    Touch<double> y = feature_touch(f[k], x, 0.0, g.r, g.type == kSphere);
    CHECK(std::fabs(y.gap - l.height(g, f[k].v[0])) < 1e-12 * (length(l.p) + g.extent()) && length(y.frame.r0 - l.n) < 1e-12);
  }
  return n;
}
static void check_lines(Random& rng) {
  Feature f[2];
  for (int trial = 0; trial < 3000; trial++) {
    double s = std::pow(10.0, rng.uniform(-3, 3));
    Flatland g = make(rng, trial % kKinds, s);
    g.place(s * random_way(rng), rng.uniform(0, 7));
    Line l = {3 * s * random_way(rng), random_way(rng)};
    double gap = 1e300;
    for (int i = 0; i < g.n(); i++) gap = std::fmin(gap, l.height(g, i));
    double reach = gap + s * std::pow(10.0, rng.uniform(-4, 1));
    CHECK(on_line(l, g, gap - 1e-9 * s, f) == 0);
    int n = on_line(l, g, reach, f);
    CHECK(n >= 1 && n <= std::min(2, g.n()) && std::fabs(l.height(g, f[0].v[0]) - gap) < 3e-9 * s);
    // the second is a neighbour within reach; none of them within reach is seen from the first under a smaller angle
    int first = f[0].v[0], second = n == 2 ? f[1].v[0] : -1, next = (first + 1) % g.n(), last = (first + g.n() - 1) % g.n();
    auto slope = [&](int i) { return (l.height(g, i) - gap) / std::fabs(dot(right(l.n), g.at(i) - g.at(first))); };
    CHECK(second < 0 || ((second == next || second == last) && l.height(g, second) < reach));
    for (int i : {next, last}) CHECK(i == first || !(l.height(g, i) < reach) || (n == 2 && slope(second) <= slope(i) + 1e-5));
  }
}
// flat on a line: both ends, whatever rounding and further vertices do
static void check_flat_lines(Random& rng) {
  Feature f[2], flat[2];
  for (Flatland g : {Flatland(V{0.4, 0.3, 0}), split({0.4, 0.3, 0}, 1), split({0.4, 0.3, 0}, 2), split({0.4, 0.3, 0}, 16)})
    for (double turn : {0.0, 0.7, 3.0})
      for (int side = 0; side < 4; side++)
        for (double tilt : {0.0, 1e-15, -1e-15, 1e-11, 1e-8, -1e-8, 1e-5, -1e-5, 0.02, -0.02}) {
          Line l = {V{0.1, 0.2, 0} + 10.0 * random_way(rng), {-std::sin(turn), std::cos(turn), 0}};
          double high = side % 2 ? 0.4 : 0.3, half = side % 2 ? 0.3 : 0.4;
          g.place(l.p + 5.0 * right(l.n) + (high + 0.01) * l.n, turn + 0.5 * M_PI * side + tilt);
          CHECK(on_line(l, g, 0.1, f) == 2 && std::fabs(length(g.at(f[0].v[0]) - g.at(f[1].v[0])) - 2 * half) < 1e-9);
          if (tilt == 0) std::copy(f, f + 2, flat);
          if (std::fabs(tilt) < 1e-14) CHECK(same(f[0], flat[0]) && same(f[1], flat[1]));
          CHECK(l.height(g, f[0].v[0]) <= l.height(g, f[1].v[0]) + 2e-9);
          if (std::fabs(tilt) > 0.01) CHECK(on_line(l, g, 0.0101, f) == 1);
        }
}

int main() {
  Random rng(43);
  check_random(rng), check_stacks(rng), check_tilted(), check_degenerate(rng), check_lines(rng), check_flat_lines(rng);
  return report("polygon");
}
