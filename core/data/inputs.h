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
  bool split = false;        // impacts happen when shapes touch; else within the step that would make them touch
  T full = T(0);             // the whole step, s
  T reach = T(0);            // what was left of it at the start of this part, s
  const T* after = nullptr;  // [nv] v with the impacts that this part begins with: chooses what flies; null: v
  const T* later = nullptr;  // [nv] v at the end of what was left, without what flies: chooses too; null: as this part would end
  bool touching = false;     // only what touches has rows
};
// What rows are made from. full: h of steps that are not split
template <class T> struct RowInputs {
  const T *v, *u;
  T h, full;
  bool split = false;
  T reach = T(0);
  const T *after = nullptr, *later = nullptr;
  bool touching = false;
};
// no adjoint: gathers
template <class T> CS_FN RowInputs<T> row_inputs(const Inputs<T>& in) {
  return {in.v, in.u, in.h, in.split ? in.full : in.h, in.split, in.reach, in.after ? in.after : in.v, in.later, in.touching};
}
// Bars of the same; null where nobody asks. q is tangent, [nv]
template <class T> struct InputBars {
  T *q, *v, *u;
  T h;
  T* external;
  T full = T(0);  // of a part of a step that is split
};

CS_END
