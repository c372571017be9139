#include "dispatch.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "pool.h"

namespace costate {
namespace {

struct Isa {
  const char* name;
  bool present;
  Kernels<double> d;
  Kernels<float> f;
};

const std::vector<Isa>& isas() {
  static const std::vector<Isa> list = [] {
    std::vector<Isa> l;
#ifdef CS_HAVE_X86
    __builtin_cpu_init();
    bool fma = __builtin_cpu_supports("fma"), avx2 = fma && __builtin_cpu_supports("avx2");
    bool avx512 =
        avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    l.push_back({"avx512", avx512, kernels_double_avx512(), kernels_float_avx512()});
    l.push_back({"avx2", avx2, kernels_double_avx2(), kernels_float_avx2()});
#endif
    l.push_back({"base", true, kernels_double_base(), kernels_float_base()});
    return l;
  }();
  return list;
}

const Isa*& current() {
  static const Isa* isa = [] {
    const Isa* best = nullptr;
    for (const Isa& i : isas())
      if (i.present && !best) best = &i;
    return best;
  }();
  return isa;
}

const Kernels<double>& kernels(double) { return current()->d; }
const Kernels<float>& kernels(float) { return current()->f; }

// A bar of an input that all worlds share: every pack leaves its sum in `partial`; they are added up in order afterwards
template <class E> struct SharedBars {
  std::vector<std::vector<E>> memory;
  void prepare(const Array<E>& in, Array<E>& bar, int n, long worlds, long packs) {
    if (!bar.data || in.stride != 0 || worlds == 1) return;
    memory.emplace_back(size_t(packs) * n);
    bar.partial = memory.back().data();
  }
  void finish(const Array<E>& bar, int n, long packs) {
    if (!bar.partial) return;
    for (int i = 0; i < n; i++) bar.data[i] = 0;
    for (long p = 0; p < packs; p++)
      for (int i = 0; i < n; i++) bar.data[i] += bar.partial[p * n + i];
  }
};

template <class E, class Call> void run_packs(Call& c, int n_in, const int* sizes, size_t (*bytes)(const Call&, bool),
                                              void (*kernel)(const Call&, bool, long, long, void*)) {
  // A single world runs in scalar code, which is faster than a pack with one lane in use and gives the same bits; so do
  // worlds that would share little
  bool one = c.worlds == 1 || c.tree->alone;
  int lanes = one ? 1 : kernels(E()).lanes;
  long packs = (c.worlds + lanes - 1) / lanes;
  if (packs == 1 && !c.adjoint) return kernel(c, one, 0, 1, thread_scratch(bytes(c, one)));
  SharedBars<E> shared;
  shared.memory.reserve(n_in);
  if (c.adjoint)
    for (int k = 0; k < n_in; k++) shared.prepare(c.in[k], c.in_bar[k], sizes[k], c.worlds, packs);
  parallel_for(packs, bytes(c, one), [&](long lo, long hi, void* scratch) { kernel(c, one, lo, hi, scratch); });
  if (c.adjoint)
    for (int k = 0; k < n_in; k++) shared.finish(c.in_bar[k], sizes[k], packs);
}

}  // namespace

const char* instruction_set() { return current()->name; }

void set_instruction_set(const char* name) {
  for (const Isa& i : isas())
    if (!std::strcmp(i.name, name) && i.present) {
      current() = &i;
      return;
    }
  throw std::invalid_argument(std::string("instruction set '") + name + "' is not available on this machine");
}

template <class E> void run(OpCall<E>& c) {
  OpShape s = op_shape(c.op, *c.tree);
  run_packs<E>(c, s.n_in, s.in, kernels(E()).op_scratch, kernels(E()).op);
}

template <class E> void run(RolloutCall<E>& c) {
  const Tree& t = *c.tree;
  int sizes[kRolloutInputs] = {t.nq, t.nv, t.nu, 1, 6 * t.nb, params_size(t)};
  run_packs<E>(c, kRolloutInputs, sizes, kernels(E()).rollout_scratch, kernels(E()).rollout);
}

template <class E> size_t world_scratch(const OpCall<E>& c) { return kernels(E()).op_scratch(c, true); }
template <class E> size_t world_scratch(const RolloutCall<E>& c) { return kernels(E()).rollout_scratch(c, true); }

template size_t world_scratch(const OpCall<double>&);
template size_t world_scratch(const OpCall<float>&);
template size_t world_scratch(const RolloutCall<double>&);
template size_t world_scratch(const RolloutCall<float>&);
template void run(OpCall<double>&);
template void run(OpCall<float>&);
template void run(RolloutCall<double>&);
template void run(RolloutCall<float>&);

}  // namespace costate
