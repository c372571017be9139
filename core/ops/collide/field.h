// field: which features of a terrain and of a solid touch. The terrain: heights over a grid, solid below.
//
// Cells are split along the diagonal from (i, j) to (i + 1, j + 1):   D --- C      A = (i, j), B = (i + 1, j), C = (i + 1, j + 1), D = (i, j + 1)
//                                                                     |  /  |      triangles ABC and ACD, counterclockwise from above
//                                                                     A --- B
// Every vertex of the solid, with its radius, against the surface: above it the place of least distance, on a triangle (kVertexFace), an
// edge or a vertex (kSegments); below it the triangle above the vertex. Something round can touch several sides of a valley at once: it
// gets every place where the distance has a minimum of its own. Then at most eight points: the deepest, three that spread furthest, and what else
// is below the surface.
//
// Only vertices touch: a ridge under the middle of a face, an edge or a capsule is not seen, nor is the border of the terrain, beyond which
// there is nothing. So bodies should not be much larger than the bumps of the ground.
// no adjoint in this file: it chooses, feature.h differentiates
#pragma once
#include "plane_solid.h"

CS_BEGIN

// In parts of a cell: a foot this close to a triangle is on it, and of distances that differ by less neither is nearer
constexpr double kInsideCell = 1e-9;
// In parts of a cell: a vertex this close to the surface takes the triangle there; the direction to an edge would be rounding
constexpr double kOnSurface = 1e-7;
constexpr double kSameWay = 0.99;    // cosine: places in directions closer than 8 degrees are facets of one side
constexpr double kFurther = 8;       // sides further away than the nearest by more than so many radii are for a later step
constexpr int kSides = 4;            // sides that one ball can touch at once
constexpr int kHeightsPerPoint = 4;  // reading so many heights costs less than one search

// A field in the frame common to both shapes; `size` are its half lengths
struct FieldGrid {
  int nx, ny;
  Vec3<double> size, p;
  Mat3<double> R;
};

// A place of the surface: distance, direction to the vertex, the place, and the terrain's vertices there: three of a triangle, two, or one
struct Place {
  double d;
  Vec3<double> way, x;
  int n, v[3];
};

// The places found so far for one vertex, p in the frame of the field; nothing beyond `limit` counts
struct Search {
  Vec3<double> p;
  double limit, r, cell;
  int n;
  Place at[kSides];
};

template <class Height> struct Terrain {
  const FieldGrid& g;
  const Height& height;
  double dx, dy;
  CS_FN bool has(int i, int j) const { return i >= 0 && j >= 0 && i < g.nx && j < g.ny; }
  CS_FN int id(int i, int j) const { return i * g.ny + j; }
  CS_FN Vec3<double> at(int i, int j) const { return {fma(i, dx, -g.size.x), fma(j, dy, -g.size.y), height(id(i, j))}; }
};

// no adjoint: chooses.   keeps a place unless a better one in the same direction is there. Of equals the larger feature is better: its
// direction is constant, and exactly above a seam of flat ground it is the right one
CS_FN void keep(Search& s, const Place& q) {
  if (!(q.d < s.limit)) return;
  double tie = kInsideCell * (s.cell + abs(q.d));
  auto better = [&](const Place& old) { return q.d < old.d - tie || (q.n > old.n && q.d < old.d + tie); };
  int to = s.n;
  for (int k = 0; k < s.n; k++)
    if (s.r <= 0 || dot(s.at[k].way, q.way) > kSameWay) to = k;
  if (to == kSides) {
    to = 0;
    for (int k = 1; k < s.n; k++)
      if (s.at[k].d > s.at[to].d) to = k;
  }
  if (to < s.n && !better(s.at[to])) return;
  s.at[to] = q, s.n = to < s.n ? s.n : to + 1;
  s.limit = min(s.limit, q.d + kFurther * s.r + tie);
}

// no adjoint: chooses.   triangle (i, j), (i1, j1), (i2, j2), if the foot of p is on it
template <class Height> CS_FN void try_face(const Terrain<Height>& t, Search& s, int i, int j, bool first, bool force) {
  Vec3<double> a = t.at(i, j), b = first ? t.at(i + 1, j) : t.at(i + 1, j + 1), c = first ? t.at(i + 1, j + 1) : t.at(i, j + 1);
  Vec3<double> n = vec_normalise(cross(b - a, c - a));
  double d = dot(n, s.p - a);
  Vec3<double> foot = fma(-d, n, s.p);
  double u = (foot.x - a.x) / t.dx, v = (foot.y - a.y) / t.dy, hi = first ? u : v, lo = first ? v : u;
  if (!force && !(d >= 0 && lo >= -kInsideCell && hi >= lo - kInsideCell && hi <= 1 + kInsideCell)) return;
  keep(s,
       {d, n, foot, 3, {t.id(i, j), first ? t.id(i + 1, j) : t.id(i + 1, j + 1), first ? t.id(i + 1, j + 1) : t.id(i, j + 1)}});
}

// no adjoint: chooses.   does the distance not fall from x on the way towards vertex (i, j)?   way: from x to p
template <class Height> CS_FN bool rises(const Terrain<Height>& t, Vec3<double> x, Vec3<double> way, int i, int j) {
  if (!t.has(i, j)) return true;
  Vec3<double> w = t.at(i, j) - x;
  return dot(way, w) <= kInsideCell * (dot(way, way) + dot(w, w));
}

// no adjoint: chooses.   edge (i, j), (i + di, j + dj), between the triangles with (i + ui, j + uj) and (i + vi, j + vj)
template <class Height>
CS_FN void try_edge(const Terrain<Height>& t, Search& s, int i, int j, int di, int dj, int ui, int uj, int vi, int vj) {
  Vec3<double> a = t.at(i, j), e = t.at(i + di, j + dj) - a;
  double k = dot(s.p - a, e) / dot(e, e);
  if (!(k >= -kInsideCell && k <= 1 + kInsideCell)) return;
  Vec3<double> x = fma(min(max(k, 0.0), 1.0), e, a), way = s.p - x;
  double d2 = dot(way, way);
  if (!(d2 < s.limit * s.limit) || !(d2 > 0)) return;
  if (!rises(t, x, way, i + ui, j + uj) || !rises(t, x, way, i + vi, j + vj)) return;
  double d = sqrt(d2);
  keep(s, {d, (1 / d) * way, x, 2, {t.id(i, j), t.id(i + di, j + dj), -1}});
}

// no adjoint: chooses.   vertex (i, j) among its six neighbours
template <class Height> CS_FN void try_vertex(const Terrain<Height>& t, Search& s, int i, int j) {
  Vec3<double> x = t.at(i, j), way = s.p - x;
  double d2 = dot(way, way);
  if (!(d2 < s.limit * s.limit) || !(d2 > 0)) return;
  if (!rises(t, x, way, i + 1, j) || !rises(t, x, way, i - 1, j) || !rises(t, x, way, i, j + 1)) return;
  if (!rises(t, x, way, i, j - 1) || !rises(t, x, way, i + 1, j + 1) || !rises(t, x, way, i - 1, j - 1)) return;
  double d = sqrt(d2);
  keep(s, {d, (1 / d) * way, x, 1, {t.id(i, j), -1, -1}});
}

// no adjoint: chooses.   all that begins at vertex (i, j): itself, the edges towards larger i and j, the two triangles between them
template <class Height> CS_OP void try_cell(const Terrain<Height>& t, Search& s, int i, int j) {
  bool right = i + 1 < t.g.nx, up = j + 1 < t.g.ny;
  // nothing is nearer than the box around it
  double x = fma(i, t.dx, -t.g.size.x), y = fma(j, t.dy, -t.g.size.y), limit2 = s.limit * s.limit;
  double ax = max(max(x - s.p.x, s.p.x - (right ? x + t.dx : x)), 0.0),
         ay = max(max(y - s.p.y, s.p.y - (up ? y + t.dy : y)), 0.0);
  double flat2 = ax * ax + ay * ay;
  if (!(flat2 < limit2)) return;
  double top = t.height(t.id(i, j));
  if (right) top = max(top, t.height(t.id(i + 1, j)));
  if (up) top = max(top, t.height(t.id(i, j + 1)));
  if (right && up) top = max(top, t.height(t.id(i + 1, j + 1)));
  double az = max(s.p.z - top, 0.0);
  if (!(flat2 + az * az < limit2)) return;
  if (right && up) {
    try_face(t, s, i, j, true, false), try_face(t, s, i, j, false, false);
    try_edge(t, s, i, j, 1, 1, 1, 0, 0, 1);
  }
  if (right) try_edge(t, s, i, j, 1, 0, 1, 1, 0, -1);
  if (up) try_edge(t, s, i, j, 0, 1, 1, 1, -1, 0);
  try_vertex(t, s, i, j);
}

// no adjoint: chooses.   places of the surface for s.p, in rings of cells around it
template <class Height> CS_OP void search_terrain(const Terrain<Height>& t, Search& s) {
  const FieldGrid& g = t.g;
  if (!(abs(s.p.x) <= g.size.x && abs(s.p.y) <= g.size.y)) return;
  double x = (s.p.x + g.size.x) / t.dx, y = (s.p.y + g.size.y) / t.dy;
  int ci = x < g.nx - 2 ? int(x) : g.nx - 2, cj = y < g.ny - 2 ? int(y) : g.ny - 2;
  double u = x - ci, v = y - cj;
  bool first = u >= v;
  double a = t.height(t.id(ci, cj)), c = t.height(t.id(ci + 1, cj + 1)),
         m = t.height(first ? t.id(ci + 1, cj) : t.id(ci, cj + 1));
  double ground = first ? a + u * (m - a) + v * (c - m) : a + v * (m - a) + u * (c - m), up = s.p.z - ground;
  if (up <= kOnSurface * s.cell) {
    try_face(t, s, ci, cj, first, true);
    return;
  }
  s.limit = min(s.limit, up + kFurther * s.r + kOnSurface * s.cell);  // straight down is the surface
  double edge_x = min(u, 1 - u) * t.dx, edge_y = min(v, 1 - v) * t.dy;
  for (int ring = 0;; ring++) {
    int i0 = ci - ring, i1 = ci + ring, j0 = cj - ring, j1 = cj + ring;
    if (i0 < 0 && j0 < 0 && i1 >= g.nx && j1 >= g.ny) return;
    if (ring > 0 && min(edge_x + (ring - 1) * t.dx, edge_y + (ring - 1) * t.dy) >= s.limit) return;
    for (int i = i0 > 0 ? i0 : 0; i <= i1 && i < g.nx; i++) {
      int step = ring > 0 && i > i0 && i < i1 ? 2 * ring : 1;  // between the ends of a ring only its first and last row
      for (int j = j0; j <= j1; j += step)
        if (j >= 0 && j < g.ny) try_cell(t, s, i, j);
    }
  }
}

// no adjoint: chooses.   is all ground that n points can reach lower than they are? Only asked where few heights answer for many points
template <class Height> CS_OP bool high_above(const Terrain<Height>& t, const Vec3<double>* p, int n, double reach) {
  const FieldGrid& g = t.g;
  Vec3<double> lo = p[0], hi = p[0];
  for (int k = 1; k < n; k++) {
    lo = {min(lo.x, p[k].x), min(lo.y, p[k].y), min(lo.z, p[k].z)};
    hi = {max(hi.x, p[k].x), max(hi.y, p[k].y), hi.z};
  }
  auto clamp = [](double x, int last) { return int(min(max(x, 0.0), double(last))); };
  int i0 = clamp((lo.x - reach + g.size.x) / t.dx, g.nx - 1), i1 = clamp((hi.x + reach + g.size.x) / t.dx + 1, g.nx - 1);
  int j0 = clamp((lo.y - reach + g.size.y) / t.dy, g.ny - 1), j1 = clamp((hi.y + reach + g.size.y) / t.dy + 1, g.ny - 1);
  if ((i1 - i0 + 1) * (j1 - j0 + 1) > kHeightsPerPoint * n) return false;
  for (int i = i0; i <= i1; i++)
    for (int j = j0; j <= j1; j++)
      if (!(t.height(t.id(i, j)) < lo.z - reach)) return false;
  return true;
}

// no adjoint: chooses.   vertex i of the solid at a place of the terrain
CS_FN Feature at_place(const Place& q, int i) {
  if (q.n == 3) return {kVertexFace, 0, {i, -1, q.v[0], q.v[1], q.v[2], -1, -1}};
  return {kSegments, 0, {q.v[0], q.n == 2 ? q.v[1] : q.v[0], i, i, -1, -1, -1}};
}

// no adjoint: chooses.   features in which a field (a) and a solid (b) touch or are nearer than reach; height: number of a vertex -> double
template <class Height>
CS_OP int choose_field(const FieldGrid& grid, const Height& height, const Solid& b, double reach, Feature out[kFieldPoints]) {
  Terrain<Height> t = {grid, height, 2 * grid.size.x / (grid.nx - 1), 2 * grid.size.y / (grid.ny - 1)};
  Feature found[kMaxVertices];
  Vec3<double> p[kMaxVertices], x[kMaxVertices], way[kMaxVertices];
  double gap[kMaxVertices];
  int count = 0, pick[4];
  for (int i = 0; i < b.n; i++) p[i] = tmul(grid.R, b.x[i] - grid.p);
  if (b.n > 2 && high_above(t, p, b.n, reach + b.r)) return 0;
  for (int i = 0; i < b.n; i++) {
    Search s;
    s.p = p[i], s.limit = reach + b.r, s.r = b.r, s.cell = max(t.dx, t.dy), s.n = 0;
    search_terrain(t, s);
    for (int k = 0; k < s.n && count < kMaxVertices; k++) {
      if (!(s.at[k].d < s.limit)) continue;  // a limit that came down later
      found[count] = at_place(s.at[k], i), x[count] = s.at[k].x, way[count] = s.at[k].way, gap[count++] = s.at[k].d - b.r;
    }
  }
  if (count == 0) return 0;
  double size = max(cloud_size(x, count), b.r);
  int first = deepest(gap, count, kTie * size), n = spread(x, gap, count, first, way[first], size, pick);
  for (int k = 0; k < n; k++) out[k] = found[pick[k]], gap[pick[k]] = 0;
  // what else is below the surface, the deepest first
  for (int best = 0; n < kFieldPoints && gap[best = deepest(gap, count, kTie * size)] < 0; gap[best] = 0) out[n++] = found[best];
  return n;
}

CS_END
