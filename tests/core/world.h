// A random tree with random parameters and state, and the engine's ops as flat functions x -> y of it.
//
// x = (q, v, u or tau or qdd, h, external, theta), everything a step depends on, in one vector.
#pragma once
#include "../../core/query.h"
#include "../../drivers/options.h"
#include "../../drivers/tree.h"
#include "check.h"

namespace test {

using namespace costate;

// a user's options, some of them changed
struct Asked {
  double iterations = 15, polish = 2, tolerance = 1e-10, margin = 0.01, recovery = 0.2, push_speed = 0.5, bounce_speed = 0.1;
  double cone = 0, exact = 0, relative_softness = 1e-9, absolute_softness = 1e-10, form = -1, project = 1;
  double method = kRounds, impacts = 0;
  Options read(const Tree& tree = Tree{}) const {
    return read_options({iterations, polish, tolerance, margin, recovery, push_speed, bounce_speed, cone, exact,
                         relative_softness, absolute_softness, form, project, method, impacts},
                        tree);
  }
};

struct World {
  TreeStorage storage;
  Tree t;
  int nu;  // size of the third block: controls, joint forces or accelerations
  std::vector<double> x;

  int at_v() const { return t.nq; }
  int at_u() const { return t.nq + t.nv; }
  int at_h() const { return at_u() + nu; }
  int at_ext() const { return at_h() + 1; }
  int at_theta() const { return at_ext() + 6 * t.nb; }
  int size() const { return at_theta() + params_size(t); }

  World(std::vector<int> parent, std::vector<int> joint, std::vector<int> motors, bool controls, int form, Random& rng)
      : World(TreeStorage::plain(std::move(parent), std::move(joint), std::move(motors), form), controls, rng) {}

  World(Structure structure, bool controls, Random& rng)
      : storage(std::move(structure)), t(storage.view()), nu(controls ? t.nu : t.nv) {
    x = draw(rng);
    x[at_h()] = rng.uniform(0.001, 0.1);
    Params<double> th = params_map(t, x.data() + at_theta());
    for (int b = 0; b < t.nb; b++) {
      th.mass[b] = rng.uniform(0.5, 2);
      th.inertia[b] = {rng.uniform(0.5, 0.8), rng.uniform(0.5, 0.8), rng.uniform(0.5, 0.8),
                       rng.uniform(-.1, .1),  rng.uniform(-.1, .1),  rng.uniform(-.1, .1)};
      th.stiffness[b] = rng.uniform(0, 2);
    }
    for (int d = 0; d < t.nv; d++) th.damping[d] = rng.uniform(0, 1), th.armature[d] = rng.uniform(0, 0.2);
  }

  // as many numbers as x has; zeros for torsional and rolling friction where no pair has any
  std::vector<double> draw(Random& rng) const {
    if (t.turns) return rng.vector(size());
    std::vector<double> y = rng.vector(size() - 2 * t.ns), all(size());
    Params<double> th = params_map(t, all.data() + at_theta());
    y.insert(y.begin() + (th.torsion - all.data()), 2 * t.ns, 0.0);
    return y;
  }

  World(const World& w) : storage(w.storage), t(storage.view()), nu(w.nu), x(w.x) {}  // its own integers
  World& operator=(const World&) = delete;

  Params<double> theta() { return params_map(t, x.data() + at_theta()); }

  // every joint type, branching; the first body of a tree hangs on the world
  static World random(int nb, bool controls, int form, Random& rng) {
    std::vector<int> parent, joint, motors;
    int nv = 0;
    for (int b = 0; b < nb; b++) {
      parent.push_back(b == 0 || rng.below(8) == 0 ? -1 : rng.below(b));
      int kind = b < 6 ? b : rng.below(6);
      joint.push_back(kind == kFree && parent[b] >= 0 ? kBall : kind);
      if (b == 4) parent[b] = -1, joint[b] = kFree;
      nv += joint_nv(joint[b]);
    }
    for (int k = 0; k < 3 && nv; k++) motors.push_back(rng.below(nv));
    return World(parent, joint, motors, controls, form, rng);
  }
};

// scratch memory for one T
template <class T> struct Scratch {
  std::vector<T> memory;
  Trace<T> tr;
  Bars<T> bar;
  Rows<T> rw;
  RowBars<T> rb;
  Options o;
  explicit Scratch(const Tree& t, double dirt = 0, const Asked& asked = {}) : o(asked.read(t)) {
    Arena<T> count{nullptr, 0};
    map(t, count);
    memory.assign(count.used, T(ElementOf<T>(dirt)));
    Arena<T> arena{memory.data(), 0};
    map(t, arena);
  }
  void map(const Tree& t, Arena<T>& m) {
    tr = trace_map(t, m), bar = bars_map(t, m), rw = rows_map(t, o, true, m), rb = row_bars_map(t, o, m);
  }
};

// one flat vector seen as inputs and prepared parameters
template <class T> struct View {
  std::vector<T> theta;
  Params<T> th;
  Inputs<T> in;
  View(const World& w, const std::vector<T>& x) : theta(params_size(w.t)) {
    prepare(w.t, const_cast<T*>(x.data()) + w.at_theta(), theta.data());
    th = params_map(w.t, theta.data());
    in = {x.data(), x.data() + w.at_v(), x.data() + w.at_u(), x[w.at_h()], x.data() + w.at_ext()};
  }
};

// bars of the same, and back to one flat vector
struct BarView {
  std::vector<double> q, theta;
  InputBars<double> in;
  Params<double> th;
  BarView(const World& w, std::vector<double>& x_bar) : q(w.t.nv, 0.0), theta(params_size(w.t), 0.0) {
    double* p = x_bar.data();
    in = {q.data(), p + w.at_v(), p + w.at_u(), 0.0, p + w.at_ext()};
    th = params_map(w.t, theta.data());
  }
  void finish(const World& w, std::vector<double>& x_bar) {
    normalise_adj(w.t, w.x.data(), q.data(), x_bar.data());
    x_bar[w.at_h()] += in.h;
    prepare_adj(w.t, const_cast<double*>(w.x.data()) + w.at_theta(), theta.data(), x_bar.data() + w.at_theta());
  }
};

}  // namespace test
