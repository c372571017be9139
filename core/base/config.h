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
#if defined(CS_QUICK)                              // to be compiled quickly: every op once, however often it is called
#define CS_OP __host__ __device__ __noinline__     // a whole op
#elif defined(CS_INLINE)                           // measured on a quadruped: adjoints gain a quarter, steps lose a third
#define CS_OP __host__ __device__ __forceinline__
#else
#define CS_OP __host__ __device__ inline
#endif
// CS_WHOLE: a part of the kernel, which knows at compile time where all arrays are; a call would have to be told, in memory
#if defined(CS_MODEL) && !CS_IMPACTS && !defined(CS_QUICK)
#define CS_WHOLE __host__ __device__ __forceinline__
#else
#define CS_WHOLE CS_OP
#endif
// CS_APART: called from several places; where teams of threads step a world, one copy of it, since they wait for code above all
#if CS_TEAM > 1 && !defined(CS_PART)
#define CS_APART __host__ __device__ __noinline__
#else
#define CS_APART CS_OP
#endif
// CS_ONCE: the same of what takes few arguments, all of them in registers, in any kernel
#define CS_ONCE __host__ __device__ __noinline__
#define CS_TABLE static __constant__ const     // integers of a model: where the hardware keeps constants
#define CS_LONG_TABLE static __device__ const  // if they do not fit there
#else
#define CS_WHOLE CS_OP
#define CS_APART CS_OP
#define CS_ONCE inline
#define CS_TABLE static const
#define CS_LONG_TABLE static const
#define CS_FN inline __attribute__((always_inline))
#define CS_OP inline
#endif

// CS_IF(Tree, t, ne): if (t.ne). In kernels that are compiled for one model (CS_MODEL), where it is a constant, what the model does not have is not
// even compiled
#ifdef CS_MODEL
#define CS_IF(Type, x, field) if constexpr (Type::field != 0)
#else
#define CS_IF(Type, x, field) if (x.field)
#endif
// CS_FOR: a loop over something that a model has a fixed number of; unrolled where that is small and known at compile time
#ifdef CS_FIXED_ROWS
#define CS_FOR _Pragma("unroll") for
#else
#define CS_FOR for
#endif

// CS_STRIP: a loop of a few numbers that are known when this is compiled
#ifdef __CUDACC__
#define CS_STRIP _Pragma("unroll") for
#else
#define CS_STRIP _Pragma("GCC unroll 8") for
#endif

// CS_ALIGN: where threads of a block wait for each other. The code of a step is longer than the instruction cache; those who run the same part of it at the
// same time share what is fetched (seen on an H200: a quadruped gains a third). Only where all come by: not in steps that are split at impacts, nor in other calls
#if defined(__CUDA_ARCH__) && defined(CS_MODEL) && CS_OP_CODE < 0 && !CS_IMPACTS && !defined(CS_PART)
#define CS_ALIGN() __syncthreads()
#else
#define CS_ALIGN()
#endif

// Fused multiply-add where the hardware has it. Scalars and packs follow the same switch, so that a lane and a scalar
// run of the same world agree to the last bit.
#if defined(__FMA__) || defined(__CUDA_ARCH__)
#define CS_FUSED 1
#else
#define CS_FUSED 0
#endif
