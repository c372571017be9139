// Feature: what two shapes touch with: vertices of both, by number. Chosen lane by lane (ops/collide/convex.h, plane_solid.h, field.h), then
// differentiated (ops/collide/feature.h).
#pragma once
#include "../base/config.h"

CS_BEGIN

enum FeatureKind : int { kNoFeature = 0, kVertexFace = 1, kSegments = 2, kEdges = 3, kRim = 4 };

// swap 0: the face or plane belongs to shape a, 1: to b. Segments and edges: v[0], v[1] of a, v[2], v[3] of b; v[1] = v[0]: a vertex alone.
// v: ids of vertices (ops/collide/vertices.h), -1 unused; of edges v[4] = +-1 is the sign that makes n point from a to b
struct Feature {
  int kind, swap;
  int v[7];
};

CS_END
