// slots.h and the driver's groups: who gets rows, in which order, what a full buffer drops, and which blocks hang together.
#include <map>
#include <set>

#include "scene.h"
using namespace test;

using Vector = std::vector<double>;
using Items = std::vector<std::pair<int, int>>;  // (kind, item as users count them) of a lane, in the order of its blocks

// a world or a pack after one step
template <class T> struct Stepped {
  Scratch<T> s;
  std::vector<T> y;
  Stepped(const World& w, const std::vector<T>& x, double dirt = 1e30) : s(w.t, dirt) { step_of(w, x, s, y); }
};

template <class T> static int item_of(const Tree& t, const Rows<T>& rw, int i, int l) {
  int item = rw.item[i][l];
  return item >= 0 && rw.kind[i] == kContactRows ? shown(t, rw, item) : item;
}
template <class T> static Items items(const Tree& t, const Rows<T>& rw, int l) {
  Items all;
  for (int i = 0; i < rw.count[0]; i++)
    if (rw.item[i][l] >= 0) all.push_back({rw.kind[i], item_of(t, rw, i, l)});
  return all;
}
static std::vector<int> of_kind(const Items& all, int kind) {
  std::vector<int> some;
  for (auto [k, item] : all)
    if (k == kind) some.push_back(item);
  return some;
}

// ---- who gets rows --------------------------------------------------------------------------------------------------------
// gaps of all pairs, near or not, and their rates, by Dual along the motion
static std::map<int, Dual<double>> moving_gaps(const World& w) {
  using D = Dual<double>;
  const Tree& t = w.t;
  Duals x = moving(w);
  Scratch<D> s(t);
  View<D> a(w, x);
  collide_all(t, a.th, a.in, s);
  std::map<int, D> gaps;
  for (int c = 0; c < s.rw.count[6]; c++) {
    D gap = s.rw.gap[c];
    if (is_cut(t, s.rw, c)) gap.tangent = approach(t, s.tr, s.rw, c).value;
    if (gap.value < 0.5 * kNowhere) gaps[shown(t, s.rw, c)] = gap;
  }
  return gaps;
}

// those that would be within the margin one step ahead at the present speed, where it closes them
static void check_active(const World& w) {
  const Tree& t = w.t;
  Stepped<double> n(w, w.x);
  const Rows<double>& rw = n.s.rw;
  Items all = items(t, rw, 0);
  std::map<int, Dual<double>> gaps = moving_gaps(w);
  std::vector<int> touch = of_kind(all, kContactRows), expected, used;
  for (auto [k, gap] : gaps)
    if (gap.value + w.x[w.at_h()] * std::fmin(gap.tangent, 0) < n.s.o.margin) expected.push_back(k);
  double deepest = 0;
  for (int c = 0; c < rw.count[6]; c++) {
    if (rw.used[c]) used.push_back(shown(t, rw, c)), deepest = std::fmax(deepest, -rw.gap[c]);
    if (rw.gap[c] > 0.5 * kNowhere) continue;
    CHECK(gaps.count(shown(t, rw, c)));
    CHECK_NEAR(gaps[shown(t, rw, c)].value, rw.gap[c], 1e-12);
    CHECK_NEAR(approach(t, n.s.tr, rw, c), gaps[shown(t, rw, c)].tangent, 1e-11);
  }
  std::sort(touch.begin(), touch.end());
  CHECK(touch == expected && used == expected);
  CHECK(rw.status->contacts == double(touch.size()) && rw.status->wanted == double(touch.size()));
  CHECK(int(of_kind(all, kDryRow).size()) == t.n_dry && rw.count[4] == int(touch.size()));
  CHECK(rw.status->penetration == deepest);
}

// ---- blocks and islands ---------------------------------------------------------------------------------------------------
// roots of the trees that an item moves
static std::set<int> roots(const Tree& t, int kind, int item) {
  int a, b;
  if (kind == kContactRows)
    a = t.shape_body[t.pair_a[shown_pair(t, item)]], b = t.shape_body[t.pair_b[shown_pair(t, item)]];
  else
    block_bodies(t, Rows<double>(), kind, item, a, b);
  std::set<int> all;
  for (int body : {a, b})
    if (body >= 0) all.insert(t.root[body]);
  return all;
}

static void check_islands(const World& w) {
  const Tree& t = w.t;
  Stepped<double> n(w, w.x);
  const Rows<double>& rw = n.s.rw;
  int blocks = rw.count[0], islands = rw.count[2], rows = 0, numbers = 0;
  std::vector<int> island(blocks, -1);
  CHECK(rw.island_block[islands] == blocks && rw.first_row[blocks] == rw.count[1]);
  for (int s = 0; s < islands; s++) {
    CHECK(rw.island_block[s] < rw.island_block[s + 1] && rw.island_A[s] == numbers);
    int r0 = rows;
    for (int i = rw.island_block[s]; i < rw.island_block[s + 1]; i++) {
      CHECK(rw.first_row[i] == rows);
      island[i] = s, rows += rw.kind[i] == kContactRows ? 3 : 1;
    }
    numbers += (rows - r0) * (rows - r0);
  }
  CHECK(rows == rw.count[1] && rw.island_A[islands] == numbers && rows <= max_rows(t, t.max_slots) &&
        blocks <= max_blocks(t, t.max_slots));
  // blocks hang together if a chain of shared trees joins them: labels spread until nothing changes
  std::vector<int> label(blocks);
  for (int i = 0; i < blocks; i++) label[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < blocks; i++)
      for (int j = 0; j < blocks; j++) {
        std::set<int> a = roots(t, rw.kind[i], item_of(t, rw, i, 0)), b = roots(t, rw.kind[j], item_of(t, rw, j, 0));
        bool share = false;
        for (int r : a) share = share || b.count(r);
        if (share && label[j] < label[i]) label[i] = label[j], changed = true;
      }
  }
  for (int i = 0; i < blocks; i++)
    for (int j = 0; j < blocks; j++) CHECK((label[i] == label[j]) == (island[i] == island[j]));
}

// the dofs of a block: ancestors of its bodies, or their whole trees in the articulated form
static void check_lists(const World& w) {
  const Tree& t = w.t;
  Stepped<double> n(w, w.x);
  const Rows<double>& rw = n.s.rw;
  for (int i = 0; i < rw.count[0]; i++) {
    Span s = span(rw, i);
    std::set<int> expected, listed(s.col, s.col + s.m);
    int a, b;
    block_bodies(t, rw, rw.kind[i], rw.item[i][0], a, b);
    for (int body : {a, b})
      for (int d = 0; body >= 0 && d < t.nv; d++) {
        int up = body;
        while (up >= 0 && up != t.dof_body[d]) up = t.parent[up];
        if (t.form == kSparse ? up >= 0 : t.root[t.dof_body[d]] == t.root[body]) expected.insert(d);
      }
    CHECK(listed == expected && int(listed.size()) == s.m && s.m <= t.max_list && s.s == s.m);
    CHECK(std::is_sorted(s.col, s.col + s.m) && s.n == (rw.kind[i] == kContactRows ? 3 : 1));
    CHECK(rw.J_adr[i + 1] - s.J == s.n * s.m && rw.Y_adr[i + 1] - s.Y == s.n * s.s);
  }
}

// pairs of one group join the same two trees, a's and b's in this order, unless all are one group; none is lost
static int check_groups(const World& w) {
  const Tree& t = w.t;
  auto tree = [&](int shape) { return t.shape_body[shape] < 0 ? -1 : t.root[t.shape_body[shape]]; };
  std::set<std::pair<int, int>> keys;
  std::map<int, std::set<std::pair<int, int>>> in_group;
  for (int p = 0; p < t.np; p++) {
    auto key = std::make_pair(tree(t.pair_a[p]), tree(t.pair_b[p]));
    keys.insert(key), in_group[t.pair_group[p]].insert(key);
    CHECK(t.pair_group[p] >= (p ? t.pair_group[p - 1] : 0) && t.pair_group[p] < t.n_groups);
    CHECK(!flat_shape(t.shape_type[t.pair_b[p]]));
    CHECK(t.pair_first[p + 1] - t.pair_first[p] == pair_points(t.shape_type[t.pair_a[p]], t.shape_type[t.pair_b[p]]));
  }
  bool many = w.storage.s.one_group > 0;
  CHECK(t.n_groups == (many ? 1 : int(keys.size())));
  for (const auto& [group, held] : in_group) CHECK(many || held.size() == 1);
  std::multiset<std::pair<int, int>> asked, had;
  const Structure& s = w.storage.s;
  for (size_t p = 0; p < s.pair_a.size(); p++) asked.insert(std::minmax(s.pair_a[p], s.pair_b[p]));
  for (int p = 0; p < t.np; p++) had.insert(std::minmax(t.pair_a[p], t.pair_b[p]));
  CHECK(asked == had && t.pair_first[0] == 0 && t.pair_first[t.np] == t.nk);
  return t.n_groups;
}

// ten lone bodies are one group, and run world by world; ten robots of two bodies are many, in lanes
static void check_choice() {
  for (int robots = 0; robots < 2; robots++) {
    Structure s;
    s.shape_body = {-1}, s.shape_type = {kPlane};
    for (int i = 0; i < 10; i++) {
      s.parent.push_back(-1), s.joint.push_back(kFree);
      s.shape_body.push_back(int(s.parent.size()) - 1), s.shape_type.push_back(kSphere);
      if (robots) s.parent.push_back(int(s.parent.size()) - 1), s.joint.push_back(kRevolute);
    }
    for (int a = 0; a <= 10; a++)
      for (int b = a + 1; b <= 10; b++) s.pair_a.push_back(a), s.pair_b.push_back(b);
    Tree t = TreeStorage(s).view();
    CHECK(t.alone == !robots && t.n_groups == (robots ? 55 : 1) && !t.large);
  }
}

// ---- lanes -----------------------------------------------------------------------------------------------------------------
// worlds of one tree with different contacts: heights and speeds of their own
static std::vector<Vector> neighbours(const World& w, int n, Random& rng) {
  std::vector<Vector> xs(n, w.x);
  for (Vector& x : xs) {
    for (int i = 0; i < w.at_theta(); i++) x[i] *= rng.uniform(0.8, 1.2);
    for (int b = 0; b < w.t.nb; b++)
      if (w.t.joint[b] == kFree) x[w.t.q_adr[b] + 2] += rng.uniform(-0.05, 0.05);
  }
  return xs;
}

// what a lane holds is what the world holds alone: items and their order within a tree, counts, and overflow
static int check_lanes(const World& w, Random& rng) {
  constexpr int n = 8;
  using P = Pack<double, n>;
  std::vector<Vector> xs = neighbours(w, n, rng);
  std::vector<P> x(w.size());
  for (int l = 0; l < n; l++)
    for (int i = 0; i < w.size(); i++) set_lane(x[i], l, xs[l][i]);
  Stepped<P> packed(w, x);
  std::set<std::vector<int>> different;
  for (int l = 0; l < n; l++) {
    Stepped<double> alone(w, xs[l], -1e20);
    Items ours = items(w.t, packed.s.rw, l), theirs = items(w.t, alone.s.rw, 0);
    for (int r = 0; r < w.t.nb; r++) {
      auto of_tree = [&](const Items& all) {
        Items some;
        for (auto [kind, item] : all)
          if (roots(w.t, kind, item).count(r)) some.push_back({kind, item});
        return some;
      };
      CHECK(of_tree(ours) == of_tree(theirs));
    }
    std::sort(ours.begin(), ours.end()), std::sort(theirs.begin(), theirs.end());
    CHECK(ours == theirs);
    CHECK(lane(packed.s.rw.status->contacts, l) == alone.s.rw.status->contacts);
    CHECK(lane(packed.s.rw.status->wanted, l) == alone.s.rw.status->wanted);
    CHECK(lane(packed.s.rw.status->penetration, l) == alone.s.rw.status->penetration);
    different.insert(of_kind(theirs, kContactRows));
  }
  CHECK(packed.s.rw.count[4] <= w.t.max_slots && packed.s.rw.count[1] <= max_rows(w.t, w.t.max_slots));
  return int(different.size());
}

// `same` names the item that all lanes share
static void check_same(const World& w, Random& rng) {
  using P = Pack<double, 4>;
  std::vector<Vector> xs = neighbours(w, 4, rng);
  std::vector<P> x(w.size());
  for (int l = 0; l < 4; l++)
    for (int i = 0; i < w.size(); i++) set_lane(x[i], l, xs[l][i]);
  Stepped<P> packed(w, x);
  const Rows<P>& rw = packed.s.rw;
  for (int i = 0; i < rw.count[0]; i++) {
    std::set<int> held;
    for (int l = 0; l < 4; l++)
      if (rw.item[i][l] >= 0) held.insert(rw.item[i][l]);
    CHECK(!held.empty() && rw.same[i] == (held.size() == 1 ? *held.begin() : -1));
    for (int l = 0; l < 4; l++) CHECK(lane(rw.valid[i], l) == (rw.item[i][l] >= 0 ? 1 : 0));
  }
}

// ---- overflow and nothing at all ----------------------------------------------------------------------------------------------
// a box pressed flat on the floor wants eight rows' worth of corners; two are given, the first ones, and six are missed
static void check_overflow(Random& rng) {
  Structure s;
  s.parent = {-1}, s.joint = {kFree}, s.shape_body = {-1, 0}, s.shape_type = {kPlane, kBox}, s.pair_a = {1}, s.pair_b = {0};
  s.max_contacts = 2;
  World w(s, true, rng);
  Params<double> th = w.theta();
  physical_numbers(w, rng);
  th.shape_pos[0] = th.shape_pos[1] = {0, 0, 0}, th.shape_quat[0] = th.shape_quat[1] = {1, 0, 0, 0};
  th.shape_size[1] = {0.1, 0.1, 0.001};
  for (int i = 0; i < 7; i++) w.x[i] = i == 3;
  CHECK(w.t.nk == 8 && w.t.max_contacts == 2 && w.t.max_slots == 2);
  Stepped<double> n(w, w.x);
  CHECK(n.s.rw.status->contacts == 2 && n.s.rw.status->wanted == 8);
  CHECK(of_kind(items(w.t, n.s.rw, 0), kContactRows) == (std::vector<int>{0, 1}));
  // far away: no rows, and nothing but free fall
  w.x[2] = 100;
  Stepped<double> high(w, w.x);
  CHECK(high.s.rw.count[0] == 0 && high.s.rw.count[1] == 0 && high.s.rw.count[2] == 0 && high.s.rw.status->solved == 1);
  for (int d = 0; d < 6; d++) CHECK(high.y[7 + d] == high.s.rw.v_star[d]);
}

int main() {
  Random rng(25);
  int different = 0, many = 0, few = 0;
  for (int trial = 0; trial < 40; trial++) {
    Parts parts;
    parts.limits = parts.dry = parts.servos = trial % 3 != 0;
    parts.moving_plane = trial % 7 == 3, parts.floor_only = trial % 4 == 1;
    parts.solids = trial % 2 == 0, parts.field = trial % 5 == 4;
    World w = random_scene(parts, trial / 2 % 2, rng);
    check_active(w), check_islands(w), check_lists(w), check_same(w, rng);
    int groups = check_groups(w);
    many += groups == 1, few += groups > 2;
    different += check_lanes(w, rng);
    parts.max_contacts = 3;
    World small = random_scene(parts, trial / 2 % 2, rng);
    check_islands(small), check_lanes(small, rng);
  }
  CHECK(different > 40 * 4);  // most lanes have contacts of their own
  CHECK(many > 10 && few > 5);
  check_overflow(rng), check_choice();
  return report("slots");
}
