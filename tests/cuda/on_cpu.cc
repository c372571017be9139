// The kernels of drivers/cuda.cu as the CPU runs them, compiled like those for one model: a library for test_kernels.py.
#include "../../drivers/op_kernel.h"
#include "../../drivers/rollout_kernel.h"

namespace costate {

using E = CS_SCALAR;
#if CS_OP_CODE < 0
using Call = RolloutCall<E>;
#else
using Call = OpCall<E>;
#endif
static_assert(sizeof(Call) == CS_CALL_SIZE, "costate/_native/cuda/structs.py describes another struct");

void run(const Call& c, long w, void* scratch) {
#if CS_OP_CODE < 0
  run_rollout<E>(c, w, w + 1, scratch);
#else
  run_op<E>(c, w, w + 1, scratch);
#endif
}

// returns what is wrong, or null
extern "C" const char* call(const Call* c) {
#ifdef CS_TEAM_ON_CPU
  for (long w = 0; w < c->worlds; w++)
    if (const char* wrong = team_runs(CS_SCRATCH, [&](void* scratch) { run(*c, w, scratch); })) return wrong;
#else
  alignas(16) static unsigned char scratch[CS_SCRATCH];
  for (long w = 0; w < c->worlds; w++) run(*c, w, scratch);
#endif
  return nullptr;
}

}  // namespace costate
