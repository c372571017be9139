// What a step is given besides its parameters, and the bars of it.
#pragma once
#include "../base/config.h"

CS_BEGIN

// What moves a world besides its state: one control or one tau, the step size, and wrenches on the bodies (may be null)
template <class T> struct Inputs {
  const T *q, *v, *u;  // [nq] as given, [nv], [nu] controls (of step) or [nv] joint forces (of acceleration)
  T h;                 // s
  const T* external;   // [nb, 6] torque and force at the centre of mass, world axes
};
// Bars of the same; null where nobody asks. q is tangent, [nv]
template <class T> struct InputBars {
  T *q, *v, *u;
  T h;
  T* external;
};

CS_END
