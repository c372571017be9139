// sat: the axis along which two solids are furthest apart, or overlap least: separating axes (Gottschalk et al. 1996; Gregorius 2013).
//
//   s(n) = min over b of n . x - max over a of n . x;   the largest s is at a face of B - A: a face of a, one of b, or two edges:
//   edges i of a and j of b make a face where the arc between the normals at i crosses that between the negated normals at j
// s is the overlap, negative, if the solids overlap, and a lower bound of the distance if they do not. Of axes that are equally good up
// to `tie` the first counts: faces of a, faces of b, edges. Edges must be better than faces by `prefer`: see kPreferFace in convex.h.
#pragma once
#include "solid.h"

CS_BEGIN

enum AxisKind : int { kFaceOfA = 0, kFaceOfB = 1, kTwoEdges = 2 };

struct Axis {
  int kind, face;  // of the solid that has it
  int v[4];        // of two edges: vertices of a, of b
  double s;
  Vec3<double> n;  // a -> b
};

// Two edges that span nothing: below a sine of 3e-8, of unequal edges of the root of their ratio more. Rounding turns their normal by 1e-16
// over the sine, which moves the longer one's end as far as the shorter one, turned by the sine, reaches sideways
constexpr double kParallelEdges = 1e-15;

// no adjoint: chooses.   c = e x f
CS_FN bool parallel(Vec3<double> e, Vec3<double> f, Vec3<double> c) {
  double e2 = dot(e, e), f2 = dot(f, f), c2 = dot(c, c);
  return !(c2 * sqrt(min(e2, f2)) > kParallelEdges * e2 * f2 * sqrt(max(e2, f2)));
}

// ---- two boxes ----------------------------------------------------------------------------------------------------------------
// no adjoint: chooses.   entry i of a vector
CS_FN double entry(Vec3<double> a, int i) { return i == 0 ? a.x : i == 1 ? a.y : a.z; }

// no adjoint: chooses.   ends of the edge along axis i that is furthest along n
CS_FN void box_edge(const Solid& s, int i, Vec3<double> n, int* v) {
  int end = support(s, n);
  v[0] = end & ~(1 << i), v[1] = end | 1 << i;
}

// no adjoint: chooses.   all 15 axes in closed form; C_ij = a_i . b_j, t = centre of b seen from a
CS_OP Axis box_axis(const Solid& a, const Solid& b, double tie, double prefer) {
  Vec3<double> e[3], f[3], d = b.p - a.p;
  columns(a.R, e[0], e[1], e[2]), columns(b.R, f[0], f[1], f[2]);
  double C[3][3], Q[3][3], t[3], u[3], h[3] = {a.size.x, a.size.y, a.size.z}, g[3] = {b.size.x, b.size.y, b.size.z};
  for (int i = 0; i < 3; i++) {
    t[i] = dot(e[i], d), u[i] = dot(f[i], d);
    for (int j = 0; j < 3; j++) C[i][j] = dot(e[i], f[j]), Q[i][j] = abs(C[i][j]);
  }
  Axis best = {kFaceOfA, 0, {-1, -1, -1, -1}, -1e300, e[0]};
  int along = 0, i_best = -1, j_best = -1;
  for (int i = 0; i < 3; i++) {
    double s = abs(t[i]) - (h[i] + g[0] * Q[i][0] + g[1] * Q[i][1] + g[2] * Q[i][2]);
    if (s > best.s + tie) best.s = s, along = i;
  }
  for (int j = 0; j < 3; j++) {
    double s = abs(u[j]) - (g[j] + h[0] * Q[0][j] + h[1] * Q[1][j] + h[2] * Q[2][j]);
    if (s > best.s + tie) best.s = s, best.kind = kFaceOfB, along = j;
  }
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;
      double sine2 = C[i1][j] * C[i1][j] + C[i2][j] * C[i2][j];
      if (!(sine2 * min(h[i], g[j]) > kParallelEdges * max(h[i], g[j]))) continue;
      // n ~ a_i x b_j = C_i1,j a_i2 - C_i2,j a_i1
      double s =
          abs(t[i2] * C[i1][j] - t[i1] * C[i2][j]) - (h[i1] * Q[i2][j] + h[i2] * Q[i1][j] + g[j1] * Q[i][j2] + g[j2] * Q[i][j1]);
      s /= sqrt(sine2);
      if (s > best.s + (best.kind == kTwoEdges ? tie : prefer)) best.s = s, best.kind = kTwoEdges, i_best = i, j_best = j;
    }
  if (best.kind == kTwoEdges) {
    best.n = vec_normalise(cross(e[i_best], f[j_best]));
    if (dot(best.n, d) < 0) best.n = -best.n;
    box_edge(a, i_best, best.n, best.v), box_edge(b, j_best, -best.n, best.v + 2);
    return best;
  }
  bool of_a = best.kind == kFaceOfA, back = of_a ? t[along] < 0 : u[along] > 0;  // faces of b look against n
  best.face = 2 * along + back;
  best.n = solid_normal(of_a ? a : b, best.face);
  if (!of_a) best.n = -best.n;
  return best;
}

// ---- any two ------------------------------------------------------------------------------------------------------------------
// no adjoint: chooses.   faces of f against the vertices of g
CS_FN void face_axes(const Solid& f, const Solid& g, const Vec3<double>* normal, int kind, double tie, Axis& best) {
  int w = 0;
  for (int k = 0; k < f.faces; k++) {
    Vec3<double> n = normal[k], x = f.x[f.plane[3 * k]];
    if (dot(n, n) < 0.5 || dot(n, g.x[w] - x) <= best.s + tie) continue;  // the last vertex is one too many already
    w = support(g, -n);
    double s = dot(n, g.x[w] - x);
    if (s > best.s + tie) best = {kind, k, {-1, -1, -1, -1}, s, kind == kFaceOfA ? n : -n};
  }
}

// An edge of a solid: its direction, and the normals beside it; of a capsule any normal across it
struct Ridge {
  int v[2];
  Vec3<double> x, e, n0, n1;
  bool any;
};

// no adjoint: chooses
CS_FN Ridge ridge(const Solid& s, const Vec3<double>* normal, int k) {
  bool any = s.faces == 0;
  int v0 = any ? 0 : s.edge[4 * k], v1 = any ? 1 : s.edge[4 * k + 1];
  Ridge y = {{v0, v1}, s.x[v0], s.x[v1] - s.x[v0], zero3<double>(), zero3<double>(), any};
  if (!any) y.n0 = normal[s.edge[4 * k + 2]], y.n1 = normal[s.edge[4 * k + 3]];
  return y;
}

// no adjoint: chooses.   can a plane on this edge keep q further away than s? n . w over the arc from n0 to n1 is largest at an end, or
// where it meets w
CS_FN bool may_separate(const Ridge& g, Vec3<double> q, double s) {
  Vec3<double> w = q - g.x;
  double d0 = dot(g.n0, w), d1 = dot(g.n1, w);
  if (d0 > s || d1 > s) return true;
  double c = dot(g.n0, g.n1);
  if (d1 <= c * d0 || d0 <= c * d1) return false;
  double we = dot(w, g.e), across2 = dot(w, w) - we * we / dot(g.e, g.e);
  return s < 0 || across2 > s * s;
}

// no adjoint: chooses.   does the pair of edges make a face of b - a? Arcs on the sphere cross
CS_FN bool arcs_cross(const Ridge& a, const Ridge& b) {
  double a0 = dot(a.n0, b.e), a1 = dot(a.n1, b.e), b0 = -dot(b.n0, a.e), b1 = -dot(b.n1, a.e);
  if (a.any) return b0 * b1 < 0;
  if (b.any) return a0 * a1 < 0;
  return a0 * a1 < 0 && b0 * b1 < 0 && b0 * a1 > 0;
}

// no adjoint: chooses.   edges that can still separate by more than `least`; q: a vertex of the other solid, deep in this one; then each
// edge asks for the vertex that lies deepest below itself
CS_FN int ridges(const Solid& s, const Solid& other, const Vec3<double>* normal, Vec3<double> q, double least, int* list) {
  if (s.faces == 0) return list[0] = 0, s.n - 1;
  double level[kMaxFaces];  // of q above each face, so above its edges
  for (int f = 0; f < s.faces; f++) level[f] = dot(normal[f], q - s.x[s.plane[3 * f]]);
  int count = 0;
  for (int k = 0; k < s.edges; k++) {
    // between two faces that q lies below, nothing is higher than at one of them
    if (least < 0 && level[s.edge[4 * k + 2]] <= least && level[s.edge[4 * k + 3]] <= least) continue;
    Ridge g = ridge(s, normal, k);
    if (may_separate(g, q, least) && may_separate(g, other.x[support(other, -(g.n0 + g.n1))], least)) list[count++] = k;
  }
  return count;
}

// no adjoint: chooses
CS_FN void edge_axes(const Solid& a, const Solid& b, const Vec3<double>* normal_a, const Vec3<double>* normal_b, double tie,
                     double prefer, Axis& best) {
  int list_a[kMaxEdges], list_b[kMaxEdges];
  int na = ridges(a, b, normal_a, b.x[support(b, -best.n)], best.s + prefer, list_a);
  int nb = ridges(b, a, normal_b, a.x[support(a, best.n)], best.s + prefer, list_b);
  for (int i = 0; i < na; i++) {
    Ridge g = ridge(a, normal_a, list_a[i]);
    for (int j = 0; j < nb; j++) {
      Ridge h = ridge(b, normal_b, list_b[j]);
      if (!arcs_cross(g, h)) continue;
      Vec3<double> c = cross(g.e, h.e);
      if (parallel(g.e, h.e, c)) continue;
      double out = g.any ? -dot(c, h.n0 + h.n1) : dot(c, g.n0 + g.n1), k = (out < 0 ? -1 : 1) / sqrt(dot(c, c));
      double s = k * dot(c, h.x - g.x);
      if (s > best.s + (best.kind == kTwoEdges ? tie : prefer))
        best = {kTwoEdges, -1, {g.v[0], g.v[1], h.v[0], h.v[1]}, s, k * c};
    }
  }
}

// no adjoint: chooses.   at least one of them has faces.
CS_OP Axis solid_axis(const Solid& a, const Solid& b, double tie, double prefer) {
  if (a.type == kBox && b.type == kBox) return box_axis(a, b, tie, prefer);
  Vec3<double> normal_a[kMaxFaces], normal_b[kMaxFaces];
  for (int f = 0; f < a.faces; f++) normal_a[f] = solid_normal(a, f);
  for (int f = 0; f < b.faces; f++) normal_b[f] = solid_normal(b, f);
  Axis best = {kFaceOfA, -1, {-1, -1, -1, -1}, -1e300, {0, 0, 1}};
  face_axes(a, b, normal_a, kFaceOfA, tie, best);
  face_axes(b, a, normal_b, kFaceOfB, tie, best);
  edge_axes(a, b, normal_a, normal_b, tie, prefer, best);
  return best;
}

CS_END
