// Compiler glue: the two function qualifiers, and one namespace per instruction set.
//
// The same headers are compiled several times into one extension, once for each instruction set. Without the inner
// namespace the linker would merge, say, the AVX-512 and the baseline copies of dot<double> and crash older machines.
#pragma once

#ifndef CS_ISA
#define CS_ISA native
#endif

#define CS_BEGIN      \
  namespace costate { \
  inline namespace CS_ISA {
#define CS_END \
  }            \
  }

#ifdef __CUDACC__
#define CS_FN __host__ __device__ __forceinline__  // small algebra, always inlined
#define CS_OP __host__ __device__ inline           // a whole op
#else
#define CS_FN inline __attribute__((always_inline))
#define CS_OP inline
#endif

// Fused multiply-add where the hardware has it. Scalars and packs follow the same switch, so that a lane and a scalar
// run of the same world agree to the last bit.
#if defined(__FMA__) || defined(__CUDA_ARCH__)
#define CS_FUSED 1
#else
#define CS_FUSED 0
#endif
