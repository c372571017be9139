// TreeStorage: owns the integers behind a Tree, and derives the index tables from what Python says about a model.
#pragma once
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "../core/data/params.h"
#include "elimination.h"

namespace costate {

// A model's structure as Python gives it; lists that are left empty mean "none", or motors without limits
struct Structure {
  std::vector<int> parent, joint, motor_dof, massless;
  int form = -1;  // < 0: choose the cheaper one
  std::vector<int> actuator, clip, bound;
  std::vector<int> limit_body, limit_dof, dry_dof;
  std::vector<int> shape_body, shape_type, pair_a, pair_b;
  int friction_rule = kGeometric, restitution_rule = kGeometric;
  int max_contacts = -1;  // < 0: all candidates, at most kMaxContacts
  std::vector<int> tie_a, tie_b, tie_axis, tie_first, lock;
  std::vector<int> coupling_dof1, coupling_dof2;
  std::vector<int> motor_tie;
};

constexpr int kMaxContacts = 48;

struct TreeStorage {
  Structure s;
  std::vector<int> root, joined, q_adr, v_adr, dof_body, dof_parent, dof_depth, row_adr, row_dof, col_adr, col_dof, last_dof;
  std::vector<int> motor_q, row_motor, servo, limit_order, limit_group_adr, coupling_dof, coupling_q;
  EqualityTables equality;
  std::vector<int> touch_a, touch_b, touch_point, touch_pair, group_adr;
  int nq = 0, nv = 0, form = kSparse, n_clip = 0, n_bound = 0, n_servo = 0, max_contacts = 0, max_slots = 0, tree_rows = 0;

  TreeStorage(std::vector<int> parent, std::vector<int> joint, std::vector<int> motor_dof, int form_ = -1)
      : TreeStorage(plain(std::move(parent), std::move(joint), std::move(motor_dof), form_)) {}

  explicit TreeStorage(Structure structure) : s(std::move(structure)) {
    int nb = int(s.parent.size());
    for (int b = 0; b < nb; b++) {
      int P = s.parent[b], last = P < 0 ? -1 : last_dof[P];
      root.push_back(P < 0 ? b : root[P]);
      q_adr.push_back(nq);
      v_adr.push_back(nv);
      for (int i = 0; i < joint_nv(s.joint[b]); i++, nv++) {
        dof_body.push_back(b);
        dof_parent.push_back(last);
        dof_depth.push_back(last < 0 ? 0 : dof_depth[last] + 1);
        last = nv;
      }
      last_dof.push_back(last);
      nq += joint_lin(s.joint[b]) + (joint_turns(s.joint[b]) ? 4 : 0);
    }
    form = s.form >= 0 ? s.form : cheaper_form();
    if (form == kSparse) fill_rows();
    fill_actuators();
    fill_limits();
    fill_candidates();
    fill_equality();
    tree_rows = most_rows();
  }

  static Structure plain(std::vector<int> parent, std::vector<int> joint, std::vector<int> motor_dof, int form) {
    Structure s;
    s.parent = std::move(parent), s.joint = std::move(joint), s.motor_dof = std::move(motor_dof), s.form = form;
    return s;
  }

  // The sparse factor takes 6 multiply-adds per row entry and depth^2 / 2 for the elimination, the articulated one as many for
  // every dof. Measured on chains (AVX-512, float64) they cross at 13 links in packs and at 28 in a scalar run: 115 puts it at 19.
  int cheaper_form() const {
    double sparse = 0;
    for (int depth : dof_depth) sparse += (depth + 1) * (6.0 + 0.5 * depth);
    return sparse < 115.0 * nv ? kSparse : kArticulated;
  }

  void fill_rows() {
    for (int d = 0; d < nv; d++) {
      row_adr.push_back(int(row_dof.size()));
      int at = int(row_dof.size()) + dof_depth[d];
      row_dof.resize(at + 1);
      for (int j = d; j >= 0; j = dof_parent[j]) row_dof[at--] = j;
    }
    std::vector<std::vector<int>> below(nv);
    for (int d = nv - 1; d >= 0; d--)
      for (int j = dof_parent[d]; j >= 0; j = dof_parent[j]) below[j].push_back(d);
    for (const std::vector<int>& column : below) {
      col_adr.push_back(int(col_dof.size()));
      col_dof.insert(col_dof.end(), column.begin(), column.end());
    }
    col_adr.push_back(int(col_dof.size()));
  }

  void fill_actuators() {
    size_t nu = s.motor_dof.size();
    s.actuator.resize(nu, kMotor), s.clip.resize(nu, -1), s.bound.resize(nu, -1), s.motor_tie.resize(nu, -1);
    for (size_t k = 0; k < nu; k++) {
      motor_q.push_back(s.motor_dof[k] < 0 ? -1 : coordinate(s.motor_dof[k]));
      servo.push_back(s.actuator[k] == kServo ? n_servo++ : -1);
      n_clip = std::max(n_clip, s.clip[k] + 1), n_bound = std::max(n_bound, s.bound[k] + 1);
    }
    for (size_t k = 0; k < nu; k++)
      if (s.motor_tie[k] >= 0 || (s.bound[k] >= 0 && s.actuator[k] != kMotor)) row_motor.push_back(int(k));
  }

  // the plain coordinate of a dof, -1 none
  int coordinate(int d) const {
    int b = dof_body[d], i = d - v_adr[b];
    return i < joint_lin(s.joint[b]) ? q_adr[b] + i : -1;
  }

  // the dofs that move body b against c, in order; in the articulated form all of their trees, where H^-1 J^T does not stay sparse
  std::vector<int> dofs_between(int b, int c) const {
    std::vector<int> mark(nv), list;
    for (int body : {b, c}) {
      for (int d = body < 0 ? -1 : last_dof[body]; d >= 0; d = dof_parent[d]) mark[d] = 1;
      for (int d = 0; form == kArticulated && body >= 0 && d < nv; d++)
        if (root[dof_body[d]] == root[body]) mark[d] = 1;
    }
    for (int d = 0; d < nv; d++)
      if (mark[d]) list.push_back(d);
    return list;
  }

  // of each dof in `list`: does it move b (+1) or a (-1), or both or none?
  std::vector<int> signs(const std::vector<int>& list, int a, int b) const {
    std::vector<int> sign(nv), out;
    for (int d = b < 0 ? -1 : last_dof[b]; d >= 0; d = dof_parent[d]) sign[d]++;
    for (int d = a < 0 ? -1 : last_dof[a]; d >= 0; d = dof_parent[d]) sign[d]--;
    for (int d : list) out.push_back(sign[d]);
    return out;
  }

  void join(const std::vector<int>& list) {
    for (size_t k = 1; k < list.size(); k++) {
      int keep = joined[dof_body[list[0]]], gone = joined[dof_body[list[k]]];
      for (int& j : joined)
        if (j == gone) j = keep;
    }
  }

  void fill_equality() {
    std::vector<std::vector<int>> lists, sides, locks;
    joined = root;
    for (size_t k = 0; k < s.tie_a.size(); k++) {
      lists.push_back(dofs_between(s.tie_a[k], s.tie_b[k]));
      sides.push_back(signs(lists.back(), s.tie_a[k], s.tie_b[k]));
      locks.emplace_back(s.lock.begin() + s.tie_first[k], s.lock.begin() + s.tie_first[k + 1]);
    }
    for (size_t k = 0; k < s.coupling_dof1.size(); k++) {
      int d = s.coupling_dof1[k], e = s.coupling_dof2[k];
      coupling_dof.push_back(d), coupling_dof.push_back(e);
      coupling_q.push_back(coordinate(d)), coupling_q.push_back(e < 0 ? -1 : coordinate(e));
      lists.push_back(dofs_between(dof_body[d], e < 0 ? -1 : dof_body[e]));
      sides.emplace_back(lists.back().size());
      locks.push_back({kLocks});
    }
    for (const std::vector<int>& list : lists) join(list);
    equality.fill(lists, sides, locks, nv);
  }

  // limits of one tree are neighbours
  void fill_limits() {
    for (size_t i = 0; i < s.limit_body.size(); i++) limit_order.push_back(int(i));
    auto tree = [&](int i) { return root[s.limit_body[i]]; };
    std::stable_sort(limit_order.begin(), limit_order.end(), [&](int i, int j) { return tree(i) < tree(j); });
    for (size_t k = 0; k < limit_order.size(); k++)
      if (k == 0 || tree(limit_order[k]) != tree(limit_order[k - 1])) limit_group_adr.push_back(int(k));
    limit_group_adr.push_back(int(limit_order.size()));
  }

  int tree_of_shape(int shape) const { return s.shape_body[shape] < 0 ? -1 : root[s.shape_body[shape]]; }

  // candidates of the same two trees are neighbours; groups in the order of their first pair
  void fill_candidates() {
    std::map<std::pair<int, int>, size_t> known;
    std::vector<std::vector<std::pair<int, int>>> groups;  // (pair, point)
    for (size_t p = 0; p < s.pair_a.size(); p++) {
      int &a = s.pair_a[p], &b = s.pair_b[p];
      if (s.shape_type[b] == kPlane) std::swap(a, b);
      std::pair<int, int> key = {tree_of_shape(a), tree_of_shape(b)};  // in this order: x_a and x_b count from these trees
      auto at = known.insert({key, groups.size()}).first;
      if (at->second == groups.size()) groups.emplace_back();
      bool capsules = s.shape_type[a] == kCapsule && s.shape_type[b] == kCapsule;
      int points = s.shape_type[a] == kPlane ? shape_points(s.shape_type[b]) : capsules ? 2 : 1;
      for (int i = 0; i < points; i++) groups[at->second].push_back({int(p), i});
    }
    group_adr.push_back(0);
    for (const auto& group : groups) {
      for (auto [pair, point] : group)
        touch_a.push_back(s.pair_a[pair]), touch_b.push_back(s.pair_b[pair]), touch_pair.push_back(pair),
            touch_point.push_back(point);
      group_adr.push_back(int(touch_a.size()));
    }
    int nk = int(touch_a.size());
    max_contacts = s.max_contacts < 0 ? std::min(nk, kMaxContacts) : std::min(nk, s.max_contacts);
    for (const auto& group : groups) max_slots += std::min(int(group.size()), max_contacts);
  }

  int most_rows() const {
    std::vector<int> n(s.parent.size());
    for (int d : s.dry_dof) n[root[dof_body[d]]]++;
    for (int k : row_motor) {
      int tie = s.motor_tie[k];
      if (tie < 0) n[root[dof_body[s.motor_dof[k]]]]++;
      for (int b : {tie < 0 ? -1 : s.tie_a[tie], tie < 0 ? -1 : s.tie_b[tie]})
        if (b >= 0) n[root[b]]++;
    }
    for (int b : s.limit_body) n[root[b]]++;
    for (size_t g = 0; g + 1 < group_adr.size(); g++) {
      int k = group_adr[g], rows = 3 * std::min(group_adr[g + 1] - k, max_contacts);
      for (int tree : {tree_of_shape(touch_a[k]), tree_of_shape(touch_b[k])})
        if (tree >= 0) n[tree] += rows;
    }
    return n.empty() ? 0 : *std::max_element(n.begin(), n.end());
  }

  Tree view() const {
    Tree t{};
    t.nb = int(s.parent.size()), t.nq = nq, t.nv = nv, t.nu = int(s.motor_dof.size()), t.nm = int(row_dof.size()), t.form = form;
    t.parent = s.parent.data(), t.root = root.data(), t.joined = joined.data(), t.joint = s.joint.data(), t.q_adr = q_adr.data(),
    t.v_adr = v_adr.data();
    t.dof_body = dof_body.data(), t.dof_parent = dof_parent.data(), t.dof_depth = dof_depth.data();
    t.row_adr = row_adr.data(), t.row_dof = row_dof.data(), t.col_adr = col_adr.data(), t.col_dof = col_dof.data();
    t.last_dof = last_dof.data();
    t.motor_dof = s.motor_dof.data(), t.motor_q = motor_q.data(), t.actuator = s.actuator.data();
    t.clip = s.clip.data(), t.bound = s.bound.data(), t.n_clip = n_clip, t.n_bound = n_bound,
    t.n_row_motor = int(row_motor.size());
    t.n_limit = int(s.limit_body.size()), t.n_dry = int(s.dry_dof.size()), t.row_motor = row_motor.data();
    t.limit_body = s.limit_body.data(), t.limit_dof = s.limit_dof.data(), t.dry_dof = s.dry_dof.data();
    t.limit_order = limit_order.data();
    t.ns = int(s.shape_body.size()), t.nk = int(touch_a.size());
    t.shape_body = s.shape_body.data(), t.shape_type = s.shape_type.data();
    t.touch_a = touch_a.data(), t.touch_b = touch_b.data(), t.touch_point = touch_point.data();
    t.n_groups = int(group_adr.size()) - 1, t.group_adr = group_adr.data();
    t.n_limit_groups = int(limit_group_adr.size()) - 1, t.limit_group_adr = limit_group_adr.data();
    t.max_contacts = max_contacts, t.max_slots = max_slots, t.tree_rows = tree_rows;
    t.friction_rule = s.friction_rule, t.restitution_rule = s.restitution_rule;
    view_equality(t);
    return t;
  }

  void view_equality(Tree& t) const {
    const EqualityTables& e = equality;
    t.motor_tie = s.motor_tie.data(), t.n_servo = n_servo, t.servo = servo.data();
    t.n_tie = int(s.tie_a.size()), t.n_coupling = int(s.coupling_dof1.size()), t.n_item = int(e.item.size()),
    t.ne = int(e.lock.size());
    t.tie_a = s.tie_a.data(), t.tie_b = s.tie_b.data(), t.tie_axis = s.tie_axis.data();
    t.coupling_dof = coupling_dof.data(), t.coupling_q = coupling_q.data();
    t.item = e.item.data(), t.item_row = e.item_row.data(), t.lock = e.lock.data(), t.shown_row = e.shown_row.data();
    t.item_list_adr = e.item_list_adr.data(), t.item_list = e.item_list.data(), t.item_sign = e.item_sign.data(),
    t.item_J = e.item_J.data();
    t.dof_item_adr = e.dof_item_adr.data(), t.dof_item = e.dof_item.data();
    t.diag_adr = e.diag_adr.data(), t.fill_adr = e.fill_adr.data(), t.fill_item = e.fill_item.data();
    t.fill_block = e.fill_block.data(), t.update_adr = e.update_adr.data(), t.update = e.update.data();
  }
};

// A tree as Python holds it
struct PyTree {
  TreeStorage storage;
  Tree tree;
  explicit PyTree(Structure structure) : storage(std::move(structure)), tree(storage.view()) {}
};

}  // namespace costate
