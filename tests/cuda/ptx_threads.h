// The threads of a block, which is one world's team, as the C++ that tests/cuda/ptx.py makes of a kernel's PTX sees them. They run one after the other, each
// until it waits for the others or tells them something; what one stores the others see once all have come that far.
//
// Every block of instructions counts how often it is run: from one meeting of the threads to the next as often as by the thread that runs it most, as the
// hardware does that runs them together. What a program has to bring: kBlocks, kNear, begin().
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// bits of numbers
static inline float as_f32(uint32_t x) {
  float y;
  return memcpy(&y, &x, 4), y;
}
static inline double as_f64(uint64_t x) {
  double y;
  return memcpy(&y, &x, 8), y;
}
static inline uint32_t of_f32(float x) {
  uint32_t y;
  return memcpy(&y, &x, 4), y;
}
static inline uint64_t of_f64(double x) {
  uint64_t y;
  return memcpy(&y, &x, 8), y;
}

// arithmetic as PTX has it: of a number and NaN, min and max give the number, and -0 is less than 0
template <class T> static T number_min(T a, T b) {
  return a != a ? b : b != b ? a : a < b ? a : b < a ? b : std::signbit(a) ? a : b;
}
template <class T> static T number_max(T a, T b) {
  return a != a ? b : b != b ? a : a > b ? a : b > a ? b : std::signbit(a) ? b : a;
}
#define FLOATS(T, t)                                                 \
  static inline T least_##t(T a, T b) { return number_min(a, b); }   \
  static inline T most_##t(T a, T b) { return number_max(a, b); }    \
  static inline T root_##t(T x) { return std::sqrt(x); }             \
  static inline T inverse_##t(T x) { return 1 / x; }                 \
  static inline T inverse_root_##t(T x) { return 1 / std::sqrt(x); } \
  static inline T size_##t(T x) { return std::fabs(x); }             \
  static inline T fma_##t(T a, T b, T c) { return std::fma(a, b, c); }
FLOATS(float, f32)
FLOATS(double, f64)
#define INTEGERS(T, t)                                              \
  static inline T least_##t(T a, T b) { return a < b ? a : b; }     \
  static inline T most_##t(T a, T b) { return a > b ? a : b; }      \
  static inline T size_##t(T x) { return x > T(0) ? x : T(0 - x); } \
  static inline T whole_##t(double x) { return T(x); }
INTEGERS(int16_t, s16)
INTEGERS(uint16_t, u16)
INTEGERS(int32_t, s32)
INTEGERS(uint32_t, u32)
INTEGERS(int64_t, s64)
INTEGERS(uint64_t, u64)
static inline uint32_t ones(uint64_t x) { return __builtin_popcountll(x); }
static inline uint32_t zeros_before(uint32_t x) { return x ? __builtin_clz(x) : 32; }
static inline uint32_t backwards(uint32_t x) {
  uint32_t y = 0;
  for (int k = 0; k < 32; k++) y |= (x >> k & 1) << (31 - k);
  return y;
}

// b with the lowest `bits` of a in the place of its own from the `at`-th on
template <class T> static T inserted(T a, T b, uint32_t at, uint32_t bits) {
  T ones = (bits < 8 * sizeof(T) ? (T(1) << bits) - 1 : ~T(0)) << at;
  return (b & ~ones) | ((a << at) & ones);
}

enum { kThreads = CS_TEAM, kStack = 1 << 20 };
enum Meeting { kWait, kShuffle, kVote, kEnd };

// What a thread has stored since all last met
struct Store {
  uint64_t at, before, now;
  int bytes;
};
struct Thread {
  void* stopped;  // its stack pointer
  std::vector<unsigned char> stack;
  std::vector<Store> stores;
  Meeting where;
};
static Thread threads[kThreads];
static void* home;
static uint32_t rank, this_block, blocks, round_, told[2][kThreads];  // of this round, and of the one before
static char** given;
static unsigned char near_memory[kNear + 1] __attribute__((aligned(256)));
static void begin();

// how often blocks of instructions were run: by this thread, by the one that did most often, and all together
static uint32_t by_this[kBlocks], by_most[kBlocks];
static uint64_t all_runs[kBlocks];
static std::vector<int> seen, seen_by_any;
static inline void block(int b) {
  if (!by_this[b]++) seen.push_back(b);
}

template <class T> static inline void put(uint64_t at, T x) {
  T before;
  memcpy(&before, (void*)at, sizeof(T)), memcpy((void*)at, &x, sizeof(T));
  threads[rank].stores.push_back({at, before, x, sizeof(T)});
}
static inline void put8(uint64_t at, uint8_t x) { put(at, x); }
static inline void put16(uint64_t at, uint16_t x) { put(at, x); }
static inline void put32(uint64_t at, uint32_t x) { put(at, x); }
static inline void put64(uint64_t at, uint64_t x) { put(at, x); }

// change_stack: as a function that returns on the stack `to`, on which it was called before; where it leaves is told in *from
extern "C" void change_stack(void** from, void* to);
__asm__(
    ".text\n.globl change_stack\nchange_stack:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
static void __attribute__((noinline)) all_here(Meeting where) {
  threads[rank].where = where;
  change_stack(&threads[rank].stopped, home);
}
static void run_thread() {
  begin();
  for (;;) all_here(kEnd);
}

// what a thread asks the others for, 0: the number of the one at `place`, 1: of the one at its own with these bits changed; of `shape` the upper bits say which
// bits of a thread's rank stay
static uint32_t shuffled(int how, uint32_t x, uint32_t place, uint32_t shape) {
  uint32_t now = round_, stay = shape >> 8 & 31;
  told[now][rank] = x;
  all_here(kShuffle);
  uint32_t from = how == 0 ? (rank & stay) | (place & ~stay & 31) : rank ^ place;
  return told[now][from % kThreads];
}
// 0: a bit of every thread, 1: is it true of any, 2: of all
static uint32_t voted(int how, bool x) {
  uint32_t now = round_, found = 0, all = kThreads == 32 ? ~0u : (1u << (kThreads & 31)) - 1;
  told[now][rank] = x;
  all_here(kVote);
  for (int k = 0; k < kThreads; k++) found |= told[now][k] << k;
  return how == 0 ? found : how == 1 ? found != 0 : found == all;
}

// the thread that has the rank runs on; what it stores is taken back, and only known to it
static void run_on() {
  Thread& t = threads[rank];
  t.stores.clear(), seen.clear();
  change_stack(&home, t.stopped);
  for (size_t k = t.stores.size(); k-- > 0;) memcpy((void*)t.stores[k].at, &t.stores[k].before, t.stores[k].bytes);
  for (int b : seen) {
    if (!by_most[b]) seen_by_any.push_back(b);
    by_most[b] = by_this[b] > by_most[b] ? by_this[b] : by_most[b], by_this[b] = 0;
  }
}

// block `number` of `count` with pointers to its arguments.   false: its threads met in different places
extern "C" bool run_block(long number, long count, char** arguments) {
  this_block = uint32_t(number), blocks = uint32_t(count), given = arguments;
  for (Thread& t : threads) {
    t.stack.resize(kStack);
    void** top = (void**)((uint64_t(t.stack.data()) + kStack - 64) & ~uint64_t(63));
    *--top = nullptr, *--top = (void*)run_thread;
    for (int k = 0; k < 6; k++) *--top = nullptr;
    t.stopped = top;
  }
  do {
    for (rank = 0; rank < kThreads; rank++) run_on();
    for (const Thread& t : threads) {
      if (t.where != threads[0].where) return false;
      for (const Store& s : t.stores) memcpy((void*)s.at, &s.now, s.bytes);
    }
    for (int b : seen_by_any) all_runs[b] += by_most[b], by_most[b] = 0;
    seen_by_any.clear(), round_ ^= 1;
  } while (threads[0].where != kEnd);
  return true;
}
extern "C" const uint64_t* runs() { return all_runs; }
