// manifold: where two faces nearly lie on each other, at most four points that hold them: the incident polygon, clipped to the prism that
// stands on the reference face.
//
//   spots: vertices of the incident polygon inside the prism; corners of the reference face inside the incident polygon; where an edge of
//   the incident polygon is cut by a side of the prism. Vertices come first: of spots that coincide the first counts
//   kept: the deepest, the one furthest from it, and twice the one that adds most area. Ties go to the first, so that a stack of equal
//   boxes keeps its four corners
// All in the plane of the reference face: (x, y) in it, z above it. An incident capsule is its edge, a sphere its centre.
#pragma once
#include "../../data/feature.h"
#include "segments.h"
#include "solid.h"

CS_BEGIN

constexpr int kMaxSpots = 2 * kMaxVertices;
constexpr double kInside = 1e-9;    // of the smaller solid: how far outside a point still counts as inside, against rounding
constexpr double kTogether = 1e-4;  // of the smaller solid: closer spots carry nothing that one of them does not
// Height over distance, or sine between two faces: what is steeper is on its way to touch, not touching
constexpr double kSteepest = 0.2;
constexpr double kSameMeasure = 1e-6;  // relative: distances and areas that count as equal
constexpr double kAlongSide = 1e-6;    // sine: an edge that runs along a side is not cut by it

// A reference face and what lies on it
struct Patch {
  const Solid *f, *g;            // with the reference face; incident
  int face, swap;                // swap 1: f is shape b
  Vec3<double> n;                // outward normal of the face
  const int *ref, *inc, *plane;  // vertices of both polygons; plane: three of the incident one, null if it is no face
  int n_ref, n_inc;
  double size;  // of the smaller solid
};

struct Spot {
  double x, y, z,
      gap;  // z: height of the incident polygon. The gap of a corner is measured across that polygon, all others across the face
  int corner, v0, v1, side;  // corner 1: of the reference face; v1 >= 0: edge v0, v1 of g, cut at side `side` of the face
};

// n points above the reference plane; or the sides of a polygon: outside where x p.x + y p.y > z
struct Flat {
  int n;
  double x[kMaxVertices], y[kMaxVertices], z[kMaxVertices];
};

// no adjoint: chooses.   C: rows normal and tangents; o: a point of the plane
CS_FN void flatten(const Solid& s, const int* id, int n, const Mat3<double>& C, Vec3<double> o, Flat& p) {
  p.n = n;
  for (int i = 0; i < n; i++) {
    Vec3<double> d = s.x[id[i]] - o;
    p.x[i] = dot(C.r1, d), p.y[i] = dot(C.r2, d), p.z[i] = dot(C.r0, d);
  }
}

// no adjoint: chooses.   sides of a polygon, turn 1: counterclockwise, -1: clockwise. A side without length has nothing outside
CS_FN void flat_sides(const Flat& p, double turn, Flat& y) {
  y.n = p.n;
  for (int i = 0; i < p.n; i++) {
    int j = i + 1 < p.n ? i + 1 : 0;
    double ex = p.x[j] - p.x[i], ey = p.y[j] - p.y[i], e2 = ex * ex + ey * ey, k = e2 > 0 ? turn / sqrt(e2) : 0;
    y.x[i] = k * ey, y.y[i] = -k * ex, y.z[i] = y.x[i] * p.x[i] + y.y[i] * p.y[i];
  }
}

// no adjoint: chooses
CS_FN double outside(const Flat& side, int i, double x, double y) { return side.x[i] * x + side.y[i] * y - side.z[i]; }

// no adjoint: chooses
CS_FN bool inside(const Flat& side, double x, double y, double slack) {
  for (int i = 0; i < side.n; i++)
    if (outside(side, i, x, y) > slack) return false;
  return true;
}

// no adjoint: chooses.   where edge j of the incident polygon enters and leaves the prism
CS_FN int cut_edge(const Flat& p, const Flat& side, const int* id, int j, double r, double slack, Spot* to) {
  int k = j + 1 < p.n ? j + 1 : 0, side0 = -1, side1 = -1, count = 0;
  double t0 = 0, t1 = 1, ex = p.x[k] - p.x[j], ey = p.y[k] - p.y[j], least = kAlongSide * sqrt(ex * ex + ey * ey);
  for (int i = 0; i < side.n; i++) {
    double o0 = outside(side, i, p.x[j], p.y[j]), o1 = outside(side, i, p.x[k], p.y[k]);
    if (o0 > slack && o1 > slack) return 0;
    if (!(o0 > slack) && !(o1 > slack)) continue;
    double t = o0 / (o0 - o1);
    int met = abs(o0 - o1) > least ? i : -1;
    if (o0 > slack && t > t0) t0 = t, side0 = met;
    if (o1 > slack && t < t1) t1 = t, side1 = met;
  }
  if (!(t0 < t1)) return 0;
  auto add = [&](double t, int met) {
    double z = p.z[j] + t * (p.z[k] - p.z[j]);
    if (met >= 0) to[count++] = {p.x[j] + t * ex, p.y[j] + t * ey, z, z - r, 0, id[j], id[k], met};
  };
  add(t0, side0), add(t1, side1);
  return count;
}

// no adjoint: chooses.   all spots of a patch; C: rows normal and tangents of the reference plane; o: a point of it
CS_OP int find_spots(const Patch& s, const Mat3<double>& C, Vec3<double> o, Spot* spot) {
  Flat ref, inc, side;
  double slack = kInside * s.size, r = s.g->r;
  int n = 0;
  flatten(*s.f, s.ref, s.n_ref, C, o, ref), flatten(*s.g, s.inc, s.n_inc, C, o, inc);
  flat_sides(ref, 1, side);
  for (int j = 0; j < inc.n; j++)
    if (inside(side, inc.x[j], inc.y[j], slack)) spot[n++] = {inc.x[j], inc.y[j], inc.z[j], inc.z[j] - r, 0, s.inc[j], -1, -1};
  if (n == inc.n) return n;
  if (s.plane) {
    const Vec3<double>* x = s.g->x;
    Vec3<double> x0 = x[s.plane[0]], m = cross(x[s.plane[1]] - x0, x[s.plane[2]] - x0);
    double m2 = dot(m, m), c = -dot(m, s.n) / sqrt(m2);
    if (c > 0 && 1 - c * c < kSteepest * kSteepest) {
      Flat edge;
      flat_sides(inc, -1, edge);
      for (int i = 0; i < ref.n; i++) {
        double gap = dot(m, s.f->x[s.ref[i]] - x0) / sqrt(m2);
        if (inside(edge, ref.x[i], ref.y[i], slack)) spot[n++] = {ref.x[i], ref.y[i], gap / c, gap, 1, s.ref[i], -1, -1};
      }
    }
  }
  int edges = inc.n > 2 ? inc.n : inc.n - 1;
  for (int j = 0; j < edges && n + 2 <= kMaxSpots; j++) n += cut_edge(inc, side, s.inc, j, r, slack, spot + n);
  return n;
}

// no adjoint: chooses
CS_FN Feature spot_feature(const Patch& s, const Spot& p) {
  if (p.corner) return {kVertexFace, 1 - s.swap, {p.v0, -1, s.plane[0], s.plane[1], s.plane[2], -1, -1}};
  const int* f = s.f->plane + 3 * s.face;
  Feature y = {kVertexFace, s.swap, {p.v0, p.v1, f[0], f[1], f[2], -1, -1}};
  if (p.v1 >= 0) y.v[5] = s.ref[p.side], y.v[6] = s.ref[p.side + 1 < s.n_ref ? p.side + 1 : 0];
  return y;
}

// no adjoint: chooses.   what spot p adds to the n chosen ones: distance from the first, then twice the area; 0 if nothing
CS_FN double spread(const Spot* c, int n, const Spot& p, double together) {
  auto twice_area = [&](const Spot& a, const Spot& b) {
    double ex = b.x - a.x, ey = b.y - a.y, area = ex * (p.y - a.y) - ey * (p.x - a.x);
    return abs(area) > together * sqrt(ex * ex + ey * ey) ? area : 0;
  };
  if (n == 1) {
    double dx = p.x - c[0].x, dy = p.y - c[0].y, d = sqrt(dx * dx + dy * dy);
    return d > together ? d : 0;
  }
  if (n == 2) return abs(twice_area(c[0], c[1]));
  double turn = (c[1].x - c[0].x) * (c[2].y - c[0].y) - (c[1].y - c[0].y) * (c[2].x - c[0].x) < 0 ? 1 : -1;
  return max(turn * twice_area(c[0], c[1]), max(turn * twice_area(c[1], c[2]), turn * twice_area(c[2], c[0])));
}

// no adjoint: chooses.   n = 1: out[0] is chosen already, with gap and place of `first`. n = 0: it is the deepest spot, if that is
// not above `highest`; else nothing is found. Returns how many features there are
CS_OP int manifold(const Patch& s, int n, double gap, Vec3<double> first, double highest, double tie, double reach,
                   Feature* out) {
  Spot spot[kMaxSpots], chosen[4];
  Mat3<double> C = tangent_frame(s.n);
  Vec3<double> o = s.f->x[s.f->plane[3 * s.face]];
  int found = find_spots(s, C, o, spot);
  if (n == 1) {
    chosen[0] = {dot(C.r1, first - o), dot(C.r2, first - o), 0, gap, 0, -1, -1, -1};
  } else {
    int deepest = -1;
    double z = highest;
    // a corner's gap is measured across the incident polygon: the same only if that is parallel to the face
    bool flat = false;
    if (s.plane) {
      const Vec3<double>* y = s.g->x;
      Vec3<double> m = cross(y[s.plane[1]] - y[s.plane[0]], y[s.plane[2]] - y[s.plane[0]]), e = cross(m, s.n);
      flat = dot(e, e) <= kAlongSide * kAlongSide * dot(m, m);
    }
    for (int i = 0; i < found; i++) {
      bool same = !spot[i].corner || (flat && abs(spot[i].z - spot[i].gap) <= tie);  // else its gap is that of another normal
      if (same && spot[i].z <= z) deepest = i, z = spot[i].z - tie;
    }
    if (deepest < 0) return 0;
    chosen[0] = spot[deepest], out[0] = spot_feature(s, spot[deepest]);
  }
  for (n = 1; n < 4; n++) {
    int best = -1;
    double most = 0;
    for (int i = 0; i < found; i++) {
      double dx = spot[i].x - chosen[0].x, dy = spot[i].y - chosen[0].y, up = spot[i].gap - chosen[0].gap;
      if (!(spot[i].gap < reach) || (up > 0 && up * up > kSteepest * kSteepest * (dx * dx + dy * dy))) continue;
      double m = spread(chosen, n, spot[i], kTogether * s.size);
      if (m > most * (1 + kSameMeasure)) most = m, best = i;
    }
    if (best < 0) break;
    chosen[n] = spot[best], out[n] = spot_feature(s, spot[best]);
  }
  return n;
}

CS_END
