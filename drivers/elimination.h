// The order in which equality rows are eliminated, and where their factor has numbers: block by block, along the graph of the constraints.
//
// Two items (ties, couplings) are neighbours if a dof moves both: then A = J H^-1 J^T has a block between them. Whoever has the fewest
// neighbours left goes first; its neighbours become neighbours of each other. Along a chain of bodies nothing is added at all.
#pragma once
#include <algorithm>
#include <set>
#include <vector>

namespace costate {

struct Elimination {
  std::vector<int> order;               // items, first eliminated first
  std::vector<std::vector<int>> below;  // [k] places in `order`, after k, that have a block in column k
};

// lists: the dofs that move each item
inline Elimination eliminate(const std::vector<std::vector<int>>& lists, int nv) {
  int n = int(lists.size());
  std::vector<std::vector<int>> on_dof(nv);
  for (int i = 0; i < n; i++)
    for (int d : lists[i]) on_dof[d].push_back(i);
  std::vector<std::set<int>> near(n);
  for (const std::vector<int>& items : on_dof)
    for (int i : items)
      for (int j : items)
        if (i != j) near[i].insert(j);
  std::set<std::pair<size_t, int>> queue;  // (neighbours left, item)
  for (int i = 0; i < n; i++) queue.insert({near[i].size(), i});
  Elimination e;
  std::vector<int> place(n);
  std::vector<std::set<int>> column;
  while (!queue.empty()) {
    int i = queue.begin()->second;
    queue.erase(queue.begin());
    place[i] = int(e.order.size());
    e.order.push_back(i);
    column.push_back(near[i]);
    for (int j : near[i]) {
      queue.erase({near[j].size(), j});
      near[j].erase(i);
      for (int k : near[i])
        if (k != j) near[j].insert(k);
      queue.insert({near[j].size(), j});
    }
  }
  for (const std::set<int>& items : column) {
    e.below.emplace_back();
    for (int j : items) e.below.back().push_back(place[j]);
    std::sort(e.below.back().begin(), e.below.back().end());
  }
  return e;
}

// Where things are in memory: the tables of Tree about equality rows, in the order of elimination
struct EqualityTables {
  std::vector<int> item, item_row, lock, item_list_adr, item_list, item_sign, item_J, dof_item_adr, dof_item;
  std::vector<int> diag_adr, fill_adr, fill_item, fill_block, update_adr, update;
  std::vector<int> shown_row;  // [ne] the row's number as the user counts: ties in order, then couplings

  // signs, locks: of each item, in the user's order
  void fill(const std::vector<std::vector<int>>& lists, const std::vector<std::vector<int>>& signs,
            const std::vector<std::vector<int>>& locks, int nv) {
    Elimination e = eliminate(lists, nv);
    int n = int(lists.size());
    std::vector<int> first(n + 1);
    for (int i = 0; i < n; i++) first[i + 1] = first[i] + int(locks[i].size());
    item_row = item_list_adr = item_J = {0};
    item = e.order;
    for (int i : e.order) {
      for (size_t r = 0; r < locks[i].size(); r++) lock.push_back(locks[i][r]), shown_row.push_back(first[i] + int(r));
      item_list.insert(item_list.end(), lists[i].begin(), lists[i].end());
      item_sign.insert(item_sign.end(), signs[i].begin(), signs[i].end());
      item_row.push_back(int(lock.size()));
      item_list_adr.push_back(int(item_list.size()));
      item_J.push_back(item_J.back() + int(locks[i].size() * lists[i].size()));
    }
    fill_dofs(nv);
    fill_blocks(e);
  }

 private:
  void fill_dofs(int nv) {
    std::vector<std::vector<int>> on(nv);
    for (size_t k = 0; k + 1 < item_list_adr.size(); k++)
      for (int c = item_list_adr[k]; c < item_list_adr[k + 1]; c++) on[item_list[c]].push_back(int(k));
    for (const std::vector<int>& items : on) {
      dof_item_adr.push_back(int(dof_item.size()));
      dof_item.insert(dof_item.end(), items.begin(), items.end());
    }
    dof_item_adr.push_back(int(dof_item.size()));
  }

  void fill_blocks(const Elimination& e) {
    int n = int(item.size()), numbers = 0;
    auto rows = [&](int k) { return item_row[k + 1] - item_row[k]; };
    for (int k = 0; k < n; k++) {
      diag_adr.push_back(numbers), fill_adr.push_back(int(fill_item.size()));
      numbers += rows(k) * rows(k);
      for (int j : e.below[k]) fill_item.push_back(j), fill_block.push_back(numbers), numbers += rows(j) * rows(k);
    }
    diag_adr.push_back(numbers), fill_adr.push_back(int(fill_item.size()));
    for (int i = 0; i < n; i++) {
      update_adr.push_back(int(update.size()));
      for (int j : e.below[i])
        for (int k : e.below[i])
          if (k <= j) update.push_back(block(j, k));
    }
    update_adr.push_back(int(update.size()));
  }

  int block(int j, int k) const {
    if (j == k) return diag_adr[k];
    auto at = std::lower_bound(fill_item.begin() + fill_adr[k], fill_item.begin() + fill_adr[k + 1], j);
    return fill_block[at - fill_item.begin()];
  }
};

}  // namespace costate
