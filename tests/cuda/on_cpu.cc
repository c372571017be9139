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

#ifdef CS_PART
using Run = void (*)(const Call& c, long w, long at, void* scratch);
constexpr Run run = run_part<E>;
#elif CS_OP_CODE < 0
void run(const Call& c, long w, long, void* scratch) { run_rollout<E>(c, w, w + 1, scratch); }
#else
void run(const Call& c, long w, long, void* scratch) { run_op<E>(c, w, w + 1, scratch); }
#endif

// returns what is wrong, or null.   scratch: of every world, what parts of a step hand on, or null; of worlds from `first` to before `end`
extern "C" const char* call(const Call* c, unsigned char* scratch, long first, long end, long at) {
  alignas(16) static unsigned char own[CS_SCRATCH + 256];
  for (long w = first; w < end; w++) {
    unsigned char* memory = scratch ? scratch + (w - first) * CS_SCRATCH : own;
#ifdef CS_TEAM_ON_CPU
    if (!scratch) std::memset(own, 0, sizeof(own));
    if (const char* wrong = team_runs(memory, CS_SCRATCH, [&](void* m) { run(*c, w, at, m); })) return wrong;
#else
    run(*c, w, at, memory);
#endif
  }
  return nullptr;
}

}  // namespace costate
