// collide/vertices.h and plane_solid.h: vertices and their adjoint; features of solids on planes against a search over vertices and rims.
#include "../../core/ops/collide/plane_solid.h"

#include "body.h"
using namespace test;

// ---- vertices ----------------------------------------------------------------------------------------------------------
// one shape of each type; a hull of 5 vertices, a field of 3 x 4
struct Shapes {
  int type[7] = {kPlane, kSphere, kCapsule, kBox, kCylinder, kHull, kField}, hull[7] = {-1, -1, -1, -1, -1, 0, -1};
  int adr[7] = {-1, -1, -1, -1, -1, -1, 0}, nx[7] = {0, 0, 0, 0, 0, 0, 3}, ny[7] = {0, 0, 0, 0, 0, 0, 4};
  Tree t = {};
  Shapes() {
    t.ns = 7, t.n_vertex = 5, t.n_height = 12, t.shape_type = type, t.hull_adr = hull, t.height_adr = adr;
    t.field_nx = nx, t.field_ny = ny;
  }
  int count(int s) const { return std::vector<int>{3, 1, 2, 8, 34, 5, 12}[s]; }
};
constexpr int kHullAt = 21, kHeightAt = 36, kNumbers = 48;
template <class T> static Params<T> params(T* x) {
  Params<T> th = {};
  th.shape_size = reinterpret_cast<Vec3<T>*>(x), th.hull_vertex = reinterpret_cast<Vec3<T>*>(x + kHullAt),
  th.height = x + kHeightAt;
  return th;
}

static void check_vertices(Random& rng) {
  Shapes g;
  Vector x = rng.vector(kNumbers, 0.2, 1);
  Params<double> th = params(x.data());
  auto at = [&](int s, int id) { return shape_vertex(g.t, th, s, id); };
  auto size = [&](int s) { return th.shape_size[s]; };
  CHECK(distance(at(0, 0), {0, 0, 0}) + distance(at(0, 1), {1, 0, 0}) + distance(at(0, 2), {0, 1, 0}) == 0);
  CHECK(distance(at(1, 0), {0, 0, 0}) == 0);
  CHECK(distance(at(2, 0), {0, 0, size(2).y}) + distance(at(2, 1), {0, 0, -size(2).y}) == 0);
  for (int id = 0; id < 8; id++)
    CHECK(distance(at(3, id), {(id & 1 ? -1 : 1) * size(3).x, (id & 2 ? -1 : 1) * size(3).y, (id & 4 ? -1 : 1) * size(3).z}) ==
          0);
  for (int k = 0; k < 16; k++)
    for (int low : {0, 1}) {
      double r = size(4).x, z = low ? -size(4).y : size(4).y;
      CHECK_NEAR(distance(at(4, k + 16 * low), {r * std::cos(k * kPi / 8), r * std::sin(k * kPi / 8), z}), 0, 1e-15);
      CHECK_NEAR(length({at(4, k).x, at(4, k).y, 0}), r, 1e-15);
    }
  CHECK(distance(at(4, 32), {0, 0, size(4).y}) + distance(at(4, 33), {0, 0, -size(4).y}) == 0);
  for (int id = 0; id < 5; id++) CHECK(distance(at(5, id), vec3_at(&x[kHullAt + 3 * id])) == 0);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 4; j++) {
      V y = {-size(6).x + i * size(6).x, -size(6).y + j * 2 * size(6).y / 3, x[kHeightAt + 4 * i + j]};
      CHECK_NEAR(distance(at(6, 4 * i + j), y), 0, 1e-15);
    }
  CHECK(at(6, 0).x == -size(6).x && at(6, 11).x == size(6).x && at(6, 11).y == size(6).y);
  Params<double> nobody = {};
  for (int s = 0; s < 7; s++)
    for (int id = 0; id < g.count(s); id++) {
      shape_vertex_adj(g.t, th, s, id, V{1, 1, 1}, nobody);
      check_adjoint(
          "vertex", x, 3,
          [&](const Duals& in, Duals& out) {
            Duals copy = in;
            put(out.data(), shape_vertex(g.t, params(copy.data()), s, id));
          },
          [&](const Vector& w, Vector& x_bar) { shape_vertex_adj(g.t, th, s, id, vec3_at(w.data()), params(x_bar.data())); },
          rng);
    }
}

// ---- planes ------------------------------------------------------------------------------------------------------------
static Solid make_plane(V p, const M& R) {
  Solid s = {};
  s.type = kPlane, s.p = p, s.R = R;
  return s;
}
static Touch<double> on_plane_touch(const Solid& plane, const Body& b, const Feature& f) {
  V x[7] = {};
  for (int k = 0; k < 7; k++)
    if (feature_side(f, k) == 1)
      x[k] = b.at(f.v[k]);
    else if (feature_side(f, k) == 0)
      x[k] = plane.p + mul(plane.R, size_vertex(kPlane, plane.size, f.v[k]));
  return feature_touch(f, x, 0.0, b.s.type == kCylinder && f.kind != kRim ? 0 : b.s.size.x, false);
}
static V normal_of(const M& R) { return {R.r0.z, R.r1.z, R.r2.z}; }

static void check_hulls_on_planes(Random& rng) {
  for (int trial = 0; trial < 400; trial++) {
    double size = std::pow(10, rng.uniform(-4, 4));
    Solid plane = make_plane(random_vec(rng, size), matrix(random_quat(rng)));
    Body b = random_hull(rng, size, plane.p + size * random_vec(rng, 2));
    V n = normal_of(plane.R);
    double least = 1e30, reach = trial % 2 ? kAll : size * rng.uniform(-1, 1);
    int near = 0;
    for (V x : b.x) least = std::fmin(least, dot(n, x - plane.p)), near += dot(n, x - plane.p) < reach;
    Feature out[4];
    int found = choose_plane(plane, b.s, reach, out);
    CHECK((found > 0) == (least < reach) && found <= 4 && found <= near);
    std::vector<V> at;
    for (int k = 0; k < found; k++) {
      double gap = on_plane_touch(plane, b, out[k]).gap;
      CHECK(gap < reach + 1e-8 * size && out[k].kind == kVertexFace);
      if (k == 0) CHECK_NEAR(gap, least, 1e-8 * size);
      at.push_back(on_plane_touch(plane, b, out[k]).x);
    }
    CHECK(apart(at, 1e-7 * size));
  }
}

// a plate that lies on a plane: its lower corners, whatever the reach, the rounding, and how thin it is
static void check_plates(Random& rng) {
  for (double thick : {1.0, 0.1, 1e-3, 1e-6})
    for (double reach : {1e-2, 1e3, kAll})
      for (int trial = 0; trial < 40; trial++) {
        double tilt = trial < 20 ? 1e-13 : 1e-2;  // a slope of 1/100 of half a metre is more than the thinner plates are thick
        V p = {rng.uniform(), rng.uniform(), thick + 1e-13 * rng.uniform()};
        Body b = make_body(kBox, {0.5, 0.3, thick}, p, matrix(quat_exp(tilt * thick * random_unit(rng))));
        Feature out[4];
        int found = choose_plane(make_plane({0, 0, 0}, kUp), b.s, reach, out), bits = 0;
        for (int k = 0; k < found; k++) bits |= 1 << out[k].v[0];
        CHECK(found == 4 && bits == 0xf0);
        if (trial < 20) CHECK(out[0].v[0] == 4 && out[1].v[0] == 7 && out[2].v[0] == 5 && out[3].v[0] == 6);  // always the same
      }
}

// the lowest point of a cylinder by a search over its rims
static double lowest(const Solid& plane, const Body& b) {
  V n = normal_of(plane.R);
  double best = 1e30, at = 0, side = 0, width = 3.2;
  auto height = [&](double z, double angle) {
    V local = {b.s.size.x * std::cos(angle), b.s.size.x * std::sin(angle), z * b.s.size.y};
    return dot(n, b.s.p + mul(b.s.R, local) - plane.p);
  };
  for (int round = 0; round < 16; round++, width *= 0.2)
    for (double z : {-1.0, 1.0}) {
      double centre = at;
      for (int i = -20; i <= 20 && (round == 0 || z == side); i++) {
        double h = height(z, centre + 0.05 * i * width);
        if (h < best) best = h, at = centre + 0.05 * i * width, side = z;
      }
    }
  return best;
}

static void check_cylinders_on_planes(Random& rng) {
  Feature out[4];
  for (int trial = 0; trial < 300; trial++) {
    double size = std::pow(10, rng.uniform(-4, 4)), tilt = trial % 3 ? 0 : std::pow(10, rng.uniform(-9, 0));
    Solid plane = make_plane(random_vec(rng, size), matrix(random_quat(rng)));
    M R = matrix(mul(random_quat(rng), quat_exp(V{0.0, 0.0, rng.uniform(-3, 3)})));
    if (trial % 3 == 0) R = matrix(quat_exp(tilt * V{1, 0, 0}));  // almost upright
    if (trial % 3 == 0) plane.R = kUp;
    Body b =
        make_body(kCylinder, {size * rng.uniform(0.1, 1), size * rng.uniform(0.1, 1), 0}, plane.p + random_vec(rng, 2 * size), R);
    double least = lowest(plane, b), reach = trial % 2 ? kAll : size * rng.uniform(-1, 1);
    int found = choose_plane(plane, b.s, reach, out);
    CHECK((found > 0) == (least < reach));
    for (int k = 0; k < found; k++) {
      double gap = on_plane_touch(plane, b, out[k]).gap;
      CHECK(gap < reach + 1e-9 * size);
      if (k == 0) CHECK_NEAR(gap, least, 1e-6 * size);
      if (k == 0 && out[0].kind == kRim) CHECK_NEAR(gap, least, 1e-8 * size);
    }
    // in a reach without limit all four; the first, third and fourth stand around the axis
    if (!(trial % 2)) continue;
    CHECK(found == 4);
    V a = on_plane_touch(plane, b, out[0]).x, c = on_plane_touch(plane, b, out[2]).x, d = on_plane_touch(plane, b, out[3]).x;
    if (out[0].kind != kRim) continue;
    CHECK(out[1].kind == kRim && out[1].v[0] == out[0].v[1] && out[2].kind == kVertexFace && out[3].kind == kVertexFace);
    V mid = b.at(out[0].v[0]), n = normal_of(plane.R);
    mid -= dot(n, mid - plane.p) * n;
    double s0 = dot(n, cross(a - mid, c - mid)), s1 = dot(n, cross(c - mid, d - mid)), s2 = dot(n, cross(d - mid, a - mid));
    CHECK((s0 > 0) == (s1 > 0) && (s1 > 0) == (s2 > 0));
  }
  // by hand: standing on either end, and lying
  Solid floor = make_plane({0, 0, 0}, kUp);
  Body b = make_body(kCylinder, {0.5, 1, 0}, {3, 4, 1.01}, kUp);
  CHECK(choose_plane(floor, b.s, 0.1, out) == 4 && out[0].v[0] == 16 && out[1].v[0] == 20 && out[2].v[0] == 24 &&
        out[3].v[0] == 28);
  CHECK(choose_plane(floor, b.s, 0.009, out) == 0);
  place(b, {3, 4, 1.01}, {{1, 0, 0}, {0, -1, 0}, {0, 0, -1}});
  CHECK(choose_plane(floor, b.s, 0.1, out) == 4 && out[0].v[0] == 0 && out[3].v[0] == 12);
  for (double noise : {0.0, 1e-13, -1e-13}) {
    place(b, {3, 4, 0.51}, matrix(quat_exp(V{0, kPi / 2 + noise, 0})));
    CHECK(choose_plane(floor, b.s, 0.1, out) == 2 && out[0].kind == kRim && out[0].v[0] == 32 && out[1].v[0] == 33);
    CHECK_NEAR(on_plane_touch(floor, b, out[0]).gap + on_plane_touch(floor, b, out[1]).gap, 0.02, kSmall);
  }
}

int main() {
  Random rng(33);
  check_vertices(rng), check_hulls_on_planes(rng), check_plates(rng), check_cylinders_on_planes(rng);
  return report("plane_solid");
}
