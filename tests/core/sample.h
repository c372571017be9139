// Random vectors and rotations, and poses as flat numbers: what the tests of math/ and ops/ share.
#pragma once
#include "../../core/math/quat.h"
#include "../../core/math/spatial.h"
#include "check.h"

namespace test {

using namespace costate;

inline Vec3<double> random_vec(Random& rng, double size = 1) {
  double x = rng.uniform(), y = rng.uniform(), z = rng.uniform();
  return {size * x, size * y, size * z};
}
// a direction: components drawn until they are long enough to normalise without loss
inline Vec3<double> random_unit(Random& rng) {
  Vec3<double> x = random_vec(rng);
  while (dot(x, x) < 0.1) x = random_vec(rng);
  return vec_normalise(x);
}
inline Quat<double> random_quat(Random& rng) { return quat_exp(rng.uniform(0, 3) * random_unit(rng)); }
inline Motion<double> random_motion(Random& rng) {
  Vec3<double> w = random_vec(rng);
  return {w, random_vec(rng)};
}
inline Force<double> random_force(Random& rng) {
  Vec3<double> n = random_vec(rng);
  return {n, random_vec(rng)};
}

inline std::vector<double> flat(Vec3<double> a) { return {a.x, a.y, a.z}; }
inline std::vector<double> flat(Quat<double> q) { return {q.w, q.x, q.y, q.z}; }

template <class T> Vec3<T> vec3_at(const T* x) { return {x[0], x[1], x[2]}; }
template <class T> Quat<T> quat_at(const T* x) { return {x[0], x[1], x[2], x[3]}; }
template <class T> void put(T* to, Vec3<T> a) { to[0] = a.x, to[1] = a.y, to[2] = a.z; }
template <class T> void put(T* to, Quat<T> q) { to[0] = q.w, to[1] = q.x, to[2] = q.y, to[3] = q.z; }

// constants seen by another scalar type
template <class T> Vec3<T> lift(Vec3<double> a) { return {T(a.x), T(a.y), T(a.z)}; }
template <class T> Quat<T> lift(Quat<double> q) { return {T(q.w), T(q.x), T(q.y), T(q.z)}; }

inline double distance(Vec3<double> a, Vec3<double> b) { return std::sqrt(dot(a - b, a - b)); }
inline double distance(Quat<double> a, Quat<double> b) {
  return std::sqrt((a.w - b.w) * (a.w - b.w) + dot(vec(a) - vec(b), vec(a) - vec(b)));
}
inline double distance(const Mat3<double>& a, const Mat3<double>& b) {
  return distance(a.r0, b.r0) + distance(a.r1, b.r1) + distance(a.r2, b.r2);
}
inline double distance(Motion<double> a, Motion<double> b) { return distance(a.w, b.w) + distance(a.v, b.v); }
inline double distance(Force<double> a, Force<double> b) { return distance(a.n, b.n) + distance(a.f, b.f); }

}  // namespace test
