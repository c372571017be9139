// Solid: one convex shape of one world as numbers, for the first half of collision: vertices, faces, edges, and a radius around them.
//
//   support(d) = the vertex furthest along d;   boxes and cylinders know it from the signs and the sector of d in their own frame
// Everything here and in gjk.h, sat.h, manifold.h, convex.h chooses features, in double, one lane at a time; feature.h differentiates.
#pragma once
#include "../../data/model.h"
#include "../../math/mat3.h"

CS_BEGIN

// In a frame common to both shapes of a pair, with the axes of the world
struct Solid {
  int type, n;                 // ShapeType, vertices
  double r;                    // radius around them: of spheres and capsules
  Vec3<double> p, size;        // its frame, and sizes
  Mat3<double> R;              // columns: axes of its frame
  const Vec3<double>* x;       // [n] vertices
  int faces, edges;            // a sphere and a capsule have no faces; a capsule is one edge, 0 to 1
  const int *loop_adr, *loop;  // face f: vertices loop[loop_adr[f]] .. loop[loop_adr[f + 1] - 1], counterclockwise from outside
  const int* plane;            // [faces, 3] vertices of the face that span its plane best, counterclockwise
  const int* edge;             // [edges, 4] v0, v1, f0, f1: f0 has the edge as v0 -> v1, f1 as v1 -> v0
  double rounding = 0;         // relative error of the numbers above, beyond that of double
};

constexpr int kMaxFaces = 2 * kMaxVertices - 4, kMaxEdges = 3 * kMaxVertices - 6;  // Euler: all faces triangles

// Lengths that count as nothing beside the size of a pair: some thousand roundings. And beside its place in space
constexpr double kNearRounding = 1e-12, kFarRounding = 1e-14;

struct Ball {
  Vec3<double> c;
  double r;
};

// no adjoint: chooses.   a ball around a solid, with its radius
CS_FN Ball solid_ball(const Solid& s) {
  if (s.type == kBox) return {s.p, sqrt(dot(s.size, s.size))};
  if (s.type == kCylinder) return {s.p, sqrt(s.size.x * s.size.x + s.size.y * s.size.y)};
  if (s.n == 1) return {s.x[0], s.r};
  Vec3<double> lo = s.x[0], hi = s.x[0];
  for (int i = 1; i < s.n; i++) {
    lo = {min(lo.x, s.x[i].x), min(lo.y, s.x[i].y), min(lo.z, s.x[i].z)};
    hi = {max(hi.x, s.x[i].x), max(hi.y, s.x[i].y), max(hi.z, s.x[i].z)};
  }
  Vec3<double> c = 0.5 * (lo + hi), h = hi - c;
  double largest = 0;
  for (int i = 0; i < s.n; i++) largest = max(largest, dot(s.x[i] - c, s.x[i] - c));
  return {c, sqrt(min(largest, dot(h, h))) + s.r};
}

// no adjoint: chooses.   sector of the 16 corners of a rim around direction (x, y): tangents of (1, 3, 5, 7) pi/16 bound them
CS_FN int rim_sector(double x, double y) {
  double u = abs(x), v = abs(y);
  int j = (v > 0.198912367379658 * u) + (v > 0.6681786379192989 * u) + (v > 1.496605762665489 * u) + (v > 5.027339492125848 * u);
  int half = x < 0 ? 8 - j : j;
  return y < 0 ? (16 - half) & 15 : half;
}

// no adjoint: chooses.   the vertex furthest along d
CS_FN int support(const Solid& s, Vec3<double> d) {
  if (s.type == kBox || s.type == kCylinder) {
    Vec3<double> l = tmul(s.R, d);
    if (s.type == kBox) return (l.x < 0) + 2 * (l.y < 0) + 4 * (l.z < 0);
    return rim_sector(l.x, l.y) + 16 * (l.z < 0);
  }
  int best = 0;
  double most = dot(d, s.x[0]);
  for (int i = 1; i < s.n; i++) {
    double h = dot(d, s.x[i]);
    if (h > most) most = h, best = i;
  }
  return best;
}

// no adjoint: chooses.   outward normal of a face, as feature.h will find it; a face without area has none
CS_FN Vec3<double> solid_normal(const Solid& s, int f) {
  const int* v = s.plane + 3 * f;
  Vec3<double> c = cross(s.x[v[1]] - s.x[v[0]], s.x[v[2]] - s.x[v[0]]);
  double k2 = dot(c, c);
  return k2 > 0 ? (1 / sqrt(k2)) * c : zero3<double>();
}

// no adjoint: chooses.   the face that looks most along n, and the cosine; -1 if none does
CS_FN int facing(const Solid& s, Vec3<double> n, double& cosine) {
  int best = -1;
  cosine = -2;
  if (s.type == kBox) {
    Vec3<double> l = tmul(s.R, n), m = {abs(l.x), abs(l.y), abs(l.z)};
    int axis = m.x >= m.y ? (m.x >= m.z ? 0 : 2) : (m.y >= m.z ? 1 : 2);
    best = 2 * axis + ((axis == 0 ? l.x : axis == 1 ? l.y : l.z) < 0);
    cosine = dot(solid_normal(s, best), n);
    return best;
  }
  double num = 0, den = 1;  // of the squared cosine: compared without roots
  for (int f = 0; f < s.faces; f++) {
    const int* v = s.plane + 3 * f;
    Vec3<double> m = cross(s.x[v[1]] - s.x[v[0]], s.x[v[2]] - s.x[v[0]]);
    double h = dot(m, n), m2 = dot(m, m);
    if (h > 0 && h * h * den > num * m2) num = h * h, den = m2, best = f;
  }
  if (best >= 0) cosine = sqrt(num / den);
  return best;
}

CS_END
