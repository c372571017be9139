// equality_factor.h, elimination.h, equality.h: the order of elimination and its fill, the factor against a dense A, every solve, and a
// step with equality rows against a dense system of equations.
#include <set>

#include "dense.h"
using namespace test;

using Vector = std::vector<double>;

// relative, through H^-1 and through A^-1 with R a millionth of A
constexpr double kSolve = 1e-10, kTwice = 1e-8;

// ---- who is eliminated when ---------------------------------------------------------------------------------------------------
using Lists = std::vector<std::vector<int>>;

// every block that elimination in this order needs, found by marking a full matrix
static void check_fill(const Lists& lists, int nv, int most) {
  Elimination e = eliminate(lists, nv);
  int n = int(lists.size()), blocks = 0;
  std::set<int> all(e.order.begin(), e.order.end());
  CHECK(int(all.size()) == n && int(e.below.size()) == n);
  std::vector<std::vector<bool>> A(n, std::vector<bool>(n));
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int d : lists[e.order[i]])
        for (int c : lists[e.order[j]]) A[i][j] = A[i][j] || c == d;
  for (int k = 0; k < n; k++) {
    std::vector<int> below;
    for (int j = k + 1; j < n; j++)
      if (A[j][k]) below.push_back(j);
    CHECK(below == e.below[k]);
    for (int i : below)
      for (int j : below) A[i][j] = true;
    blocks += int(below.size());
  }
  CHECK(blocks <= most);
}

static void check_orders(Random& rng) {
  for (int n : {1, 2, 3, 10, 57}) {
    Lists chain, ring, star, loops, apart;
    for (int i = 0; i < n; i++) {
      chain.push_back({i, i + 1}), ring.push_back({i, (i + 1) % n}), star.push_back({0, i + 1}), apart.push_back({i});
      loops.push_back({i / 2, i / 2 + 1});  // every pair of neighbours is tied twice
    }
    check_fill(chain, n + 1, n - 1);                 // nothing is added
    check_fill(ring, n, n < 3 ? n - 1 : 2 * n - 3);  // one more for each but the last
    check_fill(star, n + 1, n * (n - 1) / 2);
    check_fill(loops, n + 1, 5 * n), check_fill(apart, n, 0);
  }
  check_fill({}, 3, 0);
  for (int trial = 0; trial < 50; trial++) {
    Lists lists;
    int nv = 1 + rng.below(20);
    for (int i = rng.below(25); i > 0; i--) {
      lists.emplace_back();
      for (int d = 0; d < nv; d++)
        if (rng.below(nv) < 2 || (d + 1 == nv && lists.back().empty())) lists.back().push_back(d);
    }
    check_fill(lists, nv, 1000);
  }
}

// ---- the factor -----------------------------------------------------------------------------------------------------------------
// free bodies, tied as `pairs` say, by one of the first `kinds` of random_locks
static World tied(const std::vector<std::pair<int, int>>& pairs, int nb, int form, Random& rng, int kinds = 8) {
  Structure s;
  s.form = form;
  for (int b = 0; b < nb; b++) s.parent.push_back(-1), s.joint.push_back(kFree);
  for (auto [a, b] : pairs) add_tie(s, a, b, random_locks(rng.below(kinds), rng));
  World w(s, true, rng);
  place_ties(w, 0.05, rng);
  w.x[w.at_h()] = 0.01;
  return w;
}
// a chain that can be put together: its locks do not contradict each other
static World chain(int n, int form, Random& rng) {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < n; i++) pairs.push_back({i - 1, i});
  return tied(pairs, n, form, rng, 5);
}
static World ring(int n, int form, Random& rng) {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < n; i++) pairs.push_back({i, (i + 1) % n});
  return tied(pairs, n, form, rng);
}
static World star(int n, int form, Random& rng) {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 1; i < n; i++) pairs.push_back({i % 2 ? 0 : i, i % 2 ? i : 0});
  return tied(pairs, n, form, rng);
}

struct Stepped {
  Scratch<double> s;
  View<double> a;
  Vector y;
  Stepped(const World& w, const Asked& asked) : s(w.t, 1e30, asked), a(w, w.x) { step_of(w, w.x, s, y); }
};

// the block factor as dense matrices: unit triangle, and what the diagonal holds
static void dense_factor(const Tree& t, const Equality<double>& e, Vector& L, Vector& D) {
  int n = t.ne;
  L.assign(n * n, 0.0), D.assign(n, 0.0);
  for (int i = 0; i < t.n_item; i++) {
    int r0 = t.item_row[i], m = t.item_row[i + 1] - r0;
    for (int r = 0; r < m; r++) {
      L[(r0 + r) * (n + 1)] = 1, D[r0 + r] = 1 / e.L[t.diag_adr[i] + r * (m + 1)];
      for (int c = 0; c < r; c++) L[(r0 + r) * n + r0 + c] = e.L[t.diag_adr[i] + r * m + c];
    }
    for (int f = t.fill_adr[i]; f < t.fill_adr[i + 1]; f++) {
      int j0 = t.item_row[t.fill_item[f]], rows = t.item_row[t.fill_item[f] + 1] - j0;
      for (int r = 0; r < rows; r++)
        for (int c = 0; c < m; c++) L[(j0 + r) * n + r0 + c] = e.L[t.fill_block[f] + r * m + c];
    }
  }
}

// A = J H^-1 J^T + R by hand; X: rows of J H^-1
static Vector dense_A(const World& w, const Stepped& n, Vector& X) {
  const Tree& t = w.t;
  Vector H = dense_H(w, n.a.th, n.s), J = dense_equality_J(t, n.s), A(t.ne * t.ne, 0.0);
  X = J;
  for (int r = 0; r < t.ne; r++) solve_dense(H, t.nv, &X[r * t.nv]);
  for (int r = 0; r < t.ne; r++)
    for (int c = 0; c < t.ne; c++)
      for (int d = 0; d < t.nv; d++) A[r * t.ne + c] += J[r * t.nv + d] * X[c * t.nv + d];
  for (int i = 0; i < t.n_item; i++)
    for (int r = t.item_row[i]; r < t.item_row[i + 1]; r++) A[r * (t.ne + 1)] += equality_R(w, n.a.th, n.s.o, i, r);
  return A;
}

static void check_factor(const World& w, Random& rng) {
  const Tree& t = w.t;
  Asked asked;
  asked.relative_softness = 1e-6, asked.project = 0;
  Stepped n(w, asked);
  const Equality<double>& e = n.s.rw.eq;
  Vector L, D, X, A = dense_A(w, n, X);
  dense_factor(t, e, L, D);
  double size = 0;
  for (double a : A) size = std::fmax(size, std::fabs(a));
  for (int r = 0; r < t.ne; r++)
    for (int c = 0; c < t.ne; c++) {
      double sum = 0;
      for (int k = 0; k <= std::min(r, c); k++) sum += L[r * t.ne + k] * D[k] * L[c * t.ne + k];
      CHECK_NEAR(sum, A[r * t.ne + c], kSolve * size);
    }
  // A x = y with the factor's x
  Vector y = rng.vector(t.ne), x = y, back(t.ne, 0.0), v = rng.vector(t.nv), moved = v, answer(t.ne);
  equality_solve(t, e, x.data());
  double x_size = 0;
  for (double a : x) x_size += std::fabs(a);
  for (int r = 0; r < t.ne; r++) {
    for (int c = 0; c < t.ne; c++) back[r] += A[r * t.ne + c] * x[c];
    CHECK_NEAR(back[r], y[r], 1e-12 * size * x_size);
  }
  // x = H^-1 J^T y
  Vector response(t.nv, 1e30);
  equality_response(t, n.s.tr, e, y.data(), response.data());
  for (int d = 0; d < t.nv; d++) {
    double sum = 0;
    for (int r = 0; r < t.ne; r++) sum += X[r * t.nv + d] * y[r];
    CHECK_NEAR(response[d], sum, kSolve * (1 + std::fabs(sum)));
  }
  // what equality rows leave of H^-1, and what they answer: H x + J^T w = v, J x = R w
  constrained_solve(t, n.s.tr, n.s.rw, moved.data(), answer.data());
  Vector K = dense_KKT(w, n.a.th, n.s), both = v;
  both.resize(t.nv + t.ne, 0.0);
  solve_dense(K, t.nv + t.ne, both.data());
  for (int d = 0; d < t.nv; d++) CHECK_NEAR(moved[d], both[d], kTwice * (1 + std::fabs(both[d])));
  double most = 1;
  for (int r = 0; r < t.ne; r++) most = std::fmax(most, std::fabs(answer[r]));
  for (int r = 0; r < t.ne; r++) CHECK_NEAR(answer[r], -both[t.nv + r], kTwice * most);
}

// ---- a step -------------------------------------------------------------------------------------------------------------------------
// H (v+ - v*) = J_e^T lambda_e + J^T lambda and J_e v+ + recovery phi / h + R lambda_e = 0; v** is the same without the other rows
static void check_equations(const World& w) {
  const Tree& t = w.t;
  Asked asked;
  asked.relative_softness = 1e-6, asked.project = 0, asked.iterations = 300;
  Stepped n(w, asked);
  const Rows<double>& rw = n.s.rw;
  double h = w.x[w.at_h()];
  Vector K = dense_KKT(w, n.a.th, n.s), H = dense_H(w, n.a.th, n.s), x(t.nv + t.ne, 0.0), with;
  for (int d = 0; d < t.nv; d++)
    for (int c = 0; c < t.nv; c++) x[d] += H[d * t.nv + c] * (w.x[w.at_v() + c] + h * n.s.tr.acc[c]);
  for (int r = 0; r < t.ne; r++) x[t.nv + r] = -n.s.o.recovery / h * rw.eq.now.phi[r];
  with = x;
  add_J(rw, rw.lam, with.data());
  solve_dense(K, t.nv + t.ne, x.data()), solve_dense(K, t.nv + t.ne, with.data());
  double speed = 1, push = 1;
  for (int d = 0; d < t.nv; d++) speed = std::fmax(speed, std::fabs(with[d]));
  for (int r = 0; r < t.ne; r++) push = std::fmax(push, std::fabs(with[t.nv + r]));
  for (int d = 0; d < t.nv; d++) {
    CHECK_NEAR(rw.v_star[d], x[d], kTwice * speed);
    CHECK_NEAR(n.y[t.nq + d], with[d], kTwice * speed);
    CHECK_NEAR(rw.dv[d], with[d] - w.x[w.at_v() + d] - h * n.s.tr.acc[d], kTwice * speed);
  }
  for (int r = 0; r < t.ne; r++) CHECK_NEAR(rw.eq.lam[r], with[t.nv + r], kTwice * push);
  // what the status says
  double drift = 0, missed = 0;
  for (int i = 0; i < t.n_item; i++)
    for (int r = t.item_row[i]; r < t.item_row[i + 1]; r++) {
      int k = t.item[i];
      if ((k < t.n_tie ? n.a.th.tie_softness[k] : n.a.th.coupling_softness[k - t.n_tie]) > 0) continue;
      drift = std::fmax(drift, std::fabs(rw.eq.now.phi[r]));
      missed = std::fmax(missed, std::fabs(equality_R(w, n.a.th, n.s.o, i, r) * rw.eq.lam[r]));
    }
  CHECK(rw.status->drift == drift);
  if (!rw.count[0]) CHECK(rw.status->solved == 1 && rw.status->residual == 0 && rw.status->sweeps == 0);
  CHECK_NEAR(rw.status->contradiction, missed, 1e-10 * (1 + missed));
}

// ---- projection ----------------------------------------------------------------------------------------------------------------------
// hard rows come closer with every Newton step; q+ = q (+) h v+ all along; soft rows and worlds without ties are left alone
static void check_project(const World& w) {
  const Tree& t = w.t;
  double before = 0;
  for (int steps : {0, 1, 2, 6}) {
    Asked asked;
    asked.project = steps;
    Stepped n(w, asked);
    Vector next(t.nq), phi(t.ne);
    integrate(t, n.s.tr.q, w.x[w.at_h()], n.y.data() + t.nq, next.data());
    for (int i = 0; i < t.nq; i++) CHECK(next[i] == n.y[i]);
    Scratch<double> e(t, 1e30);
    errors(t, n.a.th, e.tr, e.rw.eq, n.y.data(), phi.data());
    double worst = 0;
    for (int r = 0; r < t.ne; r++)
      if (!(n.s.rw.eq.softness[r] > 0)) worst = std::fmax(worst, std::fabs(phi[t.shown_row[r]]));
    if (steps == 0) before = worst;
    if (steps == 1) CHECK(worst < 0.3 * before + 1e-12);
    if (steps == 6) CHECK(worst < 1e-4 * before + 1e-11);
  }
}

// the impulses that are told belong to the velocity after the projection
static void check_total(const World& w) {
  const Tree& t = w.t;
  Asked asked;
  asked.relative_softness = 1e-6, asked.project = 2;
  Stepped n(w, asked);
  const Rows<double>& rw = n.s.rw;
  Vector H = dense_H(w, n.a.th, n.s), J = dense_equality_J(t, n.s);
  for (int d = 0; d < t.nv; d++) {
    double left = 0, right = 0, size = 1;
    for (int c = 0; c < t.nv; c++) {
      double change = n.y[t.nq + c] - w.x[w.at_v() + c] - w.x[w.at_h()] * n.s.tr.acc[c];
      left += H[d * t.nv + c] * change, size += std::fabs(H[d * t.nv + c] * change);
    }
    for (int r = 0; r < t.ne; r++) right += J[r * t.nv + d] * rw.eq.total[r], size += std::fabs(J[r * t.nv + d] * rw.eq.total[r]);
    for (int i = 0; i < rw.count[0]; i++) {
      Span s = span(rw, i);
      for (int k = 0; k < s.n * s.m; k++)
        if (s.col[k % s.m] == d)
          right += rw.J[s.J + k] * rw.lam[s.r + k / s.m], size += std::fabs(rw.J[s.J + k] * rw.lam[s.r + k / s.m]);
    }
    CHECK_NEAR(left, right, kTwice * size);
  }
}

// rows that are far off are left to the recovery: at 0.1 and above
static void check_far(Random& rng) {
  for (double off : {0.09, 0.2}) {
    World w = tied({{-1, 0}}, 1, kSparse, rng, 1);
    w.theta().tie_pos[0] = {0, 0, 0}, w.theta().tie_softness[0] = 0, w.theta().gravity[0] = {0, 0, 0};
    w.theta().tie_pos[1] = {off, off, off}, w.theta().tie_quat[0] = w.theta().tie_quat[1] = {1, 0, 0, 0};
    for (int i = 0; i < 7; i++) w.x[i] = i == 3;
    for (int d = 0; d < 6; d++) w.x[w.at_v() + d] = 0;
    Asked none, some;
    none.project = 0, none.recovery = 1e-3, some = none, some.project = 1;
    bool same = Stepped(w, none).y == Stepped(w, some).y;
    CHECK(same == (off > 0.1));
  }
}

// soft rows pull, but are not projected
static void check_soft(World w) {
  for (int k = 0; k < w.t.n_tie; k++) w.theta().tie_softness[k] = 1e-4;
  Asked none, some;
  none.project = 0, some.project = 3;
  CHECK(Stepped(w, none).y == Stepped(w, some).y);
  Vector q(w.t.nq), delta(w.t.nv);
  Scratch<double> s(w.t, 1e30);
  View<double> a(w, w.x);
  settle(w.t, a.th, s.tr, s.rw, a.in.q, delta.data(), q.data());
  for (double d : delta) CHECK_NEAR(d, 0, 1e-20);
}

// settle puts a chain together
static void check_settle(World w) {
  const Tree& t = w.t;
  for (int k = 0; k < t.n_tie; k++) w.theta().tie_softness[k] = 0;
  Vector q(w.x.begin(), w.x.begin() + t.nq), next(t.nq), delta(t.nv), phi(t.ne);
  View<double> a(w, w.x);
  double first = 0, worst = 0;
  for (int step = 0; step < 12; step++) {
    Scratch<double> s(t, 1e30);
    settle(t, a.th, s.tr, s.rw, q.data(), delta.data(), next.data());
    worst = 0;
    for (int r = 0; r < t.ne; r++) worst = std::fmax(worst, std::fabs(s.rw.eq.now.phi[r]));
    if (!step) first = worst;
    q = next;
  }
  CHECK(worst < 1e-8 * first + 1e-12);
}

// two ties that contradict each other: finite, missed by half each, and said so
static void check_contradiction(Random& rng) {
  World w = tied({{-1, 0}, {-1, 0}}, 1, kSparse, rng);
  Structure s = w.storage.s;
  s.tie_a = s.tie_b = s.tie_axis = s.tie_first = s.lock = {};
  for (int k = 0; k < 2; k++) add_tie(s, -1, 0, {0, 1, 2, 4, 5, 6});
  World twice(s, true, rng);
  for (double& x : twice.x) x = 0;
  Params<double> th = twice.theta();
  th.mass[0] = 2, th.inertia[0] = {1, 1, 1, 0, 0, 0}, th.joint_quat[0] = {1, 0, 0, 0}, th.rest[3] = 1;
  for (int f = 0; f < 4; f++) th.tie_quat[f] = {1, 0, 0, 0};
  th.tie_pos[0] = {0.01, 0, 0}, th.tie_pos[2] = {-0.01, 0, 0};
  twice.x[3] = 1, twice.x[twice.at_h()] = 0.01;
  Stepped n(twice, Asked());
  for (double v : n.y) CHECK(std::isfinite(v));
  for (int d = 0; d < 6; d++) CHECK_NEAR(n.y[7 + d], 0, 1e-9);
  CHECK_NEAR(n.s.rw.status->drift, 0.01, 1e-15);
  CHECK_NEAR(n.s.rw.status->contradiction, 0.2, 1e-6);  // recovery 0.2, 0.01 m, 0.01 s
  // settled, it is in the middle
  twice.x[0] = 0.003, twice.x[1] = 0.2;
  Vector q(7), delta(6);
  Scratch<double> e(twice.t, 1e30);
  settle(twice.t, th, e.tr, e.rw, twice.x.data(), delta.data(), q.data());
  for (int i = 0; i < 7; i++) CHECK_NEAR(q[i], i == 3, 1e-8);
  Options o = settle_options<double>();
  CHECK(o.relative_softness > 0 && o.absolute_softness > 0 && settle_options<float>().relative_softness > o.relative_softness);
}

int main() {
  Random rng(32);
  check_orders(rng), check_contradiction(rng), check_far(rng);
  for (int form : {kSparse, kArticulated})
    for (int n : {1, 2, 5, 12}) {
      World c = chain(n, form, rng);
      CHECK(int(c.storage.equality.fill_item.size()) == n - 1);
      check_factor(c, rng), check_equations(c), check_settle(c);
      if (n > 1) check_factor(star(n, form, rng), rng);
      if (n > 2) check_factor(ring(n, form, rng), rng), check_equations(ring(n, form, rng));
    }
  for (int trial = 0; trial < 60; trial++) {
    World w = tie_trial(trial, 0.01, rng);
    check_factor(w, rng), check_equations(w), check_total(w);
  }
  for (int form : {kSparse, kArticulated}) check_project(chain(4, form, rng)), check_soft(chain(4, form, rng));
  return report("equality");
}
