// Random scenes: trees with shapes above a plane or a field, joint limits, dry friction and servos; and a whole step as a flat function.
//
// y = (q+, v+, impulse of every contact block). x as in world.h
#pragma once
#include "hulls.h"
#include "sample.h"
#include "world.h"

namespace test {

// What a scene has besides its bodies
struct Parts {
  bool shapes = true, limits = true, dry = true, servos = true;
  int max_contacts = -1;
  bool moving_plane = false;
  bool solids = false;      // cylinders and hulls too
  bool field = false;       // the floor is a field of heights
  bool floor_only = false;  // nothing touches but the floor: few groups of pairs
};

inline bool flat_shape(int type) { return type == kPlane || type == kField; }

// every pair of shapes that is supported, on different bodies, in any order
inline void add_pairs(Structure& s, bool floor_only, Random& rng) {
  int n = int(s.shape_body.size());
  for (int a = 0; a < n; a++)
    for (int b = a + 1; b < n; b++) {
      bool flat_a = flat_shape(s.shape_type[a]), flat_b = flat_shape(s.shape_type[b]);
      if (s.shape_body[a] == s.shape_body[b] || (flat_a && flat_b) || (floor_only && !flat_a && !flat_b)) continue;
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
    if (!flat_shape(t.shape_type[s])) th.shape_pos[s] = random_vec(rng, 0.2);
    if (t.shape_type[s] == kHull) put_hull(t, th, s, random_vec(rng, 0.1) + Vec3<double>{0.2, 0.2, 0.2});
    if (t.shape_type[s] == kField) th.shape_size[s] = {rng.uniform(2, 3), rng.uniform(2, 3), 0};
  }
  for (int i = 0; i < t.n_height; i++) th.height[i] = rng.uniform(-0.02, 0.02);
  th.gravity[0] = {0.3, -0.2, -9.81};
}

// lowest point of body b's shapes above the world's z = 0; a large number without any
inline double lowest(const World& w, const Scratch<double>& s, int b) {
  double z = 1e9;
  View<double> a(w, w.x);
  for (int i = 0; i < w.t.ns; i++)
    for (int k = 0; w.t.shape_body[i] == b && !flat_shape(w.t.shape_type[i]) && k < w.t.solid_n[3 * i]; k++) {
      Vec3<double> p = s.rw.shape_p[i] + mul(s.rw.shape_R[i], shape_vertex(w.t, a.th, i, k));
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
  s.form = form, s.max_contacts = parts.max_contacts, s.one_group = !parts.floor_only;
  auto body = [&](int parent, int joint, int shape) {
    s.parent.push_back(parent), s.joint.push_back(joint);
    int b = int(s.parent.size()) - 1;
    if (shape != kPlane) add_shape(s, b, shape, rng);
    return b;
  };
  auto solid = [&](int usual) { return parts.solids && rng.below(2) ? kCylinder + rng.below(2) : usual; };
  parts.field ? add_field(s, -1, 4 + rng.below(3), 5) : add_shape(s, -1, kPlane, rng);
  int torso = body(-1, kFree, solid(1 + rng.below(3)));
  int hip = body(torso, kBall, solid(kCapsule));
  body(hip, kRevolute, solid(kSphere)), body(torso, kRevolute, kCapsule);
  for (int i = rng.below(3); i >= 0; i--) body(-1, kFree, solid(1 + rng.below(3)));
  int base = body(-1, rng.below(2) ? kPrismatic : kPlanar, solid(kCapsule));
  int board = body(base, kFixed, kPlane), hand = body(board, kRevolute, kSphere);
  if (parts.moving_plane) add_shape(s, board, kPlane, rng);
  if (rng.below(2)) body(hand, kPrismatic, kBox);
  if (!parts.shapes) s.shape_body.clear(), s.shape_type.clear(), s.shapes = {};
  add_pairs(s, parts.floor_only, rng), add_rows(s, parts, rng);
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

// ---- candidates --------------------------------------------------------------------------------------------------------------
// candidate c as users count them: in every lane and every step the same
template <class T> int shown(const Tree& t, const Rows<T>& rw, int c) { return t.pair_first[rw.cand_pair[c]] + rw.cand_point[c]; }

// the pair of such a candidate
inline int shown_pair(const Tree& t, int id) {
  return int(std::upper_bound(t.pair_first, t.pair_first + t.np + 1, id) - t.pair_first) - 1;
}

// candidates of all pairs, near or not
template <class T> void collide_all(const Tree& t, const Params<T>& th, const Inputs<T>& in, Scratch<T>& s) {
  normalise(t, in.q, s.tr.q), kinematics(t, th, s.tr), velocity(t, s.tr, in.v), shapes(t, th, s.tr, s.rw);
  bounds(t, th, s.tr, s.rw, row_inputs(in), s.o);
  s.rw.count[6] = s.rw.count[7] = 0;
  for (int p = 0; p < t.np; p++)
    collide_pair(t, th, s.tr, s.rw, p, (1 << lanes<T>)-1, s.rw.grow[t.pair_a[p]] + s.rw.grow[t.pair_b[p]]);
}

// the same world as it moves with v: tangents are rates
inline Duals moving(const World& w) {
  using D = Dual<double>;
  Duals x(w.x.begin(), w.x.end()), q(w.t.nq), next(w.t.nq);
  normalise(w.t, x.data(), q.data());
  integrate(w.t, q.data(), D(0, 1), x.data() + w.at_v(), next.data());
  for (int i = 0; i < w.t.nq; i++) x[i] = next[i];
  return x;
}

// a point where an edge leaves a face slides along it: its gap has another rate than its bodies have velocity
template <class T> bool is_cut(const Tree& t, const Rows<T>& rw, int c) {
  int p = rw.cand_pair[c];
  const Feature& f = rw.feature[c];
  return pair_chosen(t.shape_type[t.pair_a[p]], t.shape_type[t.pair_b[p]]) && f.kind == kVertexFace && f.v[1] >= 0;
}

// ---- one step ------------------------------------------------------------------------------------------------------------
inline int step_size(const World& w, const Scratch<double>& s) { return w.t.nq + w.t.nv + 3 * s.rw.count[0]; }

// x += J^T lam of all blocks
template <class T> void add_J(const Rows<T>& rw, const T* lam, T* x) {
  for (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    for (int j = 0; j < s.n; j++)
      for (int k = 0; k < s.m; k++) x[s.col[k]] += rw.J[s.J + j * s.m + k] * lam[s.r + j];
  }
}

// impulses of the blocks, zero for those of joints
template <class T> void add_impulses(const Rows<T>& rw, std::vector<T>& y) {
  for (int i = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i];
    Vec3<T> f = zero3<T>();
    if (rw.kind[i] == kContactRows) f = rw.lam[r] * rw.C[i].r0 + rw.lam[r + 1] * rw.C[i].r1 + third(rw, rw.lam + r) * rw.C[i].r2;
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
  add_J(s.rw, s.rw.lam, dv.data());
  Duals answer(t.ne);
  constrained_solve(t, s.tr, s.rw, dv.data(), answer.data());
  y.resize(t.nq + t.nv);
  for (int d = 0; d < t.nv; d++) y[t.nq + d] = s.rw.v_star[d] + dv[d];
  if (t.ne) project(t, View<Dual<double>>(w, x).th, s.tr, s.rw.eq, x[w.at_h()], x[w.at_h()], s.o.project, y.data() + t.nq);
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
