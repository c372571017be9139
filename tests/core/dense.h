// Dense linear algebra by hand, to compare factors and eliminations with.
#pragma once
#include "tie_scene.h"

namespace test {

// x = K^-1 x by elimination with pivots
inline void solve_dense(std::vector<double> K, int n, double* x) {
  for (int k = 0; k < n; k++) {
    int p = k;
    for (int i = k + 1; i < n; i++)
      if (std::fabs(K[i * n + k]) > std::fabs(K[p * n + k])) p = i;
    for (int j = 0; j < n; j++) std::swap(K[k * n + j], K[p * n + j]);
    std::swap(x[k], x[p]);
    for (int i = k + 1; i < n; i++) {
      double m = K[i * n + k] / K[k * n + k];
      for (int j = k; j < n; j++) K[i * n + j] -= m * K[k * n + j];
      x[i] -= m * x[k];
    }
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) x[i] -= K[i * n + j] * x[j];
    x[i] /= K[i * n + i];
  }
}

// H = M + armature + h D, after a step
inline std::vector<double> dense_H(const World& w, const Params<double>& th, const Scratch<double>& s) {
  const Tree& t = w.t;
  Scratch<double> other(t);
  std::vector<double> H(t.nv * t.nv);
  mass_matrix(t, th, other.tr, w.x.data(), H.data());
  for (int d = 0; d < t.nv; d++) H[d * t.nv + d] += w.x[w.at_h()] * s.tr.D[d];
  return H;
}

// J of all equality rows, [ne, nv], after a step
inline std::vector<double> dense_equality_J(const Tree& t, const Scratch<double>& s) {
  std::vector<double> J(t.ne * t.nv, 0.0);
  for (int i = 0; i < t.n_item; i++) {
    Item it = item_at(t, i);
    for (int r = 0; r < it.n; r++)
      for (int k = 0; k < it.m; k++) J[(it.row + r) * t.nv + it.list[k]] = s.rw.eq.J[it.J + r * it.m + k];
  }
  return J;
}

// how little resists a row between two bodies
inline double lightness_by_hand(const Params<double>& th, int a, int b, bool turns) {
  double sum = 0;
  for (int body : {a, b}) {
    if (body < 0) continue;
    const Sym3<double>& I = th.inertia[body];
    sum += turns ? 3 / (I.xx + I.yy + I.zz) : 1 / th.mass[body];
  }
  return sum;
}

// R of equality row r of item i: softness as a spring's, and the floor
inline double equality_R(const World& w, const Params<double>& th, const Options& o, int i, int r) {
  const Tree& t = w.t;
  int k = t.item[i], c = k - t.n_tie;
  double h = w.x[w.at_h()], soft = c < 0 ? th.tie_softness[k] : th.coupling_softness[c], light = 0;
  if (c < 0) light = lightness_by_hand(th, t.tie_a[k], t.tie_b[k], t.lock[r] >= kLockTurn);
  for (int d : {c < 0 ? -1 : t.coupling_dof[2 * c], c < 0 ? -1 : t.coupling_dof[2 * c + 1]}) {
    if (d < 0) continue;
    int b = t.dof_body[d], kind = t.joint[b], at = d - t.v_adr[b];
    light += lightness_by_hand(th, -1, b, kind == kRevolute || (kind == kPlanar && at == 2));
  }
  return o.recovery * soft / (h * h) + o.relative_softness * light + o.absolute_softness;
}

// [H, -J^T; J, R]: its solution is (v, lambda) of H v - J^T lambda = f, J v + R lambda = g
inline std::vector<double> dense_KKT(const World& w, const Params<double>& th, const Scratch<double>& s) {
  const Tree& t = w.t;
  int n = t.nv + t.ne;
  std::vector<double> H = dense_H(w, th, s), J = dense_equality_J(t, s), K(n * n, 0.0);
  for (int d = 0; d < t.nv; d++)
    for (int e = 0; e < t.nv; e++) K[d * n + e] = H[d * t.nv + e];
  for (int r = 0; r < t.ne; r++)
    for (int d = 0; d < t.nv; d++) K[(t.nv + r) * n + d] = J[r * t.nv + d], K[d * n + t.nv + r] = -J[r * t.nv + d];
  for (int i = 0; i < t.n_item; i++)
    for (int r = t.item_row[i]; r < t.item_row[i + 1]; r++) K[(t.nv + r) * (n + 1)] = equality_R(w, th, s.o, i, r);
  return K;
}

}  // namespace test
