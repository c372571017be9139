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

// gains, limits and dry friction of one world
template <class E> inline bool actuators_ok(const Tree& t, const E* theta) {
  Params<E> p = params_map(t, const_cast<E*>(theta));
  for (int k = 0; k < t.nu; k++) {
    bool position = t.actuator[k] == kPosition, velocity = t.actuator[k] == kVelocity;
    if (t.actuator[k] == kGeneral) {
      bool row = t.motor_tie[k] >= 0 || t.bound[k] >= 0, held = t.motor_tie[k] >= 0 || t.motor_q[k] >= 0;
      if (!(p.kp[k] >= 0) || !(p.kd[k] >= 0) || (row && !(p.kp[k] + p.kd[k] > 0)) || (!held && p.kp[k] != 0)) return false;
      continue;
    }
    if (position ? !(p.kp[k] > 0) || !(p.kd[k] >= 0) : p.kp[k] != 0 || (velocity ? !(p.kd[k] > 0) : p.kd[k] != 0)) return false;
  }
  for (int i = 0; i < t.n_clip; i++)
    if (!(p.control_lower[i] <= p.control_upper[i])) return false;
  for (int i = 0; i < t.n_bound; i++)
    if (!(p.force_lower[i] <= p.force_upper[i])) return false;
  for (int i = 0; i < t.n_limit; i++) {
    bool ball = t.joint[t.limit_body[i]] == kBall;
    if (ball ? !(p.limit_upper[i] > 0 && p.limit_upper[i] <= E(3.14159579)) : !(p.limit_lower[i] < p.limit_upper[i]))
      return false;
  }
  for (int i = 0; i < t.n_dry; i++)
    if (!(p.dry_friction[i] >= 0)) return false;
  return true;
}

// servos, ties and couplings of one world
template <class E> inline bool equality_ok(const Tree& t, const E* theta) {
  Params<E> p = params_map(t, const_cast<E*>(theta));
  for (int i = 0; i < t.n_servo; i++)
    if (!(p.gain[i] > 0) || !(p.max_speed[i] > 0)) return false;
  for (int f = 0; f < 2 * t.n_tie; f++) {
    Quat<E> u = p.tie_quat[f];
    if (!(double(u.w) * u.w + double(u.x) * u.x + double(u.y) * u.y + double(u.z) * u.z > kTiny2)) return false;
  }
  for (int k = 0; k < t.nu; k++)
    if ((t.motor_tie[k] >= 0 || t.servo[k] >= 0) && p.gear[k] == 0) return false;
  for (int k = 0; k < t.n_tie; k++)
    if (!(p.tie_softness[k] >= 0)) return false;
  for (int i = 0; i < t.n_item; i++)
    for (int r = t.item_row[i]; r < t.item_row[i + 1]; r++)
      if (t.lock[r] == kLockDistance && !(p.tie_length[t.item[i]] > 0)) return false;
  for (int k = 0; k < t.n_coupling; k++)
    if (!(p.coupling_softness[k] >= 0)) return false;
  return true;
}

// sizes and coefficients of one world
template <class E> inline bool shapes_ok(const Tree& t, const E* theta) {
  Params<E> p = params_map(t, const_cast<E*>(theta));
  for (int s = 0; s < t.ns; s++) {
    int type = t.shape_type[s];
    Vec3<E> size = p.shape_size[s];
    Quat<E> u = p.shape_quat[s];
    if (type != kPlane && type != kHull && type != kPolygon && !(size.x > 0)) return false;
    if ((type == kCapsule || type == kBox || type == kRectangle || type == kCylinder || type == kField) && !(size.y > 0))
      return false;
    if (type == kBox && !(size.z > 0)) return false;
    if (!(double(u.w) * u.w + double(u.x) * u.x + double(u.y) * u.y + double(u.z) * u.z > kTiny2)) return false;
    if (!(p.torsion[s] >= 0) || !(p.rolling[s] >= 0)) return false;
    if (!(p.friction[s] >= 0) || !(p.restitution[s] >= 0 && p.restitution[s] <= 1) || !(p.softness[s] >= 0)) return false;
  }
  return true;
}

// is one world's theta physical? The caller finds out which field is not, and says so
template <class E> inline bool params_ok(const Tree& t, const std::vector<int>& massless, const E* theta) {
  if (!actuators_ok(t, theta) || !shapes_ok(t, theta) || !equality_ok(t, theta)) return false;
  if (first_not_finite(theta, params_size(t)) >= 0) return false;
  Params<E> p = params_map(t, const_cast<E*>(theta));
  double slack = sizeof(E) == 4 ? 1e-6 : 1e-9;
  auto nothing = [](E m, Sym3<E> I) {
    return m == 0 && I.xx == 0 && I.yy == 0 && I.zz == 0 && I.xy == 0 && I.xz == 0 && I.yz == 0;
  };
  auto norm2 = [](auto v) { return double(v.x) * v.x + double(v.y) * v.y + double(v.z) * v.z; };
  for (int b = 0; b < t.nb; b++) {
    if (massless[b] ? !nothing(p.mass[b], p.inertia[b])
                    : !(p.mass[b] > 0) || !(t.planar ? p.inertia[b].zz > 0 : inertia_ok(p.inertia[b], slack)))
      return false;
    if (!(norm2(p.joint_quat[b]) + double(p.joint_quat[b].w) * p.joint_quat[b].w > kTiny2)) return false;
    bool axis = t.joint[b] == kRevolute || t.joint[b] == kPrismatic;
    if ((axis && !(norm2(p.joint_axis[b]) > kTiny2)) || p.stiffness[b] < 0) return false;
  }
  for (int d = 0; d < t.nv; d++)
    if (p.damping[d] < 0 || p.armature[d] < 0) return false;
  return first_zero_quaternion(t, p.rest, 1) < 0;
}

}  // namespace costate
