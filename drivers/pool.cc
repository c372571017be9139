#include "pool.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace costate {
namespace {

// grow-only scratch, one per thread; freed with the thread
struct Scratch {
  void* memory = nullptr;
  size_t size = 0;
  ~Scratch() { std::free(memory); }
  void* at_least(size_t bytes) {
    if (bytes > size) {
      std::free(memory);
      size = (bytes + 4095) / 4096 * 4096;
      memory = std::aligned_alloc(64, size);
      if (!memory) size = 0;
    }
    if (!memory) throw std::bad_alloc();
    return memory;
  }
};
thread_local Scratch scratch;

// One job at a time: workers wait for a new ticket, take pieces until none is left
class Pool {
 public:
  explicit Pool(int threads) : owner_(getpid()) {
    for (int i = 1; i < threads; i++) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& w : workers_) w.join();
  }
  bool mine() const { return owner_ == getpid(); }
  int size() const { return int(workers_.size()) + 1; }

  void run(long n, size_t bytes, const std::function<void(long, long, void*)>& body) {
    std::unique_lock<std::mutex> lock(mutex_);
    body_ = &body, bytes_ = bytes, n_ = n, next_ = 0, error_ = nullptr;
    pieces_ = std::min<long>(n, size());
    pending_ = pieces_;
    ticket_++;
    wake_.notify_all();
    drain(lock);
    done_.wait(lock, [this] { return pending_ == 0; });
    body_ = nullptr;
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (long seen = 0;;) {
      wake_.wait(lock, [&] { return stop_ || (ticket_ != seen && body_); });
      if (stop_) return;
      seen = ticket_;
      drain(lock);
    }
  }
  void drain(std::unique_lock<std::mutex>& lock) {
    while (body_ && next_ < pieces_) {
      long i = next_++, lo = n_ * i / pieces_, hi = n_ * (i + 1) / pieces_;
      auto* body = body_;
      size_t bytes = bytes_;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*body)(lo, hi, scratch.at_least(bytes));
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) error_ = error;
      if (--pending_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  const std::function<void(long, long, void*)>* body_ = nullptr;
  size_t bytes_ = 0;
  long n_ = 0, pieces_ = 0, next_ = 0, pending_ = 0, ticket_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  pid_t owner_;
};

std::mutex pool_mutex;  // one parallel job at a time; callers from several Python threads queue here
Pool* pool = nullptr;
std::atomic<int> wanted{0};  // 0: as many as the machine has

int default_threads() {
  if (const char* s = std::getenv("COSTATE_NUM_THREADS")) {
    int n = std::atoi(s);
    if (n > 0) return n;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

int num_threads() {
  if (wanted <= 0) wanted = default_threads();
  return wanted;
}

void set_num_threads(int n) {
  std::lock_guard<std::mutex> lock(pool_mutex);
  wanted = n;
}

void* thread_scratch(size_t bytes) { return scratch.at_least(bytes); }

void parallel_for(long n, size_t bytes, const std::function<void(long, long, void*)>& body) {
  if (n <= 0) return;
  if (n == 1 || num_threads() == 1) return body(0, n, scratch.at_least(bytes));
  std::lock_guard<std::mutex> lock(pool_mutex);
  if (pool && !pool->mine()) pool = nullptr;  // a forked child: the parent's threads are not here, leave their memory alone
  if (pool && pool->size() != num_threads()) {
    delete pool;
    pool = nullptr;
  }
  if (!pool) pool = new Pool(num_threads());
  pool->run(n, bytes, body);
}

}  // namespace costate
