// broadphase.h: boxes hold their shapes, no pair that could touch in a step is missed, sweep and prune finds what testing all finds, and
// what has no room is told.
#include <map>
#include <set>

#include "scene.h"
using namespace test;

using Vector = std::vector<double>;
using V = Vec3<double>;

constexpr double kRounding = 1e-13;
constexpr double kFast = 30;  // turning rates, rad/s; no shape is larger than 1 m

// ---- scenes ------------------------------------------------------------------------------------------------------------------
// n free bodies in a cube of the given size, a floor or two, and boxes that stand still: more pairs than are tested one by one
static World cloud(int n, double size, double far, Random& rng) {
  Structure s;
  add_shape(s, -1, kPlane, rng);
  if (rng.below(2)) add_field(s, -1, 4, 4);
  for (int k = 0; k < 5; k++) add_shape(s, -1, k ? kBox : kHull, rng);
  for (int b = 0; b < n; b++) {
    s.parent.push_back(-1), s.joint.push_back(kFree);
    for (int k = rng.below(2); k >= 0; k--) add_shape(s, b, 1 + rng.below(5), rng);
  }
  s.large = 1, s.max_contacts = 8;
  add_pairs(s, false, rng);
  World w(s, true, rng);
  physical_numbers(w, rng);
  w.storage.max_near = w.t.np, w.storage.max_cand = w.t.nk, w.t = w.storage.view();  // room for all
  double wide[3] = {size, size, size}, fast = rng.below(3) ? rng.below(2) : kFast / 2;
  wide[rng.below(3)] *= 3;
  for (int b = 0; b < n; b++)
    for (int i = 0; i < 3; i++) w.x[w.t.q_adr[b] + i] = far + rng.uniform(-wide[i], wide[i]);
  for (int i = 0; i < w.t.ns; i++)
    if (w.t.shape_body[i] < 0 && !flat_shape(w.t.shape_type[i]))
      w.theta().shape_pos[i] = random_vec(rng, size) + Vec3<double>{far, far, far};
  for (int d = 0; d < w.t.nv; d++) w.x[w.at_v() + d] *= fast;
  w.x[w.at_h()] = rng.uniform(0.001, 0.02);
  return w;
}

// what near_pairs finds
template <class T> struct Near {
  Scratch<T> s;
  View<T> a;
  Near(const World& w, const Tree& t, const std::vector<T>& x) : s(t, 1e30), a(w, x) {
    normalise(t, a.in.q, s.tr.q), kinematics(t, a.th, s.tr), velocity(t, s.tr, a.in.v), shapes(t, a.th, s.tr, s.rw);
    near_pairs(t, a.th, s.tr, s.rw, row_inputs(a.in), s.o);
  }
  std::vector<int> pairs(int l = 0) const {
    std::vector<int> found;
    for (int i = 0; i < s.rw.count[5]; i++)
      if (s.rw.near_bits[i] >> l & 1) found.push_back(s.rw.near[i]);
    return found;
  }
};

static Tree tested_one_by_one(Tree t) { return t.large = 0, t.max_list = t.nv, t; }

// ---- boxes -------------------------------------------------------------------------------------------------------------------
// every vertex, with its radius, lies in the box, and none is faster than the bound
static void check_bounds(const World& w) {
  const Tree& t = w.t;
  Near<double> n(w, t, w.x);
  const Rows<double>& rw = n.s.rw;
  for (int s = 0; s < t.ns; s++) {
    int b = t.shape_body[s];
    if (flat_shape(t.shape_type[s])) continue;
    V from = b < 0 ? V{0, 0, 0} : n.s.tr.origin[t.root[b]], least = {1e9, 1e9, 1e9}, most = {-1e9, -1e9, -1e9};
    double r = shape_radius(t, n.a.th, s), size = 1 + std::sqrt(dot(rw.bound_p[s], rw.bound_p[s])), grown = rw.grow[s];
    Motion<double> moves = b < 0 ? zero_motion<double>() : n.s.tr.v[b];
    for (int v = 0; v < t.solid_n[3 * s]; v++) {
      V p = rw.shape_p[s] + mul(rw.shape_R[s], shape_vertex(t, n.a.th, s, v)), x = p + from - rw.bound_p[s], e = rw.bound[s];
      e -= V{grown, grown, grown};
      CHECK(std::fabs(x.x) + r <= e.x + kRounding * size && std::fabs(x.y) + r <= e.y + kRounding * size);
      CHECK(std::fabs(x.z) + r <= e.z + kRounding * size);
      V speed = moves.v + cross(moves.w, p);
      double path = n.a.in.h * (std::sqrt(dot(speed, speed)) + r * std::sqrt(dot(moves.w, moves.w)));
      CHECK(path + 0.5 * n.s.o.margin < grown && grown < 2 * path + n.s.o.margin + 3 * n.a.in.h * kFast + 1e-4 * size);
      least = {std::fmin(least.x, x.x), std::fmin(least.y, x.y), std::fmin(least.z, x.z)};
      most = {std::fmax(most.x, x.x), std::fmax(most.y, x.y), std::fmax(most.z, x.z)};
    }
    if (t.shape_type[s] == kCylinder) continue;  // that of its rims: wider than that of the corners
    for (V gap : {least + rw.bound[s], rw.bound[s] - most})
      CHECK_NEAR(gap.x + gap.y + gap.z, 3 * (r + grown), 10 * kRounding * size);
  }
}

// ---- near pairs --------------------------------------------------------------------------------------------------------------
// the gap of every pair: where it could close within the margin, the pair is near. Returns how many could, and adds how many are near
static int check_none_missed(const World& w, int& near) {
  const Tree& t = w.t;
  Near<double> n(w, t, w.x);
  std::vector<int> found = n.pairs();
  std::set<int> in(found.begin(), found.end()), touching;
  CHECK(in.size() == found.size() && std::is_sorted(found.begin(), found.end()) && n.s.rw.count[7] == 0);
  Scratch<double> s(t);
  View<double> a(w, w.x);
  collide_all(t, a.th, a.in, s);
  for (int c = 0; c < s.rw.count[6]; c++) {
    double closes = s.rw.gap[c] + a.in.h * std::fmin(approach(t, s.tr, s.rw, c), 0);
    if (closes < s.o.margin) touching.insert(s.rw.cand_pair[c]);
  }
  for (int p : touching) CHECK(in.count(p));
  near += int(found.size());
  return int(touching.size());
}

// corners of two boxes, tried one by one: that they overlap is another way to say that a pair is near
static void check_plain(const World& w) {
  const Tree& t = w.t;
  Near<double> n(w, tested_one_by_one(t), w.x);
  const Rows<double>& rw = n.s.rw;
  std::vector<int> found = n.pairs(), expected;
  for (int p = 0; p < t.np; p++) {
    int a = t.pair_a[p], b = t.pair_b[p];
    double low = 1e300;
    V c = rw.bound_p[a], d = rw.bound_p[b] - c, e = rw.bound[b], x, y, z;
    columns(rw.shape_R[a], x, y, z);
    for (int i = 0; i < 8; i++) low = std::fmin(low, dot(z, d + V{i & 1 ? e.x : -e.x, i & 2 ? e.y : -e.y, i & 4 ? e.z : -e.z}));
    auto along = [&](double u, double half_a, double half_b) { return std::fabs(u) <= half_a + half_b; };
    bool boxes = along(d.x, rw.bound[a].x, e.x) && along(d.y, rw.bound[a].y, e.y) && along(d.z, rw.bound[a].z, e.z);
    if (t.shape_type[a] == kPlane ? low <= rw.grow[a] : boxes) expected.push_back(p);
  }
  CHECK(found == expected);
}

static void check_sweep(const World& w) {
  CHECK(w.t.large && w.t.np > kFewPairs);
  Near<double> sorted(w, w.t, w.x), plain(w, tested_one_by_one(w.t), w.x);
  CHECK(sorted.pairs() == plain.pairs() && sorted.s.rw.count[7] == 0 && plain.s.rw.count[7] == 0);
  Near<float> f(w, w.t, std::vector<float>(w.x.begin(), w.x.end()));
  Near<float> g(w, tested_one_by_one(w.t), std::vector<float>(w.x.begin(), w.x.end()));
  CHECK(f.pairs() == g.pairs());
}

// a lane's pairs are those it has alone
static void check_lanes(const World& w, Random& rng) {
  using P = Pack<double, 4>;
  Tree t = tested_one_by_one(w.t);
  std::vector<Vector> xs(4, w.x);
  std::vector<P> x(w.size());
  for (int l = 0; l < 4; l++)
    for (int i = 0; i < w.size(); i++) {
      if (i < w.at_theta()) xs[l][i] *= rng.uniform(0.8, 1.2);
      set_lane(x[i], l, xs[l][i]);
    }
  Near<P> packed(w, t, x);
  for (int i = 0; i < packed.s.rw.count[5]; i++) CHECK(packed.s.rw.near_bits[i] > 0 && packed.s.rw.near_bits[i] < 16);
  for (int l = 0; l < 4; l++) CHECK(packed.pairs(l) == Near<double>(w, t, xs[l]).pairs());
}

// ---- no room -----------------------------------------------------------------------------------------------------------------
// pairs and candidates that do not fit: the others stay, memory is left alone, and the step says that it wanted more
static void check_overflow(const World& w, bool large) {
  Tree t = large ? w.t : tested_one_by_one(w.t);
  Near<double> whole(w, t, w.x);
  std::vector<int> all = whole.pairs();
  Scratch<double> enough(t);
  Vector y(t.nq + t.nv);
  step(t, whole.a.th, enough.tr, enough.rw, enough.o, whole.a.in, y.data(), y.data() + t.nq);
  int candidates = enough.rw.count[6], contacts = int(enough.rw.status->contacts);
  CHECK(all.size() > 4 && candidates > 5 && contacts > 0);
  if (all.size() < 5 || candidates < 6) return;
  for (int room : {0, 1, 4, int(all.size()) - 1, int(all.size())}) {
    Tree small = t;
    small.max_near = room;
    Near<double> n(w, small, w.x);
    std::vector<int> some = n.pairs();
    bool full = room < int(all.size());
    CHECK(int(some.size()) == room && n.s.rw.count[7] == full && std::is_sorted(some.begin(), some.end()));
    CHECK(std::includes(all.begin(), all.end(), some.begin(), some.end()));
    Scratch<double> s(small, 1e30);
    step(small, whole.a.th, s.tr, s.rw, s.o, whole.a.in, y.data(), y.data() + t.nq);
    CHECK((s.rw.status->wanted > t.max_contacts) == (full || enough.rw.status->wanted > t.max_contacts));
    for (double v : y) CHECK(std::isfinite(v));
  }
  for (int room : {0, 1, 5, candidates - 1, candidates}) {
    Tree small = t;
    small.max_cand = room;
    Scratch<double> s(small, 1e30);
    step(small, whole.a.th, s.tr, s.rw, s.o, whole.a.in, y.data(), y.data() + t.nq);
    CHECK(s.rw.count[6] == room);
    for (int c = 0; c < room; c++) CHECK(s.rw.cand_pair[c] == enough.rw.cand_pair[c] && s.rw.gap[c] == enough.rw.gap[c]);
    CHECK(s.rw.count[7] == (room < candidates) && (s.rw.status->wanted > t.max_contacts || room == candidates));
  }
}

// ---- integers ----------------------------------------------------------------------------------------------------------------
static void check_sort(Random& rng) {
  for (int n : {0, 1, 2, 3, 7, 8, 100, 1000}) {
    std::vector<int> a(n);
    Vector key(n);
    for (int i = 0; i < n; i++) a[i] = i, key[i] = rng.below(2) ? rng.uniform() : rng.below(5);
    sort_by(a.data(), n, [&](int i) { return key[i]; });
    std::set<int> held(a.begin(), a.end());
    CHECK(int(held.size()) == n);
    for (int i = 1; i < n; i++) CHECK(!(key[a[i]] < key[a[i - 1]]));
    sort_by(a.data(), n, [](int i) { return i; });
    for (int i = 0; i < n; i++) CHECK(a[i] == i);
  }
}

static void check_pair_of(const World& w) {
  const Tree& t = w.t;
  std::map<std::pair<int, int>, int> known;
  for (int p = 0; p < t.np; p++) known[std::minmax(t.pair_a[p], t.pair_b[p])] = p;
  for (int i = 0; i < t.ns; i++)
    for (int j = 0; j < t.ns; j++) {
      auto at = known.find(std::minmax(i, j));
      CHECK(pair_of(t, i, j) == (at == known.end() ? -1 : at->second));
    }
}

// nothing at all, and shapes without a partner
static void check_empty(Random& rng) {
  Structure s;
  s.parent = {-1}, s.joint = {kFree}, s.shape_body = {0}, s.shape_type = {kBox};
  World w(s, true, rng);
  physical_numbers(w, rng);
  CHECK(w.t.np == 0 && Near<double>(w, w.t, w.x).pairs().empty() && pair_of(w.t, 0, 0) == -1);
}

int main() {
  Random rng(32);
  check_sort(rng), check_empty(rng);
  int touching = 0, near = 0, pairs = 0;
  for (int trial = 0; trial < 60; trial++) {
    Parts parts;
    parts.moving_plane = trial % 4 == 1, parts.solids = trial % 2, parts.field = trial % 3 == 2;
    World w = random_scene(parts, trial % 2, rng);
    check_bounds(w), check_pair_of(w), check_plain(w), check_lanes(w, rng);
    touching += check_none_missed(w, near), pairs += w.t.np;
  }
  CHECK(touching > 60 && near < pairs);
  touching = near = pairs = 0;
  for (int trial = 0; trial < 30; trial++) {
    World w = cloud(20 + rng.below(20), trial % 3 ? 1.5 : 0.3, trial % 5 == 4 ? 1000 : 0, rng);
    check_bounds(w), check_pair_of(w), check_plain(w), check_sweep(w);
    touching += check_none_missed(w, near), pairs += w.t.np;
    if (trial % 3 == 0) check_overflow(w, true), check_overflow(w, false);
  }
  CHECK(touching > 30 && 4 * touching > near / 10 && 3 * near < 2 * pairs);  // and it throws most of the others away
  return report("broadphase");
}
