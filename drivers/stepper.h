// The shortest way from numpy to the core and back, for one step of one world.
#pragma once
#include <nanobind/nanobind.h>

namespace costate {

void bind_stepper(nanobind::module_& m);

}  // namespace costate
