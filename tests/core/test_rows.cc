// rows.h, delassus.h, mass_form.h: J against rates of gaps and points, A against the dense H^-1, impulses against the conditions
// they have to fulfil; mass_form against the mass matrix and its adjoint against Dual.
#include "dense.h"
using namespace test;

using V = Vec3<double>;
using D = Dual<double>;
using Vector = std::vector<double>;

// sums over up to 12 bodies; the same through H^-1
constexpr double kRounding = 1e-12, kSolve = 1e-10;

// by hand: one over the mass that a joint row's dof slides, or over the mean moment of inertia that it turns; of a tie that of both bodies
static double joint_lightness(const World& w, const Params<double>& th, const Rows<double>& rw, int i) {
  const Tree& t = w.t;
  int k = rw.item[i][0], tie = rw.kind[i] == kMotorRow ? t.motor_tie[t.row_motor[k]] : -1;
  if (tie >= 0) return lightness_by_hand(th, t.tie_a[tie], t.tie_b[tie], t.tie_axis[tie] == kHingeAxis);
  int d = rw.kind[i] == kDryRow ? t.dry_dof[k] : rw.kind[i] == kMotorRow ? t.motor_dof[t.row_motor[k]] : t.limit_dof[k];
  int b = t.dof_body[d], at = d - t.v_adr[b];
  bool slides = t.joint[b] == kPrismatic || (t.joint[b] == kFree && at < 3) || (t.joint[b] == kPlanar && at < 2);
  return lightness_by_hand(th, -1, b, !slides);
}

// the row of an actuator, as motor_row has it
static RowValues<double> actuator_row(const World& w, const Scratch<double>& s, const View<double>& a, int k) {
  int tie = w.t.motor_tie[k];
  double x = tie < 0 ? 0 : tie_axis(w.t, s.tr, s.rw.eq.now, tie).x;
  return motor_row(w.t, a.th, motor_place(w.t, a.th, s.tr.q, a.in.u, k, x), a.in.u, a.in.h, k);
}

// a world after one step
struct Solved {
  Scratch<double> s;
  View<double> a;
  Vector y;
  Solved(const World& w, const Asked& asked) : s(w.t, 1e30, asked), a(w, w.x) { step_of(w, w.x, s, y); }
};

// the world's kinematics, shapes and candidates as they move with v: tangents are rates
struct Moving {
  Duals x;
  Scratch<D> s;
  View<D> a;
  explicit Moving(const World& w) : x(moving(w)), s(w.t), a(w, x) {
    normalise(w.t, a.in.q, s.tr.q), kinematics(w.t, a.th, s.tr), costate::velocity(w.t, s.tr, a.in.v),
        shapes(w.t, a.th, s.tr, s.rw);
    collide(w.t, a.th, s.tr, s.rw, row_inputs(a.in), s.o);
    limits(w.t, a.th, s.tr.q, a.in.v, a.in.h, s.rw);
  }
  // velocity of the point of body b that is at x, seen from its tree's origin; of the world: none
  V velocity(const World& w, int b, V x) const {
    if (b < 0) return {0, 0, 0};
    const Mat3<D>& R = s.tr.R[b];
    Vec3<D> p = s.tr.p[b], o = s.tr.origin[w.t.root[b]];
    auto value = [](Vec3<D> r) { return V{r.x.value, r.y.value, r.z.value}; };
    auto rate = [](Vec3<D> r) { return V{r.x.tangent, r.y.tangent, r.z.tangent}; };
    Mat3<double> now = {value(R.r0), value(R.r1), value(R.r2)}, turn = {rate(R.r0), rate(R.r1), rate(R.r2)};
    return rate(o) + rate(p) + mul(turn, tmul(now, x - value(p)));
  }
};

// ---- rows ------------------------------------------------------------------------------------------------------------------
static double dense_J(const Rows<double>& rw, int i, int r, int d) {
  Span s = span(rw, i);
  for (int k = 0; k < s.m; k++)
    if (s.col[k] == d) return rw.J[s.J + (r - s.r) * s.m + k];
  return 0;
}
static double dot_J(const World& w, const Rows<double>& rw, int i, int r, const double* v) {
  double sum = 0;
  for (int d = 0; d < w.t.nv; d++) sum += dense_J(rw, i, r, d) * v[d];
  return sum;
}

// how fast what actuator k drives moves: its dof, or b's frame against a's, along or about the axis of the tie
static double motor_rate(const World& w, const Solved& n, const Moving& m, int k) {
  const Tree& t = w.t;
  int tie = t.motor_tie[k];
  if (tie < 0) return w.x[w.at_v() + t.motor_dof[k]];
  int a = t.tie_a[tie], b = t.tie_b[tie];
  const Ties<double>& e = n.s.rw.eq.now;
  V z = axis(e.R[2 * tie], 2), x_b = e.p[2 * tie + 1], x_a = x_b - tie_shift(t, n.s.tr, tie);
  if (t.tie_axis[tie] == kSlideAxis) return dot(z, m.velocity(w, b, x_b) - m.velocity(w, a, x_a));
  // turning: the velocity of points that lie across z from one another
  V across = vec_normalise(cross(z, std::fabs(z.x) < 0.8 ? V{1, 0, 0} : V{0, 1, 0})), side = cross(z, across);
  auto turn = [&](int body, V x) { return dot(side, m.velocity(w, body, x + across) - m.velocity(w, body, x)); };
  return turn(b, x_b) - turn(a, x_a);
}

// a contact's normal row is the rate of its gap, its tangents the velocity of b against a; a limit's row the rate of its distance
static void check_J(const World& w, const Solved& n) {
  Moving m(w);
  const Tree& t = w.t;
  const Rows<double>& rw = n.s.rw;
  const double* v = w.x.data() + w.at_v();
  for (int i = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i], k = rw.item[i][0];
    double Jv = dot_J(w, rw, i, r, v);
    if (rw.kind[i] == kDryRow) CHECK_NEAR(Jv, v[t.dry_dof[k]], 0);
    if (rw.kind[i] == kMotorRow)
      CHECK_NEAR(Jv, n.a.th.gear[t.row_motor[k]] * motor_rate(w, n, m, t.row_motor[k]), kRounding * 10);
    if (rw.kind[i] == kLimitRow) CHECK_NEAR(Jv, m.s.rw.distance[k].tangent, kRounding);
    if (rw.kind[i] != kContactRows) continue;
    CHECK(shown(t, m.s.rw, k) == shown(t, rw, k));
    CHECK_NEAR(m.s.rw.gap[k].value, rw.gap[k], kRounding);
    if (!is_cut(t, rw, k)) CHECK_NEAR(Jv, m.s.rw.gap[k].tangent, kRounding * 10);
    int a, b;
    cand_bodies(t, rw, k, a, b);
    V slip = m.velocity(w, b, rw.x_b[i]) - m.velocity(w, a, rw.x_a[i]);
    CHECK_NEAR(Jv, dot(rw.frame[k].r0, slip), kRounding * 10);
    CHECK_NEAR(dot_J(w, rw, i, r + 1, v), dot(rw.frame[k].r1, slip), kRounding * 10);
    CHECK_NEAR(dot_J(w, rw, i, r + 2, v), dot(rw.frame[k].r2, slip), kRounding * 10);
  }
}

// b = J v* + target, softness and bounds
static void check_b(const World& w, const Solved& n) {
  const Tree& t = w.t;
  const Rows<double>& rw = n.s.rw;
  const Options& o = n.s.o;
  const double *v = w.x.data() + w.at_v(), h = w.x[w.at_h()];
  for (int i = 0; i < rw.count[0]; i++) {
    int r = rw.first_row[i], k = rw.item[i][0];
    double Jv_star = dot_J(w, rw, i, r, rw.v_star), target = 0;
    if (rw.kind[i] == kDryRow) CHECK(rw.hi[r] == h * n.a.th.dry_friction[k] && rw.lo[r] == -rw.hi[r]);
    if (rw.kind[i] == kMotorRow) {
      int f = t.bound[t.row_motor[k]];
      RowValues<double> y = actuator_row(w, n.s, n.a, t.row_motor[k]);
      bool force = t.actuator[t.row_motor[k]] == kMotor;
      CHECK(rw.lo[r] == y.lo && rw.hi[r] == y.hi && (!force || y.lo == y.hi));
      if (f >= 0 && !force) CHECK(rw.lo[r] == h * n.a.th.force_lower[f] && rw.hi[r] == h * n.a.th.force_upper[f]);
      target = y.target;
    }
    if (rw.kind[i] >= kLimitRow) {
      CHECK(rw.lo[r] == 0 && rw.hi[r] == kUnbounded);
      double gap = rw.kind[i] == kLimitRow ? rw.distance[k] : rw.gap[k], Jv = dot_J(w, rw, i, r, v);
      bool touch = rw.kind[i] == kContactRows, soft = touch && rw.soft[k] > 0;
      target = gap >= 0 ? gap / h : soft ? o.recovery * gap / h : std::fmax(o.recovery * gap / h, -o.push_speed);
      if (touch && gap + h * Jv_star < 0 && Jv < -o.bounce_speed && (gap >= 0 || rw.e[k] * Jv < target)) target = rw.e[k] * Jv;
    }
    CHECK_NEAR(rw.b[r], Jv_star + target, kRounding * (10 + std::fabs(target)));
    if (rw.kind[i] != kContactRows) continue;
    CHECK(rw.block_mu[i] == rw.mu[k]);
    for (int j : {1, 2}) CHECK_NEAR(rw.b[r + j], dot_J(w, rw, i, r + j, rw.v_star), kRounding * 10);
  }
}

// ---- A and what the impulses do ---------------------------------------------------------------------------------------------
static void check_A(const World& w, const Solved& n) {
  const Tree& t = w.t;
  const Rows<double>& rw = n.s.rw;
  const Options& o = n.s.o;
  Vector K = dense_KKT(w, n.a.th, n.s), dv(t.nv, 0.0);
  double h = w.x[w.at_h()];
  auto row = [&](int i, int r) {
    Vector J(t.nv);
    for (int d = 0; d < t.nv; d++) J[d] = dense_J(rw, i, r, d);
    return J;
  };
  for (int s = 0; s < rw.count[2]; s++) {
    int first = rw.island_block[s], last = rw.island_block[s + 1], r0 = rw.first_row[first], m = rw.first_row[last] - r0;
    for (int i = first; i < last; i++)
      for (int r = rw.first_row[i]; r < rw.first_row[i + 1]; r++) {
        Vector X = row(i, r);
        X.resize(t.nv + t.ne, 0.0);
        solve_dense(K, t.nv + t.ne, X.data());
        for (int d = 0; d < t.nv; d++) dv[d] += X[d] * rw.lam[r];
        for (int j = first; j < last; j++)
          for (int q = rw.first_row[j]; q < rw.first_row[j + 1]; q++) {
            double A = dot_J(w, rw, j, q, X.data()), soft = 0;
            if (q == r) {
              bool normal = rw.kind[i] == kContactRows && r == rw.first_row[i];
              double slope;
              if (normal) {
                int c = rw.item[i][0];
                soft = o.recovery * rw.soft[c] / (h * h) +
                       kYield * overlap(t, rw, i, rw.gap[c], rw.soft[c], slope) * rw.lightness[c];
              }
              if (rw.kind[i] == kMotorRow) soft = actuator_row(w, n.s, n.a, t.row_motor[rw.item[i][0]]).R;
              double scale = rw.kind[i] == kContactRows ? rw.lightness[rw.item[i][0]] : joint_lightness(w, n.a.th, rw, i);
              soft += o.relative_softness * scale + o.absolute_softness;
            }
            CHECK_NEAR(rw.A[rw.island_A[s] + (r - r0) * m + q - r0], A + soft, kSolve * (1 + std::fabs(A) + soft));
          }
      }
  }
  for (int d = 0; d < t.nv; d++) CHECK_NEAR(n.y[t.nq + d], rw.v_star[d] + dv[d], kSolve * 100);
}

// every row at its bound or at rest; friction inside its cone, and where it slides against the slip
static void check_conditions(const Solved& n, int* states) {
  const Rows<double>& rw = n.s.rw;
  for (int s = 0; s < rw.count[2]; s++) {
    int first = rw.island_block[s], last = rw.island_block[s + 1], r0 = rw.first_row[first], m = rw.first_row[last] - r0;
    auto y = [&](int r) {
      double sum = rw.b[r];
      for (int q = 0; q < m; q++) sum += rw.A[rw.island_A[s] + (r - r0) * m + q] * rw.lam[r0 + q];
      return sum;
    };
    for (int i = first; i < last; i++) {
      int r = rw.first_row[i];
      double lam = rw.lam[r], tol = 1e-8;
      CHECK(lam >= rw.lo[r] - tol && lam <= rw.hi[r] + tol);
      if (lam > rw.lo[r] + tol) CHECK(y(r) < tol);
      if (lam < rw.hi[r] - tol) CHECK(y(r) > -tol);
      if (rw.kind[i] != kContactRows) continue;
      double x1 = rw.lam[r + 1], x2 = rw.lam[r + 2], size = std::hypot(x1, x2), rim = rw.mu[rw.item[i][0]] * lam;
      double y1 = y(r + 1), y2 = y(r + 2), slip = std::hypot(y1, y2);
      CHECK(size <= rim + tol);
      if (size < rim - tol) CHECK(slip < tol);
      if (slip > tol && size > tol) CHECK_NEAR(x1 * y1 + x2 * y2, -size * slip, tol);
      states[lam < tol ? 0 : size < rim - tol ? 1 : 2]++;
    }
  }
}

// sweeps with and without A: the same iterates up to rounding. Softness keeps redundant rows from sharing their load by chance
static void check_forms(const World& w, Asked asked) {
  asked.form = 0, asked.relative_softness = 1e-3;
  Solved dense(w, asked);
  asked.form = 1;
  Solved half(w, asked);
  if (asked.polish && (dense.s.rw.status->solved < 0.5 || half.s.rw.status->solved < 0.5)) return;  // rounding may have grown
  for (int i = 0; i < w.t.nq + w.t.nv; i++) CHECK_NEAR(dense.y[i], half.y[i], kSolve * (1 + std::fabs(dense.y[i])));
}

// ---- mass_form ---------------------------------------------------------------------------------------------------------------
static void check_mass_form(const World& w, Random& rng) {
  const Tree& t = w.t;
  Scratch<double> s(t, 1e30);
  Scratch<D> dual(t);
  View<double> a(w, w.x);
  Vector M(t.nv * t.nv), x = rng.vector(t.nv), y = rng.vector(t.nv);
  mass_matrix(t, a.th, s.tr, a.in.q, M.data());
  double sum = 0;
  for (int d = 0; d < t.nv; d++)
    for (int j = 0; j < t.nv; j++) sum += x[d] * (M[d * t.nv + j] - (d == j ? a.th.armature[d] : 0)) * y[j];
  CHECK_NEAR(mass_form(t, s.tr, x.data(), y.data(), nullptr, t.nb, s.rb), sum, kRounding * 10);
  // S and I as any numbers
  int nS = 6 * t.nv, n = nS + 10 * t.nb;
  Vector flat_in = rng.vector(n);
  Duals xd(x.begin(), x.end()), yd(y.begin(), y.end());
  auto load = [&](auto& tr, auto& in) {
    for (int i = 0; i < nS; i++) (&tr.S[0].w.x)[i] = in[i];
    for (int i = 0; i < 10 * t.nb; i++) (&tr.I[0].m)[i] = in[nS + i];
  };
  check_adjoint(
      "mass_form", flat_in, 1,
      [&](const Duals& in, Duals& out) {
        load(dual.tr, in), out[0] = mass_form(t, dual.tr, xd.data(), yd.data(), nullptr, t.nb, dual.rb);
      },
      [&](const Vector& g, Vector& bar) {
        load(s.tr, flat_in);
        bars_clear(t, s.bar);
        mass_form_adj(t, s.tr, x.data(), y.data(), nullptr, t.nb, s.rb, s.bar);
        for (int i = 0; i < nS; i++) bar[i] = g[0] * (&s.bar.S[0].n.x)[i];
        for (int i = 0; i < 10 * t.nb; i++) bar[nS + i] = g[0] * (&s.bar.I[0].m)[i];
      },
      rng);
}

int main() {
  Random rng(24);
  int states[3] = {};
  for (int trial = 0; trial < 90; trial++) {
    Parts parts;
    parts.limits = parts.dry = parts.servos = trial % 3 != 0;
    parts.moving_plane = trial % 7 == 3, parts.solids = trial % 2, parts.field = trial % 5 == 4;
    World w = trial < 60 ? random_scene(parts, trial / 2 % 2, rng) : tie_trial(trial, 0.01, rng);
    Asked asked;
    asked.project = 0;
    asked.iterations = 500, asked.tolerance = 1e-13, asked.relative_softness = trial % 4 ? 1e-6 : 1e-3;
    Solved n(w, asked);
    check_J(w, n), check_b(w, n), check_A(w, n), check_mass_form(w, rng);
    if (n.s.rw.status->solved > 0.5) check_conditions(n, states);
    check_forms(w, asked);
    asked.iterations = 3, asked.polish = 0;
    check_forms(w, asked);
  }
  CHECK(states[0] > 20 && states[1] > 20 && states[2] > 20);  // separated, sticking, sliding
  return report("rows");
}
