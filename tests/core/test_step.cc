// step, acceleration, joint_forces, mass_matrix, poses: whole functions on random trees, both forms of the factorisation.
#include "world.h"
using namespace test;

// y of one op at x, for any scalar
enum Op { kStep, kAcceleration, kJointForces, kMass, kPoses };

static int out_size(const World& w, Op op) {
  const Tree& t = w.t;
  return op == kStep ? t.nq + t.nv : op == kMass ? t.nv * t.nv : op == kPoses ? 13 * t.nb + 6 * t.nv : t.nv;
}

template <class T> static void forward(const World& w, Op op, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  View<T> a(w, x);
  const Tree& t = w.t;
  if (op == kStep) step(t, a.th, s.tr, s.rw, s.o, a.in, y.data(), y.data() + t.nq);
  if (op == kAcceleration) {
    acceleration(t, a.th, s.tr, a.in, a.in.u);
    for (int d = 0; d < t.nv; d++) y[d] = s.tr.acc[d];
  }
  if (op == kJointForces) joint_forces(t, a.th, s.tr, a.in, a.in.u, y.data());
  if (op == kMass) mass_matrix(t, a.th, s.tr, a.in.q, y.data());
  if (op == kPoses) poses(t, a.th, s.tr, a.in.q, a.in.v, y.data(), y.data() + 7 * t.nb, y.data() + 13 * t.nb);
}

static void adjoint(const World& w, Op op, Scratch<double>& s, std::vector<double> g, std::vector<double>& x_bar) {
  const Tree& t = w.t;
  std::vector<double> y(out_size(w, op)), q_tan(t.nv, 0.0);
  forward(w, op, w.x, s, y);
  View<double> a(w, w.x);
  BarView b(w, x_bar);
  if (op == kStep) {
    tangent_bars(t, y.data(), g.data(), q_tan.data());
    step_adj(t, a.th, s.tr, s.rw, s.o, a.in, y.data() + t.nq, q_tan.data(), g.data() + t.nq, s.bar, s.rb, b.th, b.in);
  }
  if (op == kAcceleration) {
    bars_clear(t, s.bar);
    for (int d = 0; d < t.nv; d++) s.bar.u[d] = g[d];
    acceleration_adj(t, a.th, s.tr, a.in, s.bar, b.th, b.in);
    for (int d = 0; d < t.nv; d++) b.q[d] += s.bar.q[d], b.in.u[d] += s.bar.u[d];
  }
  if (op == kJointForces) joint_forces_adj(t, a.th, s.tr, a.in, a.in.u, g.data(), s.bar, b.th, b.in, b.in.u);
  if (op == kMass) mass_matrix_adj(t, a.th, s.tr, g.data(), s.bar, b.th, b.in.q);
  if (op == kPoses)
    poses_adj(t, a.th, s.tr, a.in.v, g.data(), g.data() + 7 * t.nb, g.data() + 13 * t.nb, s.bar, b.th, b.in.q, b.in.v);
  b.finish(w, x_bar);
}

static void check_op(const char* name, const World& w, Op op, Random& rng) {
  Scratch<Dual<double>> dual(w.t);
  Scratch<double> real(w.t), dirty(w.t, 1e30);
  check_adjoint(
      name, w.x, out_size(w, op), [&](const Duals& x, Duals& y) { forward(w, op, x, dual, y); },
      [&](const std::vector<double>& g, std::vector<double>& x_bar) { adjoint(w, op, real, g, x_bar); }, rng);
  // dirty buffers, same answer
  std::vector<double> g = rng.vector(out_size(w, op)), one(w.size(), 0.0), two(w.size(), 0.0);
  adjoint(w, op, real, g, one), adjoint(w, op, dirty, g, two);
  CHECK(one == two);
}

// every lane of a pack equals the scalar run of that lane's world, bit by bit, forward
static void check_lanes(const World& w, Op op, Random& rng) {
  using P = Pack<double, 4>;
  Scratch<P> packs(w.t);
  Scratch<double> real(w.t);
  std::vector<std::vector<double>> xs(4, w.x);
  for (auto& x : xs)
    for (int i = 0; i < w.at_theta(); i++) x[i] += 0.01 * rng.uniform(0, 1);
  std::vector<P> x(w.size()), y(out_size(w, op));
  for (int l = 0; l < 4; l++)
    for (int i = 0; i < w.size(); i++) set_lane(x[i], l, xs[l][i]);
  forward(w, op, x, packs, y);
  std::vector<double> scalar(y.size());
  for (int l = 0; l < 4; l++) {
    forward(w, op, xs[l], real, scalar);
    bool same = true;
    for (size_t i = 0; i < y.size(); i++) same = same && lane(y[i], l) == scalar[i];
    CHECK(same);
  }
}

int main() {
  Random rng(1);
  const char* names[] = {"step", "acceleration", "joint_forces", "mass_matrix", "poses"};
  for (int trial = 0; trial < 20; trial++)
    for (int op = 0; op < 5; op++)
      for (int form = 0; form < 2; form++) {
        World w = World::random(trial < 2 ? 1 + trial : 6 + rng.below(10), op == kStep, form, rng);
        check_op(names[op], w, Op(op), rng);
        if (trial < 3) check_lanes(w, Op(op), rng);
      }
  // both forms solve the same equation
  for (int trial = 0; trial < 5; trial++) {
    Random a(100 + trial), b(100 + trial);
    World sparse = World::random(12, false, kSparse, a), deep = World::random(12, false, kArticulated, b);
    std::vector<double> y1(sparse.t.nv), y2(sparse.t.nv);
    Scratch<double> s1(sparse.t), s2(deep.t);
    forward(sparse, kAcceleration, sparse.x, s1, y1), forward(deep, kAcceleration, deep.x, s2, y2);
    for (int d = 0; d < sparse.t.nv; d++) CHECK_NEAR(y1[d], y2[d], 1e-11 * (1 + std::fabs(y1[d])));
  }
  return report("step");
}
