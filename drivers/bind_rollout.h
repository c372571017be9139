#pragma once
#include <nanobind/nanobind.h>

#include "tree.h"

namespace costate {

// adds rollout and rollout_adj to the class Tree
void bind_rollout(nanobind::class_<PyTree>& tree);
// adds what kernels on a GPU are made from
void bind_cuda(nanobind::class_<PyTree>& tree);

}  // namespace costate
