// friction.h: projections onto a disc, a square and polygons against a search; P, c and their derivatives against Dual; kinks.
#include "../../core/ops/friction.h"

#include "world.h"
using namespace test;

using D = Dual<double>;
using Vector = std::vector<double>;

constexpr double kRounding = 1e-14;
constexpr double kPi = 3.14159265358979323846;
// disc, square, and polygons with an odd, an even and the largest number of sides
static const double kCones[] = {0, 4.5, 3, 4, 5, 8, kMaxSides};

static Options options(double cone) {
  Asked asked;
  asked.cone = cone;
  return asked.read();
}

// ---- the shapes, by hand -------------------------------------------------------------------------------------------------
// corners of a unit cone; none for the disc
static std::vector<std::pair<double, double>> corners(double cone) {
  if (cone == 4.5) return {{1, -1}, {1, 1}, {-1, 1}, {-1, -1}};
  std::vector<std::pair<double, double>> all;
  for (int k = 0; k < int(cone); k++) all.push_back({std::cos(2 * kPi * k / cone), std::sin(2 * kPi * k / cone)});
  return all;
}

// is (x, y) inside, by the cross products with the edges? tol: how far outside still counts
static bool inside(double cone, double x, double y, double r, double tol) {
  if (cone == 0) return std::hypot(x, y) <= r + tol;
  auto all = corners(cone);
  for (size_t k = 0; k < all.size(); k++) {
    auto [ax, ay] = all[k];
    auto [bx, by] = all[(k + 1) % all.size()];
    double ex = bx - ax, ey = by - ay;
    if ((ex * (y - r * ay) - ey * (x - r * ax)) / std::hypot(ex, ey) < -tol) return false;
  }
  return true;
}

// the nearest point of the rim, edge by edge
static std::pair<double, double> nearest(double cone, double x, double y, double r) {
  if (inside(cone, x, y, r, 0)) return {x, y};
  if (cone == 0) return {r * x / std::hypot(x, y), r * y / std::hypot(x, y)};
  auto all = corners(cone);
  std::pair<double, double> best;
  double least = 1e30;
  for (size_t k = 0; k < all.size(); k++) {
    auto [ax, ay] = all[k];
    auto [bx, by] = all[(k + 1) % all.size()];
    double ex = bx - ax, ey = by - ay;
    double s = ((x - r * ax) * ex + (y - r * ay) * ey) / (ex * ex + ey * ey) / (r > 0 ? r : 1);
    s = r > 0 ? std::fmin(std::fmax(s, 0), 1) : 0;
    double px = r * (ax + s * ex), py = r * (ay + s * ey), d = std::hypot(px - x, py - y);
    if (d < least) least = d, best = {px, py};
  }
  return best;
}

static void check_projection(double cone, double x, double y, double r) {
  Options o = options(cone);
  auto [px, py] = nearest(cone, x, y, r);
  Cone<double> c = cone_slope(o, x, y, r);
  CHECK_NEAR(std::hypot(c.x - px, c.y - py), 0, kRounding * 4);
  CHECK(inside(cone, c.x, c.y, r, kRounding * 4));
  double qx = x, qy = y;
  cone_project(o, qx, qy, r);
  CHECK_NEAR(std::hypot(qx - c.x, qy - c.y), 0, kRounding);
  if (!inside(cone, x, y, r, 1e-12)) CHECK(c.outside == 1);
  if (inside(cone, x, y, r, -1e-12)) CHECK(c.outside == 0);
  // a second projection changes nothing
  cone_project(o, qx, qy, r);
  CHECK_NEAR(std::hypot(qx - c.x, qy - c.y), 0, kRounding);
}

// ---- derivatives ----------------------------------------------------------------------------------------------------------
// P and c are the derivative of the projection: out = P dp + c dr
static void check_slope(double cone, double x, double y, double r, Random& rng) {
  Options o = options(cone);
  Cone<double> c = cone_slope(o, x, y, r);
  check_adjoint(
      "cone_slope", {x, y, r}, 2,
      [&](const Duals& in, Duals& out) {
        Cone<D> d = cone_slope(o, in[0], in[1], in[2]);
        out[0] = d.x, out[1] = d.y;
      },
      [&](const Vector& g, Vector& bar) {
        bar[0] = c.Pxx * g[0] + c.Pxy * g[1], bar[1] = c.Pxy * g[0] + c.Pyy * g[1];
        bar[2] = c.cx * g[0] + c.cy * g[1];
      },
      rng);
}

// (p, r) -> z . (P dp + c dr)
static void check_curvature(double cone, double x, double y, double r, Random& rng) {
  Options o = options(cone);
  Vector k = rng.vector(5);  // z, dp, dr
  check_adjoint(
      "cone_curvature", {x, y, r}, 1,
      [&](const Duals& in, Duals& out) {
        Cone<D> c = cone_slope(o, in[0], in[1], in[2]);
        D dx = k[2], dy = k[3], dr = k[4];
        out[0] = D(k[0]) * (c.Pxx * dx + c.Pxy * dy + c.cx * dr) + D(k[1]) * (c.Pxy * dx + c.Pyy * dy + c.cy * dr);
      },
      [&](const Vector& g, Vector& bar) {
        cone_curvature(o, x, y, r, g[0] * k[0], g[0] * k[1], k[2], k[3], k[4], bar[0], bar[1], bar[2]);
      },
      rng);
}

// ---- kinks ------------------------------------------------------------------------------------------------------------------
static bool finite_cone(const Cone<double>& c) {
  return std::isfinite(c.x + c.y + c.Pxx + c.Pxy + c.Pyy + c.cx + c.cy + c.outside);
}

static void check_kinks() {
  for (double cone : kCones) {
    Options o = options(cone);
    // no size: nothing to stand on, the projection is zero and stays zero; without an impulse there is no direction to grow in
    Cone<double> c = cone_slope(o, 0.0, 0.0, 0.0);
    CHECK(finite_cone(c) && c.x == 0 && c.y == 0 && c.outside == 1 && c.Pxx == 0 && c.Pyy == 0 && c.Pxy == 0);
    CHECK(c.cx == 0 && c.cy == 0);
    c = cone_slope(o, 0.3, -0.4, 0.0);
    CHECK(finite_cone(c) && c.x == 0 && c.y == 0 && c.outside == 1 && c.Pxx == 0 && c.Pyy == 0 && c.Pxy == 0);
    c = cone_slope(o, 0.0, 0.0, 0.5);
    CHECK(finite_cone(c) && c.x == 0 && c.y == 0 && c.outside == 0);
    for (double tiny : {1e-300, 1e-160, 1e-20}) {
      CHECK(finite_cone(cone_slope(o, tiny, -tiny, 0.0)) && finite_cone(cone_slope(o, 1.0, 0.5, tiny)));
      double x = tiny, y = tiny, bars[3] = {0, 0, 0};
      cone_project(o, x, y, 0.0);
      CHECK(std::isfinite(x + y));
      cone_curvature(o, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, bars[0], bars[1], bars[2]);
      CHECK(bars[0] == 0 && bars[1] == 0 && bars[2] == 0);
    }
  }
  // exactly on the rim counts as inside
  Options disc = options(0), square = options(4.5);
  CHECK(cone_slope(disc, 0.6, 0.8, 1.0).outside == 0 && cone_slope(disc, 0.6, 0.8001, 1.0).outside == 1);
  CHECK(cone_slope(square, 1.0, 0.3, 1.0).outside == 0 && cone_slope(square, 1.0001, 0.3, 1.0).outside == 1);
  // beyond a corner of the square both are held, and both grow with the size
  Cone<double> c = cone_slope(square, 3.0, -2.0, 0.5);
  CHECK(c.x == 0.5 && c.y == -0.5 && c.Pxx == 0 && c.Pxy == 0 && c.Pyy == 0 && c.cx == 1 && c.cy == -1);
  // beyond an edge the other moves freely
  c = cone_slope(square, 3.0, 0.2, 0.5);
  CHECK(c.x == 0.5 && c.y == 0.2 && c.Pxx == 0 && c.Pyy == 1 && c.cx == 1 && c.cy == 0);
}

// every lane is the scalar, inside, outside and at the kinks side by side
static void check_lanes(double cone, Random& rng) {
  using P = Pack<double, 8>;
  Options o = options(cone);
  for (int trial = 0; trial < 50; trial++) {
    P x, y, r;
    for (int l = 0; l < 8; l++) {
      set_lane(x, l, rng.below(5) ? rng.uniform() : 0.0), set_lane(y, l, rng.below(5) ? rng.uniform() : 0.0);
      set_lane(r, l, rng.below(5) ? rng.uniform(0, 1) : 0.0);
    }
    Cone<P> c = cone_slope(o, x, y, r);
    P px = x, py = y;
    cone_project(o, px, py, r);
    for (int l = 0; l < 8; l++) {
      Cone<double> s = cone_slope(o, lane(x, l), lane(y, l), lane(r, l));
      double sx = lane(x, l), sy = lane(y, l);
      cone_project(o, sx, sy, lane(r, l));
      CHECK(lane(c.x, l) == s.x && lane(c.y, l) == s.y && lane(c.Pxx, l) == s.Pxx && lane(c.Pxy, l) == s.Pxy);
      CHECK(lane(c.Pyy, l) == s.Pyy && lane(c.cx, l) == s.cx && lane(c.cy, l) == s.cy && lane(c.outside, l) == s.outside);
      CHECK(lane(px, l) == sx && lane(py, l) == sy);
    }
  }
}

int main() {
  Random rng(22);
  for (double cone : kCones) {
    for (int trial = 0; trial < 400; trial++) {
      double x = rng.uniform(-2, 2), y = rng.uniform(-2, 2), r = trial % 20 ? rng.uniform(0, 1.5) : 0;
      check_projection(cone, x, y, r);
      if (r > 0) check_slope(cone, x, y, r, rng), check_curvature(cone, x, y, r, rng);
    }
    check_lanes(cone, rng);
  }
  check_kinks();
  return report("friction");
}
