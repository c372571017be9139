// Random scenes with ties, couplings and servos: every kind of lock, between any two bodies and to the world, loops within a tree and
// between trees; actuators on dofs and on hinges and slides; beside what scene.h has.
#pragma once
#include "scene.h"

namespace test {

// What a scene has besides the Parts of scene.h
struct TieParts {
  int ties = 4, couplings = 2, motors = 3;  // motors: on each hinge or slide at most one
  double off = 0.01;                        // how far the frames are apart, m and rad; above 1: anywhere
};

// the kinds that a user has a name for, then mixtures of locks
inline std::vector<int> random_locks(int kind, Random& rng) {
  static const std::vector<std::vector<int>> named = {{0, 1, 2}, {0, 1, 2, 4, 5, 6}, {0, 1, 2, 8, 9}, {0, 1, 4, 5, 6}, {3}};
  if (kind < int(named.size())) return named[kind];
  std::vector<int> locks;
  for (int i = 0; i < 3; i++)
    if (rng.below(2)) locks.push_back(i);
  int turns = rng.below(4);  // none, those of a weld, or alignments
  if (turns == 1) locks.insert(locks.end(), {kLockTurn, kLockTurn + 1, kLockTurn + 2});
  if (turns >= 2 || locks.empty()) {
    int r = rng.below(3), k = rng.below(2);
    locks.push_back(kLockAlign + 2 * r + k);
    if (rng.below(2)) locks.push_back(kLockAlign + 2 * ((r + 1) % 3) + rng.below(2));
  }
  if (locks.size() < 6 && rng.below(4) == 0) locks.push_back(kLockDistance);
  return locks;
}

inline bool moves(const TreeStorage& tree, int a, int b) {
  std::vector<int> list = tree.dofs_between(a, b), signs = tree.signs(list, a, b);
  for (int s : signs)
    if (s) return true;
  return false;
}

// one more tie. A distance that is given is one kind; a lock list may hold one too
inline void add_tie(Structure& s, int a, int b, const std::vector<int>& locks, int axis = kNoAxis) {
  if (s.tie_first.empty()) s.tie_first.push_back(0);
  s.tie_a.push_back(a), s.tie_b.push_back(b), s.tie_axis.push_back(axis);
  s.lock.insert(s.lock.end(), locks.begin(), locks.end());
  s.tie_first.push_back(int(s.lock.size()));
}

inline void add_motor(Structure& s, int dof, int tie, int type, Random& rng) {
  int clips = 0, bounds = 0;
  for (int c : s.clip) clips += c >= 0;
  for (int c : s.bound) bounds += c >= 0;
  s.motor_tie.resize(s.motor_dof.size(), -1);
  s.motor_dof.push_back(dof), s.motor_tie.push_back(tie), s.actuator.push_back(type);
  s.clip.push_back(rng.below(2) ? clips : -1), s.bound.push_back(type == kServo || rng.below(2) ? bounds : -1);
}

// bodies from -1, the world, to the last. No pair is tied twice by many rows: nothing would be left to move
inline void add_ties(Structure& s, const TieParts& parts, Random& rng) {
  TreeStorage tree(s);
  int nb = int(s.parent.size());
  for (int tries = 0; int(s.tie_a.size()) < parts.ties && tries < 1000; tries++) {
    int a = rng.below(nb + 1) - 1, b = rng.below(nb + 1) - 1, kind = rng.below(8);
    if (a == b || !moves(tree, a, b)) continue;
    add_tie(s, a, b, random_locks(kind, rng), kind == 2 ? kHingeAxis : kind == 3 ? kSlideAxis : kNoAxis);
  }
  std::vector<int> plain;
  for (int d = 0; d < tree.nv; d++)
    if (tree.coordinate(d) >= 0) plain.push_back(d);
  for (int k = 0; k < parts.couplings && plain.size() > 1; k++) {
    int i = rng.below(int(plain.size())), j = rng.below(int(plain.size()) - 1);
    s.coupling_dof1.push_back(plain[i]), s.coupling_dof2.push_back(rng.below(4) ? plain[j + (j >= i)] : -1);
  }
  int motors = 0;
  for (size_t k = 0; k < s.tie_a.size(); k++)
    if (s.tie_axis[k] && motors++ < parts.motors) add_motor(s, -1, int(k), rng.below(4), rng);
  for (int i = 0; i < 2 && parts.motors && !plain.empty(); i++)
    add_motor(s, plain[rng.below(int(plain.size()))], -1, kServo, rng);
}

// a frame of the world or a body: where, and how turned
struct Frame {
  Vec3<double> p;
  Quat<double> q;
};
inline Frame compose(Frame a, Frame b) { return {a.p + mul(matrix(a.q), b.p), mul(a.q, b.q)}; }
inline Frame inverse(Frame a) { return {-tmul(matrix(a.q), a.p), conj(a.q)}; }
inline Frame body_frame(const World& w, const Scratch<double>& s, int b) {
  if (b < 0) return {{0, 0, 0}, {1, 0, 0, 0}};
  return {s.tr.origin[w.t.root[b]] + s.tr.p[b], s.tr.quat[b]};
}

// frames that almost coincide, lengths and polynomials that almost fit
inline void place_ties(World& w, double off, Random& rng) {
  const Tree& t = w.t;
  Scratch<double> s(t);
  View<double> a(w, w.x);
  Params<double> th = w.theta();
  normalise(t, a.in.q, s.tr.q), kinematics(t, a.th, s.tr);
  for (int k = 0; k < t.n_tie; k++) {
    Frame A = {random_vec(rng, 0.5), random_quat(rng)}, at = compose(body_frame(w, s, t.tie_a[k]), A);
    bool apart = false;
    for (int r = w.storage.s.tie_first[k]; r < w.storage.s.tie_first[k + 1]; r++)
      apart = apart || w.storage.s.lock[r] == kLockDistance;
    Frame gap = {random_vec(rng, off), quat_exp(random_vec(rng, off))};
    if (off > 1) gap = {random_vec(rng, 2), random_quat(rng)};
    if (apart) gap.p = {0.3, 0.4 + off * 0.1, -0.2};
    Frame B = compose(inverse(body_frame(w, s, t.tie_b[k])), compose(at, gap));
    th.tie_pos[2 * k] = A.p, th.tie_quat[2 * k] = A.q, th.tie_pos[2 * k + 1] = B.p, th.tie_quat[2 * k + 1] = B.q;
    th.tie_length[k] = apart ? std::sqrt(dot(gap.p, gap.p)) + off * rng.uniform() * 0.1 : 1;
    th.tie_softness[k] = rng.below(2) ? 0 : rng.uniform(1e-6, 1e-4);
    for (int f : {2 * k, 2 * k + 1}) {  // users need not normalise
      double size = rng.uniform(0.5, 2);
      Quat<double>& q = th.tie_quat[f];
      q = {size * q.w, size * q.x, size * q.y, size * q.z};
    }
  }
  for (int k = 0; k < t.n_coupling; k++) {
    double phi, slope, *c = th.coupling[k].c;
    th.coupling_softness[k] = rng.below(2) ? 0 : rng.uniform(1e-6, 1e-4);
    for (int i = 1; i < 5; i++) c[i] = rng.uniform();
    coupling_row(t, w.theta(), s.tr.q, k, phi, slope);
    c[0] += phi + off * rng.uniform();
  }
}

// a servo moves both ways with the same force, some with more than they need; some are almost where they want to be. Motors are weak
inline void place_actuators(World& w, Random& rng) {
  Params<double> th = w.theta();
  for (int k = 0; k < w.t.nu; k++) {
    int i = w.t.bound[k];
    if (w.t.actuator[k] == kMotor && i >= 0) th.force_lower[i] *= 0.1, th.force_upper[i] *= 0.1;
    if (w.t.actuator[k] != kServo) continue;
    th.force_upper[i] *= rng.below(2) ? 1 : 1000, th.force_lower[i] = -th.force_upper[i];
    double x = w.t.motor_q[k] < 0 ? 0 : w.x[w.t.motor_q[k]];
    if (rng.below(2)) w.x[w.at_u() + k] = th.gear[k] * x + rng.uniform(-0.05, 0.05);
  }
}

inline World tie_scene(const Parts& parts, const TieParts& ties, int form, Random& rng) {
  Structure s = scene_structure(parts, form, rng);
  add_ties(s, ties, rng);
  World w = scene_world(s, parts, rng);
  place_ties(w, ties.off, rng), place_actuators(w, rng);
  return w;
}

// an arm of hinges and slides that holds on to the world at its other end, with two free bodies on it and coupled joints. Nothing is redundant
inline World closed_arm(int form, Random& rng) {
  Structure s;
  s.form = form;
  for (int b = 0; b < 7; b++) s.parent.push_back(b - 1), s.joint.push_back(b % 3 == 1 ? kPrismatic : kRevolute);
  for (int b = 0; b < 2; b++) s.parent.push_back(-1), s.joint.push_back(kFree);
  add_tie(s, -1, 6, {0, 1, 2}), add_tie(s, 6, 7, {0, 1, 2, 8, 9}, kHingeAxis), add_tie(s, 8, 7, {3});
  s.coupling_dof1 = {0, 2}, s.coupling_dof2 = {1, -1};
  World w(s, true, rng);
  place_ties(w, 0.1, rng);
  return w;
}

// a scene's trial: which parts it has changes from one to the next
inline World tie_trial(int trial, double off, Random& rng) {
  Parts parts;
  TieParts ties;
  parts.limits = parts.dry = parts.servos = trial % 3 != 0, parts.shapes = trial % 4 != 1;
  parts.moving_plane = trial % 7 == 3;
  ties.ties = trial % 5 + (trial % 5 == 0 && trial % 2), ties.couplings = trial % 3, ties.motors = trial % 4 ? 3 : 0;
  if (!ties.ties && !ties.couplings) ties.ties = 6;
  ties.off = off;
  return tie_scene(parts, ties, trial / 2 % 2, rng);
}

}  // namespace test
