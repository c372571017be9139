// ops/: the adjoint of each tree op alone, against Dual. An op's inputs in the trace are given any numbers, not those of a
// motion, so that each bar is checked by itself; poses move by rigid displacements, as the adjoints count them.
#include <limits>

#include "sample.h"
#include "world.h"
using namespace test;

// everything an op may read or write, for one T; what it does not set stays NaN and would show
template <class T> struct Rig {
  Scratch<T> s;
  std::vector<T> theta, v, qdd, external, M, tau, move;
  Params<T> th;
  explicit Rig(const World& w)
      : s(w.t, std::numeric_limits<double>::quiet_NaN()),
        theta(params_size(w.t)),
        v(w.t.nv),
        qdd(w.t.nv),
        external(6 * w.t.nb),
        M(w.t.nv * w.t.nv),
        tau(w.t.nv),
        move(6 * w.t.nb),
        th(params_map(w.t, theta.data())) {}
  Rig(const Rig&) = delete;  // pointers into itself

  // bodies where kinematics puts them, moved by `move` about the tree's origin (first order is enough: its value is zero)
  void place(const World& w) {
    Scratch<double> at(w.t);
    View<double> a(w, w.x);
    normalise(w.t, a.in.q, at.tr.q), kinematics(w.t, a.th, at.tr);
    for (int b = 0; b < w.t.nb; b++) {
      Vec3<T> turn = vec3_at(&move[6 * b]), p = lift<T>(at.tr.p[b]);
      s.tr.quat[b] = mul(quat_exp(turn), lift<T>(at.tr.quat[b])), s.tr.R[b] = matrix(s.tr.quat[b]);
      s.tr.p[b] = p + cross(turn, p) + vec3_at(&move[6 * b + 3]);
    }
  }
};

// pieces of memory that together are one flat vector
template <class T> using Blocks = std::vector<std::pair<T*, int>>;
template <class T, class S> static std::pair<T*, int> block(S* p, int count) {
  return {reinterpret_cast<T*>(p), count * int(sizeof(S) / sizeof(T))};
}
template <class T> static void load(const Blocks<T>& blocks, const std::vector<T>& x) {
  const T* from = x.data();
  for (auto [to, n] : blocks)
    for (int i = 0; i < n; i++) to[i] = *from++;
}
template <class T> static void store(const Blocks<T>& blocks, std::vector<T>& x) {
  T* to = x.data();
  for (auto [from, n] : blocks)
    for (int i = 0; i < n; i++) *to++ = from[i];
}

// One op: run(rig), its adjoint, and where its inputs, its outputs and their bars lie. A Rig's own fields serve as bars
// of theta, v, qdd, external; the others have their place in Bars
template <class Op> static void check_op(const char* name, const World& w, Random& rng) {
  auto inputs = [&](auto& r) { return Op::inputs(w.t, r); };
  Rig<double> r(w), bars(w);
  int nx = 0, ny = 0;
  for (auto [p, n] : inputs(r)) nx += n;
  for (auto [p, n] : Op::outputs(w.t, r)) ny += n;
  std::vector<double> x = rng.vector(nx);
  for (int i = nx - Op::moves * 6 * w.t.nb; i < nx; i++) x[i] = 0;  // displacements come last
  check_adjoint(
      name, x, ny,
      [&](const Duals& in, Duals& out) {
        Rig<Dual<double>> d(w);
        load(inputs(d), in);
        if (Op::moves) d.place(w);
        Op::run(w.t, d);
        store(Op::outputs(w.t, d), out);
      },
      [&](const std::vector<double>& g, std::vector<double>& x_bar) {
        load(inputs(r), x);
        if (Op::moves) r.place(w);
        Op::run(w.t, r);
        // bars add to what is there, except where input and output share a place
        bool in_place = nx && Op::input_bars(w.t, bars)[0] == Op::output_bars(w.t, bars)[0];
        std::vector<double> there(nx, in_place ? 0.0 : 1.0);
        bars_clear(w.t, bars.s.bar);
        load(Op::input_bars(w.t, bars), there);
        load(Op::output_bars(w.t, bars), g);
        Op::adjoint(w.t, r, bars);
        store(Op::input_bars(w.t, bars), x_bar);
        for (int i = 0; i < nx; i++) x_bar[i] -= there[i];
      },
      rng);
}

// ---- the ops ---------------------------------------------------------------------------------------------------------
#define BLOCKS(name, ...) \
  template <class T> static Blocks<T> name([[maybe_unused]] const Tree& t, Rig<T>& r) { return {__VA_ARGS__}; }
#define OF(field, count) block<T>(r.field, count)
#define OF_VECTOR(field) block<T>(r.field.data(), int(r.field.size()))

struct Velocity {
  static constexpr int moves = 0;
  BLOCKS(inputs, OF(s.tr.S, t.nv), OF_VECTOR(v))
  BLOCKS(outputs, OF(s.tr.v, t.nb))
  BLOCKS(input_bars, OF(s.bar.S, t.nv), OF_VECTOR(v))
  BLOCKS(output_bars, OF(s.bar.v, t.nb))
  template <class T> static void run(const Tree& t, Rig<T>& r) { velocity(t, r.s.tr, r.v.data()); }
  static void adjoint(const Tree& t, Rig<double>& r, Rig<double>& bars) {
    velocity_adj(t, r.s.tr, r.v.data(), bars.s.bar, bars.v.data());
  }
};

struct BodyInertia {
  static constexpr int moves = 1;
  BLOCKS(inputs, OF(th.mass, t.nb), OF(th.com, t.nb), OF(th.inertia, t.nb), OF_VECTOR(move))
  BLOCKS(outputs, OF(s.tr.I, t.nb))
  BLOCKS(input_bars, OF(th.mass, t.nb), OF(th.com, t.nb), OF(th.inertia, t.nb), OF(s.bar.X, t.nb))
  BLOCKS(output_bars, OF(s.bar.I, t.nb))
  template <class T> static void run(const Tree& t, Rig<T>& r) { inertia(t, r.th, r.s.tr); }
  static void adjoint(const Tree& t, Rig<double>& r, Rig<double>& bars) { inertia_adj(t, r.th, r.s.tr, bars.s.bar, bars.th); }
};

struct Composite {
  static constexpr int moves = 0;
  BLOCKS(inputs, OF(s.tr.I, t.nb))
  BLOCKS(outputs, OF(s.tr.Ic, t.nb))
  BLOCKS(input_bars, OF(s.bar.I, t.nb))
  BLOCKS(output_bars, OF(s.bar.I, t.nb))
  template <class T> static void run(const Tree& t, Rig<T>& r) { composite(t, r.s.tr); }
  static void adjoint(const Tree& t, Rig<double>&, Rig<double>& bars) { composite_adj(t, bars.s.bar); }
};

struct MassRows {
  static constexpr int moves = 0;
  BLOCKS(inputs, OF(s.tr.S, t.nv), OF(s.tr.Ic, t.nb), OF(th.armature, t.nv))
  BLOCKS(outputs, OF_VECTOR(M))
  BLOCKS(input_bars, OF(s.bar.S, t.nv), OF(s.bar.I, t.nb), OF(th.armature, t.nv))
  BLOCKS(output_bars, OF_VECTOR(M))
  template <class T> static void run(const Tree& t, Rig<T>& r) { mass_rows(t, r.th, r.s.tr, r.M.data()); }
  static void adjoint(const Tree& t, Rig<double>& r, Rig<double>& bars) {
    mass_rows_adj(t, r.s.tr, bars.M.data(), bars.s.bar, bars.th);
  }
};

// with accelerations and wrenches, or (bias) without either
template <bool bias> struct InverseDynamics {
  static constexpr int moves = 1;
  BLOCKS(inputs, OF(s.tr.S, t.nv), OF(s.tr.v, t.nb), OF(s.tr.I, t.nb), OF_VECTOR(v), OF_VECTOR(qdd), OF_VECTOR(external),
         OF(th.gravity, 1), OF(th.com, t.nb), OF_VECTOR(move))
  BLOCKS(outputs, OF_VECTOR(tau))
  BLOCKS(input_bars, OF(s.bar.S, t.nv), OF(s.bar.v, t.nb), OF(s.bar.I, t.nb), OF_VECTOR(v), OF_VECTOR(qdd), OF_VECTOR(external),
         OF(th.gravity, 1), OF(th.com, t.nb), OF(s.bar.X, t.nb))
  BLOCKS(output_bars, OF_VECTOR(tau))
  template <class T> static T* maybe(std::vector<T>& x) { return bias ? nullptr : x.data(); }
  template <class T> static void run(const Tree& t, Rig<T>& r) {
    inverse_dynamics<T>(t, r.th, r.s.tr, r.v.data(), maybe(r.qdd), maybe(r.external), r.tau.data());
  }
  static void adjoint(const Tree& t, Rig<double>& r, Rig<double>& bars) {
    inverse_dynamics_adj<double>(t, r.th, r.s.tr, r.v.data(), maybe(r.qdd), maybe(r.external), bars.tau.data(), bars.s.bar,
                                 bars.th, bars.v.data(), maybe(bars.qdd), maybe(bars.external));
  }
};

// ---- ops on what kinematics leaves: the flat x of a world -----------------------------------------------------------------
// y = (position 3, quaternion 4) of each body, S of each dof about the world's origin, which unlike the tree's stays put
template <class T> static void kinematics_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  View<T> a(w, x);
  normalise(w.t, a.in.q, s.tr.q), kinematics(w.t, a.th, s.tr);
  for (int b = 0; b < w.t.nb; b++) put(&y[7 * b], s.tr.origin[w.t.root[b]] + s.tr.p[b]), put(&y[7 * b + 3], s.tr.quat[b]);
  for (int d = 0; d < w.t.nv; d++) {
    T* to = &y[7 * w.t.nb + 6 * d];
    put(to, s.tr.S[d].w), put(to + 3, s.tr.S[d].v + cross(s.tr.origin[w.t.root[w.t.dof_body[d]]], s.tr.S[d].w));
  }
}

static void check_kinematics(const World& w, Random& rng) {
  const Tree& t = w.t;
  check_adjoint(
      "kinematics", w.x, 7 * t.nb + 6 * t.nv,
      [&](const Duals& x, Duals& y) {
        Scratch<Dual<double>> s(t);
        kinematics_of(w, x, s, y);
      },
      [&](const std::vector<double>& g, std::vector<double>& x_bar) {
        Scratch<double> s(t);
        std::vector<double> y = g;
        kinematics_of(w, w.x, s, y);
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        bars_clear(t, s.bar);
        for (int i = 0; i < t.nb; i++) {
          Vec3<double> f = vec3_at(&g[7 * i]), m = mul(s.tr.R[i], tangent_bar(s.tr.quat[i], quat_at(&g[7 * i + 3])));
          s.bar.X[i] = {m + cross(s.tr.p[i], f), f};
        }
        for (int d = 0; d < t.nv; d++) {
          Vec3<double> f = vec3_at(&g[7 * t.nb + 6 * d + 3]), origin = s.tr.origin[t.root[t.dof_body[d]]];
          s.bar.S[d] = {vec3_at(&g[7 * t.nb + 6 * d]) - cross(origin, f), f};
        }
        kinematics_adj(t, a.th, s.tr, s.bar, b.th);
        for (int d = 0; d < t.nv; d++) b.q[d] += s.bar.q[d];
        b.finish(w, x_bar);
      },
      rng);
}

// H factored at the world's state, as constants for T
template <class T> static Scratch<T> factored(const World& w) {
  std::vector<T> x(w.x.begin(), w.x.end());
  Scratch<T> s(w.t);
  View<T> a(w, x);
  normalise(w.t, a.in.q, s.tr.q), kinematics(w.t, a.th, s.tr), inertia(w.t, a.th, s.tr);
  for (int d = 0; d < w.t.nv; d++) s.tr.D[d] = a.th.damping[d];
  factor(w.t, a.th, s.tr, a.in.h);
  return s;
}

static void check_solve(const World& w, Random& rng) {
  check_adjoint(
      "solve", rng.vector(w.t.nv), w.t.nv,
      [&](const Duals& r, Duals& y) { solve(w.t, factored<Dual<double>>(w).tr, (y = r).data()); },
      [&](const std::vector<double>& g, std::vector<double>& r_bar) {
        solve_adj(w.t, factored<double>(w).tr, (r_bar = g).data());
      },
      rng);
}

int main() {
  Random rng(9);
  for (int trial = 0; trial < 24; trial++) {
    int form = trial % 2;
    World w = trial < 2    ? World({}, {}, {}, false, form, rng)
              : trial < 4  ? World({-1, 0}, {kFixed, kFixed}, {}, false, form, rng)
              : trial < 14 ? World({-1}, {1 + (trial - 4) / 2}, {}, false, form, rng)
                           : World::random(7 + trial / 3, false, form, rng);
    check_kinematics(w, rng);
    check_op<Velocity>("velocity", w, rng), check_op<BodyInertia>("inertia", w, rng), check_op<Composite>("composite", w, rng);
    check_op<MassRows>("mass_rows", w, rng);
    check_op<InverseDynamics<false>>("inverse_dynamics", w, rng), check_op<InverseDynamics<true>>("bias", w, rng);
    check_solve(w, rng);
  }
  return report("ops_adj");
}
