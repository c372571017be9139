// One instruction set's instantiation of the core, for one element type: compiled several times (CS_ISA, CS_SCALAR).
#include "op_kernel.h"
#include "rollout_kernel.h"

CS_BEGIN
namespace {

using E = CS_SCALAR;
#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
using P = Pack<E, kBytes / int(sizeof(E))>;

size_t op_scratch_any(const OpCall<E>& c, bool one) { return one ? op_scratch<E>(c) : op_scratch<P>(c); }
size_t rollout_scratch_any(const RolloutCall<E>& c, bool one) { return one ? rollout_scratch<E>(c) : rollout_scratch<P>(c); }

void op_any(const OpCall<E>& c, bool one, long lo, long hi, void* scratch) {
  if (one)
    run_op<E>(c, lo, hi, scratch);
  else
    run_op<P>(c, lo, hi, scratch);
}
void rollout_any(const RolloutCall<E>& c, bool one, long lo, long hi, void* scratch) {
  if (one)
    run_rollout<E>(c, lo, hi, scratch);
  else
    run_rollout<P>(c, lo, hi, scratch);
}

}  // namespace
CS_END

namespace costate {

#define CS_PASTE(a, b, c, d) a##b##c##d
#define CS_NAME(scalar, isa) CS_PASTE(kernels_, scalar, _, isa)
Kernels<CS_SCALAR> CS_NAME(CS_SCALAR, CS_ISA)() {
  return {lanes<CS_ISA::P>, CS_ISA::op_scratch_any, CS_ISA::op_any, CS_ISA::rollout_scratch_any, CS_ISA::rollout_any};
}

}  // namespace costate
