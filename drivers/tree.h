// TreeStorage: owns the integers behind a Tree, and derives the index tables from what Python says about a model.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../core/data/params.h"
#include "elimination.h"
#include "pairs.h"
#include "tables.h"

namespace costate {

// A model's structure as Python gives it; lists that are left empty mean "none", or motors without limits
struct Structure {
  std::vector<int> parent, joint, motor_dof, massless;
  int form = -1;  // < 0: choose the cheaper one
  std::vector<int> actuator, clip, bound;
  std::vector<int> limit_body, limit_dof, dry_dof;
  std::vector<int> shape_body, shape_type, pair_a, pair_b;
  int friction_rule = kGeometric, restitution_rule = kGeometric;
  int max_contacts = -1;  // < 0: all candidates, at most kMaxContacts or kContactsPerTree
  std::vector<int> tie_a, tie_b, tie_axis, tie_first, lock;
  std::vector<int> coupling_dof1, coupling_dof2;
  std::vector<int> motor_tie;
  ShapeLists shapes;
  int large = -1;                      // < 0: more than kLargeRows rows and no equality rows
  int one_group = -1;                  // < 0: more than kMostGroups pairs of lone bodies
  int planar = 0;                      // 1: see Tree
  std::vector<int> shape_condim = {};  // see Tree::pair_dim, of which it is the larger of two
};

struct TreeStorage {
  Structure s;
  std::vector<int> root, joined, q_adr, v_adr, dof_body, dof_parent, dof_depth, row_adr, row_dof, col_adr, col_dof, last_dof;
  std::vector<int> level_adr, level_body;
  std::vector<int> motor_q, row_motor, servo, general, pair_dim, limit_order, limit_group_adr, coupling_dof, coupling_q;
  EqualityTables equality;
  PairTables pairs;
  SolidStorage solids;
  std::vector<int> tree_adr, tree_dof, tree_body_adr, tree_body;
  int nq = 0, nv = 0, form = kSparse, max_row = 0, n_clip = 0, n_bound = 0, n_servo = 0, n_general = 0, turns = 0,
      max_contacts = 0, max_slots = 0, tree_rows = 0, chained = 0;
  int max_near = 0, max_cand = 0, large = 0, max_list = 0;

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
    fill_levels();
    fill_actuators();
    fill_limits();
    fill_trees();
    fill_equality();
    fill_pairs();
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
      max_row = std::max(max_row, dof_depth[d] + 1);
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

  void fill_levels() {
    std::vector<std::vector<int>> levels;
    std::vector<size_t> level;
    for (size_t b = 0; b < s.parent.size(); b++) {
      level.push_back(s.parent[b] < 0 ? 0 : level[s.parent[b]] + 1);
      levels.resize(std::max(levels.size(), level[b] + 1));
      levels[level[b]].push_back(int(b));
    }
    for (const std::vector<int>& bodies : levels) {
      level_adr.push_back(int(level_body.size()));
      level_body.insert(level_body.end(), bodies.begin(), bodies.end());
    }
    level_adr.push_back(int(level_body.size()));
  }

  void fill_actuators() {
    size_t nu = s.motor_dof.size();
    s.actuator.resize(nu, kMotor), s.clip.resize(nu, -1), s.bound.resize(nu, -1), s.motor_tie.resize(nu, -1);
    for (size_t k = 0; k < nu; k++) {
      motor_q.push_back(s.motor_dof[k] < 0 ? -1 : coordinate(s.motor_dof[k]));
      servo.push_back(s.actuator[k] == kServo ? n_servo++ : -1);
      general.push_back(s.actuator[k] == kGeneral ? n_general++ : -1);
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

  // bodies and dofs of every tree
  void fill_trees() {
    size_t nb = s.parent.size();
    for (size_t r = 0; r <= nb; r++) {
      tree_adr.push_back(int(tree_dof.size())), tree_body_adr.push_back(int(tree_body.size()));
      if (r == nb || s.parent[r] >= 0) continue;
      for (size_t b = r; b < nb; b++) {
        if (root[b] != int(r)) continue;
        tree_body.push_back(int(b));
        for (int d = v_adr[b]; d < v_adr[b] + joint_nv(s.joint[b]); d++) tree_dof.push_back(d);
      }
    }
  }

  // rows of a contact, with those against turning
  int width() const { return (s.planar ? 2 : 3) + turns; }

  int tree_dofs(int tree) const { return tree < 0 ? 0 : tree_adr[tree + 1] - tree_adr[tree]; }

  void fill_pairs() {
    std::vector<int> tree, lone, tied;
    for (size_t i = 0; i < s.shape_body.size(); i++) {
      int r = tree_of_shape(int(i));
      bool held = false;
      for (size_t b = 0; r >= 0 && b < root.size(); b++) held |= root[b] != r && joined[b] == joined[r];
      tree.push_back(r), tied.push_back(held), lone.push_back(r < 0 || (tree_body_adr[r + 1] - tree_body_adr[r] == 1 && !held));
    }
    pairs.fill(s.pair_a, s.pair_b, s.shape_type, tree, lone, tied, s.one_group);
    chained = !equality.lock.empty();
    for (size_t p = 0; p < pairs.a.size(); p++) {
      int a = tree[pairs.a[p]], b = tree[pairs.b[p]];
      chained |= a >= 0 && b >= 0 && a != b;
    }
    solids.fill(s.shape_type, s.shapes);
    s.shape_condim.resize(s.shape_body.size(), 3);
    for (size_t p = 0; p < pairs.a.size(); p++) {
      pair_dim.push_back(std::max(s.shape_condim[pairs.a[p]], s.shape_condim[pairs.b[p]]));
      turns = std::max(turns, s.planar || pair_dim[p] < 4 ? 0 : pair_dim[p] < 6 ? 1 : 3);
    }
    std::vector<int> moving = tree;
    std::sort(moving.begin(), moving.end());
    int trees = int(std::unique(moving.begin(), moving.end()) - moving.begin()), np = int(pairs.a.size());
    max_contacts = std::min(pairs.nk, s.max_contacts < 0 ? std::max(kMaxContacts, kContactsPerTree * trees) : s.max_contacts);
    for (int points : pairs.group_points()) max_slots += std::min(points, max_contacts);
    int rows = int(s.limit_body.size() + s.dry_dof.size() + row_motor.size());
    large = s.large >= 0 ? s.large : width() * max_contacts + rows > kLargeRows && equality.lock.empty();
    max_near = np <= kAllPairs ? np : std::min(np, std::max(kAllPairs, 16 * int(tree.size())));
    max_cand = np <= kAllPairs ? pairs.nk : std::min(pairs.nk, 4 * max_near + pairs.most_points * int(tree.size()));
    max_list = most_dofs();
  }

  // most dofs that move one row
  int most_dofs() const {
    bool whole = form == kArticulated || large;
    auto above = [&](int body) {
      return body < 0 ? 0 : whole ? tree_dofs(root[body]) : last_dof[body] < 0 ? 0 : dof_depth[last_dof[body]] + 1;
    };
    int most = 0;
    for (size_t p = 0; p < pairs.a.size(); p++)
      most = std::max(most, above(s.shape_body[pairs.a[p]]) + above(s.shape_body[pairs.b[p]]));
    for (int d : s.dry_dof) most = std::max(most, above(dof_body[d]));
    for (int b : s.limit_body) most = std::max(most, above(b));
    for (int k : row_motor) {
      int tie = s.motor_tie[k];
      most = std::max(most, tie < 0 ? above(dof_body[s.motor_dof[k]]) : above(s.tie_a[tie]) + above(s.tie_b[tie]));
    }
    return most;
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
    std::map<std::pair<int, int>, int> points;
    for (size_t p = 0; p < pairs.a.size(); p++)
      points[{tree_of_shape(pairs.a[p]), tree_of_shape(pairs.b[p])}] += pairs.first[p + 1] - pairs.first[p];
    for (auto [trees, count] : points)
      for (int tree : {trees.first, trees.second})
        if (tree >= 0) n[tree] += width() * std::min(count, max_contacts);
    return n.empty() ? 0 : *std::max_element(n.begin(), n.end());
  }

  Tree view() const {
    Tree t{};
#define CS_SET(name, from) t.name = int(from);
    CS_COUNTS(CS_SET)
#undef CS_SET
#define CS_SET(name, from) t.name = from.data();
    CS_TABLES(CS_SET)
#undef CS_SET
    return t;
  }

  // the same by name
  std::map<std::string, int> counts() const {
    std::map<std::string, int> all;
#define CS_SET(name, from) all[#name] = int(from);
    CS_COUNTS(CS_SET)
#undef CS_SET
    return all;
  }
  std::map<std::string, std::vector<int>> tables() const {
    std::map<std::string, std::vector<int>> all;
#define CS_SET(name, from) all[#name] = from;
    CS_TABLES(CS_SET)
#undef CS_SET
    return all;
  }
};

// A tree as Python holds it
struct PyTree {
  TreeStorage storage;
  Tree tree;
  explicit PyTree(TreeStorage tables) : storage(std::move(tables)), tree(storage.view()) {}
};

}  // namespace costate
