// Every header of core/ as device code: one thread per world, scratch memory from a pointer. Compiled, never run.
//
// What test_compile.py looks for is that nvcc accepts it: no host-only function, container or intrinsic may hide in core/.
// Each kernel calls one function and its adjoint, with a world's numbers one after the other, as a driver would.
#include "../../core/base/config.h"
#include "../../core/base/dual.h"
#include "../../core/base/pack.h"
#include "../../core/base/scalar.h"
#include "../../core/base/team.h"
#include "../../core/data/equality.h"
#include "../../core/data/feature.h"
#include "../../core/data/inputs.h"
#include "../../core/data/interior.h"
#include "../../core/data/layout.h"
#include "../../core/data/model.h"
#include "../../core/data/options.h"
#include "../../core/data/params.h"
#include "../../core/data/rows.h"
#include "../../core/data/trace.h"
#include "../../core/math/array.h"
#include "../../core/math/mat3.h"
#include "../../core/math/quat.h"
#include "../../core/math/spatial.h"
#include "../../core/math/trig.h"
#include "../../core/math/vec3.h"
#include "../../core/ops/actuate.h"
#include "../../core/ops/alternate.h"
#include "../../core/ops/broadphase.h"
#include "../../core/ops/collide.h"
#include "../../core/ops/collide/chosen.h"
#include "../../core/ops/collide/convex.h"
#include "../../core/ops/collide/feature.h"
#include "../../core/ops/collide/field.h"
#include "../../core/ops/collide/gjk.h"
#include "../../core/ops/collide/manifold.h"
#include "../../core/ops/collide/plane_solid.h"
#include "../../core/ops/collide/point_plane.h"
#include "../../core/ops/collide/polygon.h"
#include "../../core/ops/collide/sat.h"
#include "../../core/ops/collide/segments.h"
#include "../../core/ops/collide/solid.h"
#include "../../core/ops/collide/vertices.h"
#include "../../core/ops/columns.h"
#include "../../core/ops/constrain.h"
#include "../../core/ops/contact_J.h"
#include "../../core/ops/delassus.h"
#include "../../core/ops/delassus_together.h"
#include "../../core/ops/distance.h"
#include "../../core/ops/eliminate.h"
#include "../../core/ops/equality.h"
#include "../../core/ops/equality_factor.h"
#include "../../core/ops/fall.h"
#include "../../core/ops/first_round.h"
#include "../../core/ops/flight.h"
#include "../../core/ops/friction.h"
#include "../../core/ops/held.h"
#include "../../core/ops/impact.h"
#include "../../core/ops/inertia.h"
#include "../../core/ops/integrate.h"
#include "../../core/ops/interior.h"
#include "../../core/ops/interior_pairs.h"
#include "../../core/ops/inverse.h"
#include "../../core/ops/inverse_dynamics.h"
#include "../../core/ops/islands.h"
#include "../../core/ops/joint/ball.h"
#include "../../core/ops/joint/fixed.h"
#include "../../core/ops/joint/frame.h"
#include "../../core/ops/joint/free.h"
#include "../../core/ops/joint/planar.h"
#include "../../core/ops/joint/prismatic.h"
#include "../../core/ops/joint/revolute.h"
#include "../../core/ops/joint_rows.h"
#include "../../core/ops/kinematics.h"
#include "../../core/ops/large.h"
#include "../../core/ops/lightness.h"
#include "../../core/ops/limits.h"
#include "../../core/ops/lu.h"
#include "../../core/ops/lu_together.h"
#include "../../core/ops/mass_form.h"
#include "../../core/ops/overlap.h"
#include "../../core/ops/passes.h"
#include "../../core/ops/passive.h"
#include "../../core/ops/polish.h"
#include "../../core/ops/prepare.h"
#include "../../core/ops/project.h"
#include "../../core/ops/relax.h"
#include "../../core/ops/rounds.h"
#include "../../core/ops/rows.h"
#include "../../core/ops/settle.h"
#include "../../core/ops/shapes.h"
#include "../../core/ops/sides.h"
#include "../../core/ops/slope.h"
#include "../../core/ops/slots.h"
#include "../../core/ops/solve.h"
#include "../../core/ops/ties.h"
#include "../../core/ops/tree_together.h"
#include "../../core/ops/turn_rows.h"
#include "../../core/ops/velocity.h"
#include "../../core/query.h"
#include "../../core/split.h"
#include "../../core/step.h"

// A using-directive at global scope would make the sqrt in CUDA's own headers ambiguous, which come last on the host side
namespace costate {

// What a kernel is given: inputs x, outputs y, bars of both, and scratch, `stride` numbers per world
template <class T> struct Call {
  Tree t;
  Options o;
  int worlds, stride;
  const T *q, *v, *u, *theta, *external;
  T *y, *y_bar, *q_bar, *v_bar, *u_bar, *theta_bar, *external_bar, *scratch;
};

// One world's share of it
template <class T> struct Mine {
  Trace<T> tr;
  Bars<T> bar;
  Rows<T> rw;
  RowBars<T> rb;
  Params<T> th, th_bar;
  Inputs<T> in;
  InputBars<T> in_bar;
  T *y, *y_bar;
  bool real;

  __device__ explicit Mine(const Call<T>& c) {
    int w = blockIdx.x * blockDim.x + threadIdx.x, n = w * c.stride;
    real = w < c.worlds;
    Arena<T> arena{c.scratch + n, 0};
    tr = trace_map(c.t, arena), bar = bars_map(c.t, arena), rw = rows_map(c.t, c.o, true, arena),
    rb = row_bars_map(c.t, c.o, arena);
    th = params_map(c.t, arena.template take<T>(params_size(c.t)));
    th_bar = params_map(c.t, c.theta_bar + n);
    in = {c.q + n, c.v + n, c.u + n, T(0.01), c.external + n};
    in_bar = {c.q_bar + n, c.v_bar + n, c.u_bar + n, T(0), c.external_bar + n};
    y = c.y + n, y_bar = c.y_bar + n;
    prepare(c.t, const_cast<T*>(c.theta) + n, &th.gravity->x);
  }
};

template <class T> __global__ void step_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  T* v_next = m.y + c.t.nq;
  step(c.t, m.th, m.tr, m.rw, c.o, m.in, m.y, v_next);
  for (int i = 0; i < m.rw.count[0]; i++) m.rb.impulse[i] = zero3<T>();
  step_adj(c.t, m.th, m.tr, m.rw, c.o, m.in, v_next, m.y_bar, m.y_bar + c.t.nv, m.bar, m.rb, m.th_bar, m.in_bar);
  normalise_adj(c.t, m.in.q, m.in_bar.q, m.y);
  tangent_bars(c.t, m.in.q, m.y, m.in_bar.q);
}

template <class T> __global__ void split_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  Arena<T> arena{c.scratch + c.worlds * c.stride + (blockIdx.x * blockDim.x + threadIdx.x) * c.stride, 0};
  Split<T> s = split_map(c.t, c.o, true, arena);
  split_step(c.t, m.th, m.tr, m.rw, c.o, m.in, m.y, m.y + c.t.nq, s);
  auto show = [&](int) {
    for (int i = 0; i < m.rw.count[0]; i++) m.rb.impulse[i] = zero3<T>();
  };
  split_step_adj(c.t, m.th, m.tr, m.rw, c.o, m.in, m.y_bar, m.y_bar + c.t.nv, m.bar, m.rb, m.th_bar, m.in_bar, s, show);
}

template <class T> __global__ void acceleration_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  acceleration(c.t, m.th, m.tr, m.in, m.in.u);
  bars_clear(c.t, m.bar);
  for (int d = 0; d < c.t.nv; d++) m.bar.u[d] = m.y_bar[d];
  acceleration_adj(c.t, m.th, m.tr, m.in, m.bar, m.th_bar, m.in_bar);
}

template <class T> __global__ void poses_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  int at_v = 7 * c.t.nb, at_S = 13 * c.t.nb;
  poses(c.t, m.th, m.tr, m.in.q, m.in.v, m.y, m.y + at_v, m.y + at_S);
  poses_adj(c.t, m.th, m.tr, m.in.v, m.y_bar, m.y_bar + at_v, m.y_bar + at_S, m.bar, m.th_bar, m.in_bar.q, m.in_bar.v);
}

template <class T> __global__ void mass_matrix_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  mass_matrix(c.t, m.th, m.tr, m.in.q, m.y);
  mass_matrix_adj(c.t, m.th, m.tr, m.y_bar, m.bar, m.th_bar, m.in_bar.q);
}

template <class T> __global__ void joint_forces_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  joint_forces(c.t, m.th, m.tr, m.in, m.in.u, m.y);
  joint_forces_adj(c.t, m.th, m.tr, m.in, m.in.u, m.y_bar, m.bar, m.th_bar, m.in_bar, m.in_bar.u);
}

template <class T> __global__ void settle_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  errors(c.t, m.th, m.tr, m.rw.eq, m.in.q, m.y);
  errors_adj(c.t, m.th, m.tr, m.rw.eq, m.y_bar, m.rb.eq, m.bar, m.th_bar, m.in_bar.q);
  settle(c.t, m.th, m.tr, m.rw, m.in.q, m.in_bar.v, m.y);
  settle_adj(c.t, m.th, m.tr, m.rw, m.in_bar.v, m.y_bar, m.rb, m.bar, m.th_bar, m.in_bar.q);
}

template <class T> __global__ void distance_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  distance(c.t, m.th, m.tr, m.rw, m.in.q, m.y);
  distance_adj(c.t, m.th, m.tr, m.rw, m.y_bar, m.rb, m.bar, m.th_bar, m.in_bar.q);
}

template <class T> __global__ void manifold_kernel(Call<T> c) {
  Mine<T> m(c);
  if (!m.real) return;
  integrate(c.t, m.in.q, m.in.h, m.in.v, m.y);
  integrate_adj(c.t, m.in.h, m.in.v, m.y_bar, m.in_bar.q, m.in_bar.h, m.in_bar.v);
  difference(c.t, m.in.q, m.y, m.in_bar.v);
  difference_adj(c.t, m.in.q, m.y, m.y_bar, m.in_bar.q, m.in_bar.u);
  prepare_adj(c.t, const_cast<T*>(c.theta), &m.th_bar.gravity->x, c.theta_bar);
}

#define INSTANTIATE(T)                                      \
  template __global__ void step_kernel<T>(Call<T>);         \
  template __global__ void split_kernel<T>(Call<T>);        \
  template __global__ void acceleration_kernel<T>(Call<T>); \
  template __global__ void poses_kernel<T>(Call<T>);        \
  template __global__ void mass_matrix_kernel<T>(Call<T>);  \
  template __global__ void joint_forces_kernel<T>(Call<T>); \
  template __global__ void settle_kernel<T>(Call<T>);       \
  template __global__ void distance_kernel<T>(Call<T>);     \
  template __global__ void manifold_kernel<T>(Call<T>);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace costate
