// From a call on arrays to the right instruction set, lane width and threads, and the ordered sum of shared bars.
#pragma once
#include "kernels.h"

namespace costate {

const char* instruction_set();            // "avx512", "avx2" or "base"
void set_instruction_set(const char* s);  // for tests; throws std::invalid_argument for one that this machine lacks

template <class E> void run(OpCall<E>& call);
template <class E> void run(RolloutCall<E>& call);

// bytes of scratch memory that a world alone needs during a call
template <class E> size_t world_scratch(const OpCall<E>& call);
template <class E> size_t world_scratch(const RolloutCall<E>& call);

}  // namespace costate
