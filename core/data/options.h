// Options: how the rows of a step are chosen and solved. The same for every world and every step of a call.
#pragma once
#include "../base/config.h"

namespace costate {

constexpr int kMaxSides = 32;

// How the rows are solved: rounds of sweeps and Newton steps (ops/rounds.h), or an interior point (ops/interior.h)
enum Method : int { kRounds = 0, kInterior = 1 };

// What a round starts with: sweeps with the matrix A, sweeps without it (ops/relax.h), or passes that alternate (ops/alternate.h); the model chooses one of
// these, or one of the first two
enum RoundForm : int { kSweepsByModel = -2, kByModel = -1, kDense = 0, kHalfSolved = 1, kAlternate = 2 };

struct Options {
  // what code is needed: constants where it is compiled for one simulator
#ifdef CS_MODEL
  static constexpr int method = CS_METHOD, form = CS_FORM, impacts = CS_IMPACTS, project = CS_PROJECT, sides = CS_SIDES,
                       exact = CS_EXACT;
#else
  int method;   // Method
  int form;     // RoundForm
  int impacts;  // at most so many impacts within a step split it (ops/impact.h); 0: none does
  int project;  // Newton steps that put a step's end back on its equality constraints
  int sides;    // of friction: a disc (0), an interval (2, in planar models), or a polygon with so many edges
  int exact;    // the adjoint of the iterations as run, in every world; else only where a world is not solved
#endif
  // solver
  int iterations;    // sweeps at most, or steps of the interior point
  int polish;        // Newton steps after every kRound sweeps
  double tolerance;  // natural residual under which a world is solved, m/s
  // rows
  double margin;             // gap below which a contact has rows, m
  double recovery;           // share of a penetration that one step removes
  double push_speed;         // fastest recovery, m/s
  double bounce_speed;       // slower hits do not bounce, m/s
  double relative_softness;  // least R of a row, over the lightness of what it moves
  double absolute_softness;  // 1/kg
  // of polygons: distance and half length of an edge on a unit disc, outward normals
  double apothem, half_edge;
  double normal_x[kMaxSides], normal_y[kMaxSides];
};

}  // namespace costate
