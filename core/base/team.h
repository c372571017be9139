// team: the threads that step one world together on a GPU, where CS_TEAM says how many; elsewhere one.
//
// All of them run all of the code on the same numbers, instruction by instruction at the same time, and write the same to the same places: branches depend
// on numbers that all have, so no hardware runs some of them ahead. But loops whose turns do not depend on each other they share, and wait for each other
// before and after: what one thread writes no other may read or write in between.
//   share(n, f)          f(0), .. f(n - 1), in any order; what they write all may read afterwards; share_rows: of rows or blocks
//   of_rank(x, k)        the k-th thread's x, to all; beyond the last one the first is next
//   largest(x)           of all threads' x, none of them NaN
//   anyone(x)            whether any thread's x is true
//   how_many(x, before)  threads whose x is true; before: those of a lower rank
// no adjoint in this file: each loop is a part of an op, which knows its own
#pragma once
#include "scalar.h"
#ifdef CS_TEAM_ON_CPU
#include CS_TEAM_ON_CPU  // tests bring a team of their own
#endif

CS_BEGIN

#ifdef CS_TEAM_ON_CPU
#elif defined(__CUDA_ARCH__) && CS_TEAM > 1
constexpr int kTeam = CS_TEAM;  // 2, 4, .. 32: a part of a warp
CS_FN int team_rank() { return threadIdx.x; }
CS_FN int team_start() { return kTeam == 32 ? 0 : (threadIdx.y * kTeam) & 31; }
CS_FN unsigned team_mask() { return kTeam == 32 ? 0xffffffffu : ((1u << (kTeam & 31)) - 1) << team_start(); }
CS_FN void team_wait() { __syncwarp(team_mask()); }
template <class T> CS_FN T of_rank(T x, int k) { return __shfl_sync(team_mask(), x, k, kTeam); }
template <class T> CS_FN T largest(T x) {
  for (int far = kTeam / 2; far; far /= 2) x = max(x, __shfl_xor_sync(team_mask(), x, far, kTeam));
  return x;
}
CS_FN bool anyone(bool x) { return __any_sync(team_mask(), x); }
CS_FN int how_many(bool x, int& before) {
  unsigned found = __ballot_sync(team_mask(), x) >> team_start();
  before = __popc(found & ((1u << team_rank()) - 1));
  return __popc(found);
}
#else
constexpr int kTeam = 1;
CS_FN int team_rank() { return 0; }
CS_FN void team_wait() {}
template <class T> CS_FN T of_rank(T x, int) { return x; }
template <class T> CS_FN T largest(T x) { return x; }
CS_FN bool anyone(bool x) { return x; }
CS_FN int how_many(bool x, int& before) { return before = 0, x; }
#endif

// Chunks of columns that a thread may hold of a matrix (ops/held.h): where the solver is a kernel of its own, which has the registers for it
#ifdef CS_HOLDS
constexpr int kHeldChunks = CS_HOLDS;
#else
constexpr int kHeldChunks = 0;
#endif

// near_memory: a V that a team reaches sooner than `far`, which is for the same where there is none; or `far`
template <class V> CS_FN V* near_memory(V* far) {
#if defined(__CUDA_ARCH__) && defined(CS_HOLDS)
  __shared__ V near[CS_THREADS / CS_TEAM];
  return near + threadIdx.y;
#else
  return far;
#endif
}

// a loop of a team, which is not unrolled: each thread has few turns, and the less code, the sooner it is fetched
#ifdef __CUDACC__
#define CS_SHORT _Pragma("unroll 1") for
#else
#define CS_SHORT for
#endif

template <class F> CS_FN void share(int n, const F& f) {
  if constexpr (kTeam == 1) {
    for (int k = 0; k < n; k++) f(k);
  } else {
    team_wait();
    CS_SHORT (int k = team_rank(); k < n; k += kTeam) f(k);
    team_wait();
  }
}
// the same of rows or blocks: elsewhere all turns are unrolled where these have fixed places
template <class F> CS_FN void share_rows(int n, const F& f) {
  if constexpr (kTeam > 1) {
    share(n, f);
  } else {
    CS_FOR (int k = 0; k < n; k++) f(k);
  }
}

CS_END
