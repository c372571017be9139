// gjk: the closest points of two solids that are apart, as vertices of both and their weights (Gilbert, Johnson, Keerthi 1988).
//
//   M = B - A,  v = the point of M closest to the origin,  v = sum of l_i w_i,  w_i = x_b[ib_i] - x_a[ia_i],  l_i > 0,  at most three
//   step: w = the vertex of M furthest along -v;  v . w/|v| <= distance <= |v|;  v becomes the closest point of the simplex with w
// A step that does not bring v closer is rounding: the simplex before it is the answer. Vertices of M are finitely many, so this ends.
#pragma once
#include "solid.h"

CS_BEGIN

struct Simplex {
  int n, ia[4], ib[4];
  Vec3<double> w[4];
  double l[4];     // weights
  Vec3<double> v;  // its point closest to the origin
  double least;    // the solids are this far apart at least: along v
};

enum Meeting : int { kFar = 0, kApart = 1, kOverlap = 2 };

// no adjoint: chooses.   the part of a simplex made of its corners i, j, k (-1: none), with weights and closest point
CS_FN Simplex part(const Simplex& s, int i, int j, int k, double li, double lj, double lk, Vec3<double> v) {
  Simplex y = {k >= 0 ? 3 : j >= 0 ? 2 : 1, {}, {}, {}, {li, lj, lk, 0}, v, 0};
  int from[3] = {i, j, k};
  for (int c = 0; c < y.n; c++) y.ia[c] = s.ia[from[c]], y.ib[c] = s.ib[from[c]], y.w[c] = s.w[from[c]];
  return y;
}

// no adjoint: chooses.   closest point of the segment of corners i and j
CS_FN Simplex on_segment(const Simplex& s, int i, int j) {
  Vec3<double> e = s.w[j] - s.w[i];
  double num = -dot(s.w[i], e), den = dot(e, e);
  if (!(num > 0)) return part(s, i, -1, -1, 1, 0, 0, s.w[i]);
  if (!(num < den)) return part(s, j, -1, -1, 1, 0, 0, s.w[j]);
  double t = num / den;
  return part(s, i, j, -1, 1 - t, t, 0, fma(t, e, s.w[i]));
}

// no adjoint: chooses.   closest point of the triangle i, j, k; k is the newest corner, and edge (i, j) is known to be further away
CS_FN Simplex on_triangle(const Simplex& s, int i, int j, int k) {
  Vec3<double> a = s.w[i] - s.w[k], b = s.w[j] - s.w[k], o = -s.w[k], c = cross(a, b);
  double c2 = dot(c, c), la = dot(cross(o, b), c), lb = dot(cross(a, o), c), lk = c2 - la - lb;
  if (la > 0 && lb > 0 && lk > 0) {
    double inv = 1 / c2;
    return part(s, i, j, k, inv * la, inv * lb, inv * lk, (-inv * dot(o, c)) * c);
  }
  Simplex y = on_segment(s, i, k), z = on_segment(s, j, k);
  return dot(z.v, z.v) < dot(y.v, y.v) ? z : y;
}

// no adjoint: chooses.   closest point of the tetrahedron, whose newest corner is 3; n = 4 if the origin is inside. outside: it is known not
// to be, whatever rounding makes of a flat tetrahedron
CS_FN Simplex on_tetrahedron(const Simplex& s, bool outside) {
  const int face[3][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}};  // two corners, and the one opposite
  Simplex best = s;
  double least = 0;
  for (const int* f : face) {
    Vec3<double> c = cross(s.w[f[0]] - s.w[3], s.w[f[1]] - s.w[3]);
    // the origin on the side of the opposite corner: this face is not the closest
    double inner = dot(c, s.w[f[2]] - s.w[3]), origin = -dot(c, s.w[3]);
    if (!outside && inner * origin > 0) continue;
    Simplex y = on_triangle(s, f[0], f[1], 3);
    double d2 = dot(y.v, y.v);
    if (best.n == 4 || d2 < least) best = y, least = d2;
  }
  return best;
}

// no adjoint: chooses.   kFar: further apart than reach (of the vertices, radii not counted); kApart: s has the closest points; kOverlap:
// nearer than tiny. d: a first direction from a to b. scale: the size of all numbers, for rounding
CS_OP int gjk(const Solid& a, const Solid& b, Vec3<double> d, double reach, double tiny, double scale, Simplex& s) {
  const double rounding = 1e-15;  // of v . w relative to |v| |w|
  s.n = 1, s.l[0] = 1, s.least = 0;
  s.ia[0] = support(a, d), s.ib[0] = support(b, -d);
  s.v = s.w[0] = b.x[s.ib[0]] - a.x[s.ia[0]];
  for (int step = 0; step < 4 * kMaxVertices; step++) {
    double v2 = dot(s.v, s.v);
    if (!(v2 > tiny * tiny)) return kOverlap;
    int ia = support(a, s.v), ib = support(b, -s.v);
    Vec3<double> w = b.x[ib] - a.x[ia];
    double vw = dot(s.v, w), length = sqrt(v2);
    s.least = vw / length;
    if (s.least > reach) return kFar;
    if (!(v2 - vw > rounding * length * (length + scale))) return kApart;
    Simplex next = s;
    int k = next.n++;
    next.ia[k] = ia, next.ib[k] = ib, next.w[k] = w;
    next = k == 1 ? on_segment(next, 0, 1) : k == 2 ? on_triangle(next, 0, 1, 2) : on_tetrahedron(next, s.least > tiny);
    if (next.n == 4) return kOverlap;
    if (!(dot(next.v, next.v) < v2)) break;
    s = next;
  }
  return s.least > 0 ? kApart : kOverlap;
}

CS_END
