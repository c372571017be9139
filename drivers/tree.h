// TreeStorage: owns the integers behind a Tree, and derives the index tables from parents and joint types.
#pragma once
#include <vector>

#include "../core/data/params.h"

namespace costate {

struct TreeStorage {
  std::vector<int> parent, root, joint, q_adr, v_adr, dof_body, dof_parent, dof_depth, row_adr, row_dof, col_adr, col_dof,
      motor_dof;
  int nq = 0, nv = 0, form = kSparse;

  // form < 0: choose the cheaper one
  TreeStorage(std::vector<int> parent_, std::vector<int> joint_, std::vector<int> motor_dof_, int form_ = -1)
      : parent(std::move(parent_)), joint(std::move(joint_)), motor_dof(std::move(motor_dof_)) {
    int nb = int(parent.size());
    std::vector<int> last(nb);  // the last dof of a body or of its nearest ancestor that has one
    for (int b = 0; b < nb; b++) {
      int P = parent[b];
      root.push_back(P < 0 ? b : root[P]);
      q_adr.push_back(nq);
      v_adr.push_back(nv);
      last[b] = P < 0 ? -1 : last[P];
      for (int i = 0; i < joint_nv(joint[b]); i++, nv++) {
        dof_body.push_back(b);
        dof_parent.push_back(last[b]);
        dof_depth.push_back(last[b] < 0 ? 0 : dof_depth[last[b]] + 1);
        last[b] = nv;
      }
      nq += joint_lin(joint[b]) + (joint_turns(joint[b]) ? 4 : 0);
    }
    form = form_ >= 0 ? form_ : cheaper_form();
    if (form == kSparse) fill_rows();
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

  Tree view() const {
    return {int(parent.size()),
            nq,
            nv,
            int(motor_dof.size()),
            int(row_dof.size()),
            form,
            parent.data(),
            root.data(),
            joint.data(),
            q_adr.data(),
            v_adr.data(),
            dof_body.data(),
            dof_parent.data(),
            dof_depth.data(),
            row_adr.data(),
            row_dof.data(),
            col_adr.data(),
            col_dof.data(),
            motor_dof.data()};
  }
};

// A tree as Python holds it
struct PyTree {
  TreeStorage storage;
  Tree tree;
  std::vector<int> massless;
  PyTree(std::vector<int> parent, std::vector<int> joint, std::vector<int> motor_dof, std::vector<int> massless_, int form)
      : storage(std::move(parent), std::move(joint), std::move(motor_dof), form),
        tree(storage.view()),
        massless(std::move(massless_)) {}
};

}  // namespace costate
