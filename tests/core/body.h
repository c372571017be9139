// Solids with vertices of their own, for tests of what chooses features.
#pragma once
#include "../../core/ops/collide/solid.h"
#include "../../core/ops/collide/vertices.h"
#include "sample.h"

namespace test {

using V = Vec3<double>;
using M = Mat3<double>;
using Vector = std::vector<double>;

constexpr double kSmall = 1e-12;  // roundings of numbers of size 1 in a few products and quotients
constexpr double kAll = 1e30;     // an unlimited reach
constexpr double kPi = 3.141592653589793;
constexpr M kUp = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

inline double length(V a) { return std::sqrt(dot(a, a)); }

struct Body {
  std::vector<V> local, x;
  Solid s;
  V at(int id) const { return s.p + mul(s.R, local[id]); }
};
inline void place(Body& b, V p, const M& R) {
  b.s.p = p, b.s.R = R, b.x.clear();
  for (int i = 0; i < b.s.n; i++) b.x.push_back(b.at(i));
  b.s.x = b.x.data();
}
inline Body make_body(int type, V size, V p, const M& R, std::vector<V> hull = {}) {
  Body b = {hull, {}, {}};
  b.s.type = type, b.s.size = size, b.s.r = type == kSphere || type == kCapsule ? size.x : 0;
  int n = type == kSphere ? 1 : type == kCapsule ? 2 : type == kBox ? 8 : type == kCylinder ? 34 : int(hull.size());
  if (type != kHull)
    for (int i = 0; i < n; i++) b.local.push_back(size_vertex(type, size, i));
  b.s.n = type == kCylinder ? 32 : n;
  place(b, p, R);
  return b;
}
inline Body random_hull(Random& rng, double size, V p) {
  std::vector<V> x(4 + rng.below(60));
  for (V& v : x) v = size * random_unit(rng);
  return make_body(kHull, {0, 0, 0}, p, matrix(random_quat(rng)), x);
}

inline bool apart(const std::vector<V>& x, double least) {
  for (size_t i = 0; i < x.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (distance(x[i], x[j]) < least) return false;
  return true;
}

}  // namespace test
