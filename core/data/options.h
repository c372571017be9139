// Options: how the rows of a step are chosen and solved. The same for every world and every step of a call.
#pragma once
#include "../base/config.h"

namespace costate {

constexpr int kMaxSides = 32;

// How the rows are solved: rounds of sweeps and Newton steps (ops/rounds.h), or an interior point (ops/interior.h)
enum Method : int { kRounds = 0, kInterior = 1 };

struct Options {
  // solver
  int method;        // Method
  int iterations;    // sweeps at most, or steps of the interior point
  int polish;        // Newton steps after every kRound sweeps
  double tolerance;  // natural residual under which a world is solved, m/s
  int half_solved;   // sweeps without the matrix A; -1: chosen by the model
  // rows
  double margin;             // gap below which a contact has rows, m
  double recovery;           // share of a penetration that one step removes
  double push_speed;         // fastest recovery, m/s
  double bounce_speed;       // slower hits do not bounce, m/s
  double relative_softness;  // least R of a row, over the lightness of what it moves
  double absolute_softness;  // 1/kg
  int impacts;               // at most so many impacts within a step split it (ops/impact.h); 0: none does
  int project;               // Newton steps that put a step's end back on its equality constraints
  // friction: a disc (0 sides), an interval (2, in planar models), or a polygon with `sides` edges: outward normals, distance and half length of an edge on a unit disc
  int sides;
  double apothem, half_edge;
  double normal_x[kMaxSides], normal_y[kMaxSides];
  // gradient
  int exact;  // the adjoint of the iterations as run, in every world; else only where a world is not solved
};

}  // namespace costate
