// convex: which features of two convex solids touch, and at most four of them.
//
//   apart        closest points by gjk.h: vertex or edge against vertex, edge or face
//   overlapping  the axis of least overlap by sat.h: vertex against face, or two edges
//   two boxes    the axis first: it is also the closest feature of boxes that are apart, where a point of one lies over the face of the
//                other, or the two edges cross; only the rest asks gjk
//   then, if faces nearly lie on each other, more points by manifold.h
// out[0] is the closest feature whatever reach is. Its gap is continuous: both ways give zero where the solids begin to overlap.
// Edges that cross are kEdges in both, which are smooth through zero.
#pragma once
#include "gjk.h"
#include "manifold.h"
#include "sat.h"

CS_BEGIN

// Cosine of 3 degrees between the contact's normal and a face's: a resting box whose edges rule for a moment keeps its other corners,
// and one that stands on an edge by 5 degrees or more is held there alone
constexpr double kNearFace = 0.99863;
// Of the smaller solid: a face gives way to two edges only if they overlap less by more than this; so also of solids at rest, nearer than
// kResting, and to edges nearer than kClose with a sine below the root of kTurning2. The normal of nearly parallel edges, of boxes stacked by a solver, turns by
// any angle if one of them turns a little, and no gradient through it would be worth anything
constexpr double kPreferFace = 1e-7, kResting = 1e-6, kTurning2 = 1e-4, kClose = 0.2;
// Distance below which segments.h knows no direction any more: overlapping by then
constexpr double kNoSeparation = 2e-10;

// A pair, and what its lengths are measured by
struct Pair {
  const Solid *a, *b;
  double reach, tie, size;  // tie: lengths that count as equal; size: radius of the smaller one
};

// no adjoint: chooses.   how far the points of a face may lie above the distance s; prefer: whatever s is
CS_FN double face_margin(const Pair& p, double s, bool prefer) {
  return prefer || s < kResting * p.size ? p.tie + kPreferFace * p.size : 2 * p.tie;
}

// no adjoint: chooses
CS_FN Feature vertex_face(const Solid& f, int face, int vertex, int swap) {
  const int* v = f.plane + 3 * face;
  return {kVertexFace, swap, {vertex, -1, v[0], v[1], v[2], -1, -1}};
}

// no adjoint: chooses.   the face of g that lies on a plane with normal n: of those with most of the deepest vertices the most opposite one
CS_FN int incident_face(const Solid& g, Vec3<double> n, int deepest, double tie) {
  double most = 0, cosine;
  if (g.type == kBox) return facing(g, -n, cosine);
  int best = -1, count = 0;
  double level = dot(n, g.x[deepest]) + tie;
  for (int f = 0; f < g.faces; f++) {
    int low = 0, has = 0;
    for (int i = g.loop_adr[f]; i < g.loop_adr[f + 1]; i++) has |= g.loop[i] == deepest;
    if (!has) continue;
    for (int i = g.loop_adr[f]; i < g.loop_adr[f + 1]; i++) low += dot(n, g.x[g.loop[i]]) <= level;
    double c = -dot(n, solid_normal(g, f));
    if (low > count || (low == count && c > most)) best = f, count = low, most = c;
  }
  return best;
}

// no adjoint: chooses.   the patch on a face of a (swap 0) or b, and the vertex of the other that lies deepest. line: 0, 1, the vertices of
// what has no faces
CS_FN Patch make_patch(const Pair& p, int face, int swap, const int* line, int& deepest) {
  const Solid &f = swap ? *p.b : *p.a, &g = swap ? *p.a : *p.b;
  Patch s = {&f, &g, face, swap, solid_normal(f, face), nullptr, line, nullptr, 0, g.n, p.size};
  s.ref = f.loop + f.loop_adr[face], s.n_ref = f.loop_adr[face + 1] - f.loop_adr[face];
  deepest = support(g, -s.n);
  if (g.faces == 0) return s;
  int on = incident_face(g, s.n, deepest, p.tie);
  s.n_inc = on < 0 ? 0 : g.loop_adr[on + 1] - g.loop_adr[on];
  if (on >= 0) s.inc = g.loop + g.loop_adr[on], s.plane = g.plane + 3 * on;
  return s;
}

// no adjoint: chooses.   features on a face. n = 1: out[0] is there, at x; else found here; certain: the face is known to be the right
// one. Returns how many, 0 if none of the deepest points lies over the face
CS_OP int face_features(const Pair& p, int face, int swap, int n, double gap, Vec3<double> x, bool certain, Feature* out) {
  const int line[2] = {0, 1};
  int deepest;
  Patch s = make_patch(p, face, swap, line, deepest);
  double lowest = dot(s.n, s.g->x[deepest] - s.f->x[s.f->plane[3 * face]]);
  int found = manifold(s, n, gap, x, lowest + face_margin(p, lowest, certain), p.tie, p.reach, out);
  if (found > 0 || !certain) return found;
  out[0] = vertex_face(*s.f, face, deepest, swap);
  return 1;
}

// no adjoint: chooses.   out[0] is there, with normal n and gap, at x; more if a face of either lies across n
CS_OP int more_features(const Pair& p, Vec3<double> n, double gap, Vec3<double> x, Feature* out) {
  double cos_a, cos_b;
  if (p.a->n == 1 || p.b->n == 1) return 1;
  int f_a = facing(*p.a, n, cos_a), f_b = facing(*p.b, -n, cos_b);
  if (max(cos_a, cos_b) < kNearFace) return 1;
  bool of_b = cos_b > cos_a + kSameMeasure;
  return face_features(p, of_b ? f_b : f_a, of_b, 1, gap, x, true, out);
}

// Where the lines of two edges come closest, as parts of both; inside: not beyond their ends, and not parallel
struct Crossing {
  bool inside;
  double s, t, sine2;
  Vec3<double> c;  // e_a x e_b
};

// no adjoint: chooses
CS_FN Crossing crossing(const Solid& a, const Solid& b, const int* v) {
  Vec3<double> e = a.x[v[1]] - a.x[v[0]], f = b.x[v[3]] - b.x[v[2]], d = b.x[v[2]] - a.x[v[0]], c = cross(e, f);
  double c2 = dot(c, c), sine2 = c2 / (dot(e, e) * dot(f, f));
  if (parallel(e, f, c)) return {false, 0, 0, 0, c};
  double s = dot(cross(d, f), c) / c2, t = dot(cross(d, e), c) / c2;
  return {min(s, t) > -kInside && max(s, t) < 1 + kInside, s, t, sine2, c};
}

// no adjoint: chooses.   two edges that cross, seen along n from a to b
CS_OP int edge_features(const Pair& p, const int* v, const Crossing& k, Vec3<double> n, double s, Feature* out) {
  out[0] = {kEdges, 0, {v[0], v[1], v[2], v[3], dot(k.c, n) < 0 ? -1 : 1, -1, -1}};
  Vec3<double> x = fma(k.s, p.a->x[v[1]] - p.a->x[v[0]], p.a->x[v[0]]);
  return more_features(p, n, s - p.a->r - p.b->r, x, out);
}

// no adjoint: chooses.   features of an axis; certain: it is known to be the closest feature, else 0 where that cannot be seen
CS_OP int axis_features(const Pair& p, const Axis& y, bool certain, Feature* out) {
  if (y.kind != kTwoEdges && y.face < 0) return 0;  // numbers that are none
  if (y.kind != kTwoEdges) return face_features(p, y.face, y.kind == kFaceOfB, 0, 0, zero3<double>(), certain, out);
  Crossing k = crossing(*p.a, *p.b, y.v);
  return certain || k.inside ? edge_features(p, y.v, k, y.n, y.s, out) : 0;
}

// no adjoint: chooses.   different vertices among n; returns how many
CS_FN int distinct(const int* id, int n, int* v) {
  int count = 0;
  for (int i = 0; i < n; i++) {
    int known = 0;
    for (int j = 0; j < count; j++) known |= v[j] == id[i];
    if (!known) v[count++] = id[i];
  }
  return count;
}

// Vertex v[i] beside the other edge of (v[0], v[1]) of a and (v[2], v[3]) of b
struct Beside {
  Feature f;
  double distance;
  Vec3<double> x, d;  // the vertex; from a to b
  bool over;          // its foot is on that edge, not at an end
};
// no adjoint: chooses
CS_FN Beside beside(const Pair& p, const int* v, int i) {
  bool of_a = i < 2;
  const Vec3<double>*x = of_a ? p.b->x : p.a->x, *u = of_a ? p.a->x : p.b->x;
  Vec3<double> q = u[v[i]], x0 = x[v[of_a ? 2 : 0]], e = x[v[of_a ? 3 : 1]] - x0;
  double e2 = dot(e, e), t = e2 > 0 ? dot(q - x0, e) / e2 : 0, held = min(max(t, 0.0), 1.0);
  Vec3<double> d = q - fma(held, e, x0);
  Feature f = of_a ? Feature{kSegments, 0, {v[i], v[i], v[2], v[3], -1, -1, -1}}
                   : Feature{kSegments, 0, {v[0], v[1], v[i], v[i], -1, -1, -1}};
  return {f, sqrt(dot(d, d)), q, of_a ? -d : d, t > -kInside && t < 1 + kInside};
}

// no adjoint: chooses.   edges side by side touch at both ends of what they share, across n. count = 0: out[0] is the closer end; 1: it is
// there, at x
CS_FN int side_by_side(const Pair& p, const int* v, Vec3<double> n, int count, double distance, Vec3<double> x, Feature* out) {
  if (count == 0) {
    distance = 1e300;
    for (int i = 0; i < 4; i++) {
      Beside y = beside(p, v, i);
      if (y.distance < distance - p.tie) distance = y.distance, x = y.x, out[0] = y.f;
    }
  }
  Vec3<double> e = p.a->x[v[1]] - p.a->x[v[0]], f = p.b->x[v[3]] - p.b->x[v[2]], c = cross(e, f);
  if (dot(c, c) > (1 - kNearFace * kNearFace) * dot(e, e) * dot(f, f)) return 1;
  double most = kTogether * p.size, r = p.a->r + p.b->r;
  count = 1;
  for (int i = 0; i < 4; i++) {
    Beside y = beside(p, v, i);
    double along = abs(dot(y.x - x, e)) / sqrt(dot(e, e)), across = dot(n, y.d);
    if (!y.over || !(y.distance - r < p.reach) || y.distance - distance > kSteepest * along) continue;
    if (across * across < (1 - kSteepest * kSteepest) * y.distance * y.distance) continue;
    if (along > most * (1 + kSameMeasure)) most = along, out[1] = y.f, count = 2;
  }
  return count;
}

// no adjoint: chooses.   features of solids that are apart, from the closest points
CS_OP int closest_features(const Pair& p, const Simplex& s, Feature* out) {
  const Solid &a = *p.a, &b = *p.b;
  double length = sqrt(dot(s.v, s.v)), cosine[2];
  Vec3<double> n = (1 / length) * s.v, x = zero3<double>();
  int v_a[3] = {}, v_b[3] = {}, n_a = distinct(s.ia, s.n, v_a), n_b = distinct(s.ib, s.n, v_b);
  int v[4] = {v_a[0], v_a[n_a > 1], v_b[0], v_b[n_b > 1]};
  Crossing k = crossing(a, b, v);
  // a face across n, if it keeps the other as far away as they are
  double margin = face_margin(p, length, n_a > 1 && n_b > 1 && k.sine2 < kTurning2 && length < kClose * p.size);
  int face[2] = {facing(a, n, cosine[0]), facing(b, -n, cosine[1])}, first = cosine[1] > cosine[0] + kSameMeasure;
  for (int turn = 0; turn < 2; turn++) {
    int of_b = turn ? 1 - first : first;
    const Solid &f = of_b ? b : a, &g = of_b ? a : b;
    if (cosine[of_b] < kNearFace) continue;
    Vec3<double> m = solid_normal(f, face[of_b]);
    double lowest = dot(m, g.x[support(g, -m)] - f.x[f.plane[3 * face[of_b]]]);
    if (lowest >= min(s.least, length) - margin) return face_features(p, face[of_b], of_b, 0, 0, x, true, out);
  }
  // else edges and vertices; those of a capsule are known even where one end of it is closest
  if ((n_a == 3 || n_b == 3) && face[n_a < 3] >= 0) return face_features(p, face[n_a < 3], n_a < 3, 0, 0, x, true, out);
  for (int i = 0; i < s.n; i++) x = fma(s.l[i], a.x[s.ia[i]], x);
  int count = 0;
  if (n_a > 1 && n_b > 1) {
    if (k.inside) count = edge_features(p, v, k, n, length, out);
  } else {
    out[0] = {kSegments, 0, {v[0], v[1], v[2], v[3], -1, -1, -1}};
    count = more_features(p, n, length - a.r - b.r, x, out);
  }
  if (count > 1) return count;
  if (a.type == kCapsule) v[0] = 0, v[1] = 1;
  if (b.type == kCapsule) v[2] = 0, v[3] = 1;
  return v[0] != v[1] && v[2] != v[3] ? side_by_side(p, v, n, count, length, x, out) : count;
}

// no adjoint: chooses.   features of two solids of which one at least has faces, at most 4; returns how many, 0 if they are further apart
// than reach
CS_OP int choose_convex(const Solid& a, const Solid& b, double reach, Feature out[4]) {
  Ball ball_a = solid_ball(a), ball_b = solid_ball(b);
  Vec3<double> d = ball_b.c - ball_a.c;
  double far = reach + ball_a.r + ball_b.r, r = a.r + b.r;
  if (!(dot(d, d) <= far * far)) return 0;  // also where a world has diverged and nothing is a number any more
  double scale = ball_a.r + ball_b.r, place = max(dot(ball_a.c, ball_a.c), dot(ball_b.c, ball_b.c));
  double error = max(a.rounding, b.rounding), tie = (kNearRounding + error) * scale + (kFarRounding + error) * sqrt(place);
  Pair p = {&a, &b, reach, tie, min(ball_a.r, ball_b.r)};
  double prefer = tie + kPreferFace * p.size;
  if (a.type == kBox && b.type == kBox) {
    Axis y = box_axis(a, b, tie, prefer);
    if (y.s > reach) return 0;
    int n = axis_features(p, y, !(y.s > tie), out);
    if (n > 0) return n;
  }
  Simplex s;
  int meeting = gjk(a, b, d, reach + r, max(tie, kNoSeparation), scale, s);
  if (meeting == kFar) return 0;
  if (meeting == kApart) return closest_features(p, s, out);
  Axis y = solid_axis(a, b, tie, prefer);
  return y.s - r > reach ? 0 : axis_features(p, y, true, out);
}

CS_END
