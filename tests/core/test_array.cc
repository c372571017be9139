// Loops that read several numbers before they store the first (math/array.h), and the factorisations that are made of them (ops/lu.h, ops/lu_together.h).
#include "../../core/math/array.h"

#include "../../core/base/pack.h"
#include "../../core/ops/lu_together.h"
#include "check.h"
using namespace test;
using namespace costate;

// what `set` does on a GPU is made of set_some
static void check_some(Random& rng) {
  std::vector<double> x = rng.vector(8), y = rng.vector(8), z = y;
  const int places[8] = {5, 0, 7, 2, 1, 6, 3, 4};
  auto place = [&](int k) { return places[k]; };
  auto f = [&](int k) { return y[places[k]] + 2 * x[k]; };
  set_some<4>(y.data(), 0, place, f), set_some<2>(y.data(), 4, place, f), set_some<1>(y.data(), 6, place, f);
  for (int k = 0; k < 8; k++) CHECK(y[places[k]] == z[places[k]] + (k < 7 ? 2 * x[k] : 0));
  set(y.data(), 8, place, [&](int k) { return z[places[k]] + 2 * x[k]; });
  for (int k = 0; k < 8; k++) CHECK(y[places[k]] == z[places[k]] + 2 * x[k]);
  set(y.data(), 0, [](int) { return 1.0; });
  CHECK(y[5] == z[5] + 2 * x[0]);
}

// K x = b where `rows` are not the identity's: the same bits as x, and as z = K^-T b, from the factorisation M of all rows. Without the columns of the others, where
// b is zero
static void check_together(const std::vector<double>& K, const std::vector<double>& M, const std::vector<int>& rows,
                           const std::vector<double>& b, const std::vector<double>& x, const std::vector<double>* z) {
  int n = int(b.size()), count = int(rows.size());
  std::vector<int> cols, at;
  for (int i = 0, k = 0; i < n; i++) {
    bool row = k < count && rows[k] == i;
    k += row;
    if (row) at.push_back(int(cols.size()));
    if (row || z || b[i] != 0) cols.push_back(i);
  }
  std::vector<double> N(n * count), y = b;
  for (size_t j = 0; j < cols.size(); j++)
    for (int k = 0; k < count; k++) N[j * count + k] = K[rows[k] * n + cols[j]];
  Together<double> a = {N.data(), cols.data(), at.data(), int(cols.size()), count};
  factor_together(a);
  for (size_t j = 0; j < cols.size(); j++)
    for (int k = 0; k < count; k++) CHECK(N[j * count + k] == M[rows[k] * n + cols[j]]);
  solve_together(a, y.data());
  for (int i = 0; i < n; i++) CHECK(y[i] == x[i]);
  if (!z) return;
  y = b;
  solve_together_adj(a, y.data());
  for (int i = 0; i < n; i++) CHECK(y[i] == (*z)[i]);
}

// K x = b of n rows, of which about `bound` in ten are rows of the identity, by lu_solve and its adjoint, and the same bits as by the rule itself: that of the
// factorisation without those rows, too
static void check_lu(int n, int bound, Random& rng) {
  std::vector<double> K = rng.vector(n * n), b = rng.vector(n);
  std::vector<int> rows;
  for (int i = 0; i < n; i++) {
    bool held = rng.below(10) < bound;
    if (!held) rows.push_back(i);
    for (int j = 0; j < n; j++) K[i * n + j] = held ? i == j : K[i * n + j] + (i == j ? n : 0);
  }
  std::vector<double> L = K, M = K, x = b, y = b, z = b;
  lu_factor(L.data(), n);
  for (int k = 0; k < n; k++) {
    M[k * n + k] = 1 / M[k * n + k];
    for (int i = k + 1; i < n; i++) {
      M[i * n + k] *= M[k * n + k];
      for (int j = k + 1; j < n; j++) M[i * n + j] = costate::fnma(M[i * n + k], M[k * n + j], M[i * n + j]);
    }
  }
  for (int k = 0; k < n * n; k++) CHECK(L[k] == M[k]);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < i; k++) y[i] = costate::fnma(M[i * n + k], y[k], y[i]);
  for (int i = n - 1; i >= 0; i--) {
    for (int k = n - 1; k > i; k--) y[i] = costate::fnma(M[i * n + k], y[k], y[i]);
    y[i] *= M[i * n + i];
  }
  lu_solve(L.data(), n, x.data()), lu_solve_adj(L.data(), n, z.data());
  for (int i = 0; i < n; i++) {
    double s = 0, t = 0;
    for (int j = 0; j < n; j++) s += K[i * n + j] * x[j], t += K[j * n + i] * z[j];
    CHECK(x[i] == y[i]);
    CHECK_NEAR(s, b[i], 1e-12);
    CHECK_NEAR(t, b[i], 1e-12);
  }
  check_together(K, M, rows, b, x, &z);
  for (int i = 0; i < n; i++)
    if (K[i * n + i] == 1 && rng.below(2)) b[i] = 0;
  x = b, lu_solve(L.data(), n, x.data());
  check_together(K, M, rows, b, x, nullptr);
}

int main() {
  Random rng(3);
  for (int trial = 0; trial < 20; trial++) check_some(rng);
  for (int n = 1; n <= 20; n++)
    for (int bound = 0; bound <= 10; bound += 2) check_lu(n, bound, rng);
  return report("array");
}
