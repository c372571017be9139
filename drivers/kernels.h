// The calls that reach the core: plain structs of pointers, the same for every instruction set.
//
// Arrays hold one row of numbers per world. stride 0 means one row shared by all worlds; the bar of a shared input is summed
// over the worlds in a fixed order: lanes within a pack, then packs (`partial`), so that threads never change a bit of it.
#pragma once
#ifndef __CUDACC_RTC__
#include <cstddef>
#endif

#include "../core/data/options.h"
#include "../core/data/params.h"

namespace costate {

template <class E> struct Array {
  E* data = nullptr;
  long stride = 0;  // numbers from one world to the next
  long time = 0;    // numbers from one step to the next; 0: the same at every step
  E* partial = nullptr;
};

// Functions of one instant
enum Op : int {
  kJointForces,
  kAcceleration,
  kMassMatrix,
  kPoses,
  kIntegrate,
  kDifference,
  kPrepare,
  kErrors,
  kSettle,
  kDistance,  // of the tree's only pair
  kLinearize
};

struct OpShape {
  int n_in, n_out;
  int in[6], out[3];
};

}  // namespace costate

CS_BEGIN
CS_OP OpShape op_shape(int op, const Tree& t) {
  int P = params_size(t), ext = 6 * t.nb, n2 = 2 * t.nv;
  switch (op) {
    case kJointForces:
    case kAcceleration: return {5, 1, {t.nq, t.nv, t.nv, ext, P, 0}, {t.nv, 0, 0}};
    case kMassMatrix: return {2, 1, {t.nq, P, 0, 0, 0, 0}, {t.nv * t.nv, 0, 0}};
    case kPoses: return {3, 3, {t.nq, t.nv, P, 0, 0, 0}, {7 * t.nb, 6 * t.nb, 6 * t.nv}};
    case kIntegrate: return {2, 1, {t.nq, t.nv, 0, 0, 0, 0}, {t.nq, 0, 0}};
    case kDifference: return {2, 1, {t.nq, t.nq, 0, 0, 0, 0}, {t.nv, 0, 0}};
    case kPrepare: return {1, 1, {P, 0, 0, 0, 0, 0}, {P, 0, 0}};
    case kErrors: return {2, 1, {t.nq, P, 0, 0, 0, 0}, {t.ne, 0, 0}};
    case kSettle: return {2, 1, {t.nq, P, 0, 0, 0, 0}, {t.nq, 0, 0}};
    case kDistance: return {2, 1, {t.nq, P, 0, 0, 0, 0}, {10, 0, 0}};
    default: return {6, 2, {t.nq, t.nv, t.nu, 1, ext, P}, {n2 * n2, n2 * t.nu, 0}};
  }
}
CS_END

namespace costate {

template <class E> struct OpCall {
  const Tree* tree;
#ifdef CS_MODEL
  static constexpr int op = CS_OP_CODE;
  static constexpr bool adjoint = CS_ADJOINT;
#else
  int op;
  bool adjoint;
#endif
  long worlds;
  Options options;                 // of linearize
  Array<E> in[6], out[3];          // values; out unused by the adjoint
  Array<E> in_bar[6], out_bar[3];  // adjoint only; in_bar.data null: not wanted
};

// Many steps: inputs q, v, u, h, external, theta
enum RolloutInput { kQ, kV, kU, kH, kExternal, kTheta, kRolloutInputs };

// numbers that describe the solver's work on one world, a contact, and a joint's row (costate/info.py)
constexpr int kStatusNumbers = 11, kContactNumbers = 12, kRowNumbers = 3;

template <class E> struct RolloutCall {
  const Tree* tree;
#ifdef CS_MODEL
  static constexpr bool adjoint = CS_ADJOINT;
#else
  bool adjoint;
#endif
  long worlds, steps, substeps;
  Options options;
  Array<E> in[kRolloutInputs], in_bar[kRolloutInputs];
  Array<E> q, v, q_bar, v_bar;  // states after each control step: [steps, worlds, n]
  int* diverged_at;             // [worlds] control steps that stayed finite
  E decay;                      // of the costate, per control step
  long truncate;                // the costate is cut at every multiple of it; 0: never
  E clip;                       // largest norm of the costate, 0: any
  Array<E> costate;             // [steps, worlds] its norm before each step, or null
  // what was solved, all may be null; contacts, ids and rows are those of the last step
  Array<E> status;    // [worlds, kStatusNumbers]
  Array<E> contacts;  // [worlds, max_contacts, kContactNumbers]; of the adjoint: its bar
  Array<E> rows;      // [worlds, joint_rows + ne, kRowNumbers]; of an equality row its impulse, 2, its error
  int* contact_ids;   // [worlds, max_contacts]
};

// no adjoint: integers.   of a call
#ifdef CS_MODEL
template <class C> CS_FN Tree tree_of(const C&) { return {}; }
#else
template <class C> CS_FN const Tree& tree_of(const C& c) { return *c.tree; }
#endif

#ifndef __CUDACC__
// One instruction set's code for one element type. `pack_*` take 'lanes' worlds at a time, `one_*` a single world
template <class E> struct Kernels {
  int lanes;
  size_t (*op_scratch)(const OpCall<E>&, bool one);                         // bytes per thread
  void (*op)(const OpCall<E>&, bool one, long lo, long hi, void* scratch);  // packs lo to hi
  size_t (*rollout_scratch)(const RolloutCall<E>&, bool one);
  void (*rollout)(const RolloutCall<E>&, bool one, long lo, long hi, void* scratch);
};

#define CS_DECLARE(isa)                   \
  Kernels<double> kernels_double_##isa(); \
  Kernels<float> kernels_float_##isa();
CS_DECLARE(base)
#ifdef CS_HAVE_X86
CS_DECLARE(avx2)
CS_DECLARE(avx512)
#endif
#undef CS_DECLARE
#endif

}  // namespace costate
