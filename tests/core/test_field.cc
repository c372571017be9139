// collide/field.h: features of solids on terrains against a search over all triangles; flat ground, valleys, ridges, borders.
#include "../../core/ops/collide/field.h"

#include "body.h"
using namespace test;

struct Field {
  FieldGrid g;
  Vector h;
  V local(int id) const { return {g.size.x * grid_place(id / g.ny, g.nx), g.size.y * grid_place(id % g.ny, g.ny), h[id]}; }
  V at(int id) const { return g.p + mul(g.R, local(id)); }
  int choose(const Body& b, double reach, Feature out[kFieldPoints]) const {
    return choose_field(g, [&](int id) { return h[id]; }, b.s, reach, out);
  }
  Touch<double> touch(const Body& b, const Feature& f) const {
    V x[7] = {};
    for (int k = 0; k < 7; k++)
      if (feature_side(f, k) >= 0) x[k] = feature_side(f, k) ? b.at(f.v[k]) : at(f.v[k]);
    return feature_touch(f, x, 0.0, b.s.r, b.s.type == kSphere);
  }
};
static Field random_field(Random& rng, double size, double rough) {
  Field f = {{2 + rng.below(12),
              2 + rng.below(12),
              {size * rng.uniform(0.3, 1), size * rng.uniform(0.3, 1), 0},
              random_vec(rng, size),
              matrix(random_quat(rng))},
             {}};
  f.h = rng.vector(f.g.nx * f.g.ny, -rough * size, rough * size);
  return f;
}

static double to_segment(V a, V b, V p) {
  double k = std::fmin(std::fmax(dot(p - a, b - a) / dot(b - a, b - a), 0), 1);
  return length(p - a - k * (b - a));
}
// signed distance of a point in the field's frame: over all triangles; below the surface from the plane of the triangle above
static double brute(const Field& f, V p, bool& outside) {
  double best = 1e30;
  outside = std::fabs(p.x) > f.g.size.x || std::fabs(p.y) > f.g.size.y;
  for (int i = 0; i + 1 < f.g.nx; i++)
    for (int j = 0; j + 1 < f.g.ny; j++)
      for (int upper : {0, 1}) {
        int ny = f.g.ny, id = i * ny + j;
        V v[3] = {f.local(id), f.local(upper ? id + ny + 1 : id + ny), f.local(upper ? id + 1 : id + ny + 1)};
        V n = vec_normalise(cross(v[1] - v[0], v[2] - v[0]));
        double d = dot(n, p - v[0]);
        bool over = true, inside = true;
        for (int k = 0; k < 3; k++) {
          V e = v[(k + 1) % 3] - v[k], w = p - v[k];
          best = std::fmin(best, to_segment(v[k], v[(k + 1) % 3], p));
          inside = inside && dot(n, cross(e, w)) > 0, over = over && e.x * w.y - e.y * w.x >= 0;
        }
        if (inside) best = std::fmin(best, std::fabs(d));
        if (over && d < 0) return d;
      }
  return best;
}

// the surface at (x, y), in the field's frame; on the border outside of it
static V ground(const Field& f, double x, double y) {
  x = std::fmin(std::fmax(x, -f.g.size.x), f.g.size.x), y = std::fmin(std::fmax(y, -f.g.size.y), f.g.size.y);
  double u = (x / f.g.size.x + 1) * (f.g.nx - 1) / 2, v = (y / f.g.size.y + 1) * (f.g.ny - 1) / 2;
  int i = std::fmin(u, f.g.nx - 2), j = std::fmin(v, f.g.ny - 2), id = i * f.g.ny + j;
  u -= i, v -= j;
  double a = f.h[id], b = f.h[id + f.g.ny], c = f.h[id + f.g.ny + 1], d = f.h[id + 1];
  return {x, y, u > v ? (1 - u) * a + (u - v) * b + v * c : (1 - v) * a + (v - u) * d + u * c};
}
// no place of the surface around the one that a ball touches is nearer
static void check_minimum(const Field& f, const Body& b, const Feature& touched, double size) {
  Touch<double> y = f.touch(b, touched);
  V p = tmul(f.g.R, b.s.p - f.g.p), at = tmul(f.g.R, b.s.p - (y.gap + b.s.r) * y.frame.r0 - f.g.p);
  for (int i = 0; i < 12; i++) {
    V near = ground(f, at.x + 1e-7 * size * std::cos(i), at.y + 1e-7 * size * std::sin(i));
    CHECK(distance(near, p) > y.gap + b.s.r - 1e-10 * size);
  }
}

static void check_points_on_fields(Random& rng) {
  int kinds[5] = {}, below = 0, several = 0;
  for (int trial = 0; trial < 4000; trial++) {
    double size = std::pow(10, rng.uniform(-4, 4)), r = trial % 2 ? 0 : size * rng.uniform(0.01, 0.3);
    Field f = random_field(rng, size, std::pow(10, rng.uniform(-2, 0)));
    V p = {1.1 * f.g.size.x * rng.uniform(), 1.1 * f.g.size.y * rng.uniform(), size * rng.uniform(-0.5, 1)};
    Body b = make_body(kSphere, {r, 0, 0}, f.g.p + mul(f.g.R, p), kUp);
    bool outside;
    double gap = brute(f, p, outside) - r, reach = trial % 3 ? kAll : size * rng.uniform(-0.1, 0.4);
    Feature out[kFieldPoints];
    int found = f.choose(b, reach, out);
    CHECK((found > 0) == (!outside && gap < reach));
    if (found == 0) continue;
    CHECK_NEAR(f.touch(b, out[0]).gap, gap, 1e-10 * size);
    for (int k = 1; k < found; k++) {  // further sides: none nearer, all within reach
      double other = f.touch(b, out[k]).gap;
      CHECK(r > 0 && other < reach + 1e-10 * size && other >= gap - 1e-10 * size);
      check_minimum(f, b, out[k], size);
    }
    kinds[out[0].kind]++, below += gap + r < 0, several += found > 1;
  }
  CHECK(kinds[kVertexFace] > 500 && kinds[kSegments] > 500 && below > 500 && several > 100);
}

// solids: the deepest vertex comes first, and all are vertices of the solid near their own nearest place
static void check_solids_on_fields(Random& rng) {
  for (int trial = 0; trial < 400; trial++) {
    Field f = random_field(rng, 1, 0.2);
    V p = f.g.p + mul(f.g.R, V{0.7 * f.g.size.x * rng.uniform(), 0.7 * f.g.size.y * rng.uniform(), rng.uniform(-0.2, 0.6)});
    Body b = random_hull(rng, 0.3, p);
    if (trial % 4) b = make_body(trial % 4 == 1 ? kBox : trial % 4 == 2 ? kCylinder : kCapsule, {0.1, 0.2, 0.15}, p, b.s.R);
    double reach = trial % 3 ? kAll : rng.uniform(0, 0.3), least = 1e30;
    for (V x : b.x) {
      bool outside;
      double gap = brute(f, tmul(f.g.R, x - f.g.p), outside) - b.s.r;
      if (!outside) least = std::fmin(least, gap);
    }
    Feature out[kFieldPoints];
    int found = f.choose(b, reach, out);
    CHECK((found > 0) == (least < reach));
    std::vector<V> at;
    for (int k = 0; k < found; k++) {
      Touch<double> y = f.touch(b, out[k]);
      if (k == 0) CHECK_NEAR(y.gap, least, 1e-8);
      CHECK(y.gap < reach + 1e-9 && std::fabs(length(y.frame.r0) - 1) < kSmall);
      at.push_back(y.x);
    }
    CHECK(b.s.r > 0 || apart(at, 1e-9));
  }
}

// flat ground: exactly above seams and corners of the grid a triangle, normal z; a plate has four corners, a capsule two ends
static void check_flat(Random& rng) {
  Field f = {{5, 7, {2, 3, 0}, {0, 0, 0}, kUp}, Vector(35, 0.25)};
  Feature out[kFieldPoints];
  for (int trial = 0; trial < 200; trial++) {
    double x = rng.below(9) * 0.5 - 2, y = trial % 2 ? rng.uniform(-3, 3) : rng.below(13) * 0.5 - 3;
    Body ball = make_body(kSphere, {trial % 4 < 2 ? 0.3 : 0, 0, 0}, {x, y, 0.25 + rng.uniform(0, 0.6)}, kUp);
    CHECK(f.choose(ball, kAll, out) == 1 && out[0].kind == kVertexFace);
    CHECK_NEAR(distance(f.touch(ball, out[0]).frame.r0, {0, 0, 1}), 0, kSmall);
    CHECK_NEAR(f.touch(ball, out[0]).gap, ball.s.p.z - 0.25 - ball.s.r, kSmall);
  }
  Body plate = make_body(kBox, {0.6, 0.5, 0.1}, {0.1, 0.2, 0.36}, kUp);
  CHECK(f.choose(plate, 0.05, out) == 4 && out[0].v[0] == 4 && out[1].v[0] == 7 && out[2].v[0] == 5 && out[3].v[0] == 6);
  Body rod = make_body(kCapsule, {0.1, 0.5, 0}, {0, 0, 0.3}, matrix(quat_exp(V{kPi / 2, 0, 0})));
  CHECK(f.choose(rod, 0.1, out) == 2 && out[0].v[0] + out[1].v[0] == 1);
  place(rod, {0, 2.9, 0.3}, rod.s.R);  // one end beyond the border
  CHECK(f.choose(rod, 0.1, out) == 1 && f.choose(rod, -0.1, out) == 0);
  place(rod, {0, 3.6, 0.3}, rod.s.R);
  CHECK(f.choose(rod, kAll, out) == 0);
}

// an even slope: near seams, on whichever side and however close, always a triangle and the slope's own normal
static void check_slope(Random& rng) {
  Field f = {{6, 6, {2.5, 2.5, 0}, {0, 0, 0}, kUp}, Vector(36)};
  for (int i = 0; i < 36; i++) f.h[i] = 0.5 * f.local(i).x + 0.3 * f.local(i).y;
  V n = vec_normalise(V{-0.5, -0.3, 1});
  for (int trial = 0; trial < 2000; trial++) {
    double off = trial % 5 ? std::pow(10, rng.uniform(-12, -5)) : 0, x = rng.below(4) - 1.5,
           y = trial % 3 ? rng.uniform(-1.5, 1.5) : x;
    if (trial % 2) off = -off;
    V foot = trial % 3 == 1 ? V{y, x + off, 0} : V{x + off, y, 0};
    foot.z = 0.5 * foot.x + 0.3 * foot.y;
    Body ball = make_body(kSphere, {trial % 4 < 2 ? 0.2 : 0, 0, 0}, foot + rng.uniform(0.01, 1.5) * n, kUp);
    Feature out[kFieldPoints];
    CHECK(f.choose(ball, kAll, out) == 1 && out[0].kind == kVertexFace);
    CHECK_NEAR(distance(f.touch(ball, out[0]).frame.r0, n), 0, kSmall);
  }
}

// a ball in a valley touches both sides, in a pit with steep walls two rims, on a ridge one edge, on a peak one vertex
static void check_valleys() {
  Feature out[kFieldPoints];
  Field valley = {{3, 2, {1, 1, 0}, {0, 0, 0}, kUp}, {1, 1, 0, 0, 1, 1}};  // two planes of 45 degrees
  Body ball = make_body(kSphere, {0.3, 0, 0}, {0, 0.2, 0.3 * std::sqrt(2.0)}, kUp);
  CHECK(valley.choose(ball, 0.1, out) == 2);
  for (int k : {0, 1}) CHECK_NEAR(valley.touch(ball, out[k]).gap, 0, kSmall);
  CHECK_NEAR(dot(valley.touch(ball, out[0]).frame.r0, valley.touch(ball, out[1]).frame.r0), 0, kSmall);
  Field pit = {{4, 2, {1.5, 1, 0}, {0, 0, 0}, kUp}, {1, 1, 0, 0, 0, 0, 1, 1}};
  for (double& h : pit.h) h *= 10;
  pit.g.size.x = 0.3;  // walls from x = -0.3 to -0.1: 10 m high
  place(ball, {0, 0, 10.5}, kUp);
  ball.s.r = 0.5;
  int found = pit.choose(ball, 0.5, out);
  CHECK(found == 2 && out[0].kind == kSegments && out[1].kind == kSegments);
  Field ridge = {{3, 2, {1, 1, 0}, {0, 0, 0}, kUp}, {0, 0, 1, 1, 0, 0}};
  place(ball, {0.05, 0.1, 1.4}, kUp);
  CHECK(ridge.choose(ball, 0.1, out) == 1 && out[0].kind == kSegments && out[0].v[0] == 2 && out[0].v[1] == 3);
  Field peak = {{3, 3, {1, 1, 0}, {0, 0, 0}, kUp}, {0, 0, 0, 0, 1, 0, 0, 0, 0}};
  place(ball, {0.02, 0.01, 1.4}, kUp);
  CHECK(peak.choose(ball, 0.1, out) == 1 && out[0].kind == kSegments && out[0].v[0] == 4 && out[0].v[1] == 4);
  CHECK_NEAR(peak.touch(ball, out[0]).gap, length({0.02, 0.01, 0.4}) - 0.5, kSmall);
}

// a ball that rolls over hills: gap and normal of the nearest place never jump, while it is outside and they are no valleys
static void check_rolling() {
  Field f = {{9, 9, {2, 2, 0}, {0, 0, 0}, kUp}, Vector(81)};
  for (int i = 0; i < 81; i++) {
    V x = f.local(i);
    f.h[i] = -0.15 * (x.x * x.x + x.y * x.y);  // a dome
  }
  Feature out[kFieldPoints];
  V before = {0, 0, 0};
  double gap = 0, step = 1e-4;
  for (int i = 0; i < 15000; i++) {
    double s = -0.7 + i * step;
    Body ball = make_body(kSphere, {0.2, 0, 0}, {1.3 * s, 0.4 * s + 0.1, 0.5}, kUp);
    CHECK(f.choose(ball, kAll, out) >= 1);
    Touch<double> y = f.touch(ball, out[0]);
    if (i) CHECK(distance(y.frame.r0, before) < 10 * step && std::fabs(y.gap - gap) < 2 * step);
    before = y.frame.r0, gap = y.gap;
  }
}

int main() {
  Random rng(32);
  check_points_on_fields(rng), check_solids_on_fields(rng), check_flat(rng), check_slope(rng), check_valleys(), check_rolling();
  return report("field");
}
