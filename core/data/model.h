// Tree: the structure of a model. Integers only, the same for every world, read-only during a step.
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

struct Tree {
  int nb, nq, nv, nu;     // bodies, position coordinates, degrees of freedom, motors
  int nm;                 // numbers in the sparse mass matrix
  int form;               // Form
  const int* parent;      // [nb] body, -1 the world
  const int* root;        // [nb] the body of the same tree that hangs on the world
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
  const int* motor_dof;   // [nu]
};

}  // namespace costate
