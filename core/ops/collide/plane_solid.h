// plane_solid: which features of a cylinder, a hull or a box touch a plane.
//
//   hull, box   vertices nearer than `reach`: the deepest, then those that spread furthest (spread below)
//   cylinder    the deepest point of either rim, exactly (kRim), and two fixed corners of the nearer rim, five of sixteen sides away from it on
//               either side: with the deepest point they span a triangle around the axis, on which an almost upright cylinder stands.
//               Upright there is no deepest point: four corners of the nearer rim, a quarter apart
// no adjoint in this file: it chooses, feature.h differentiates
#pragma once
#include "feature.h"
#include "solid.h"
#include "vertices.h"

CS_BEGIN

constexpr double kTie = 1e-9;     // differences below this part of a body's size are rounding: the lower number wins
constexpr double kSpread = 1e-6;  // a point this close to the others, in parts of their size, adds nothing
// Sine of the tilt below which corners of a rim replace its deepest point: they miss less than this part of the radius. Float knows the
// direction of the deepest point down to about here, and its derivative by the tilt grows as one over the sine
constexpr double kUpright = 1e-6;
// How much farther away a point must be, for each height above the deepest one, to be taken before a lower one
constexpr double kHigher = 20;
constexpr int kRimApart = 5;  // corners from the deepest point to its companions: 112.5 degrees

// no adjoint: chooses.   the least gap
CS_FN int deepest(const double* gap, int n, double tie) {
  int best = 0;
  for (int i = 1; i < n; i++)
    if (gap[i] < gap[best] - tie) best = i;
  return best;
}

// no adjoint: chooses.   size of a cloud of points, as the largest distance from the first
CS_FN double cloud_size(const Vec3<double>* x, int n) {
  double most = 0;
  for (int i = 1; i < n; i++) most = max(most, dot(x[i] - x[0], x[i] - x[0]));
  return sqrt(most);
}

// no adjoint: chooses
// spread: up to four points out of n, beginning with `first`: the farthest from it, the farthest from that line, the farthest outside of that
// triangle, all seen along the normal. A point that lies higher counts as kHigher times that much closer: what touches comes before what spreads
CS_OP int spread(const Vec3<double>* x, const double* gap, int n, int first, Vec3<double> normal, double size, int pick[4]) {
  Mat3<double> C = tangent_frame(normal);
  double u[kMaxVertices], v[kMaxVertices];                // seen along the normal, from the first point
  double cu[3] = {}, cv[3] = {}, ou[3] = {}, ov[3] = {};  // corners, and directions out of the sides that begin there
  for (int i = 0; i < n; i++) u[i] = dot(C.r1, x[i] - x[first]), v[i] = dot(C.r2, x[i] - x[first]);
  pick[0] = first;
  int found = 1;
  for (; found < 4; found++) {
    int best = -1;
    double most = 0;
    for (int i = 0; i < n; i++) {
      double far = found == 1 ? sqrt(u[i] * u[i] + v[i] * v[i]) : found == 2 ? abs(ou[0] * u[i] + ov[0] * v[i]) : 0;
      for (int k = 0; k < 3 && found == 3; k++) far = max(far, ou[k] * (u[i] - cu[k]) + ov[k] * (v[i] - cv[k]));
      double worth = far - kHigher * (gap[i] - gap[first]);
      if (far > kSpread * size && (best < 0 || worth > most + kTie * size)) best = i, most = worth;
    }
    if (best < 0) break;
    pick[found] = best;
    if (found == 3) continue;
    cu[found] = u[best], cv[found] = v[best];
    for (int k = 0; k < (found == 1 ? 1 : 3); k++) {
      int end = (k + 1) % 3, third = (k + 2) % 3;
      double du = cu[end] - cu[k], dv = cv[end] - cv[k], inv = 1 / sqrt(du * du + dv * dv);
      bool left = du * (cv[third] - cv[k]) - dv * (cu[third] - cu[k]) > 0;  // where the third corner is
      ou[k] = (left ? dv : -dv) * inv, ov[k] = (left ? -du : du) * inv;
    }
  }
  return found;
}

// no adjoint: chooses.   vertex i of b against the plane
CS_FN Feature on_plane(int i) { return {kVertexFace, 0, {i, -1, 0, 1, 2, -1, -1}}; }

// no adjoint: chooses.   n: the plane's normal
CS_OP int choose_plane_cylinder(const Solid& plane, const Solid& b, Vec3<double> n, double reach, Feature out[4]) {
  Vec3<double> ex, ey, axis;
  columns(b.R, ex, ey, axis);
  double c = dot(n, axis), middle = dot(n, b.p - plane.p);
  Vec3<double> down = fma(c, axis, -n);
  double sine = sqrt(dot(down, down));
  // lying, both rims are as near as each other: the first one counts as nearer
  bool second = c > kTie;
  int near = second ? 33 : 32, rim = second ? kRimSides : 0, found = 0;
  auto height = [&](int i) { return dot(n, b.x[i] - plane.p); };
  auto add = [&](const Feature& f, double gap) {
    if (gap < reach) out[found++] = f;
  };
  if (sine < kUpright) {
    for (int k = 0; k < kRimSides; k += kRimSides / 4) add(on_plane(rim + k), height(rim + k));
    return found;
  }
  double up = (second ? -c : c) * b.size.y;  // from the middle to the nearer rim
  add({kRim, 0, {near, 65 - near, 0, 1, 2, -1, -1}}, middle + up - b.size.x * sine);
  if (found == 0) return 0;
  add({kRim, 0, {65 - near, near, 0, 1, 2, -1, -1}}, middle - up - b.size.x * sine);
  int lowest = 0;
  for (int k = 1; k < kRimSides; k++)
    if (height(rim + k) < height(rim + lowest)) lowest = k;
  for (int side = 0; side < 2; side++) {
    int k = rim + (lowest + (side ? kRimSides - kRimApart : kRimApart)) % kRimSides;
    add(on_plane(k), height(k));
  }
  return found;
}

// no adjoint: chooses.   features in which a plane (a) and a cylinder, hull or box (b) touch or are nearer than reach; returns how many
CS_OP int choose_plane(const Solid& plane, const Solid& b, double reach, Feature out[4]) {
  Vec3<double> tx, ty, n, x[kMaxVertices];
  columns(plane.R, tx, ty, n);
  if (b.type == kCylinder) return choose_plane_cylinder(plane, b, n, reach, out);
  double gap[kMaxVertices];
  int id[kMaxVertices], count = 0, pick[4];
  for (int i = 0; i < b.n; i++) {
    gap[count] = dot(n, b.x[i] - plane.p) - b.r;
    if (!(gap[count] < reach)) continue;
    x[count] = b.x[i], id[count++] = i;
  }
  if (count == 0) return 0;
  double size = cloud_size(x, count);
  int found = spread(x, gap, count, deepest(gap, count, kTie * size), n, size, pick);
  for (int k = 0; k < found; k++) out[k] = on_plane(id[pick[k]]);
  return found;
}

CS_END
