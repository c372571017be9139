// polygon: which features of planar shapes touch, in the plane z = 0: circles, rectangles, polygons, half planes; at most two.
//
//   s(n) = min over b of n . x - max over a of n . x;   its largest value is at an edge of a or b, above which the other has its
//   lowest vertex: separating axes as in sat.h. A circle is a polygon with one vertex, without edges, and a radius
//   overlapping  that edge and that vertex: the least overlap
//   apart        the same, if the vertex lies over the edge; else the corner at that end of the edge and the vertex: what of the
//                polygon b - a is closest to the origin lies on its side of largest s, or at the end of it
//   then, if an edge of each lie nearly along each other, the other end of what they share, as manifold.h has it for faces
// A face is (v0, v1, v0 raised along z by one): x4 - x2 is z without rounding, so the normal has no z at all, and its tangents do
// not jump. Edges are lengthened over further vertices on their line: what lies across such a vertex is held at both ends.
// no adjoint in this file: it chooses, feature.h differentiates
#pragma once
#include "convex.h"
#include "plane_solid.h"

CS_BEGIN

// Sine from which on two axes that are equally good count as different ones: the first one clockwise is taken, which is the
// same axis if a and b change places
constexpr double kOtherWay = 1e-6;
// How much further apart two points must be than their normals lean towards each other over the gap: else they are one point,
// seen from far away
constexpr double kLean = 2;

// A pair, and lengths that count as nothing within a and within b; edges that are not longer than `least` have no direction
struct FlatPair {
  Pair p;
  double own[2], least[2];
};

// An edge of a (of = 0) or b (1), from v0 counterclockwise to v1, its outward normal, and the vertex of the other that is s
// above it
struct Side {
  int of, v0, v1, low;
  double s;
  Vec3<double> n;
};

// no adjoint: chooses
CS_FN const Solid& solid_of(const FlatPair& p, int of) { return of ? *p.p.b : *p.p.a; }

// no adjoint: chooses.   n . x = 0 along e, on its right hand
CS_FN Vec3<double> right_hand(Vec3<double> e) { return {e.y, -e.x, 0.0}; }
// no adjoint: chooses.   a unit vector
CS_FN Vec3<double> edge_normal(const Solid& s, int v0, int v1) {
  Vec3<double> e = s.x[v1] - s.x[v0];
  return (1 / sqrt(dot(e, e))) * right_hand(e);
}

// no adjoint: chooses.   vertex v of the other shape against the edge v0 -> v1 of f; swap 1: f is shape b
CS_FN Feature on_edge(const Solid& f, int v0, int v1, int v, int swap) {
  return {kVertexFace, swap, {v, -1, v0, v1, v0 + f.n, -1, -1}};
}

// no adjoint: chooses.   the next vertex (step 1) or the last one (-1) that is not in the same place; v if there is none
CS_FN int neighbour(const Solid& s, int v, int step, double least) {
  int u = v;
  for (int k = 1; k < s.n; k++) {
    u = step > 0 ? (u + 1 < s.n ? u + 1 : 0) : (u > 0 ? u - 1 : s.n - 1);
    Vec3<double> d = s.x[u] - s.x[v];
    if (dot(d, d) > least * least) return u;
  }
  return v;
}

// no adjoint: chooses.   moves the ends of an edge outwards over vertices on its line
CS_FN void lengthen(const Solid& s, double own, int& v0, int& v1) {
  Vec3<double> n = edge_normal(s, v0, v1), o = s.x[v0];
  for (int step = 1; step >= -1; step -= 2) {
    int& v = step > 0 ? v1 : v0;
    for (int k = 2; k < s.n; k++) {
      int u = step > 0 ? (v + 1 < s.n ? v + 1 : 0) : (v > 0 ? v - 1 : s.n - 1);
      Vec3<double> d = s.x[u] - s.x[v];
      double along = n.x * d.y - n.y * d.x;
      if (!(abs(dot(n, s.x[u] - o)) <= own) || step * along < -own) break;
      v = u;
    }
  }
}

// no adjoint: chooses
CS_FN Side make_side(const FlatPair& p, int of, int v0, int v1, int low) {
  const Solid &f = solid_of(p, of), &g = solid_of(p, 1 - of);
  lengthen(f, p.own[of], v0, v1);
  Vec3<double> n = edge_normal(f, v0, v1);
  return {of, v0, v1, low, dot(n, g.x[low] - f.x[v0]), n};
}

// no adjoint: chooses.   s of the edge that begins at vertex k; `least` if it is not above that, or has no length. low: any
// vertex of the other, then the lowest
CS_FN double edge_level(const FlatPair& p, int of, int k, double least, int& low) {
  const Solid &f = solid_of(p, of), &g = solid_of(p, 1 - of);
  Vec3<double> x = f.x[k], e = f.x[k + 1 < f.n ? k + 1 : 0] - x, c = right_hand(e);
  double e2 = dot(e, e), h = dot(c, g.x[low] - x);
  // squares with signs: compared without roots; one vertex is often too low already
  if (!(e2 > p.least[of] * p.least[of]) || !(h * abs(h) > least * abs(least) * e2)) return least;
  for (int i = 0; i < g.n; i++) {
    double l = dot(c, g.x[i] - x);
    if (l < h) h = l, low = i;
  }
  return max(least, h / sqrt(e2));
}

// no adjoint: chooses.   the edge with the largest s, of those that are equally good the first one, or the first one clockwise;
// d: from the middle of a to that of b
CS_OP Side best_side(const FlatPair& p, Vec3<double> d) {
  Side best = {0, -1, -1, 0, -1e300, zero3<double>()};
  Vec3<double> best_n = zero3<double>();  // a -> b
  int near[2] = {support(*p.p.a, d), support(*p.p.b, -d)};
  double most = -1e300;
  // beginning with what faces the other, few vertices are asked
  for (int of = 0; of < 2; of++) {
    int n = solid_of(p, of).n, low = near[1 - of], k = near[of] > 0 ? near[of] - 1 : n - 1;
    for (int i = 0; i < n; i++, k = k + 1 < n ? k + 1 : 0) most = edge_level(p, of, k, most, low);
  }
  double least = most - p.p.tie;
  for (int of = 0; of < 2; of++) {
    const Solid& f = solid_of(p, of);
    for (int k = 0, low = near[1 - of]; k < f.n; k++) {
      double s = edge_level(p, of, k, least, low);
      if (!(s > least)) continue;
      int next = k + 1 < f.n ? k + 1 : 0;
      Vec3<double> n = edge_normal(f, k, next), m = of ? -n : n;
      if (best.v0 >= 0 && !(m.x * best_n.y - m.y * best_n.x > kOtherWay)) continue;
      best = {of, k, next, low, s, n}, best_n = m;
    }
  }
  return best;
}

// no adjoint: chooses.   the edge at vertex v, the furthest along d, that looks most along d: the one that falls off less.
// Returns the sine of that, negative, -2 if there is none: cosines would not tell two flat ones apart
CS_FN double edge_at(const FlatPair& p, int of, int v, Vec3<double> d, int& v0, int& v1) {
  const Solid& s = solid_of(p, of);
  double most = -2;
  for (int step = 1; step >= -1; step -= 2) {
    int u = neighbour(s, v, step, p.least[of]);
    if (u == v) continue;
    Vec3<double> e = s.x[u] - s.x[v];
    double fall = dot(d, e) / sqrt(dot(e, e));
    if (fall > most + kTie) most = fall, v0 = step > 0 ? v : u, v1 = step > 0 ? u : v;
  }
  return most;
}

// A vertex over the other's edge. corner: of the side itself; u along the side, z above it; gap and normal, out of the side, of a
// corner are measured across the incident edge
struct Mark {
  int corner, v;
  double u, z, gap;
  Vec3<double> n;
};

// no adjoint: chooses.   ends of what a side and the edge (i0, i1) that lies on it have in common, at most 4: of two in one
// place that of the incident edge comes first. flat: they are parallel
CS_FN int find_marks(const FlatPair& p, const Side& y, int& i0, int& i1, bool& flat, Mark* mark) {
  const Solid &f = solid_of(p, y.of), &g = solid_of(p, 1 - y.of);
  Vec3<double> o = f.x[y.v0], t = {-y.n.y, y.n.x, 0.0};
  double length = dot(t, f.x[y.v1] - o), slack = kInside * p.p.size;
  i0 = i1 = y.low;
  edge_at(p, 1 - y.of, y.low, -y.n, i0, i1);
  if (i0 != i1) lengthen(g, p.own[1 - y.of], i0, i1);
  int n = 0, id[2] = {i0, i1};
  double u[2];
  for (int k = 0; k < 2; k++) {
    u[k] = dot(t, g.x[id[k]] - o);
    double z = dot(y.n, g.x[id[k]] - o);
    if (u[k] > -slack && u[k] < length + slack && (k == 0 || i0 != i1)) mark[n++] = {0, id[k], u[k], z, z - g.r, y.n};
  }
  flat = false;
  if (i0 == i1) return n;
  Vec3<double> m = edge_normal(g, i0, i1);
  double c = -dot(m, y.n), sine = abs(m.x * y.n.y - m.y * y.n.x);
  if (!(c > 0) || sine >= kSteepest) return n;
  flat = sine <= kAlongSide;
  for (int k = 0; k < 2; k++) {
    double at = k ? length : 0, gap = dot(m, f.x[k ? y.v1 : y.v0] - g.x[i0]);
    // edges run against each other: (i0, i1) is passed from u[0] down to u[1]
    if (at < u[0] + slack && at > u[1] - slack) mark[n++] = {1, k ? y.v1 : y.v0, at, gap / c, gap, -m};
  }
  return n;
}

// A contact that is there already; n points out of the side
struct Known {
  double gap;
  Vec3<double> x, n;
};

// no adjoint: chooses.   features on a side. first: out[0] is there already; else it is the deepest mark, if that is not above
// `highest`. Returns how many, 0 if there is none
CS_OP int side_features(const FlatPair& p, const Side& y, const Known* first, double highest, Feature* out) {
  const Solid &f = solid_of(p, y.of), &g = solid_of(p, 1 - y.of);
  Mark mark[4];
  int i0, i1, best = -1;
  bool flat;
  int found = find_marks(p, y, i0, i1, flat, mark);
  auto feature = [&](const Mark& k) { return k.corner ? on_edge(g, i0, i1, k.v, 1 - y.of) : on_edge(f, y.v0, y.v1, k.v, y.of); };
  double u, gap, z = highest;
  Vec3<double> n;
  if (first) {
    u = dot(Vec3<double>{-y.n.y, y.n.x, 0.0}, first->x - f.x[y.v0]), gap = first->gap, n = first->n;
  } else {
    for (int i = 0; i < found; i++) {
      bool same = !mark[i].corner || (flat && abs(mark[i].z - mark[i].gap) <= p.p.tie);  // else its gap is that of another normal
      if (same && mark[i].z <= z) best = i, z = mark[i].z - p.p.tie;
    }
    if (best < 0) return 0;
    out[0] = feature(mark[best]), u = mark[best].u, gap = mark[best].gap, n = mark[best].n;
  }
  double most = kTogether * p.p.size;
  best = -1;
  for (int i = 0; i < found; i++) {
    double far = abs(mark[i].u - u), lean = mark[i].gap * (mark[i].n.x * n.y - mark[i].n.y * n.x);
    if (!(mark[i].gap < p.p.reach) || mark[i].gap - gap > kSteepest * far || far <= kLean * abs(lean)) continue;
    if (far > most * (1 + kSameMeasure)) most = far, best = i;
  }
  if (best < 0) return 1;
  out[1] = feature(mark[best]);
  return 2;
}

// no adjoint: chooses.   of the lowest vertices above a side the one that is nearest to it, and the end of the side there
CS_FN void nearest_end(const FlatPair& p, Side& y, int& end) {
  const Solid &f = solid_of(p, y.of), &g = solid_of(p, 1 - y.of);
  double most = 1e300;
  for (int i = 0; i < g.n; i++) {
    if (dot(y.n, g.x[i] - f.x[y.v0]) > y.s + 2 * p.p.tie) continue;
    for (int k = 0; k < 2; k++) {
      Vec3<double> d = g.x[i] - f.x[k ? y.v1 : y.v0];
      if (dot(d, d) < most) most = dot(d, d), y.low = i, end = k ? y.v1 : y.v0;
    }
  }
}

// Vertex v[0] of a and v[1] of b; of >= 0: instead of v[of] a point of the edge v0 -> v1 there
struct Nearest {
  int v[2], of, v0, v1;
  double d2;
};

// no adjoint: chooses.   all vertices against all edges: for polygons that are not quite convex
CS_OP Nearest nearest(const FlatPair& p) {
  Nearest y = {{0, 0}, -1, -1, -1, 1e300};
  for (int of = 0; of < 2; of++) {
    const Solid &f = solid_of(p, of), &g = solid_of(p, 1 - of);
    for (int k = 0; k < f.n; k++) {
      int next = k + 1 < f.n ? k + 1 : 0;
      Vec3<double> e = f.x[next] - f.x[k];
      double e2 = dot(e, e), inv = e2 > p.least[of] * p.least[of] ? 1 / e2 : 0;
      for (int i = 0; i < g.n; i++) {
        Vec3<double> d = g.x[i] - f.x[k];
        double t = inv * dot(d, e);
        d = d - min(max(t, 0.0), 1.0) * e;
        if (!(dot(d, d) < y.d2)) continue;
        y = {{i, i}, t > 0 && t < 1 ? of : -1, k, next, dot(d, d)}, y.v[of] = t < 1 ? k : next;
      }
    }
  }
  return y;
}

// no adjoint: chooses.   vertex i of a and j of b, if they are the closest points: nothing of a or b lies between them along n
CS_OP Nearest corners(const FlatPair& p, int i, int j) {
  const Solid &a = *p.p.a, &b = *p.p.b;
  Vec3<double> d = b.x[j] - a.x[i];
  double length = sqrt(dot(d, d)), between = dot(d, b.x[support(b, -d)] - a.x[support(a, d)]);
  if (!(between >= (length - 2 * p.p.tie) * length)) return nearest(p);
  return {{i, j}, -1, -1, -1, dot(d, d)};
}

// no adjoint: chooses.   two corners, and one more point if an edge of either lies across the line between them
CS_OP int corner_features(const FlatPair& p, const Nearest& y, double length, Feature* out) {
  const Solid &a = *p.p.a, &b = *p.p.b;
  int i = y.v[0], j = y.v[1], e[4] = {};
  out[0] = {kSegments, 0, {i, i, j, j, -1, -1, -1}};
  if (a.n == 1 || b.n == 1) return 1;
  Vec3<double> n = (1 / length) * (b.x[j] - a.x[i]);
  double fall_a = edge_at(p, 0, i, n, e[0], e[1]), fall_b = edge_at(p, 1, j, -n, e[2], e[3]), fall = max(fall_a, fall_b);
  if (fall * fall > 1 - kNearFace * kNearFace) return 1;
  bool of_b = fall_b > fall_a + kTie;
  Side s = of_b ? make_side(p, 1, e[2], e[3], i) : make_side(p, 0, e[0], e[1], j);
  Known first = {length, 0.5 * (a.x[i] + b.x[j]), of_b ? -n : n};
  return side_features(p, s, &first, 0, out);
}

// no adjoint: chooses.   features of two planar shapes, of which one at least has edges, at most 2; returns how many, 0 if they
// are further apart than reach
CS_OP int choose_polygon(const Solid& a, const Solid& b, double reach, Feature out[2]) {
  Ball ball_a = solid_ball(a), ball_b = solid_ball(b);
  Vec3<double> d = ball_b.c - ball_a.c;
  double far = reach + ball_a.r + ball_b.r, r = a.r + b.r;
  if (!(dot(d, d) <= far * far)) return 0;  // also where a world has diverged and nothing is a number any more
  double scale = ball_a.r + ball_b.r, place = sqrt(max(dot(ball_a.c, ball_a.c), dot(ball_b.c, ball_b.c)));
  double error = max(a.rounding, b.rounding), tie = (kNearRounding + error) * scale + (kFarRounding + error) * place;
  double size = min(ball_a.r, ball_b.r), slack = kInside * size;
  double own_a = (kNearRounding + a.rounding) * ball_a.r + kFarRounding * place;
  double own_b = (kNearRounding + b.rounding) * ball_b.r + kFarRounding * place;
  FlatPair p = {{&a, &b, reach, tie, size}, {own_a, own_b}, {own_a + slack, own_b + slack}};
  Side y = best_side(p, d);
  if (y.v0 < 0 || !(y.s - r <= reach)) return 0;
  bool apart = y.s > tie;
  y = make_side(p, y.of, y.v0, y.v1, y.low);
  int n = side_features(p, y, nullptr, y.s + 2 * tie, out);
  if (n > 0) return n;
  int end = y.v0;
  nearest_end(p, y, end);
  if (apart) {
    Nearest c = y.of ? corners(p, y.low, end) : corners(p, end, y.low);
    double length = sqrt(c.d2);
    if (length - r > reach) return 0;
    if (c.of >= 0)
      y = make_side(p, c.of, c.v0, c.v1, c.v[1 - c.of]);
    else if (length > max(tie, kNoSeparation) && length - y.s > face_margin(p.p, length, false))
      return corner_features(p, c, length, out);
  }
  out[0] = on_edge(solid_of(p, y.of), y.v0, y.v1, y.low, y.of);
  Known first = {y.s - r, solid_of(p, 1 - y.of).x[y.low], y.n};
  return side_features(p, y, &first, 0, out);
}

// no adjoint: chooses.   vertices in which a planar shape touches a half plane or is nearer than reach: the lowest, and the
// other end of the edge there that is flatter and within reach. Returns how many
CS_OP int choose_line(const Solid& plane, const Solid& g, double reach, Feature out[2]) {
  Vec3<double> tx, ty, n;
  columns(plane.R, tx, ty, n);
  Ball ball = solid_ball(g);
  double place = kFarRounding * sqrt(dot(ball.c, ball.c)), tie = (kTie + g.rounding) * ball.r + place;
  double own = (kNearRounding + g.rounding) * ball.r + place, least = 1e300;
  auto gap = [&](int i) { return dot(n, g.x[i] - plane.p) - g.r; };
  int low = 0, first = -1, second = -1;
  for (int i = 1; i < g.n; i++)
    if (gap(i) < gap(low)) low = i;
  if (!(gap(low) < reach)) return 0;
  for (int step = 1; step >= -1; step -= 2) {
    int u = neighbour(g, low, step, own), v0 = step > 0 ? low : u, v1 = step > 0 ? u : low;
    if (u == low) continue;
    lengthen(g, own, v0, v1);  // at both ends: `low` may lie between them, and rounding decides which of them it is
    bool down = gap(v1) < gap(v0) - tie;
    int from = down ? v1 : v0, to = down ? v0 : v1;
    Vec3<double> d = g.x[to] - g.x[from];
    double far = abs(n.y * d.x - n.x * d.y), rise = gap(to) - gap(from);
    if (!(gap(to) < reach) || !(far > kSpread * ball.r)) continue;
    if (rise < (least - kSameMeasure) * far) least = rise / far, first = from, second = to;
  }
  out[0] = on_plane(first < 0 ? low : first);
  if (first < 0) return 1;
  out[1] = on_plane(second);
  return 2;
}

CS_END
