// Params: every physical number of a world, as pointers into one flat vector theta. Also the shape of theta_bar.
//
// The table is the one definition of the layout: costate/_native/layout.py is generated from it. Values here are
// prepared: axes and quaternions have unit length (prepare.h does that to what the user gave, with its adjoint).
#pragma once
#include "../math/quat.h"
#include "model.h"

CS_BEGIN

// clang-format off
#define CS_FIELDS(CS_FIELD)                                                                                         \
  /*       name          per    width   type                meaning, frame, unit */                                 \
  CS_FIELD(gravity,      world, 3,      Vec3<T>)         /* m/s^2, world axes */                                    \
  CS_FIELD(mass,         body,  1,      T)               /* kg */                                                   \
  CS_FIELD(com,          body,  3,      Vec3<T>)         /* centre of mass, body frame, m */                        \
  CS_FIELD(inertia,      body,  6,      Sym3<T>)         /* xx yy zz xy xz yz about the com, body axes, kg m^2 */   \
  CS_FIELD(joint_pos,    body,  3,      Vec3<T>)         /* joint frame's origin, parent frame, m */                \
  CS_FIELD(joint_quat,   body,  4,      Quat<T>)         /* joint frame's orientation in the parent, wxyz */        \
  CS_FIELD(joint_anchor, body,  3,      Vec3<T>)         /* point the joint turns about, body frame, m */           \
  CS_FIELD(joint_axis,   body,  3,      Vec3<T>)         /* axis of revolute and prismatic joints, body frame */    \
  CS_FIELD(stiffness,    body,  1,      T)               /* joint spring, N m/rad or N/m */                         \
  CS_FIELD(rest,         q,     1,      T)               /* where the spring is at rest, as q */                    \
  CS_FIELD(damping,      dof,   1,      T)               /* N m s/rad or N s/m */                                   \
  CS_FIELD(armature,     dof,   1,      T)               /* added to the mass matrix's diagonal, kg m^2 or kg */    \
  CS_FIELD(gear,         motor, 1,      T)               /* joint force per unit of actuator force */                   \
  CS_FIELD(kp,           motor, 1,      T)               /* position gain: actuator force per unit of gear q */     \
  CS_FIELD(kd,           motor, 1,      T)               /* velocity gain */                                        \
  CS_FIELD(gain,         servo, 1,      T)               /* of a servo: wished speed per error, 1/s */              \
  CS_FIELD(max_speed,    servo, 1,      T)               /* of a servo: most speed it wishes, rad/s or m/s */       \
  CS_FIELD(control_gain, general, 1,    T)               /* of a general actuator: force per unit of control */     \
  CS_FIELD(control_bias, general, 1,    T)               /* and without any, N or N m */                            \
  CS_FIELD(control_lower, clip, 1,      T)               /* controls are clipped to these */                        \
  CS_FIELD(control_upper, clip, 1,      T)                                                                          \
  CS_FIELD(force_lower,  bound, 1,      T)               /* actuator forces are kept between these, N or N m */     \
  CS_FIELD(force_upper,  bound, 1,      T)                                                                          \
  CS_FIELD(limit_lower,  limit, 1,      T)               /* range of a joint, rad or m; not used by ball joints */  \
  CS_FIELD(limit_upper,  limit, 1,      T)               /* of a ball joint: largest angle of rotation */           \
  CS_FIELD(dry_friction, dry,   1,      T)               /* joint force that friction holds against, N m or N */    \
  CS_FIELD(shape_pos,    shape, 3,      Vec3<T>)         /* body frame (or world), m */                             \
  CS_FIELD(shape_quat,   shape, 4,      Quat<T>)         /* body frame (or world), wxyz */                          \
  CS_FIELD(shape_size,   shape, 3,      Vec3<T>)         /* radius; radius, half length; half extents, m */         \
  CS_FIELD(hull_vertex,  vertex, 3,     Vec3<T>)         /* of hulls, shape frame, m */                             \
  CS_FIELD(height,       height, 1,     T)               /* of fields, along the z of the shape, m */               \
  CS_FIELD(friction,     shape, 1,      T)               /* coefficient */                                          \
  CS_FIELD(torsion,      shape, 1,      T)               /* friction against turning about the normal, m */        \
  CS_FIELD(rolling,      shape, 1,      T)               /* friction against rolling, m */                          \
  CS_FIELD(restitution,  shape, 1,      T)               /* rebound speed over impact speed, 0 to 1 */              \
  CS_FIELD(softness,     shape, 1,      T)               /* static penetration per normal force, m/N */             \
  CS_FIELD(tie_pos,      frame, 3,      Vec3<T>)         /* two frames per tie, a and b: body frame (or world), m */ \
  CS_FIELD(tie_quat,     frame, 4,      Quat<T>)         /* body frame (or world), wxyz */                          \
  CS_FIELD(tie_length,   tie,   1,      T)               /* distance that is kept, m */                             \
  CS_FIELD(tie_softness, tie,   1,      T)               /* static error per force, m/N and rad/(N m) */            \
  CS_FIELD(coupling,     coupling, 5,   Polynomial<T>)   /* q1 = c0 + c1 q2 + .. + c4 q2^4 */                       \
  CS_FIELD(coupling_softness, coupling, 1, T)            /* static error per force, rad/(N m) or m/N */
// clang-format on

template <class T> struct Polynomial {
  T c[5];
};

template <class T> struct Params {
#define CS_FIELD(name, per, width, type) type* name;
  CS_FIELDS(CS_FIELD)
#undef CS_FIELD
};

enum class Per {
  world,
  body,
  q,
  dof,
  motor,
  servo,
  general,
  clip,
  bound,
  limit,
  dry,
  shape,
  vertex,
  height,
  frame,
  tie,
  coupling
};

// no adjoint: integers
CS_FN int per_count(const Tree& t, Per per) {
  switch (per) {
    case Per::world: return 1;
    case Per::body: return t.nb;
    case Per::q: return t.nq;
    case Per::dof: return t.nv;
    case Per::motor: return t.nu;
    case Per::servo: return t.n_servo;
    case Per::general: return t.n_general;
    case Per::clip: return t.n_clip;
    case Per::bound: return t.n_bound;
    case Per::limit: return t.n_limit;
    case Per::dry: return t.n_dry;
    case Per::shape: return t.ns;
    case Per::vertex: return t.n_vertex;
    case Per::height: return t.n_height;
    case Per::frame: return 2 * t.n_tie;
    case Per::tie: return t.n_tie;
    default: return t.n_coupling;
  }
}

// no adjoint: integers.   how many numbers theta has
CS_FN int params_size(const Tree& t) {
  int n = 0;
#define CS_FIELD(name, per, width, type) n += width * per_count(t, Per::per);
  CS_FIELDS(CS_FIELD)
#undef CS_FIELD
  return n;
}

// no adjoint: pointers.   theta seen as its fields; a null theta (a bar nobody wants) gives null fields
template <class T> CS_FN Params<T> params_map(const Tree& t, T* theta) {
  Params<T> p;
#define CS_FIELD(name, per, width, type)   \
  p.name = reinterpret_cast<type*>(theta); \
  if (theta) theta += width * per_count(t, Per::per);
  CS_FIELDS(CS_FIELD)
#undef CS_FIELD
  return p;
}

CS_END
