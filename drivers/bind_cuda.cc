// What Python needs to compile the kernels of a model for a GPU and to call them: its tables by name, its options, its scratch memory.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind_rollout.h"
#include "dispatch.h"
#include "options.h"

namespace nb = nanobind;

namespace costate {
namespace {

// bytes that one world needs
template <class E> size_t scratch(const PyTree& t, int op, bool adjoint, long substeps, const Options& options) {
  if (op >= 0) {
    OpCall<E> c{};
    c.tree = &t.tree, c.op = op, c.adjoint = adjoint, c.options = options;
    return world_scratch(c);
  }
  RolloutCall<E> c{};
  c.tree = &t.tree, c.adjoint = adjoint, c.substeps = substeps, c.options = options;
  return world_scratch(c);
}

// fields of Options by name, in order; those that kernels have as constants come first
nb::dict options_of(const PyTree& t, const std::vector<double>& numbers) {
  Options o = read_options(numbers, t.tree);
  nb::dict d;
  d["method"] = o.method, d["form"] = o.form, d["impacts"] = o.impacts, d["project"] = o.project;
  d["sides"] = o.sides, d["exact"] = o.exact, d["iterations"] = o.iterations, d["polish"] = o.polish;
  d["tolerance"] = o.tolerance, d["margin"] = o.margin, d["recovery"] = o.recovery, d["push_speed"] = o.push_speed;
  d["bounce_speed"] = o.bounce_speed, d["relative_softness"] = o.relative_softness;
  d["absolute_softness"] = o.absolute_softness, d["apothem"] = o.apothem, d["half_edge"] = o.half_edge;
  d["normal_x"] = std::vector<double>(o.normal_x, o.normal_x + kMaxSides);
  d["normal_y"] = std::vector<double>(o.normal_y, o.normal_y + kMaxSides);
  return d;
}

}  // namespace

void bind_cuda(nb::class_<PyTree>& tree) {
  tree.def(
          "counts", [](const PyTree& t) { return t.storage.counts(); }, "Sizes of the model, by name")
      .def(
          "tables", [](const PyTree& t) { return t.storage.tables(); }, "Index tables of the model, by name")
      .def("options", &options_of, nb::arg("options"), "The solver's options by name")
      .def(
          "scratch",
          [](const PyTree& t, int op, bool adjoint, long substeps, const std::vector<double>& options, bool is_double) {
            Options o = read_options(options, t.tree);
            return is_double ? scratch<double>(t, op, adjoint, substeps, o) : scratch<float>(t, op, adjoint, substeps, o);
          },
          nb::arg("op"), nb::arg("adjoint"), nb::arg("substeps"), nb::arg("options"), nb::arg("is_double"),
          "Bytes that a world needs during a call; op -1: a rollout");
}

}  // namespace costate
