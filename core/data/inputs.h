// What a step is given besides its parameters, and the bars of it.
#pragma once
#include "../base/config.h"

CS_BEGIN

// What moves a world besides its state: one control or one tau, the step size, and wrenches on the bodies (may be null)
template <class T> struct Inputs {
  const T *q, *v, *u;  // [nq] as given, [nv], [nu] controls (of step) or [nv] joint forces (of acceleration)
  T h;                 // s
  const T* external;   // [nb, 6] torque and force at the centre of mass, world axes
  // of a part of a step that is split at impacts (core/split.h)
  T reach = T(0);      // what was left of the step at its start, s
  bool split = false;  // impacts happen when shapes touch; else within the step that would make them touch
};
// What rows are made from
template <class T> struct RowInputs {
  const T *v, *u;
  T h, reach;
  bool split;
};
// Bars of the same; null where nobody asks. q is tangent, [nv]
template <class T> struct InputBars {
  T *q, *v, *u;
  T h;
  T* external;
};

CS_END
