// Rows: the contacts and joint rows of one step, in slots, and what their solver computes. RowBars: the same for the adjoint.
//
// A block is one joint row (1 row), one contact (3 rows: normal and two tangents; in planar models 2), or one row against turning
// of a contact. Blocks stand in slots: slot k of a lane holds that lane's k-th active item of a group, so a pack has as many slots
// as its fullest lane. Blocks that share a tree, directly or through others, form an island; its rows are contiguous and couple
// through one dense matrix A.
#pragma once
#include "equality.h"
#include "feature.h"
#include "interior.h"
#include "layout.h"
#include "options.h"

CS_BEGIN

constexpr int kAlternateEvent = 8;  // of Rows::event

enum BlockKind : int { kDryRow = 0, kMotorRow = 1, kLimitRow = 2, kContactRows = 3, kTurnRow = 4 };

constexpr int kRound = 5;  // sweeps between two attempts to polish
// Robots that can have more rows than this on one tree alternate (ops/alternate.h), or sweep without A where they do not polish (measured: bench solver)
constexpr int kDenseRows = 96;
// Rounds that alternate: passes of the first one, and of later ones, and what a round counts for in sweeps. In float32 there are two: what they do not solve is mostly a
// matter of rounding, and other worlds wait for it. A second round of 180 passes leaves 0.10% of the steps of a humanoid that lies above 1e-4 m/s; three more of 50
// passes left 0.12%, and the slowest worlds took half as long again (49,152 steps, by hand)
constexpr int kPasses = 50;
template <class E> constexpr int kLaterPasses = sizeof(E) == 4 ? 180 : 50;
template <class E> constexpr int kAlternateRound = sizeof(E) == 4 ? 10 : 3;

// What a step's solver ends with, one number per world
template <class T> struct Status {
  T residual;       // of the natural map, m/s
  T sweeps;         // until the world was solved, or passes
  T steps;          // Newton steps
  T contacts;       // that have rows
  T wanted;         // that should have had
  T penetration;    // deepest, m
  T solved;         // 1 if the residual is below the tolerance
  T drift;          // largest error of a hard equality row at the start of the step, m or rad
  T contradiction;  // largest speed by which a hard equality row is missed, m/s or rad/s
  T impacts;        // that split the step
};

// Three numbers of a row or a column, in four places, which are read at once: factors of pivots that are taken at a time (ops/inverse.h)
constexpr int kPivots = 3;
// Matrices that teams of threads hold (ops/held.h): chunks of three columns, and places of rows, at most
constexpr int kMostChunks = 21, kHeldPlaces = 64;
// Those of few rows: a solver for no others needs fewer registers, and more worlds have room (measured; 95 of 100 steps of a humanoid that lies have no more)
constexpr int kFewChunks = 15;
template <class T> struct alignas(T) alignas(16) Pivots {
  T at[4];
};

// Where the rows of an island that a team holds are
struct HeldPlaces {
  int singles, gap, n, chunks;  // joint rows, places that are free behind them, rows, chunks
  CS_FN int row(int k) const {  // -1: none
    int r = k < singles ? k : k - gap;
    return (k >= singles && r < singles) || r >= n ? -1 : r;
  }
  CS_FN int first_contact() const { return (singles + gap) / kPivots; }  // its chunk
};

// What a team of threads has near while it iterates (ops/held.h)
template <class T> struct NearRows {
  Pivots<T> told[12 * kMostChunks];  // what they tell each other
  T lam[kHeldPlaces], y[kHeldPlaces], delta[kHeldPlaces], before[kHeldPlaces], Ad[kHeldPlaces], trial[kHeldPlaces];
  T start[kHeldPlaces], stalled[kHeldPlaces], best[kHeldPlaces], b[kHeldPlaces], lo[kHeldPlaces], hi[kHeldPlaces];
  T rho[kHeldPlaces], inv_rho[kHeldPlaces], block_mu[kHeldPlaces];
  int kind[kHeldPlaces + 1], first_row[kHeldPlaces + 1], cols[kHeldPlaces], active[kHeldPlaces], active_block[kHeldPlaces];
};

// How far rounds that alternate have come
template <class T> struct Round {
  T res, best, passed;   // the residual, the least one, and that after the passes before
  T best_after, sweeps;  // events until the best one; sweeps or passes
  int events, count;     // events; what rounds count for in `iterations`
};

template <class T> struct Rows : Layout {
  int width;               // rows of a contact
  bool is_held = false;    // whether a team iterates on numbers that it has near,
  HeldPlaces places = {};  // and holds the only island's matrices
  // shapes, and what bounds them in the world
  Vec3<T>* shape_p;         // [ns] position from the origin of its body's tree, or in the world        by shapes
  Mat3<T>* shape_R;         // [ns] orientation                                                        by shapes
  Vec3<T>*bound_p, *bound;  // [ns] middle and half extents of a box around the shape, grown by `grow`, world axes   by bounds
  T* grow;                  // [ns] how far it may come in this step, with half of the margin, and for rounding      by bounds
  T* low;                   // [ns] scratch of sweep_and_prune
  int* order;               // [ns] the same
  // pairs that may be near each other in some lane, and the points in which they may touch: candidates
  int *near, *near_bits;         // [max_near] pair; lanes in which it is near                                  by near_pairs
  Feature* feature;              // [max_cand, lanes] where features are chosen                                 by collide
  T* gap;                        // [max_cand] phi, m                                                           by collide
  Mat3<T>* frame;                // [max_cand] rows: normal a -> b, two tangents                                by collide
  Vec3<T>* point;                // [max_cand] contact point, from the origin of b's tree                       by collide
  Vec3<T>* shift;                // [max_cand] from coordinates of a's tree to those of b's                     by collide
  T *mu, *e, *soft, *lightness;  // [max_cand] coefficients of the pair; 1/m of both bodies                   by collide
  T* distance;                   // [n_limit] to the nearer limit                                             by limits
  Vec3<T>* limit_J;              // [n_limit] its derivative by the joint's dofs                              by limits
  // slots and blocks: see Layout
  int *over, *axis;      // [blocks] of a row against turning its contact's block, and its axis               by slots
  int *reach_n, *reach;  // [blocks], [blocks, n_item] items whose equality rows are among the columns        by slots
  // of K as teams have it (ops/lu_together.h)
  int *cols, *n_cols;                     // [rows], [islands] columns; how many
  int *active, *active_block, *n_active;  // [rows], [rows], [islands] rows: their columns, their blocks; how many
  int* mark;                              // [2 nv + 2 nb + n_item + 2 ne + 3 blocks] scratch
  int *used, *limited;  // [max_cand], [n_limit] lanes that have rows for it, as bits                       by slots
  // rows
  T* valid;           // [blocks] 1 where the lane has an item                           by rows
  Vec3<T>*x_a, *x_b;  // [blocks] contact point from the origins of both trees           by rows
  Mat3<T>* C;         // [blocks] contact frame, zero in lanes without an item           by rows
  T *block_mu, *t_gap, *t_v, *t_e, *t_h,
      *t_full;  // [blocks] friction; derivatives of the target by gap, J v, e, h, the whole step  by rows
  T* impact;    // [blocks] 1 where it is an impact that takes no time               by rows
  T* sigma;     // [nv + ne] scratch: +1 if a dof moves b, -1 if it moves a
  T* wide;      // [3 (nv + ne)] scratch
  T *J, *Y,
      *W;  // J; left and right half of J H^-1 J^T, row by row on the block's columns; in large models Y is J   by rows, delassus
  T *b, *R, *lo, *hi, *rho, *inv_rho;  // [rows]                                                             by rows, delassus
  T* lam;                              // [rows]                                                             by relax
  Sym3<T>* B_inv;  // [blocks] inverse of a contact's own block of A                                         by delassus
  T *A, *K;        // [sum of squares of the islands' rows]; in large models 9 numbers per block             by delassus, polish
  // iterations
  T *y, *delta, *before, *Ad, *trial, *start, *stalled, *best;  // [rows] scratch; the last where rounds alternate
  T* history;        // [events + 1, rows] lam before each sweep or Newton step                              by relax
  T *took, *damped;  // [events] part of it that a lane took, or 1 + the block let go; its sigma             by relax
  int* event;  // [events + 1] 0 end, 1 sweep, 2 Newton step, 3 moved inside, 4 a block let go, kAlternateEvent + round   by relax
  T* passed;   // [passes + 1, rows] scratch of alternate_adj
  Pivots<T>* pivots;       // [rows] scratch of invert, where rounds alternate
  NearRows<T>* near_team;  // [1] scratch of the same
  Round<T>* round;         // [1] where there is the one before
  Pivots<T>* held;         // [3, kMostChunks, kHeldPlaces] scratch of teams of threads, where rounds alternate
  T* G;  // as A: (A + D)^-1, where rounds alternate                                             by alternate_matrix
  T *pushed, *falls, *rate;  // [nb], [nb], [nv] of steps that are split at impacts: see ops/fall.h                        by fall
  T *v_star, *dv;  // [nv] v without rows, or with equality rows only; what all rows add                   by step, constrain
  Status<T>* status;
  Interior<T> ip;  // of Options::method kInterior
  Equality<T> eq;
};

template <class T> struct RowBars {
  Force<T>* shape;                          // [ns] by a rigid displacement of the shape alone, about its tree's origin
  T* gap;                                   // [max_cand]
  Mat3<T>* frame;                           // [max_cand]
  Vec3<T>* point;                           // [max_cand]
  T *mu, *e, *soft, *lightness;             // [max_cand]
  T *torsion, *rolling, *turn_lightness;    // [max_cand] of models with rows against turning
  T* distance;                              // [n_limit]
  Vec3<T>* limit_J;                         // [n_limit]
  T *lam, *w, *z, *b, *R, *lo, *hi;         // [rows] w = -b_bar
  T* block_mu;                              // [blocks]
  T *w_else, *lo_else, *hi_else, *mu_else;  // [rows], [blocks] of the implicit mode, where the exact one is asked for
  Vec3<T>* impulse;                         // [blocks] by the impulse that info shows; zero unless it was asked for
  T *A, *rho;                               // exact mode: [A], [rows]
  T* J;                                     // as Rows::J
  T *X, *Lambda;              // [rows, nv], [rows, ne] exact mode: responses of v and of equality rows to a unit of each row
  T* W;                       // exact mode of large models: as Rows::W
  T *g, *u;                   // [nv] H^-1 v_bar+, and u of the adjoint
  T *jump, *u_jump, *w_jump;  // [nv], [nv], [ne] of impacts: what they add to v, and its multipliers
  T *h,
      *full;  // [nb] by the step size, and by the whole step, for each tree: in this order the sum does not depend on lane-mates
  Motion<T>*V_x, *V_y;  // [nb] scratch of mass_form
  Force<T>*F_x, *F_y;   // [nb]
  EqualityBars<T> eq;
};

// A block's rows and columns
struct Span {
  int r, n, m, s;  // first row, rows, dofs, columns
  const int* col;
  int J, Y;  // first numbers
};
// no adjoint: integers
template <class T> CS_FN Span span(const Rows<T>& rw, int i) {
  return {rw.first_row[i], rw.first_row[i + 1] - rw.first_row[i], rw.list_n[i], rw.col_n[i], rw.col + rw.col_adr[i], rw.J_adr[i],
          rw.Y_adr[i]};
}
// no adjoint: reads.   the third of a contact's numbers: what its second tangent has, zero where there is none
template <class T> CS_FN T third(const Rows<T>& rw, const T* x) { return rw.width == 3 ? x[2] : T(0); }

// row_bounds: of the first row of block i; those of a row against turning are in proportion to the normal impulse of its contact
template <class T> CS_FN void row_bounds(const Rows<T>& rw, int i, const T* lam, T& lo, T& hi) {
  lo = rw.lo[rw.first_row[i]], hi = rw.hi[rw.first_row[i]];
  if (rw.kind[i] != kTurnRow) return;
  hi = rw.block_mu[i] * max(lam[rw.first_row[rw.over[i]]], T(0));
  lo = -hi;
}
// adjoint: from bars of lo and hi to those of rb.lo and rb.hi, or of mu and the normal impulse
template <class T>
CS_FN void row_bounds_adj(const Rows<T>& rw, int i, const T* lam, T lo_bar, T hi_bar, const RowBars<T>& rb, T* lam_bar) {
  int r = rw.first_row[i];
  if (rw.kind[i] != kTurnRow) {
    rb.lo[r] += lo_bar, rb.hi[r] += hi_bar;
    return;
  }
  int n = rw.first_row[rw.over[i]];
  T g = hi_bar - lo_bar;
  rb.block_mu[i] = fma(max(lam[n], T(0)), g, rb.block_mu[i]);
  if (lam_bar) lam_bar[n] += select(lam[n] > T(0), rw.block_mu[i] * g, T(0));
}

// no adjoint: integers.   place of dof d among a block's columns
CS_FN int place(const Span& s, int d) {
  int k = s.m - 1;
  while (s.col[k] != d) k--;
  return k;
}

// no adjoint: integers.   contact slots that so many worlds can fill; blocks, columns of a row, numbers of A, events that they may have
CS_FN int max_slots(const Tree& t, int lanes) {
  return t.max_slots > lanes * t.max_contacts ? lanes * t.max_contacts : t.max_slots;
}
// no adjoint: integers
CS_FN int max_blocks(const Tree& t, int slots) { return joint_rows(t) + (1 + t.turns) * slots; }
// no adjoint: integers
CS_FN int max_list(const Tree& t, int lanes) { return t.max_list * lanes < t.nv ? t.max_list * lanes : t.nv; }
// no adjoint: integers
CS_FN int max_A(const Tree& t, int slots) { return t.large ? 9 * max_blocks(t, slots) : max_rows(t, slots) * max_rows(t, slots); }
// no adjoint: integers
CS_FN int max_events(const Options& o) {
  int rounds = (o.iterations + kAlternateRound<double> - 1) / kAlternateRound<double> + (o.iterations == 0);  // sweeps have fewer
  return 1 + o.iterations + rounds * (o.polish + 2);
}

// no adjoint: integers.   whether a round alternates in place of sweeping; its passes
CS_FN bool alternates(const Tree& t, const Options& o) {
  return !t.large && (o.form == kAlternate || (o.form == kByModel && !t.chained && t.tree_rows > kDenseRows));
}
// no adjoint: memory.   of shapes, pairs and candidates
template <class T> CS_FN void touch_map(const Tree& t, Rows<T>& r, Arena<T>& m) {
  int n = t.max_cand, L = lanes<T>;
  r.shape_p = m.template take<Vec3<T>>(t.ns), r.shape_R = m.template take<Mat3<T>>(t.ns);
  r.bound_p = m.template take<Vec3<T>>(t.ns), r.bound = m.template take<Vec3<T>>(t.ns), r.grow = m.template take<T>(t.ns);
  r.low = m.template take<T>(t.ns), r.order = m.template take<int>(t.ns), r.near = m.template take<int>(t.max_near);
  r.near_bits = m.template take<int>(t.max_near);
  r.feature = m.template take<Feature>(t.pair_kinds & kChosenPair ? n * L : 0);
  r.gap = m.template take<T>(n), r.frame = m.template take<Mat3<T>>(n), r.point = m.template take<Vec3<T>>(n);
  r.shift = m.template take<Vec3<T>>(n), r.mu = m.template take<T>(n), r.e = m.template take<T>(n);
  r.soft = m.template take<T>(n), r.lightness = m.template take<T>(n), r.used = m.template take<int>(n);
  candidates_map(t, r, m);
}

// no adjoint: memory.   keep: also what the adjoint of the iterations needs
template <class T> CS_FN Rows<T> rows_map(const Tree& t, const Options& o, bool keep, Arena<T>& m) {
  Rows<T> r;
  r.width = contact_width(t);
  int L = lanes<T>, slots = max_slots(t, L), nb = max_blocks(t, slots), n = max_rows(t, slots);
  int numbers = max_A(t, slots), events = keep ? max_events(o) : 0, list = max_list(t, L);
  touch_map(t, r, m);
  r.distance = m.template take<T>(t.n_limit), r.limit_J = m.template take<Vec3<T>>(t.n_limit);
  layout_map(t, slots, nb, list, r, m);
  r.over = m.template take<int>(t.turns ? nb : 0), r.axis = m.template take<int>(t.turns ? nb : 0);
  r.reach_n = m.template take<int>(nb), r.reach = m.template take<int>(nb * t.n_item);
  r.cols = m.template take<int>(n), r.n_cols = m.template take<int>(nb);
  r.active = m.template take<int>(n), r.active_block = m.template take<int>(n), r.n_active = m.template take<int>(nb);
  r.mark = m.template take<int>(2 * n_halves(t) + 2 * t.nb + t.n_item + 3 * nb);
  r.valid = m.template take<T>(nb), r.x_a = m.template take<Vec3<T>>(nb), r.x_b = m.template take<Vec3<T>>(nb);
  r.C = m.template take<Mat3<T>>(nb), r.block_mu = m.template take<T>(nb), r.t_gap = m.template take<T>(nb);
  r.t_v = m.template take<T>(nb), r.t_e = m.template take<T>(nb), r.t_h = m.template take<T>(nb);
  r.impact = m.template take<T>(nb), r.t_full = m.template take<T>(nb);
  r.sigma = m.template take<T>(n_halves(t)), r.wide = m.template take<T>(3 * n_halves(t));
  r.B_inv = m.template take<Sym3<T>>(nb), r.J = m.template take<T>(n * list);
  r.Y = t.large ? r.J : m.template take<T>(n * (list + t.ne)), r.W = m.template take<T>(n * (list + t.ne));
  r.b = m.template take<T>(n), r.R = m.template take<T>(n), r.lo = m.template take<T>(n), r.hi = m.template take<T>(n);
  r.rho = m.template take<T>(n), r.lam = m.template take<T>(n), r.y = m.template take<T>(n), r.delta = m.template take<T>(n);
  r.inv_rho = m.template take<T>(n), r.before = m.template take<T>(n), r.Ad = m.template take<T>(n),
  r.start = m.template take<T>(n);
  r.stalled = m.template take<T>(n);
  r.trial = m.template take<T>(n), r.dv = m.template take<T>(t.nv), r.limited = m.template take<int>(t.n_limit);
  // in this order: island_times may read some numbers after the end of G and of A
  bool alternate = alternates(t, o);
  r.G = m.template take<T>(alternate ? numbers : 0), r.A = m.template take<T>(numbers);
  r.K = m.template take<T>(t.large ? 0 : numbers);
  r.history = m.template take<T>(keep ? (events + 1) * n : 0), r.took = m.template take<T>(events);
  r.damped = m.template take<T>(events);
  r.passed = m.template take<T>(keep && alternate ? (kLaterPasses<ElementOf<T>> + 1) * n : 0),
  r.best = m.template take<T>(alternate ? n : 0);
  r.pivots = m.template take<Pivots<T>>(alternate ? n : 0);
  bool team = alternate && o.method == kRounds && L == 1 && r.width == kPivots && !t.turns;
  r.near_team = m.template take<NearRows<T>>(team), r.round = m.template take<Round<T>>(team);
  r.held = m.template take<Pivots<T>>(team ? 3 * kMostChunks * kHeldPlaces : 0);
  if (!team) r.held = nullptr;
  if (!keep) r.history = nullptr;
  r.pushed = m.template take<T>(o.impacts ? t.nb : 0), r.falls = m.template take<T>(o.impacts ? t.nb : 0),
  r.rate = m.template take<T>(o.impacts ? t.nv : 0);
  r.event = m.template take<int>(events + 1), r.v_star = m.template take<T>(t.nv);
  r.status = m.template take<Status<T>>(1);
  if (o.method == kInterior) r.ip = interior_map(nb, o, m);
  if (t.ne) r.eq = equality_map(t, o.project, m);
  return r;
}

// The numbers of iterations where no function but their own can see them. Kernels with fixed rows have them in registers then, as far as these go, and
// what is not read again is never written; in an adjoint, others may ask for all that rows_map has laid out
template <class T> struct Private {
#ifdef CS_FIXED_ROWS
  static constexpr int n = FixedRows::n_rows;
  T lam[n], y[n], delta[n], before[n], Ad[n], trial[n], start[n], stalled[n], K[n * n];
#endif
};
// no adjoint: memory.   rows whose iterations are private; elsewhere they are as they were
#ifdef CS_FIXED_ROWS
template <class T> CS_FN Rows<T> in_private(Rows<T> rw, Private<T>& p) {
  CS_FOR (int r = 0; r < p.n; r++) p.lam[r] = rw.lam[r];
  rw.lam = p.lam, rw.y = p.y, rw.delta = p.delta, rw.before = p.before, rw.Ad = p.Ad, rw.trial = p.trial;
  rw.start = p.start, rw.stalled = p.stalled, rw.K = p.K;
  return rw;
}
#else
template <class T> CS_FN const Rows<T>& in_private(const Rows<T>& rw, Private<T>&) { return rw; }
#endif

// no adjoint: memory.   of the bars of candidates
template <class T> CS_FN void touch_bars_map(const Tree& t, RowBars<T>& r, Arena<T>& m) {
  int n = t.max_cand;
  r.shape = m.template take<Force<T>>(t.ns), r.gap = m.template take<T>(n), r.frame = m.template take<Mat3<T>>(n);
  r.point = m.template take<Vec3<T>>(n), r.mu = m.template take<T>(n), r.e = m.template take<T>(n);
  r.soft = m.template take<T>(n), r.lightness = m.template take<T>(n);
  int turns = t.turns ? n : 0;
  r.torsion = m.template take<T>(turns), r.rolling = m.template take<T>(turns), r.turn_lightness = m.template take<T>(turns);
}

// no adjoint: memory
template <class T> CS_FN RowBars<T> row_bars_map(const Tree& t, const Options& o, Arena<T>& m) {
  RowBars<T> r;
  int slots = max_slots(t, lanes<T>), nb = max_blocks(t, slots), n = max_rows(t, slots), list = max_list(t, lanes<T>);
  touch_bars_map(t, r, m);
  r.distance = m.template take<T>(t.n_limit);
  r.limit_J = m.template take<Vec3<T>>(t.n_limit), r.lam = m.template take<T>(n), r.w = m.template take<T>(n);
  r.z = m.template take<T>(n), r.b = m.template take<T>(n), r.R = m.template take<T>(n), r.lo = m.template take<T>(n),
  r.hi = m.template take<T>(n);
  r.block_mu = m.template take<T>(nb), r.w_else = m.template take<T>(n), r.lo_else = m.template take<T>(n),
  r.hi_else = m.template take<T>(n), r.mu_else = m.template take<T>(nb), r.impulse = m.template take<Vec3<T>>(nb),
  r.A = m.template take<T>(max_A(t, slots)), r.rho = m.template take<T>(n);
  r.J = m.template take<T>(n * list), r.X = m.template take<T>(t.large ? 0 : n * t.nv), r.Lambda = m.template take<T>(n * t.ne);
  r.W = m.template take<T>(t.large ? n * list : 0);
  int jumps = o.impacts ? t.nv : 0;
  r.jump = m.template take<T>(jumps), r.u_jump = m.template take<T>(jumps), r.w_jump = m.template take<T>(o.impacts ? t.ne : 0);
  r.g = m.template take<T>(t.nv), r.u = m.template take<T>(t.nv), r.h = m.template take<T>(t.nb),
  r.full = m.template take<T>(t.nb);
  r.V_x = m.template take<Motion<T>>(t.nb), r.V_y = m.template take<Motion<T>>(t.nb);
  r.F_x = m.template take<Force<T>>(t.nb), r.F_y = m.template take<Force<T>>(t.nb);
  if (t.ne) r.eq = equality_bars_map(t, o.project, m);
  return r;
}

// no adjoint: memory.   of what blocks scatter into
template <class T> CS_FN void row_bars_clear(const Tree& t, const Rows<T>& rw, const RowBars<T>& rb) {
  Vec3<T> o = zero3<T>();
  share(t.ns, [&](int s) { rb.shape[s] = zero_force<T>(); });
  share(2 * t.n_tie, [&](int f) { rb.eq.frame[f] = zero_force<T>(); });
  share(t.n_limit, [&](int i) { rb.distance[i] = T(0), rb.limit_J[i] = o; });
  share(rw.count[6], [&](int k) {
    if (!rw.used[k]) return;
    rb.gap[k] = rb.mu[k] = rb.e[k] = rb.soft[k] = rb.lightness[k] = T(0), rb.frame[k] = {o, o, o}, rb.point[k] = o;
    if (t.turns) rb.torsion[k] = rb.rolling[k] = rb.turn_lightness[k] = T(0);
  });
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
