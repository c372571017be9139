// Tree: the structure of a model: bodies, joints, actuators, shapes. Integers only, the same for every world, read-only during a step.
//
// Bodies are sorted so that parents come first; body b hangs on its parent by joint b. A joint's q is `joint_lin`
// plain coordinates followed by a quaternion if `joint_turns`; its v is as many linear rates followed by an angular velocity.
// Not in an instruction set's namespace: drivers hand the same Tree to all of them.
#pragma once
#include "../base/config.h"

namespace costate {

enum Joint : int { kFixed = 0, kRevolute = 1, kPrismatic = 2, kBall = 3, kFree = 4, kPlanar = 5 };

// no adjoint: integers.   plain coordinates of a joint
CS_FN int joint_lin(int joint) {
  return joint == kRevolute || joint == kPrismatic ? 1 : joint == kFree || joint == kPlanar ? 3 : 0;
}
// no adjoint: integers.   does the joint have a quaternion?
CS_FN bool joint_turns(int joint) { return joint == kBall || joint == kFree; }
// no adjoint: integers
CS_FN int joint_nv(int joint) { return joint_lin(joint) + (joint_turns(joint) ? 3 : 0); }
// no adjoint: integers.   dofs whose axes are fixed in the parent (the sliding ones of free and planar); the rest turn with the body
CS_FN int joint_parent_fixed(int joint) { return joint == kFree ? 3 : joint == kPlanar ? 2 : 0; }

// How H is factored: sparse L^T D L (cost grows with the depth squared), or articulated bodies (linear in the dofs)
enum Form : int { kSparse = 0, kArticulated = 1 };

// What can touch. A sphere is a point with a radius, a capsule a segment with one, the others have vertices, edges and faces;
// a field is a terrain of heights over a grid. Planar: a sphere stands for a circle; rectangles and convex polygons, counterclockwise
enum ShapeType : int {
  kPlane = 0,
  kSphere = 1,
  kCapsule = 2,
  kBox = 3,
  kCylinder = 4,
  kHull = 5,
  kField = 6,
  kRectangle = 7,
  kPolygon = 8
};
constexpr int kMaxVertices = 64;  // of a hull
constexpr int kManifold = 4;      // points in which two solids touch at most, and a solid and a plane, where features are chosen
constexpr int kFlatManifold = 2;  // the same of planar shapes
constexpr int kFieldPoints = 8;   // the same of a field, which is no plane: the spread of four leaves others below it

// no adjoint: integers.   points of a shape that can touch a plane
CS_FN int shape_points(int shape) {
  return shape == kSphere ? 1 : shape == kCapsule ? 2 : shape == kBox ? 8 : shape == kRectangle ? 4 : 0;
}
// no adjoint: integers.   planar, with edges
CS_FN bool shape_flat(int shape) { return shape == kRectangle || shape == kPolygon; }
// no adjoint: integers.   round: a sphere or a capsule
CS_FN bool shape_round(int shape) { return shape == kSphere || shape == kCapsule; }
// How two shapes touch, in bits for what a model has: round ones, points on a plane; and with features that are chosen lane by lane a solid on a
// plane, anything on a field, two solids
enum PairKind : int { kRoundPair = 1, kPointsOnPlane = 2, kSolidOnPlane = 4, kOnField = 8, kTwoSolids = 16 };
constexpr int kChosenPair = kSolidOnPlane | kOnField | kTwoSolids;
// no adjoint: integers.   of two shapes (a: the plane or field, if there is one)
CS_FN int pair_kind(int a, int b) {
  if (a == kPlane) return shape_points(b) ? kPointsOnPlane : kSolidOnPlane;
  return a == kField ? kOnField : shape_round(a) && shape_round(b) ? kRoundPair : kTwoSolids;
}
// no adjoint: integers
CS_FN bool pair_chosen(int a, int b) { return pair_kind(a, b) & kChosenPair; }
// no adjoint: integers.   points in which a pair may touch
CS_FN int pair_points(int a, int b) {
  if (pair_chosen(a, b)) return a == kField ? kFieldPoints : shape_flat(a) || shape_flat(b) ? kFlatManifold : kManifold;
  return a == kPlane ? shape_points(b) : a == kCapsule && b == kCapsule ? 2 : 1;
}

// What drives a joint: a force, a spring and damper towards a position or a velocity, a servo that reaches its speed within its force, or a force
// with a gain and a bias beside a spring and damper towards zero
enum ActuatorType : int { kMotor = 0, kPosition = 1, kVelocity = 2, kServo = 3, kGeneral = 4 };

// What a row of a tie keeps at zero. e: axes of frame a, n: of frame b; the rows of a weld read the quaternion, alignments 7 + 2 r + k
// keep axis n = r + 1 + k of b across axis m of a, the third one, which hinders turning about axis r of a
enum Lock : int { kLockSlide = 0, kLockDistance = 3, kLockTurn = 4, kLockAlign = 7, kLocks = 13 };

// What an actuator on a tie drives: the angle about z of a hinge, the displacement along z of a slide
enum TieAxis : int { kNoAxis = 0, kHingeAxis = 1, kSlideAxis = 2 };

// How the coefficients of two shapes become one
enum PairRule : int { kGeometric = 0, kMaximum = 1, kMinimum = 2, kMean = 3, kProduct = 4 };

#ifdef CS_MODEL
#include CS_MODEL  // the Tree of one model: the same names, as constants (costate/_native/cuda)
#else
struct Tree {
  int nb, nq, nv, nu;     // bodies, position coordinates, degrees of freedom, actuators
  int planar;             // 1: all motion is in the world's plane z = 0, and friction has one direction
  int nm;                 // numbers in the sparse mass matrix
  int form;               // Form
  const int* parent;      // [nb] body, -1 the world
  const int* root;        // [nb] the body of the same tree that hangs on the world
  const int* joined;      // [nb] one root for all trees that equality rows join, directly or through others
  const int* joint;       // [nb] Joint
  const int* q_adr;       // [nb] first coordinate in q
  const int* v_adr;       // [nb] first dof in v
  const int* dof_body;    // [nv]
  const int* dof_parent;  // [nv] the next dof towards the root, -1 none
  const int* dof_depth;   // [nv] how many dofs are above it
  const int* row_adr;     // [nv] row d of the sparse mass matrix: its ancestors from the root, then d itself
  const int* row_dof;     // [nm] which dof each of these numbers stands for
  const int* col_adr;     // [nv + 1] column d of the same matrix below the diagonal: the dofs beneath d, last one first
  const int* col_dof;     // [nm - nv]
  const int* last_dof;    // [nb] the last dof that moves a body, -1 none
  int max_row;            // most numbers of a row of the sparse mass matrix
  // bodies as far from the world as each other, which no body of such a level needs another one of
  int levels;
  const int* level_adr;   // [levels + 1] first body of a level in
  const int* level_body;  // [nb]
  // actuators and joint rows
  const int* motor_dof;   // [nu] -1 on a tie
  const int* motor_tie;   // [nu] -1 on a dof
  const int* motor_q;     // [nu] the plain coordinate of that dof, -1 none
  const int* actuator;    // [nu] ActuatorType
  const int* clip;        // [nu] which control limits, -1 none
  const int* bound;       // [nu] which force limits, -1 none
  int n_clip, n_bound;    // actuators with control limits, with force limits
  int n_servo;            // actuators with a gain and a largest speed
  int n_general;          // actuators with a gain and a bias
  const int* general;     // [nu] which of them, -1 none
  int n_row_motor;        // those that are rows: springs and dampers with force limits, servos, all on ties
  const int* servo;       // [nu] which servo, -1 none
  int n_limit, n_dry;     // limited dofs (a ball joint counts once), dofs with dry friction
  const int* row_motor;   // [n_row_motor] the actuator
  const int* limit_body;  // [n_limit] the joint
  const int* limit_dof;   // [n_limit] its dof; of a ball joint the first
  const int* dry_dof;     // [n_dry]
  // shapes
  int ns;                          // shapes
  const int* shape_body;           // [ns] -1 the world
  const int* shape_type;           // [ns] ShapeType
  int n_vertex, n_height;          // of all hulls, of all fields
  const int* hull_adr;             // [ns] first vertex of a hull in th.hull_vertex, -1 none
  const int* height_adr;           // [ns] first height of a field in th.height, -1 none
  const int *field_nx, *field_ny;  // [ns] heights along x and y, 0 none
  const int* solid;                // vertices, edges and faces of boxes, cylinders and hulls (ops/collide/solid.h)
  const int* solid_adr;            // [ns, 4] where loop_adr, loop, plane, edge of a shape begin in it
  const int* solid_n;              // [ns, 3] vertices, faces, edges
  // pairs of shapes that may touch, sorted into groups that join the same two trees (or one group, where that would be many)
  int np, nk;                  // pairs; points in which they may touch ("candidates")
  const int *pair_a, *pair_b;  // [np] shapes: a the plane or field where there is one. Normals point from a to b
  const int* pair_first;       // [np + 1] first candidate, as users count them
  const int* pair_group;       // [np]
  int pair_kinds;              // PairKind of all pairs
  const int* pair_dim;         // [np] condim: 1 without friction, 3 with, 4 also against turning, 6 also against rolling
  int turns;                   // rows against turning of every contact: 0, 1 or 3 (ops/turn_rows.h)
  const int *partner_adr,
      *partner;  // [ns + 1] first pair of a shape with a later one in `partner`: pairs [np], those of one shape by the other
  int n_groups;  // of pairs
  int max_near, max_cand;  // pairs that may be near each other in a step, and their candidates
  int large;               // 1: too many contacts for dense matrices (ops/large.h)
  int alone;     // 1: worlds run one by one: large ones, and those of so many lone bodies that lanes have little in common
  int max_list;  // most dofs that move one row
  const int *tree_adr, *tree_dof;        // [nb + 1] first dof of the tree with this root in tree_dof [nv], in order
  const int *tree_body_adr, *tree_body;  // the same of its bodies
  int n_limit_groups;
  const int* limit_order;      // [n_limit] limits, those of one tree next to each other
  const int* limit_group_adr;  // [n_limit_groups + 1] first place in limit_order
  int max_contacts;            // of one world
  int max_slots;               // of a pack: sum over the groups
  int tree_rows;               // most rows that can act on one tree
  int chained;                 // 1: contacts or equality rows join trees, so that impulses travel through several of them
  int friction_rule, restitution_rule;
  // equality rows, of ties and couplings: "items", numbered in the order in which their rows are eliminated
  int n_tie, n_coupling, n_item, ne;  // ties, couplings, both, their rows
  const int *tie_a, *tie_b;           // [n_tie] body, -1 the world
  const int* tie_axis;                // [n_tie] TieAxis
  const int* coupling_dof;            // [n_coupling, 2] dofs, the second -1 if there is none
  const int* coupling_q;              // [n_coupling, 2] their coordinates
  const int* item;                    // [n_item] the tie, or n_tie + the coupling
  const int* item_row;                // [n_item + 1] first row
  const int* lock;                    // [ne] Lock; of a coupling kLocks
  const int* shown_row;               // [ne] where users see it: ties in their order, then couplings
  const int* item_list_adr;           // [n_item + 1] first of the dofs that move it
  const int* item_list;               // those, in order
  const int* item_sign;               // of each: +1 if it moves b of the tie, -1 if it moves a, 0 if both or none
  const int* item_J;                  // [n_item + 1] first number of J: as many rows as it has, on its dofs only
  const int* dof_item_adr;            // [nv + 1] first of the items that a dof moves
  const int* dof_item;                // those, in order
  // factor of A = J H^-1 J^T + R of all equality rows: L D L^T in blocks of items
  const int* diag_adr;    // [n_item + 1] first number of block (i, i); the last entry counts all numbers of L
  const int* fill_adr;    // [n_item + 1] first entry of column i below the diagonal
  const int* fill_item;   // items j > i with a block (j, i), in order
  const int* fill_block;  // first number of that block
  const int* update_adr;  // [n_item + 1] first entry: where eliminating i changes the rest
  const int* update;      // first numbers of blocks (j, k), for all j >= k in column i, row by row
};
#endif

// no adjoint: integers.   how pair p touches; none of the others where the model has one kind only
CS_FN int pair_kind(const Tree& t, int p) {
  return t.pair_kinds & pair_kind(t.shape_type[t.pair_a[p]], t.shape_type[t.pair_b[p]]);
}
// no adjoint: integers
CS_FN bool pair_chosen(const Tree& t, int p) { return pair_kind(t, p) & kChosenPair; }
// no adjoint: integers.   rows of the joints, and all rows that a pack of worlds may have
CS_FN int joint_rows(const Tree& t) { return t.n_dry + t.n_row_motor + t.n_limit; }
// no adjoint: integers.   dofs, followed by equality rows: what the halves of a row extend over (ops/equality.h)
CS_FN int n_halves(const Tree& t) { return t.nv + t.ne; }
// no adjoint: integers.   rows of a contact: the normal and one or two tangents
CS_FN int contact_width(const Tree& t) { return t.planar ? 2 : 3; }
// no adjoint: integers.   of a world or pack with so many contact slots
CS_FN int max_rows(const Tree& t, int slots) { return joint_rows(t) + (contact_width(t) + t.turns) * slots; }

}  // namespace costate
