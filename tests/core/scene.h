// Random scenes: trees with shapes above a plane, joint limits, dry friction and servos; and a whole step as a flat function.
//
// y = (q+, v+, impulse of every contact block). x as in world.h
#pragma once
#include "sample.h"
#include "world.h"

namespace test {

// What a scene has besides its bodies
struct Parts {
  bool shapes = true, limits = true, dry = true, servos = true;
  int max_contacts = -1;
  bool moving_plane = false;
};

inline void add_shape(Structure& s, int body, int type) { s.shape_body.push_back(body), s.shape_type.push_back(type); }

// every pair of shapes that is supported, on different bodies, in any order
inline void add_pairs(Structure& s, Random& rng) {
  int n = int(s.shape_body.size());
  for (int a = 0; a < n; a++)
    for (int b = a + 1; b < n; b++) {
      int ta = s.shape_type[a], tb = s.shape_type[b];
      bool plane = (ta == kPlane) != (tb == kPlane), round = ta != kPlane && tb != kPlane && ta != kBox && tb != kBox;
      if (s.shape_body[a] == s.shape_body[b] || !(plane || round)) continue;
      bool turned = rng.below(2);
      s.pair_a.push_back(turned ? b : a), s.pair_b.push_back(turned ? a : b);
    }
}

// a limit on every revolute, prismatic and ball joint, friction on every third dof, actuators of every kind
inline void add_rows(Structure& s, const Parts& parts, Random& rng) {
  int d = 0;
  for (size_t b = 0; b < s.joint.size(); d += joint_nv(s.joint[b++])) {
    int kind = s.joint[b], n = joint_nv(kind);
    if (parts.limits && (kind == kRevolute || kind == kPrismatic || kind == kBall))
      s.limit_body.push_back(int(b)), s.limit_dof.push_back(d);
    for (int i = 0; i < n; i++) {
      if (parts.dry && kind != kFree && rng.below(3) == 0) s.dry_dof.push_back(d + i);
      if (!parts.servos || kind == kFree || rng.below(2)) continue;
      s.motor_dof.push_back(d + i);
      s.actuator.push_back(i < joint_lin(kind) ? rng.below(3) : 2 * rng.below(2));
    }
  }
  for (size_t k = 0; k < s.motor_dof.size(); k++) {
    int clips = 0, bounds = 0;
    for (int c : s.clip) clips += c >= 0;
    for (int c : s.bound) bounds += c >= 0;
    s.clip.push_back(rng.below(2) ? clips : -1), s.bound.push_back(rng.below(2) ? bounds : -1);
  }
}

// numbers a user might give. x is random in [-1, 1] so far
inline void physical_numbers(World& w, Random& rng) {
  const Tree& t = w.t;
  Params<double> th = w.theta();
  for (int k = 0; k < t.nu; k++) {
    th.gear[k] = rng.uniform(0.5, 2);
    th.kp[k] = t.actuator[k] == kPosition ? rng.uniform(1, 50) : 0;
    th.kd[k] = t.actuator[k] == kMotor || t.actuator[k] == kServo ? 0 : rng.uniform(0.5, 5);
    w.x[w.at_u() + k] = rng.uniform(-2, 2);
  }
  for (int i = 0; i < t.n_servo; i++) th.gain[i] = rng.uniform(1, 20), th.max_speed[i] = rng.uniform(0.2, 2);
  for (int i = 0; i < t.n_clip; i++) th.control_lower[i] = rng.uniform(-1.5, 0), th.control_upper[i] = rng.uniform(0, 1.5);
  for (int i = 0; i < t.n_bound; i++) th.force_lower[i] = rng.uniform(-10, 0), th.force_upper[i] = rng.uniform(0, 10);
  for (int i = 0; i < t.n_limit; i++) {
    // close to one end of the range, on either side of it
    const double *q = w.x.data() + t.q_adr[t.limit_body[i]], end = rng.uniform(-0.01, 0.02);
    if (t.joint[t.limit_body[i]] == kBall) {
      Vec3<double> phi = quat_log(quat_normalise(quat_at(q)));
      th.limit_lower[i] = 0, th.limit_upper[i] = std::sqrt(dot(phi, phi)) + end;
      continue;
    }
    bool upper = rng.below(2);
    th.limit_lower[i] = upper ? q[0] + end - 0.5 : q[0] - end, th.limit_upper[i] = th.limit_lower[i] + 0.5;
  }
  for (int i = 0; i < t.n_dry; i++) th.dry_friction[i] = rng.uniform(0, 5);
  for (int s = 0; s < t.ns; s++) {
    th.shape_size[s] = {rng.uniform(0.1, 0.3), rng.uniform(0.1, 0.4), rng.uniform(0.1, 0.3)};
    th.friction[s] = rng.uniform(0.1, 2), th.restitution[s] = rng.uniform(0, 1);
    th.softness[s] = rng.below(2) ? 0 : rng.uniform(0, 1e-3);
    if (t.shape_type[s] != kPlane) th.shape_pos[s] = random_vec(rng, 0.2);
  }
  th.gravity[0] = {0.3, -0.2, -9.81};
}

// lowest point of body b's shapes above the world's z = 0; a large number without any
inline double lowest(const World& w, const Scratch<double>& s, int b) {
  double z = 1e9;
  View<double> a(w, w.x);
  for (int i = 0; i < w.t.ns; i++)
    for (int k = 0; w.t.shape_body[i] == b && k < shape_points(w.t.shape_type[i]); k++) {
      Vec3<double> p = shape_point(w.t, a.th, s.rw, i, k);
      z = std::fmin(z, p.z + s.tr.origin[w.t.root[b]].z - shape_radius(w.t, a.th, i));
    }
  return z;
}

// trees are dropped or raised until each one's lowest shape is about where the floor is
inline void place_on_floor(World& w, Random& rng) {
  const Tree& t = w.t;
  Scratch<double> s(t);
  View<double> a(w, w.x);
  normalise(t, a.in.q, s.tr.q), kinematics(t, a.th, s.tr), shapes(t, a.th, s.tr, s.rw);
  for (int r = 0; r < t.nb; r++) {
    if (t.root[r] != r) continue;
    double z = 1e9;
    for (int b = r; b < t.nb; b++)
      if (t.root[b] == r) z = std::fmin(z, lowest(w, s, b));
    double drop = z > 1e8 ? 0 : rng.uniform(-0.02, 0.02) - z;
    if (t.joint[r] == kFree)
      w.x[t.q_adr[r] + 2] += drop;
    else
      w.theta().joint_pos[r].z += drop;
  }
}

// free bodies, a walker and an arm that hangs on the world; a floor, and on request a plane that moves with the arm
inline Structure scene_structure(const Parts& parts, int form, Random& rng) {
  Structure s;
  s.form = form, s.max_contacts = parts.max_contacts;
  auto body = [&](int parent, int joint, int shape) {
    s.parent.push_back(parent), s.joint.push_back(joint);
    int b = int(s.parent.size()) - 1;
    if (shape != kPlane) add_shape(s, b, shape);
    return b;
  };
  add_shape(s, -1, kPlane);
  int torso = body(-1, kFree, 1 + rng.below(3));
  int hip = body(torso, kBall, kCapsule);
  body(hip, kRevolute, kSphere), body(torso, kRevolute, kCapsule);
  for (int i = rng.below(3); i >= 0; i--) body(-1, kFree, 1 + rng.below(3));
  int base = body(-1, rng.below(2) ? kPrismatic : kPlanar, kCapsule);
  int board = body(base, kFixed, kPlane), hand = body(board, kRevolute, kSphere);
  if (parts.moving_plane) add_shape(s, board, kPlane);
  if (rng.below(2)) body(hand, kPrismatic, kBox);
  if (!parts.shapes) s.shape_body.clear(), s.shape_type.clear();
  add_pairs(s, rng), add_rows(s, parts, rng);
  s.friction_rule = rng.below(5), s.restitution_rule = rng.below(5);
  return s;
}

// its numbers
inline World scene_world(const Structure& s, const Parts& parts, Random& rng) {
  World w(s, true, rng);
  physical_numbers(w, rng);
  double pace = rng.below(2) ? 2 : 0.2;  // some worlds slide, some stick
  for (int i = 0; i < w.t.nv; i++) w.x[w.at_v() + i] *= pace;
  w.x[w.at_h()] = rng.uniform(0.005, 0.02);
  if (parts.shapes) {
    Params<double> th = w.theta();
    th.shape_pos[0] = {0, 0, rng.uniform(-0.01, 0.01)}, th.shape_quat[0] = {1, 0.02, -0.03, 0.4};
    place_on_floor(w, rng);
  }
  return w;
}

inline World random_scene(const Parts& parts, int form, Random& rng) {
  return scene_world(scene_structure(parts, form, rng), parts, rng);
}

// ---- one step ------------------------------------------------------------------------------------------------------------
inline int step_size(const World& w, const Scratch<double>& s) { return w.t.nq + w.t.nv + 3 * s.rw.count[0]; }

// the dofs that can move block i
template <class T> const int* block_dofs(const Tree& t, const Rows<T>& rw, int i) { return rw.list + i * t.nv; }

// impulses of the blocks, zero for those of joints
template <class T> void add_impulses(const Rows<T>& rw, std::vector<T>& y) {
  for (int i = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i];
    Vec3<T> f = zero3<T>();
    if (rw.kind[i] == kContactRows) f = rw.lam[r] * rw.C[i].r0 + rw.lam[r + 1] * rw.C[i].r1 + rw.lam[r + 2] * rw.C[i].r2;
    y.insert(y.end(), {f.x, f.y, f.z});
  }
}
template <class T> void step_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  const Tree& t = w.t;
  View<T> a(w, x);
  y.assign(t.nq + t.nv, T(0));
  step(t, a.th, s.tr, s.rw, s.o, a.in, y.data(), y.data() + t.nq);
  if (constrained(t)) add_impulses(s.rw, y);
}

// the same step if `solution` are its impulses: a Newton step from there, which moves nothing but the tangents. What the implicit
// adjoint has to be the transpose of, whichever way the solver came
inline void step_at(const World& w, const Duals& x, const double* solution, Scratch<Dual<double>>& s, Duals& y) {
  const Tree& t = w.t;
  step_of(w, x, s, y);
  if (!constrained(t) || !s.rw.count[0]) return;
  int n = s.rw.count[1];
  for (int r = 0; r < n; r++) s.rw.lam[r] = solution[r];
  natural_residual(s.rw, s.o), newton(s.rw, s.o, Dual<double>(0));
  for (int r = 0; r < n; r++) s.rw.lam[r] += s.rw.delta[r];
  Duals dv(t.nv, Dual<double>(0));
  for (int i = 0; i < s.rw.count[0]; i++)
    for (int r = s.rw.first_row[i]; r < s.rw.first_row[i + 1]; r++)
      for (int k = 0; k < s.rw.list_n[i]; k++) {
        int d = block_dofs(t, s.rw, i)[k];
        dv[d] += s.rw.J[r * t.nv + d] * s.rw.lam[r];
      }
  Duals answer(t.ne);
  constrained_solve(t, s.tr, s.rw, dv.data(), answer.data());
  y.resize(t.nq + t.nv);
  for (int d = 0; d < t.nv; d++) y[t.nq + d] = s.rw.v_star[d] + dv[d];
  if (t.ne) project(t, View<Dual<double>>(w, x).th, s.tr, s.rw.eq, x[w.at_h()], s.o.project, y.data() + t.nq);
  integrate(t, s.tr.q, x[w.at_h()], y.data() + t.nq, y.data());
  add_impulses(s.rw, y);
}

// after step_of on the same scratch; g: bars of y
inline void step_of_adj(const World& w, Scratch<double>& s, const std::vector<double>& y, std::vector<double> g,
                        std::vector<double>& x_bar) {
  const Tree& t = w.t;
  std::vector<double> q_tan(t.nv, 0.0);
  View<double> a(w, w.x);
  BarView b(w, x_bar);
  tangent_bars(t, y.data(), g.data(), q_tan.data());
  for (int i = 0; constrained(t) && i < s.rw.count[0]; i++)
    s.rb.impulse[i] = s.rw.kind[i] == kContactRows ? vec3_at(&g[t.nq + t.nv + 3 * i]) : zero3<double>();
  step_adj(t, a.th, s.tr, s.rw, s.o, a.in, y.data() + t.nq, q_tan.data(), g.data() + t.nq, s.bar, s.rb, b.th, b.in);
  b.finish(w, x_bar);
}

}  // namespace test
