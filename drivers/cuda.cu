// The calls on a GPU, one thread or a team of them per world: compiled at run time for one model, one element type and one call.
//
//   CS_MODEL      header with the model's Tree as constants; CS_METHOD, .. the same of its Options
//   CS_SCALAR     float or double
//   CS_OP_CODE    the Op, or -1: a rollout;   CS_ADJOINT  0 or 1
//   CS_SCRATCH    bytes that a world needs on the way; CS_LOCAL 1: in the thread's own memory, which the hardware interleaves,
//                 0: in `scratch`, for models that need more than a thread has. Then fewer threads than worlds may run
//   CS_CALL_SIZE  bytes of the call's struct as Python fills it
//   CS_TEAM       threads that step a world together, core/base/team.h; more than one only with scratch outside
//   CS_THREADS    of a block at most;   CS_BLOCKS  those that a multiprocessor is to have room for
//   CS_PART       if defined: this part of a step of a rollout (part_kernel.h), of worlds from `first` to before `end`, substep `at`; `order`: how many worlds, and those
//   CS_HOLDS      if defined: this part is the solver, which has shared memory for itself, and registers for so many chunks of columns (core/ops/held.h)
// A block is CS_TEAM threads wide and has a world in every row: worlds of one warp wait for each other wherever they differ
#include "op_kernel.h"
#ifdef CS_PART
#include "part_kernel.h"
#else
#include "rollout_kernel.h"
#endif

namespace costate {

using E = CS_SCALAR;

#if CS_OP_CODE < 0
using Call = RolloutCall<E>;
__device__ __forceinline__ void run(const Call& c, long w, void* scratch) { run_rollout<E>(c, w, w + 1, scratch); }
#else
using Call = OpCall<E>;
__device__ __forceinline__ void run(const Call& c, long w, void* scratch) { run_op<E>(c, w, w + 1, scratch); }
#endif
static_assert(sizeof(Call) == CS_CALL_SIZE, "costate/_native/cuda/structs.py describes another struct");

#ifdef CS_PART
extern "C" __global__ void __launch_bounds__(CS_THREADS, CS_BLOCKS)
    call(const __grid_constant__ Call c, unsigned char* scratch, long first, long end, long at, int* order) {
  long own = long(blockIdx.x) * blockDim.y + threadIdx.y;
  if (own >= end - first) return;
  Order in = Order::of(order, end - first);
  if (CS_PART >= kPartPass) own = own_world(in, CS_PART, at, int(own));
  if (own < 0) return;
  run_part<E>(c, first + own, at, scratch + own * CS_SCRATCH, in, int(own));
}
#else
extern "C" __global__ void __launch_bounds__(CS_THREADS) call(const __grid_constant__ Call c, unsigned char* scratch) {
  long first = long(blockIdx.x) * blockDim.y + threadIdx.y, stride = long(gridDim.x) * blockDim.y;
#if CS_LOCAL
  __align__(16) unsigned char own[CS_SCRATCH];
#else
  unsigned char* own = scratch + first * CS_SCRATCH;
#endif
  for (long w = first; w < c.worlds; w += stride) run(c, w, own);
}
#endif

}  // namespace costate
