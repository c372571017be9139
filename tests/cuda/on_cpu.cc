// The kernels of drivers/cuda.cu as the CPU runs them, compiled like those for one model: a library for test_kernels.py.
#include "../../drivers/op_kernel.h"
#ifdef CS_PART
#include "../../drivers/part_kernel.h"
#else
#include "../../drivers/rollout_kernel.h"
#endif

namespace costate {

using E = CS_SCALAR;
#if CS_OP_CODE < 0
using Call = RolloutCall<E>;
#else
using Call = OpCall<E>;
#endif
static_assert(sizeof(Call) == CS_CALL_SIZE, "costate/_native/cuda/structs.py describes another struct");

#ifdef CS_PART
static Order in;
void run(const Call& c, long w, long at, void* scratch, int k) { run_part<E>(c, w, at, scratch, in, k); }
#elif CS_OP_CODE < 0
void run(const Call& c, long w, long, void* scratch, int) { run_rollout<E>(c, w, w + 1, scratch); }
#else
void run(const Call& c, long w, long, void* scratch, int) { run_op<E>(c, w, w + 1, scratch); }
#endif

// returns what is wrong, or null.   scratch: of every world, what parts of a step hand on, or null; of worlds from `first` to before `end`
extern "C" const char* call(const Call* c, unsigned char* scratch, long first, long end, long at, [[maybe_unused]] int* order) {
  alignas(16) static unsigned char own[CS_SCRATCH + 256];
  for (long i = first; i < end; i++) {
    long w = i;
#ifdef CS_PART
    in = Order::of(order, end - first);
    if (CS_PART >= kPartPass) w = first + own_world(in, CS_PART, at, int(i - first));
    if (w < first) continue;
#endif
    int k = int(w - first);
    unsigned char* memory = scratch ? scratch + k * CS_SCRATCH : own;
#ifdef CS_TEAM_ON_CPU
    if (!scratch) std::memset(own, 0, sizeof(own));
    if (const char* wrong = team_runs(memory, CS_SCRATCH, [&](void* m) { run(*c, w, at, m, k); })) return wrong;
#else
    run(*c, w, at, memory, k);
#endif
  }
  return nullptr;
}

}  // namespace costate
