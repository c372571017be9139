// ties.h and the errors of equality.h: phi against its definition, J against rates of phi, also far off; adjoints of frames, locks, axes
// and couplings against Dual; and the kinks, exactly there.
#include "tie_scene.h"
using namespace test;

using V = Vec3<double>;
using D = Dual<double>;
using Vector = std::vector<double>;

constexpr double kRounding = 1e-12;

// ---- values -------------------------------------------------------------------------------------------------------------------
static V row_of(const Mat3<double>& M, int i) { return i == 0 ? M.r0 : i == 1 ? M.r1 : M.r2; }
static double coordinate(V a, int i) { return i == 0 ? a.x : i == 1 ? a.y : a.z; }

// one row's error from two frames in the world, as the guide defines it
static double phi_by_hand(Frame a, Frame b, int lock, double length) {
  Mat3<double> between = matrix(mul(conj(a.q), b.q));  // R_a^T R_b: entry (m, n) is e_m . b_n
  V d = tmul(matrix(a.q), b.p - a.p);
  if (lock < 3) return coordinate(d, lock);
  if (lock == 3) return std::sqrt(dot(d, d)) - length;
  if (lock < 7) {
    Quat<double> q = mul(conj(a.q), b.q);
    return (q.w < 0 ? -2 : 2) * coordinate(vec(q), lock - 4);
  }
  int r = (lock - 7) / 2, k = (lock - 7) % 2, n = (r + 1 + k) % 3, m = 3 - r - n;
  return (k ? -1 : 1) * coordinate(row_of(between, m), n);
}

// a world after one step, and its errors in the users' order
struct Stepped {
  Scratch<double> s;
  View<double> a;
  Vector y, shown;
  explicit Stepped(const World& w) : s(w.t, 1e30), a(w, w.x), shown(w.t.ne) {
    step_of(w, w.x, s, y);
    for (int r = 0; r < w.t.ne; r++) shown[w.t.shown_row[r]] = s.rw.eq.now.phi[r];
  }
};

static void check_phi(const World& w, const Stepped& n, int* seen) {
  const Structure& s = w.storage.s;
  int r = 0;
  auto frame = [&](int body, int f) { return compose(body_frame(w, n.s, body), {n.a.th.tie_pos[f], n.a.th.tie_quat[f]}); };
  for (int k = 0; k < w.t.n_tie; k++)
    for (int c = s.tie_first[k]; c < s.tie_first[k + 1]; c++, r++) {
      seen[s.lock[c]]++;
      double phi = phi_by_hand(frame(s.tie_a[k], 2 * k), frame(s.tie_b[k], 2 * k + 1), s.lock[c], n.a.th.tie_length[k]);
      CHECK_NEAR(n.shown[r], phi, kRounding);
    }
  for (int k = 0; k < w.t.n_coupling; k++, r++) {
    double x = s.coupling_dof2[k] < 0 ? 0 : w.x[w.storage.coordinate(s.coupling_dof2[k])], sum = 0;
    for (int i = 4; i >= 0; i--) sum = sum * x + n.a.th.coupling[k].c[i];
    CHECK_NEAR(n.shown[r], w.x[w.storage.coordinate(s.coupling_dof1[k])] - sum, kRounding);
  }
  CHECK(r == w.t.ne);
  Scratch<double> e(w.t, 1e30);
  Vector out(w.t.ne, 1e30);
  errors(w.t, n.a.th, e.tr, e.rw.eq, n.a.in.q, out.data());
  CHECK(out == n.shown);
}

// q moved along v: tangents are rates
static Duals moved(const World& w) {
  Duals x(w.x.begin(), w.x.end()), q(w.t.nq), next(w.t.nq);
  normalise(w.t, x.data(), q.data());
  integrate(w.t, q.data(), D(0, 1), x.data() + w.at_v(), next.data());
  for (int i = 0; i < w.t.nq; i++) x[i] = next[i];
  return x;
}

static void check_J(const World& w, const Stepped& n) {
  const Tree& t = w.t;
  Duals x = moved(w), rate(t.ne);
  Scratch<D> d(t);
  View<D> a(w, x);
  errors(t, a.th, d.tr, d.rw.eq, a.in.q, rate.data());
  Vector Jv(t.ne);
  equality_J(t, n.s.rw.eq, n.a.in.v, Jv.data());
  for (int r = 0; r < t.ne; r++) CHECK_NEAR(Jv[r], rate[t.shown_row[r]].tangent, kRounding * (10 + std::fabs(Jv[r])));
}

// ---- two frames as flat numbers: p_a, quat_a, p_b, quat_b, length -----------------------------------------------------------------
static Vector two_frames(Random& rng) {
  Vector x;
  for (int i = 0; i < 2; i++)
    for (const Vector& part : {flat(random_vec(rng)), flat(random_quat(rng))}) x.insert(x.end(), part.begin(), part.end());
  x.push_back(rng.uniform(0.5, 2));
  return x;
}
template <class T> struct TwoFrames {
  Vec3<T> p[2];
  Quat<T> q[2];
  Mat3<T> R[2];
  T length;
  Ties<T> ties{};
  Params<T> th{};
  explicit TwoFrames(const std::vector<T>& x) : length(x[14]) {
    for (int i = 0; i < 2; i++) p[i] = vec3_at(&x[7 * i]), q[i] = quat_normalise(quat_at(&x[7 * i + 3])), R[i] = matrix(q[i]);
    ties.p = p, ties.quat = q, ties.R = R, th.tie_length = &length;
  }
  TwoFrames(const TwoFrames&) = delete;
};
// bars of displacements about the origin, to p and quat
static void put_bar(const Vector& x, int i, const TwoFrames<double>& f, Force<double> F, Vector& x_bar) {
  Quat<double> q_bar = {0, 0, 0, 0};
  quat_normalise_adj(quat_at(&x[7 * i + 3]), tmul(f.R[i], F.n - cross(f.p[i], F.f)), q_bar);
  put(&x_bar[7 * i], vec3_at(&x_bar[7 * i]) + F.f), put(&x_bar[7 * i + 3], q_bar);
}

static void check_lock_adj(const Vector& x, int lock, Random& rng) {
  check_adjoint(
      "lock_row", x, 7,
      [&](const Duals& in, Duals& y) {
        TwoFrames<D> f(in);
        LockRow<D> row = lock_row(f.th, f.ties, 0, lock, f.p[1] - f.p[0]);
        y[0] = row.phi, put(&y[1], row.axis), put(&y[4], lock < kLockTurn ? f.p[1] : zero3<D>());
      },
      [&](const Vector& g, Vector& x_bar) {
        TwoFrames<double> f(x);
        V d = f.p[1] - f.p[0];
        Force<double> a = zero_force<double>(), b = a;
        lock_row_adj(f.ties, 0, lock, d, lock_row(f.th, f.ties, 0, lock, d), g[0], vec3_at(&g[1]), vec3_at(&g[4]), a, b,
                     &x_bar[14]);
        put_bar(x, 0, f, a, x_bar), put_bar(x, 1, f, b, x_bar);
      },
      rng);
}

// a tie within one tree, where both origins are the same
static Tree one_tree(const int& axis) {
  static const int bodies[] = {0, 1}, roots[] = {0, 0};
  Tree t{};
  t.tie_a = bodies, t.tie_b = bodies + 1, t.root = roots, t.tie_axis = &axis;
  return t;
}
static void check_axis_adj(const Vector& x, int axis, Random& rng) {
  Tree t = one_tree(axis);
  check_adjoint(
      "tie_axis", x, 13,
      [&](const Duals& in, Duals& y) {
        TwoFrames<D> f(in);
        TieAxisRow<D> row = tie_axis(t, Trace<D>{}, f.ties, 0);
        y[0] = row.x;
        put(&y[1], row.F_a.n), put(&y[4], row.F_a.f), put(&y[7], row.F_b.n), put(&y[10], row.F_b.f);
      },
      [&](const Vector& g, Vector& x_bar) {
        TwoFrames<double> f(x);
        Force<double> a = zero_force<double>(), b = a;
        Motion<double> A = {vec3_at(&g[1]), vec3_at(&g[4])}, B = {vec3_at(&g[7]), vec3_at(&g[10])};
        tie_axis_adj(t, Trace<double>{}, f.ties, 0, g[0], A, B, a, b);
        put_bar(x, 0, f, a, x_bar), put_bar(x, 1, f, b, x_bar);
      },
      rng);
}

// angle and displacement of frames that are turned about z and moved along it
static void check_axis_values(Random& rng) {
  for (double angle : {-3.0, -1.0, 0.0, 1e-9, 0.5, 3.1}) {
    Frame a = {random_vec(rng), random_quat(rng)}, b = compose(a, {{0, 0, 0.7 * angle}, quat_exp(V{0, 0, angle})});
    Vector x = flat(a.p);
    for (const Vector& part : {flat(a.q), flat(b.p), flat(b.q), Vector{1}}) x.insert(x.end(), part.begin(), part.end());
    TwoFrames<double> f(x);
    CHECK_NEAR(tie_axis(one_tree(kHingeAxis), Trace<double>{}, f.ties, 0).x, angle, 1e-14);
    CHECK_NEAR(tie_axis(one_tree(kSlideAxis), Trace<double>{}, f.ties, 0).x, 0.7 * angle, 1e-14);
  }
}

// ---- frames of a world -------------------------------------------------------------------------------------------------------------
// where each frame is in the world, and two of its axes
template <class T> static void frames_of(const World& w, const std::vector<T>& x, Scratch<T>& s, std::vector<T>& y) {
  View<T> a(w, x);
  normalise(w.t, a.in.q, s.tr.q), kinematics(w.t, a.th, s.tr), ties(w.t, a.th, s.tr, s.rw.eq.now);
  for (int f = 0; f < 2 * w.t.n_tie; f++) {
    int b = f & 1 ? w.t.tie_b[f / 2] : w.t.tie_a[f / 2];
    Vec3<T> p = s.rw.eq.now.p[f];
    put(&y[9 * f], b < 0 ? p : p + s.tr.origin[w.t.root[b]]);
    put(&y[9 * f + 3], axis(s.rw.eq.now.R[f], 0)), put(&y[9 * f + 6], axis(s.rw.eq.now.R[f], 1));
  }
}
static void check_ties_adj(const World& w, Random& rng) {
  Scratch<D> dual(w.t);
  Scratch<double> s(w.t, 1e30);
  check_adjoint(
      "ties", w.x, 18 * w.t.n_tie, [&](const Duals& x, Duals& y) { frames_of(w, x, dual, y); },
      [&](const Vector& g, Vector& x_bar) {
        Vector y = g;
        frames_of(w, w.x, s, y);
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        std::vector<Force<double>> frame;
        for (int f = 0; f < 2 * w.t.n_tie; f++) {
          V p = s.rw.eq.now.p[f], p_bar = vec3_at(&g[9 * f]), n = cross(p, p_bar);
          for (int i = 0; i < 2; i++) n += cross(axis(s.rw.eq.now.R[f], i), vec3_at(&g[9 * f + 3 + 3 * i]));
          frame.push_back({n, p_bar});
        }
        bars_clear(w.t, s.bar);
        ties_adj(w.t, a.th, s.tr, s.rw.eq.now, frame.data(), s.bar, b.th);
        kinematics_adj(w.t, a.th, s.tr, s.bar, b.th);
        for (int d = 0; d < w.t.nv; d++) b.in.q[d] += s.bar.q[d];
        b.finish(w, x_bar);
      },
      rng);
}

static void check_coupling_adj(const World& w, Random& rng) {
  const Tree& t = w.t;
  check_adjoint(
      "coupling_row", w.x, 2 * t.n_coupling,
      [&](const Duals& x, Duals& y) {
        View<D> a(w, x);
        for (int k = 0; k < t.n_coupling; k++) {
          coupling_row(t, a.th, x.data(), k, y[2 * k], y[2 * k + 1]);
          if (t.coupling_dof[2 * k + 1] < 0) y[2 * k + 1] = D(0);  // nobody's slope
        }
      },
      [&](const Vector& g, Vector& x_bar) {
        View<double> a(w, w.x);
        BarView b(w, x_bar);
        for (int k = 0; k < t.n_coupling; k++)
          coupling_row_adj(t, a.th, w.x.data(), k, g[2 * k], t.coupling_dof[2 * k + 1] < 0 ? 0 : g[2 * k + 1], b.in.q, b.th);
        b.finish(w, x_bar);
      },
      rng);
}

// ---- kinks -------------------------------------------------------------------------------------------------------------------------
static bool finite_all(const Vector& x) {
  for (double v : x)
    if (!std::isfinite(v)) return false;
  return true;
}
static Vector frames_at(V p, Quat<double> q) { return {0, 0, 0, 1, 0, 0, 0, p.x, p.y, p.z, q.w, q.x, q.y, q.z, 0.5}; }

// bars of x when phi has one of 1
static Vector phi_bars(const Vector& x, int lock) {
  TwoFrames<double> f(x);
  Vector bar(x.size(), 0.0);
  Force<double> a = zero_force<double>(), b = a;
  V d = f.p[1] - f.p[0];
  lock_row_adj(f.ties, 0, lock, d, lock_row(f.th, f.ties, 0, lock, d), 1.0, {0, 0, 0}, {0, 0, 0}, a, b, &bar[14]);
  put_bar(x, 0, f, a, bar), put_bar(x, 1, f, b, bar);
  return bar;
}

static void check_half_turn(Random& rng) {
  for (double w : {0.0, -0.0}) {
    Vector x = frames_at({0.1, 0.2, 0.3}, {w, 0.6, 0, 0.8});
    TwoFrames<double> f(x);
    // as w > 0: phi = 2 u, and the axis of turn i is u x 1_i
    CHECK(lock_row(f.th, f.ties, 0, 4, f.p[1]).phi == 1.2 && lock_row(f.th, f.ties, 0, 6, f.p[1]).phi == 1.6);
    V z = lock_row(f.th, f.ties, 0, 6, f.p[1]).axis;
    CHECK_NEAR(distance(z, V{0, -0.6, 0}), 0, 1e-15);
    for (int lock : {4, 5, 6}) {
      check_lock_adj(x, lock, rng);
      CHECK(finite_all(phi_bars(x, lock)));
    }
    // turned about x by a half: the angle about z is anything, and has no derivative
    x = frames_at({0, 0, 0}, {w, 1, 0, 0});
    TwoFrames<double> g(x);
    TieAxisRow<double> row = tie_axis(one_tree(kHingeAxis), Trace<double>{}, g.ties, 0);
    Force<double> a = zero_force<double>(), b = a;
    Motion<double> none = zero_motion<double>();
    tie_axis_adj(one_tree(kHingeAxis), Trace<double>{}, g.ties, 0, 1.0, none, none, a, b);
    CHECK(row.x == 0 && dot(a.n, a.n) == 0 && dot(b.n, b.n) == 0);
    // and by a half about z: pi, as w > 0
    x = frames_at({0, 0, 0}, {w, 0, 0, 1});
    TwoFrames<double> h(x);
    CHECK_NEAR(tie_axis(one_tree(kHingeAxis), Trace<double>{}, h.ties, 0).x, 3.14159265358979323846, 1e-15);
    check_axis_adj(x, kHingeAxis, rng);
  }
}

// no distance: along z of a, all of the length is missing, and only the length has a derivative
static void check_no_distance(Random& rng) {
  for (double off : {0.0, 0.9e-9, 1.1e-9}) {
    Vector x = frames_at({off, 0, 0}, {0.6, 0, 0.8, 0}), bar = phi_bars(x, kLockDistance);
    TwoFrames<double> f(x);
    LockRow<double> row = lock_row(f.th, f.ties, 0, kLockDistance, f.p[1]);
    bool some = off > 1e-9;
    CHECK(row.phi == (some ? off : 0) - 0.5 && row.axis.x == some && row.axis.z == !some && bar[14] == -1);
    CHECK(bar[7] == some && bar[0] == -some && bar[8] == 0 && bar[9] == 0 && finite_all(bar));
    if (!some) check_lock_adj(x, kLockDistance, rng);  // the axis turns with a
  }
}

// the turn nearest to what the actuator is told; halfway between two the choice is free, but one of them
static void check_near_turn(Random& rng) {
  Structure s;
  s.parent = {-1, 0}, s.joint = {kFree, kRevolute};
  add_tie(s, -1, 1, {0, 1, 2, 8, 9}, kHingeAxis), add_tie(s, -1, 0, {0, 1, 4, 5, 6}, kSlideAxis);
  for (int tie : {0, 1}) s.motor_dof.push_back(-1), s.motor_tie.push_back(tie), s.actuator.push_back(kServo);
  World w(s, true, rng);
  Params<double> th = w.theta();
  const double pi = 3.14159265358979323846;
  for (double gear : {2.0, -0.5})
    for (double x : {-3.0, 0.0, 2.0})
      for (double turns : {-2.0, -0.5, -0.49, 0.0, 0.49, 0.5, 0.51, 1.0, 7.2}) {
        double u[] = {gear * (x + 2 * pi * turns), 5};
        th.gear[0] = th.gear[1] = gear;
        double near = near_turn(w.t, th, u, 0, x), left = (near - x) / (2 * pi);
        CHECK_NEAR(left, std::round(left), 1e-12);
        CHECK(std::fabs(near - u[0] / gear) <= pi * (1 + 1e-12));
        CHECK(near_turn(w.t, th, u, 1, x) == x);  // a slide has no turns
      }
  th.gear[0] = 0;
  double u[] = {3, 0};
  CHECK(near_turn(w.t, th, u, 0, 1.5) == 1.5);
}

int main() {
  Random rng(31);
  int seen[kLocks] = {};
  for (int trial = 0; trial < 120; trial++) {
    World w = tie_trial(trial, trial % 3 ? 0.01 : 2, rng);
    Stepped n(w);
    check_phi(w, n, seen), check_J(w, n);
    if (w.t.n_tie) check_ties_adj(w, rng);
    if (w.t.n_coupling) check_coupling_adj(w, rng);
    for (int lock = 0; lock < kLocks; lock++) check_lock_adj(two_frames(rng), lock, rng);
    for (int axis : {kHingeAxis, kSlideAxis}) check_axis_adj(two_frames(rng), axis, rng);
  }
  for (int lock = 0; lock < kLocks; lock++) CHECK(seen[lock] > 3);
  check_axis_values(rng), check_half_turn(rng), check_no_distance(rng), check_near_turn(rng);
  return report("ties");
}
