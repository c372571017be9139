// Rows: the contacts and joint rows of one step, in slots, and what their solver computes. RowBars: the same for the adjoint.
//
// A block is one joint row (1 row) or one contact (3 rows: normal and two tangents). Blocks stand in slots: slot k of a lane
// holds that lane's k-th active item of a group, so a pack has as many slots as its fullest lane. Blocks that share a tree, directly or
// through others, form an island; its rows are contiguous and couple through one dense matrix A.
#pragma once
#include "equality.h"
#include "options.h"

CS_BEGIN

enum BlockKind : int { kDryRow = 0, kMotorRow = 1, kLimitRow = 2, kContactRows = 3 };

constexpr int kRound = 5;  // sweeps between two attempts to polish

// What a step's solver ends with, one number per world
template <class T> struct Status {
  T residual;       // of the natural map, m/s
  T sweeps;         // until the world was solved
  T contacts;       // that have rows
  T wanted;         // that should have had
  T penetration;    // deepest, m
  T solved;         // 1 if the residual is below the tolerance
  T drift;          // largest error of a hard equality row at the start of the step, m or rad
  T contradiction;  // largest speed by which a hard equality row is missed, m/s or rad/s
};

template <class T> struct Rows {
  // shapes and candidates
  Vec3<T>* shape_p;              // [ns] position from the origin of its body's tree, or in the world              by shapes
  Mat3<T>* shape_R;              // [ns] orientation                                                              by shapes
  T* gap;                        // [nk] phi, m                                                                   by collide
  Mat3<T>* frame;                // [nk] rows: normal a -> b, two tangents                                        by collide
  Vec3<T>* point;                // [nk] contact point, from the origin of b's tree                               by collide
  T *mu, *e, *soft, *lightness;  // [nk] coefficients of the pair; 1/m of both bodies    by collide
  T* distance;                   // [n_limit] to the nearer limit                                                 by limits
  Vec3<T>* limit_J;              // [n_limit] its derivative by the joint's dofs                                  by limits
  // slots and blocks
  int* count;  // [5] blocks, rows, islands, whether K holds the factor of the solution, contact slots   by slots
  int *touch, *limit,
      *fixed;             // [max_slots, lanes], [n_limit, lanes], [n_dry + n_row_motor, lanes] item in a slot, -1 none  by slots
  int *kind, *first_row;  // [blocks + 1] BlockKind, first row                                             by slots
  int** item;             // [blocks] its slot: one item per lane                                          by slots
  int* same;              // [blocks] the item that all lanes with one share, -1 if they differ            by slots
  int *list_n, *list;     // [blocks], [blocks, nv] dofs that can move the block, in order                 by slots
  int *reach_n, *reach;   // [blocks], [blocks, n_item] items whose equality rows such a move reaches        by slots
  int *island_block, *island_A, *island_singles;  // [islands + 1] first block, first number of A; joint rows   by slots
  int* mark;                                      // [nv + 2 nb + n_item + ne] scratch
  int *used, *limited;  // [nk], [n_limit] lanes that have rows for it, as bits                          by slots
  // rows
  T* valid;                               // [blocks] 1 where the lane has an item                                         by rows
  Vec3<T>*x_a, *x_b;                      // [blocks] contact point from the origins of both trees                         by rows
  Mat3<T>* C;                             // [blocks] contact frame, zero in lanes without an item                         by rows
  T *block_mu, *t_gap, *t_v, *t_e, *t_h;  // [blocks] friction; derivatives of the target by gap, J v, e, h  by rows
  T* sigma;                               // [nv + ne] scratch: +1 if a dof moves b, -1 if it moves a
  T *J, *Y, *W;  // [rows, nv], [rows, nv + ne] J; left and right half of J H^-1 J^T, on the block's list     by rows, delassus
  T *b, *R, *lo, *hi, *rho, *inv_rho,
      *lam;        // [rows]                                                                by rows, delassus, relax
  Sym3<T>* B_inv;  // [blocks] inverse of a contact's own 3 x 3 block of A                           by delassus
  T *A, *K;        // [sum of squares of the islands' rows]                                         by delassus, polish
  // iterations
  T *y, *delta, *before, *Ad, *trial;  // [rows] scratch
  T *history, *took,
      *damped;  // [events + 1, rows] lam before each sweep or Newton step, [events] part of it that a lane took; its sigma  by relax
  int* event;      // [events + 1] 0 end, 1 sweep, 2 Newton step, 3 moved inside                                    by relax
  T *v_star, *dv;  // [nv] v without rows, or with equality rows only; what all rows add               by step, constrain
  Status<T>* status;
  Equality<T> eq;
};

template <class T> struct RowBars {
  Force<T>* shape;                          // [ns] by a rigid displacement of the shape alone, about its tree's origin
  T* gap;                                   // [nk]
  Mat3<T>* frame;                           // [nk]
  Vec3<T>* point;                           // [nk]
  T *mu, *e, *soft, *lightness;             // [nk]
  T* distance;                              // [n_limit]
  Vec3<T>* limit_J;                         // [n_limit]
  T *lam, *w, *z, *b, *R, *lo, *hi;         // [rows] w = -b_bar
  T* block_mu;                              // [blocks]
  T *w_else, *lo_else, *hi_else, *mu_else;  // [rows], [blocks] of the implicit mode, where the exact one is asked for
  Vec3<T>* impulse;                         // [blocks] by the impulse that info shows; zero unless it was asked for
  T *A, *rho;                               // exact mode: [A], [rows]
  T *J, *X, *Lambda;    // [rows, nv] J_bar; exact mode: responses of v, and [rows, ne] of equality rows to a unit of each row
  T *g, *u;             // [nv] H^-1 v_bar+, and u of the adjoint
  T* h;                 // [nb] by the step size, for each tree: in this order the sum does not depend on lane-mates
  Motion<T>*V_x, *V_y;  // [nb] scratch of mass_form
  Force<T>*F_x, *F_y;   // [nb]
  EqualityBars<T> eq;
};

// no adjoint: integers.   blocks, numbers of A, events that a pack may have
CS_FN int max_blocks(const Tree& t) { return joint_rows(t) + t.max_slots; }
// no adjoint: integers
CS_FN int max_A(const Tree& t) { return max_rows(t) * max_rows(t); }
// no adjoint: integers
CS_FN int max_events(const Options& o) {
  return 1 + o.iterations + ((o.iterations + kRound - 1) / kRound + (o.iterations == 0)) * o.polish;
}

// no adjoint: memory.   keep: also what the adjoint of the iterations needs
template <class T> CS_FN Rows<T> rows_map(const Tree& t, const Options& o, bool keep, Arena<T>& m) {
  Rows<T> r;
  int nb = max_blocks(t), n = max_rows(t), L = lanes<T>, events = keep ? max_events(o) : 0;
  r.shape_p = m.template take<Vec3<T>>(t.ns), r.shape_R = m.template take<Mat3<T>>(t.ns);
  r.gap = m.template take<T>(t.nk), r.frame = m.template take<Mat3<T>>(t.nk), r.point = m.template take<Vec3<T>>(t.nk);
  r.mu = m.template take<T>(t.nk), r.e = m.template take<T>(t.nk), r.soft = m.template take<T>(t.nk);
  r.lightness = m.template take<T>(t.nk);
  r.distance = m.template take<T>(t.n_limit), r.limit_J = m.template take<Vec3<T>>(t.n_limit);
  r.count = m.template take<int>(5), r.touch = m.template take<int>(t.max_slots * L);
  r.limit = m.template take<int>(t.n_limit * L), r.fixed = m.template take<int>((t.n_dry + t.n_row_motor) * L);
  r.kind = m.template take<int>(nb + 1), r.first_row = m.template take<int>(nb + 1), r.item = m.template take<int*>(nb);
  r.same = m.template take<int>(nb), r.list_n = m.template take<int>(nb), r.list = m.template take<int>(nb * t.nv);
  r.reach_n = m.template take<int>(nb), r.reach = m.template take<int>(nb * t.n_item);
  r.island_block = m.template take<int>(nb + 1), r.island_A = m.template take<int>(nb + 1);
  r.island_singles = m.template take<int>(nb + 1);
  r.mark = m.template take<int>(n_halves(t) + 2 * t.nb + t.n_item);
  r.valid = m.template take<T>(nb), r.x_a = m.template take<Vec3<T>>(nb), r.x_b = m.template take<Vec3<T>>(nb);
  r.C = m.template take<Mat3<T>>(nb), r.block_mu = m.template take<T>(nb), r.t_gap = m.template take<T>(nb);
  r.t_v = m.template take<T>(nb), r.t_e = m.template take<T>(nb), r.t_h = m.template take<T>(nb);
  r.sigma = m.template take<T>(n_halves(t)), r.B_inv = m.template take<Sym3<T>>(nb);
  r.J = m.template take<T>(n * t.nv), r.Y = m.template take<T>(n * n_halves(t)), r.W = m.template take<T>(n * n_halves(t));
  r.b = m.template take<T>(n), r.R = m.template take<T>(n), r.lo = m.template take<T>(n), r.hi = m.template take<T>(n);
  r.rho = m.template take<T>(n), r.lam = m.template take<T>(n), r.y = m.template take<T>(n), r.delta = m.template take<T>(n);
  r.inv_rho = m.template take<T>(n), r.before = m.template take<T>(n), r.Ad = m.template take<T>(n),
  r.trial = m.template take<T>(n), r.dv = m.template take<T>(t.nv), r.used = m.template take<int>(t.nk);
  r.limited = m.template take<int>(t.n_limit);
  r.A = m.template take<T>(max_A(t)), r.K = m.template take<T>(max_A(t));
  r.history = m.template take<T>(keep ? (events + 1) * n : 0), r.took = m.template take<T>(events),
  r.damped = m.template take<T>(events);
  if (!keep) r.history = nullptr;
  r.event = m.template take<int>(events + 1), r.v_star = m.template take<T>(t.nv);
  r.status = m.template take<Status<T>>(1);
  if (t.ne) r.eq = equality_map(t, o.project, m);
  return r;
}

// no adjoint: memory
template <class T> CS_FN RowBars<T> row_bars_map(const Tree& t, const Options& o, Arena<T>& m) {
  RowBars<T> r;
  int n = max_rows(t);
  r.shape = m.template take<Force<T>>(t.ns), r.gap = m.template take<T>(t.nk), r.frame = m.template take<Mat3<T>>(t.nk);
  r.point = m.template take<Vec3<T>>(t.nk), r.mu = m.template take<T>(t.nk), r.e = m.template take<T>(t.nk);
  r.soft = m.template take<T>(t.nk), r.lightness = m.template take<T>(t.nk), r.distance = m.template take<T>(t.n_limit);
  r.limit_J = m.template take<Vec3<T>>(t.n_limit), r.lam = m.template take<T>(n), r.w = m.template take<T>(n);
  r.z = m.template take<T>(n), r.b = m.template take<T>(n), r.R = m.template take<T>(n), r.lo = m.template take<T>(n),
  r.hi = m.template take<T>(n);
  r.block_mu = m.template take<T>(max_blocks(t)), r.w_else = m.template take<T>(n), r.lo_else = m.template take<T>(n),
  r.hi_else = m.template take<T>(n), r.mu_else = m.template take<T>(max_blocks(t)),
  r.impulse = m.template take<Vec3<T>>(max_blocks(t)), r.A = m.template take<T>(max_A(t)), r.rho = m.template take<T>(n);
  r.J = m.template take<T>(n * t.nv), r.X = m.template take<T>(n * t.nv), r.Lambda = m.template take<T>(n * t.ne);
  r.g = m.template take<T>(t.nv), r.u = m.template take<T>(t.nv), r.h = m.template take<T>(t.nb);
  r.V_x = m.template take<Motion<T>>(t.nb), r.V_y = m.template take<Motion<T>>(t.nb);
  r.F_x = m.template take<Force<T>>(t.nb), r.F_y = m.template take<Force<T>>(t.nb);
  if (t.ne) r.eq = equality_bars_map(t, o.project, m);
  return r;
}

// no adjoint: memory.   of what blocks scatter into
template <class T> CS_FN void row_bars_clear(const Tree& t, const Rows<T>& rw, const RowBars<T>& rb) {
  Vec3<T> o = zero3<T>();
  for (int s = 0; s < t.ns; s++) rb.shape[s] = zero_force<T>();
  for (int f = 0; f < 2 * t.n_tie; f++) rb.eq.frame[f] = zero_force<T>();
  for (int i = 0; i < t.n_limit; i++) rb.distance[i] = T(0), rb.limit_J[i] = o;
  for (int k = 0; k < t.nk; k++) {
    if (!rw.used[k]) continue;
    rb.gap[k] = rb.mu[k] = rb.e[k] = rb.soft[k] = rb.lightness[k] = T(0), rb.frame[k] = {o, o, o}, rb.point[k] = o;
  }
}

// no adjoint: row_scatter is its transpose.   the lanes' own entries of an array; lanes without one get some other's
template <class T, class V> CS_FN V row_gather(const V* a, const int* item, int same) {
  if (lanes<T> == 1 || same >= 0) return a[same];
  using E = ElementOf<T>;
  V out;
  constexpr int n = sizeof(V) / sizeof(T);
  for (int l = 0; l < lanes<T>; l++) {
    const E* from = reinterpret_cast<const E*>(a + (item[l] < 0 ? 0 : item[l]));
    for (int i = 0; i < n; i++) reinterpret_cast<E*>(&out)[i * lanes<T> + l] = from[i * lanes<T> + l];
  }
  return out;
}
// no adjoint: transpose of row_gather.   x is zero in lanes without an item
template <class T, class V> CS_FN void row_scatter(V* a, const int* item, int same, V x) {
  if (lanes<T> == 1 || same >= 0) {
    a[same] += x;
    return;
  }
  using E = ElementOf<T>;
  constexpr int n = sizeof(V) / sizeof(T);
  for (int l = 0; l < lanes<T>; l++) {
    if (item[l] < 0) continue;
    E* to = reinterpret_cast<E*>(a + item[l]);
    for (int i = 0; i < n; i++) to[i * lanes<T> + l] += reinterpret_cast<const E*>(&x)[i * lanes<T> + l];
  }
}

CS_END
