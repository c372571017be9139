// A pool of threads that split a range. Results never depend on it: every pack writes its own memory.
#pragma once
#include <cstddef>
#include <functional>

namespace costate {

int num_threads();
void set_num_threads(int n);

// 64-byte aligned memory of the calling thread, kept for the next call
void* thread_scratch(size_t bytes);

// body(lo, hi, scratch) on pieces of [0, n); each piece has `bytes` of its thread's scratch. n = 1 or one thread: runs here, at
// once. Safe after fork (a child starts its own pool).
void parallel_for(long n, size_t bytes, const std::function<void(long, long, void*)>& body);

}  // namespace costate
