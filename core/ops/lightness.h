// lightness: how little resists a row's impulse: 1/m of a body that slides, 3 / tr I of one that turns; the world and massless bodies count for nothing.
//
// Times relative_softness it is the floor of the row's R. That decides how rows that hold the same share a load, so it has a derivative.
#pragma once
#include "../data/trace.h"

CS_BEGIN

template <class T> CS_FN T body_lightness(const Params<T>& th, int b, bool turns) {
  if (b < 0) return T(0);
  const Sym3<T>& I = th.inertia[b];
  T size = turns ? T(ElementOf<T>(1.0 / 3)) * (I.xx + I.yy + I.zz) : th.mass[b];
  auto some = size > T(0);
  return select(some, T(1) / select(some, size, T(1)), T(0));
}
template <class T> CS_FN void body_lightness_adj(const Params<T>& th, int b, bool turns, T y_bar, const Params<T>& th_bar) {
  if (b < 0 || !th_bar.mass) return;
  T y = body_lightness(th, b, turns), size_bar = -y * y * y_bar, third = T(ElementOf<T>(1.0 / 3)) * size_bar;
  if (turns)
    th_bar.inertia[b].xx += third, th_bar.inertia[b].yy += third, th_bar.inertia[b].zz += third;
  else
    th_bar.mass[b] += size_bar;
}

// no adjoint: integers.   does dof d turn its body, or slide it?
CS_FN bool dof_turns(const Tree& t, int d) {
  int b = t.dof_body[d], joint = t.joint[b];
  return joint == kRevolute || joint == kBall || (joint_parent_fixed(joint) && d - t.v_adr[b] >= joint_parent_fixed(joint));
}

// dof_lightness: of a row on dof d; none for d < 0
template <class T> CS_FN T dof_lightness(const Tree& t, const Params<T>& th, int d) {
  return d < 0 ? T(0) : body_lightness(th, t.dof_body[d], dof_turns(t, d));
}
template <class T> CS_FN void dof_lightness_adj(const Tree& t, const Params<T>& th, int d, T y_bar, const Params<T>& th_bar) {
  if (d >= 0) body_lightness_adj(th, t.dof_body[d], dof_turns(t, d), y_bar, th_bar);
}

// pair_lightness: of a row between two bodies
template <class T> CS_FN T pair_lightness(const Params<T>& th, int a, int b, bool turns) {
  return body_lightness(th, a, turns) + body_lightness(th, b, turns);
}
template <class T>
CS_FN void pair_lightness_adj(const Params<T>& th, int a, int b, bool turns, T y_bar, const Params<T>& th_bar) {
  body_lightness_adj(th, a, turns, y_bar, th_bar);
  body_lightness_adj(th, b, turns, y_bar, th_bar);
}

CS_END
