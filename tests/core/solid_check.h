// Solids for tests of collision, and a second way to their distance: every pair of features, every axis.
#pragma once
#include "../../core/ops/collide/solid.h"
#include "../../core/ops/collide/vertices.h"
#include "../../drivers/solids.h"
#include "sample.h"

namespace test {

using V = Vec3<double>;
inline double length(V a) { return std::sqrt(dot(a, a)); }

// owns what a Solid points to
struct Body {
  int type;
  V size{0, 0, 0};
  SolidTables t;
  std::vector<V> local, x;
  V p{0, 0, 0};
  Mat3<double> R{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

  Body(int type_, V size_) : type(type_), size(size_) {
    int n = type == kSphere ? 1 : type == kCapsule ? 2 : type == kBox ? 8 : 32;
    if (type == kBox) t = box_tables();
    if (type == kCylinder) t = cylinder_tables();
    for (int i = 0; i < n; i++) local.push_back(size_vertex(type, size, i));
    place(p, R);
  }
  Body(std::vector<V> vertices, SolidTables tables) : type(kHull), t(std::move(tables)), local(std::move(vertices)) {
    place(p, R);
  }

  void place(V p_, const Mat3<double>& R_) {
    p = p_, R = R_, x.clear();
    for (V l : local) x.push_back(p + mul(R, l));
  }
  double r() const { return type == kSphere || type == kCapsule ? size.x : 0; }
  Solid solid() const {
    int edges = type == kCapsule ? 1 : t.edges();
    return {type,          int(x.size()),  r(),          p, size, R, x.data(), t.faces(), edges, t.loop_adr.data(),
            t.loop.data(), t.plane.data(), t.edge.data()};
  }
  V normal(int f) const {
    const int* v = &t.plane[size_t(3 * f)];
    return vec_normalise(cross(x[size_t(v[1])] - x[size_t(v[0])], x[size_t(v[2])] - x[size_t(v[0])]));
  }
  std::vector<std::pair<V, V>> segments() const {
    std::vector<std::pair<V, V>> all;
    if (type == kCapsule) all.push_back({x[0], x[1]});
    for (int e = 0; e < t.edges(); e++) all.push_back({x[size_t(t.edge[size_t(4 * e)])], x[size_t(t.edge[size_t(4 * e + 1)])]});
    return all;
  }
  double extent() const {
    double most = r();
    for (V v : x) most = std::fmax(most, length(v - x[0]) + r());
    return most;
  }
};

// ---- hulls ---------------------------------------------------------------------------------------------------------------------
// of points in general position: every triple with all others on one side is a face
inline Body hull_of(const std::vector<V>& points) {
  int n = int(points.size());
  std::vector<int> used(points.size(), -1), size, loop;
  std::vector<V> kept;
  auto id = [&](int i) {
    if (used[size_t(i)] < 0) used[size_t(i)] = int(kept.size()), kept.push_back(points[size_t(i)]);
    return used[size_t(i)];
  };
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++) {
        if (i >= j || i >= k || j == k) continue;
        V o = points[size_t(i)], m = cross(points[size_t(j)] - o, points[size_t(k)] - o);
        bool outer = true;
        for (int l = 0; l < n && outer; l++) outer = l == i || l == j || l == k || dot(m, points[size_t(l)] - o) < 0;
        if (outer) size.push_back(3), loop.insert(loop.end(), {id(i), id(j), id(k)});
      }
  return Body(kept, hull_tables(int(kept.size()), size, loop));
}
inline Body random_hull(Random& rng, int n, V size) {
  std::vector<V> points;
  for (int i = 0; i < n; i++) {
    V u = random_unit(rng);
    points.push_back({size.x * u.x, size.y * u.y, size.z * u.z});
  }
  return hull_of(points);
}
// a box without its corner (+, +, +): three pentagons, a triangle, three rectangles
inline Body cut_box(V h, double cut) {
  std::vector<V> x;
  for (int i = 1; i < 8; i++) x.push_back(size_vertex(kBox, h, i));
  x.push_back({h.x - cut, h.y, h.z}), x.push_back({h.x, h.y - cut, h.z}), x.push_back({h.x, h.y, h.z - cut});
  // vertex i of the box is i - 1 here; 7, 8, 9 are the cuts along x, y, z
  std::vector<int> size = {5, 5, 5, 3, 4, 4, 4},
                   loop = {8, 1, 5, 3, 9, 9, 3, 4, 0, 7, 7, 0, 2, 1, 8, 8, 9, 7, 0, 4, 6, 2, 1, 2, 6, 5, 3, 5, 6, 4};
  return Body(x, hull_tables(10, size, loop));
}

// ---- all pairs of features, all axes ---------------------------------------------------------------------------------------------
inline double least_along(const Body& b, V n) {
  double least = 1e300;
  for (V x : b.x) least = std::fmin(least, dot(n, x - b.x[0]));
  return least + dot(n, b.x[0]);
}
// how far apart two bodies are along n, without radii
inline double separation(const Body& a, const Body& b, V n) { return least_along(b, n) + least_along(a, -n); }

inline double point_segment(V p, V q0, V q1) {
  V e = q1 - q0;
  double t = dot(e, e) > 0 ? dot(p - q0, e) / dot(e, e) : 0;
  return length(p - q0 - std::fmin(std::fmax(t, 0), 1) * e);
}
// the lines' common perpendicular, if it meets both; the rest are ends
inline double segment_segment(V p0, V p1, V q0, V q1) {
  double least = std::fmin(std::fmin(point_segment(p0, q0, q1), point_segment(p1, q0, q1)),
                           std::fmin(point_segment(q0, p0, p1), point_segment(q1, p0, p1)));
  V e = p1 - p0, f = q1 - q0, d = q0 - p0, c = cross(e, f);
  double c2 = dot(c, c);
  if (!(c2 > 1e-20 * dot(e, e) * dot(f, f))) return least;
  double s = dot(cross(d, f), c) / c2, t = dot(cross(d, e), c) / c2;
  return s > 0 && s < 1 && t > 0 && t < 1 ? std::fmin(least, std::fabs(dot(d, c)) / std::sqrt(c2)) : least;
}
// vertices of b over faces of a
inline double vertex_face_distance(const Body& a, const Body& b) {
  double least = 1e300;
  for (int f = 0; f < a.t.faces(); f++)
    for (V p : b.x) {
      V n = a.normal(f);
      bool over = true;
      int begin = a.t.loop_adr[size_t(f)], end = a.t.loop_adr[size_t(f) + 1];
      for (int i = begin; i < end; i++) {
        V u = a.x[size_t(a.t.loop[size_t(i)])], w = a.x[size_t(a.t.loop[size_t(i + 1 < end ? i + 1 : begin)])];
        over = over && dot(cross(w - u, n), p - u) <= 0;
      }
      if (over) least = std::fmin(least, std::fabs(dot(n, p - a.x[size_t(a.t.loop[size_t(begin)])])));
    }
  return least;
}
inline double feature_distance(const Body& a, const Body& b) {
  double least = std::fmin(vertex_face_distance(a, b), vertex_face_distance(b, a));
  auto edges_a = a.segments(), edges_b = b.segments();
  if (edges_a.empty()) edges_a.push_back({a.x[0], a.x[0]});
  if (edges_b.empty()) edges_b.push_back({b.x[0], b.x[0]});
  for (auto [p0, p1] : edges_a)
    for (auto [q0, q1] : edges_b) least = std::fmin(least, segment_segment(p0, p1, q0, q1));
  return least;
}
inline double largest_separation(const Body& a, const Body& b) {
  double most = -1e300;
  for (int f = 0; f < a.t.faces(); f++) most = std::fmax(most, separation(a, b, a.normal(f)));
  for (int f = 0; f < b.t.faces(); f++) most = std::fmax(most, separation(a, b, -b.normal(f)));
  for (auto [p0, p1] : a.segments())
    for (auto [q0, q1] : b.segments()) {
      V e = p1 - p0, f = q1 - q0, c = cross(e, f);
      if (!(dot(c, c) > 1e-16 * dot(e, e) * dot(f, f))) continue;
      V n = vec_normalise(c);
      most = std::fmax(most, std::fmax(separation(a, b, n), separation(a, b, -n)));
    }
  return most;
}
// gap: distance of what is apart, else the smallest translation that separates, negative; radii taken off
inline double brute_gap(const Body& a, const Body& b) {
  double s = largest_separation(a, b);
  return (s > 0 ? feature_distance(a, b) : s) - a.r() - b.r();
}

}  // namespace test
