// PairTables: pairs of shapes that may touch, in the order in which the core goes through them; vertices, edges and faces of all shapes.
#pragma once
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "../core/data/params.h"
#include "solids.h"

namespace costate {

// With more pairs of lone bodies than this, or of bodies that constraints tie together, all contacts share one group: slots of many groups are
// rarely full in all lanes. And worlds of lone bodies run one by one: with 10 boxes the factors of 8 lanes, each with its own contacts, took 4 times
// as long as those of 8 worlds. Robots keep to themselves
constexpr int kMostGroups = 8;
// Contacts of one world, unless the user says otherwise: of a robot, and per tree where there are many
constexpr int kMaxContacts = 48, kContactsPerTree = 12;
// Rows above which a world is swept without matrices (ops/large.h), and pairs above which not all of them can be near at once
constexpr int kLargeRows = 768, kAllPairs = 1024;

struct PairTables {
  std::vector<int> a, b, first, group, shown;  // shown: the pair of the user's list
  std::vector<int> partner_adr, partner;
  int nk = 0, n_groups = 0, most_points = 0, kinds = 0;
  bool many = false, alone = false;  // all in one group; many lone bodies

  // order: a plane or field comes first; pairs of the same two trees are neighbours, in the order of their first pair.   lone: of each shape, whether
  // its tree is one body that nothing ties to another, or the world; tied: whether something does; one_group: < 0 chosen
  void fill(const std::vector<int>& pair_a, const std::vector<int>& pair_b, const std::vector<int>& type,
            const std::vector<int>& tree, const std::vector<int>& lone, const std::vector<int>& tied, int one_group) {
    std::map<std::pair<int, int>, int> known;
    std::vector<int> key(pair_a.size()), order(pair_a.size());
    std::vector<int> side_a = pair_a, side_b = pair_b;
    int loose = 0, held = 0;
    for (size_t p = 0; p < key.size(); p++) {
      auto flat = [&](int s) { return type[s] == kPlane || type[s] == kField; };
      if (flat(side_b[p])) std::swap(side_a[p], side_b[p]);
      auto trees = std::make_pair(tree[side_a[p]], tree[side_b[p]]);  // in this order: x_a and x_b count from these trees
      auto at = known.insert({trees, int(known.size())});
      key[p] = at.first->second, loose += at.second && lone[side_a[p]] && lone[side_b[p]];
      held += at.second && (tied[side_a[p]] || tied[side_b[p]]);
    }
    alone = one_group >= 0 ? one_group : loose > kMostGroups;
    many = alone || (one_group < 0 && held > kMostGroups);
    n_groups = many ? 1 : int(known.size());
    std::iota(order.begin(), order.end(), 0);
    if (!many) std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return key[i] < key[j]; });
    for (int p : order) {
      a.push_back(side_a[p]), b.push_back(side_b[p]), shown.push_back(p), group.push_back(many ? 0 : key[p]), first.push_back(nk);
      int points = pair_points(type[a.back()], type[b.back()]);
      nk += points, most_points = std::max(most_points, points), kinds |= pair_kind(type[a.back()], type[b.back()]);
    }
    first.push_back(nk);
    fill_partners(int(type.size()));
  }

  void fill_partners(int ns) {
    auto low = [&](int p) { return std::min(a[p], b[p]); };
    auto high = [&](int p) { return std::max(a[p], b[p]); };
    partner.resize(a.size());
    std::iota(partner.begin(), partner.end(), 0);
    std::sort(partner.begin(), partner.end(),
              [&](int p, int q) { return std::make_pair(low(p), high(p)) < std::make_pair(low(q), high(q)); });
    partner_adr.assign(ns + 1, 0);
    for (size_t p = 0; p < a.size(); p++) partner_adr[low(int(p)) + 1]++;
    for (int s = 0; s < ns; s++) partner_adr[s + 1] += partner_adr[s];
  }

  // the user's pair of every candidate
  std::vector<int> candidate_pair() const {
    std::vector<int> out;
    for (size_t p = 0; p < a.size(); p++) out.insert(out.end(), size_t(first[p + 1] - first[p]), shown[p]);
    return out;
  }

  // most candidates that one group can have
  std::vector<int> group_points() const {
    std::vector<int> n(n_groups);
    for (size_t p = 0; p < a.size(); p++) n[group[p]] += first[p + 1] - first[p];
    return n;
  }
};

// The hulls and fields of a model as Python gives them, one entry per hull or field in the order of shapes
struct ShapeLists {
  std::vector<int> hull_vertices, hull_faces, hull_loop_size, hull_loop, hull_plane, field_nx, field_ny;
};

struct SolidStorage {
  std::vector<int> numbers, adr, n, hull_adr, height_adr, field_nx, field_ny;
  int n_vertex = 0, n_height = 0;

  void fill(const std::vector<int>& type, const ShapeLists& lists) {
    size_t hull = 0, field = 0, face = 0, at = 0;
    std::map<int, std::pair<std::vector<int>, std::vector<int>>> shared;  // boxes, and cylinders, have the same tables
    for (int kind : type) {
      hull_adr.push_back(-1), height_adr.push_back(-1), field_nx.push_back(0), field_ny.push_back(0);
      if (kind == kField) {
        field_nx.back() = lists.field_nx[field], field_ny.back() = lists.field_ny[field];
        height_adr.back() = n_height, n_height += field_nx.back() * field_ny.back(), field++;
      }
      auto known = shared.find(kind);
      if (kind == kPolygon) {
        int vertices = lists.hull_vertices[hull];
        hull_adr.back() = n_vertex, n_vertex += vertices, hull++;
        add(SolidTables(), vertices);
      } else if (kind == kHull) {
        int faces = lists.hull_faces[hull], vertices = lists.hull_vertices[hull++];
        auto from = lists.hull_loop_size.begin() + long(face);
        std::vector<int> sizes(from, from + faces),
            plane(lists.hull_plane.begin() + long(3 * face), lists.hull_plane.begin() + long(3 * (face + size_t(faces))));
        int total = std::accumulate(sizes.begin(), sizes.end(), 0);
        std::vector<int> loop(lists.hull_loop.begin() + long(at), lists.hull_loop.begin() + long(at) + total);
        hull_adr.back() = n_vertex, n_vertex += vertices, face += size_t(faces), at += size_t(total);
        add(hull_tables(vertices, sizes, loop, plane), vertices);
      } else if (known != shared.end()) {
        adr.insert(adr.end(), known->second.first.begin(), known->second.first.end());
        n.insert(n.end(), known->second.second.begin(), known->second.second.end());
      } else {
        add(tables_of(kind), vertices_of(kind));
        shared[kind] = {{adr.end() - 4, adr.end()}, {n.end() - 3, n.end()}};
      }
    }
  }

  static int vertices_of(int kind) {
    return kind == kPlane       ? 3
           : kind == kSphere    ? 1
           : kind == kCapsule   ? 2
           : kind == kBox       ? 8
           : kind == kCylinder  ? 32
           : kind == kRectangle ? 4
                                : 0;
  }
  static SolidTables tables_of(int kind) {
    if (kind == kBox) return box_tables();
    if (kind == kCylinder) return cylinder_tables();
    SolidTables t;
    t.loop_adr = {0};
    if (kind == kCapsule) t.edge = {0, 1, -1, -1};
    return t;
  }
  void add(const SolidTables& t, int vertices) {
    n.push_back(vertices), n.push_back(int(t.loop_adr.size()) - 1), n.push_back(int(t.edge.size()) / 4);
    for (const std::vector<int>* table : {&t.loop_adr, &t.loop, &t.plane, &t.edge}) {
      adr.push_back(int(numbers.size()));
      numbers.insert(numbers.end(), table->begin(), table->end());
    }
  }
};

}  // namespace costate
