// Spatial algebra (Featherstone 2008), angular part first, in one world-aligned frame per tree: no transforms at all.
//
//   Motion (w, v): angular velocity, and the velocity of the body-fixed point at the frame's origin
//   Force (n, f): moment about the origin, and force.   The bar of a Motion is a Force, the bar of a Force a Motion
//   v x m and v x* f: the derivatives of a motion and a force carried along by v;   (v x m) . f = -m . (v x* f)
//   Inertia: mass m, first moment h = m c, rotational inertia about the origin I;  momentum = I v
#pragma once
#include "mat3.h"

CS_BEGIN

template <class T> struct Motion {
  Vec3<T> w, v;
  CS_FN Motion& operator+=(Motion b) { return w += b.w, v += b.v, *this; }
  CS_FN Motion& operator-=(Motion b) { return w -= b.w, v -= b.v, *this; }
};

template <class T> struct Force {
  Vec3<T> n, f;
  CS_FN Force& operator+=(Force b) { return n += b.n, f += b.f, *this; }
  CS_FN Force& operator-=(Force b) { return n -= b.n, f -= b.f, *this; }
};

template <class T> struct Inertia {
  T m;
  Vec3<T> h;
  Sym3<T> I;
  CS_FN Inertia& operator+=(const Inertia& b) { return m += b.m, h += b.h, I += b.I, *this; }
};

template <class T> CS_FN Motion<T> operator+(Motion<T> a, Motion<T> b) { return {a.w + b.w, a.v + b.v}; }
template <class T> CS_FN Force<T> operator+(Force<T> a, Force<T> b) { return {a.n + b.n, a.f + b.f}; }
template <class T> CS_FN Force<T> operator-(Force<T> a, Force<T> b) { return {a.n - b.n, a.f - b.f}; }
template <class T> CS_FN Motion<T> operator*(T s, Motion<T> a) { return {s * a.w, s * a.v}; }
template <class T> CS_FN Force<T> operator*(T s, Force<T> a) { return {s * a.n, s * a.f}; }

// no adjoint: a constant
template <class T> CS_FN Motion<T> zero_motion() { return {zero3<T>(), zero3<T>()}; }
// no adjoint: a constant
template <class T> CS_FN Force<T> zero_force() { return {zero3<T>(), zero3<T>()}; }

// no adjoint: linear in each argument
template <class T> CS_FN Motion<T> fma(T s, Motion<T> a, Motion<T> b) { return {fma(s, a.w, b.w), fma(s, a.v, b.v)}; }
// no adjoint: linear in each argument
template <class T> CS_FN Force<T> fma(T s, Force<T> a, Force<T> b) { return {fma(s, a.n, b.n), fma(s, a.f, b.f)}; }
// no adjoint: linear in each argument.   power
template <class T> CS_FN T dot(Motion<T> a, Force<T> b) {
  return fma(a.w.x, b.n.x, fma(a.w.y, b.n.y, fma(a.w.z, b.n.z, dot(a.v, b.f))));
}
// no adjoint: a_bar = b x* y_bar, b_bar = -a x* y_bar
template <class T> CS_FN Motion<T> cross(Motion<T> a, Motion<T> b) {
  return {cross(a.w, b.w), cross(a.w, b.v) + cross(a.v, b.w)};
}
// no adjoint: a_bar = -(y_bar x* f), f_bar = y_bar x a
template <class T> CS_FN Force<T> cross(Motion<T> a, Force<T> f) { return {cross(a.w, f.n) + cross(a.v, f.f), cross(a.w, f.f)}; }

// no adjoint: inertia_form_adj gives the bar of the inertia; v_bar = I f_bar since I is symmetric
template <class T> CS_FN Force<T> mul(const Inertia<T>& I, Motion<T> v) {
  return {mul(I.I, v.w) + cross(I.h, v.v), fma(I.m, v.v, cross(v.w, I.h))};
}

// no adjoint: used on bars only.   I_bar += d(x . I y)/dI, in the ten stored numbers
template <class T> CS_FN void inertia_form_adj(Motion<T> x, Motion<T> y, Inertia<T>& I_bar) {
  I_bar.m += dot(x.v, y.v);
  I_bar.h += cross(y.v, x.w) + cross(x.v, y.w);
  I_bar.I += sym_outer(x.w, y.w);
}

// The inertia felt through a tree whose joints are free to move: any symmetric 6x6.   n = A w + B v, f = B^T w + C v
template <class T> struct ArticulatedInertia {
  Sym3<T> A;
  Mat3<T> B;
  Sym3<T> C;
};

// no adjoint: the factorisation is differentiated through the solve
template <class T> CS_FN Force<T> mul(const ArticulatedInertia<T>& I, Motion<T> v) {
  return {mul(I.A, v.w) + mul(I.B, v.v), tmul(I.B, v.w) + mul(I.C, v.v)};
}

// no adjoint: see above.   s += k x x^T
template <class T> CS_FN void add_outer(Sym3<T>& s, T k, Vec3<T> x) {
  Vec3<T> y = k * x;
  s.xx = fma(x.x, y.x, s.xx), s.yy = fma(x.y, y.y, s.yy), s.zz = fma(x.z, y.z, s.zz);
  s.xy = fma(x.x, y.y, s.xy), s.xz = fma(x.x, y.z, s.xz), s.yz = fma(x.y, y.z, s.yz);
}

// no adjoint: see above.   I += k U U^T
template <class T> CS_FN void add_outer(ArticulatedInertia<T>& I, T k, Force<T> U) {
  add_outer(I.A, k, U.n);
  add_outer(I.C, k, U.f);
  Vec3<T> y = k * U.n;
  I.B.r0 = fma(y.x, U.f, I.B.r0), I.B.r1 = fma(y.y, U.f, I.B.r1), I.B.r2 = fma(y.z, U.f, I.B.r2);
}

// no adjoint: see above.   a rigid inertia as an articulated one: B = [h], C = m 1
template <class T> CS_FN ArticulatedInertia<T> articulated(const Inertia<T>& I) {
  T o = T(0);
  return {I.I, {{o, -I.h.z, I.h.y}, {I.h.z, o, -I.h.x}, {-I.h.y, I.h.x, o}}, {I.m, I.m, I.m, o, o, o}};
}

// no adjoint: see above
template <class T> CS_FN void add(ArticulatedInertia<T>& a, const ArticulatedInertia<T>& b) {
  a.A += b.A;
  a.B.r0 += b.B.r0, a.B.r1 += b.B.r1, a.B.r2 += b.B.r2;
  a.C += b.C;
}

CS_END
