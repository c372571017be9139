// What is refused before it reaches the core: numbers that are not finite, zero quaternions and axes, impossible bodies.
#pragma once
#include <vector>

#include "kernels.h"

namespace costate {

// squared length below which a quaternion or an axis has no direction; as TINY in costate/scene/checks.py
constexpr double kTiny2 = 1e-12;

// index of the first number that is not finite, or -1
template <class E> inline long first_not_finite(const E* x, long n) {
  E s = 0;
  for (long i = 0; i < n; i++) s += x[i] - x[i];
  if (s == 0) return -1;
  for (long i = 0; i < n; i++)
    if (!(x[i] - x[i] == 0)) return i;
  return -1;
}

// index of the first quaternion (its w) whose norm is too small to be normalised, or -1
template <class E> inline long first_zero_quaternion(const Tree& t, const E* q, long worlds) {
  for (int b = 0; b < t.nb; b++) {
    if (!joint_turns(t.joint[b])) continue;
    int a = t.q_adr[b] + joint_lin(t.joint[b]);
    for (long w = 0; w < worlds; w++) {
      const E* u = q + w * t.nq + a;
      if (!(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + u[3] * u[3] > E(kTiny2))) return w * t.nq + a;
    }
  }
  return -1;
}

// Sylvester's criterion: a symmetric matrix is positive definite exactly if its leading minors are positive
inline bool positive_definite(double xx, double yy, double zz, double xy, double xz, double yz) {
  double minor = xx * yy - xy * xy;
  return xx > 0 && minor > 0 && zz * minor - xx * yz * yz - yy * xz * xz + 2 * xy * xz * yz > 0;
}

// positive moments of inertia, and the triangle inequality: the second moment tr(I)/2 1 - I must not be negative, up to slack tr(I)
template <class E> inline bool inertia_ok(const Sym3<E>& I, double slack) {
  double tr = double(I.xx) + I.yy + I.zz, h = (0.5 + slack) * tr;
  return positive_definite(I.xx, I.yy, I.zz, I.xy, I.xz, I.yz) &&
         positive_definite(h - I.xx, h - I.yy, h - I.zz, -I.xy, -I.xz, -I.yz);
}

// is one world's theta physical? The caller finds out which field is not, and says so
template <class E> inline bool params_ok(const Tree& t, const std::vector<int>& massless, const E* theta) {
  if (first_not_finite(theta, params_size(t)) >= 0) return false;
  Params<E> p = params_map(t, const_cast<E*>(theta));
  double slack = sizeof(E) == 4 ? 1e-6 : 1e-9;
  auto nothing = [](E m, Sym3<E> I) {
    return m == 0 && I.xx == 0 && I.yy == 0 && I.zz == 0 && I.xy == 0 && I.xz == 0 && I.yz == 0;
  };
  auto norm2 = [](auto v) { return double(v.x) * v.x + double(v.y) * v.y + double(v.z) * v.z; };
  for (int b = 0; b < t.nb; b++) {
    if (massless[b] ? !nothing(p.mass[b], p.inertia[b]) : !(p.mass[b] > 0) || !inertia_ok(p.inertia[b], slack)) return false;
    if (!(norm2(p.joint_quat[b]) + double(p.joint_quat[b].w) * p.joint_quat[b].w > kTiny2)) return false;
    bool axis = t.joint[b] == kRevolute || t.joint[b] == kPrismatic;
    if ((axis && !(norm2(p.joint_axis[b]) > kTiny2)) || p.stiffness[b] < 0) return false;
  }
  for (int d = 0; d < t.nv; d++)
    if (p.damping[d] < 0 || p.armature[d] < 0) return false;
  return first_zero_quaternion(t, p.rest, 1) < 0;
}

}  // namespace costate
