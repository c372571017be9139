// The thread pool: every piece runs once, errors come back, callers from several threads and changes of size do no harm.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "../../drivers/pool.cc"
#include "check.h"

using namespace costate;

// how often each of n pieces was visited
static std::vector<int> visits(long n) {
  std::vector<std::atomic<int>> count(n);
  parallel_for(n, 1024, [&](long lo, long hi, void* scratch) {
    static_cast<char*>(scratch)[1023] = 1;  // the scratch memory is there
    for (long i = lo; i < hi; i++) count[i]++;
  });
  return std::vector<int>(count.begin(), count.end());
}

static void check_every_piece_once() {
  for (int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    for (long n : {0L, 1L, 2L, 7L, 100L}) CHECK(visits(n) == std::vector<int>(n, 1));
  }
}

static void check_errors_come_back() {
  set_num_threads(3);
  for (int trial = 0; trial < 20; trial++) {
    bool caught = false;
    try {
      parallel_for(9, 64, [](long lo, long hi, void*) {
        if (lo <= 4 && 4 < hi) throw std::runtime_error("piece 4");
      });
    } catch (const std::runtime_error& e) {
      caught = std::string(e.what()) == "piece 4";
    }
    CHECK(caught);
    CHECK(visits(9) == std::vector<int>(9, 1));  // and the pool still works
  }
}

static void check_many_callers() {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; c++)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 50; i++) {
        if (c == 0) set_num_threads(1 + i % 4);
        if (visits(17) != std::vector<int>(17, 1)) wrong++;
      }
    });
  for (auto& c : callers) c.join();
  CHECK(wrong == 0);
}

static void check_scratch_is_aligned() {
  for (size_t bytes : {1u, 100u, 5000u, 100000u}) CHECK(reinterpret_cast<uintptr_t>(thread_scratch(bytes)) % 64 == 0);
}

int main() {
  check_every_piece_once();
  check_errors_come_back();
  check_many_callers();
  check_scratch_is_aligned();
  return test::report("pool");
}
