// The Python extension costate._native._core. Arrays come in through the buffer protocol (numpy, or torch's .numpy()): it costs
// a tenth of a microsecond each. Python has checked dtypes and shapes; sizes are checked once more here, so that nothing can crash.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "check.h"
#include "dispatch.h"
#include "pool.h"
#include "stepper.h"
#include "tree.h"

namespace nb = nanobind;
using namespace costate;

namespace {

// a contiguous array of numbers, or None
class Buffer {
 public:
  Buffer() = default;
  Buffer(nb::handle h, const char* what, bool writable) {
    if (h.is_none()) return;
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(h.ptr(), &view_, flags)) throw nb::python_error();
    held_ = true;
    what_ = what;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  bool is_none() const { return !held_; }
  char kind() const { return view_.format && view_.format[0] ? view_.format[0] : 'B'; }
  long size() const { return view_.len / view_.itemsize; }
  template <class E> E* data() const {
    if (!held_) return nullptr;
    if (kind() != (sizeof(E) == 8 ? 'd' : 'f')) throw nb::type_error((std::string(what_) + ": wrong dtype").c_str());
    return static_cast<E*>(view_.buf);
  }
  int* ints() const {
    if (kind() != 'i') throw nb::type_error((std::string(what_) + ": expected int32").c_str());
    return static_cast<int*>(view_.buf);
  }

 private:
  Py_buffer view_;
  const char* what_ = "";
  bool held_ = false;
};

[[noreturn]] void bad_size(const char* what, long got, long n, long worlds) {
  throw nb::value_error((std::string(what) + ": " + std::to_string(got) + " numbers, expected " + std::to_string(n) + " or " +
                         std::to_string(n) + " for each of " + std::to_string(worlds) + " worlds")
                            .c_str());
}

// an array with one row of n numbers for all worlds or for each; with steps > 0 also for each step
template <class E> Array<E> array(const Buffer& b, const char* what, long n, long worlds, long steps = 0) {
  Array<E> a;
  a.data = b.data<E>();
  if (!a.data) return a;
  long size = b.size();
  if (n == 0) {
    a.data = nullptr;
  } else if (steps > 0 && size == n * worlds * steps) {
    a.stride = n, a.time = n * worlds;
  } else if (size == n * worlds) {
    a.stride = n;
  } else if (size != n || steps > 0) {
    bad_size(what, size, n, worlds);
  }
  return a;
}

void check_structure(const std::vector<int>& parent, const std::vector<int>& joint, const std::vector<int>& motor_dof,
                     const std::vector<int>& massless, int form) {
  int nb_ = int(parent.size()), nv = 0;
  if (joint.size() != parent.size() || massless.size() != parent.size())
    throw nb::value_error("parent, joint and massless differ in length");
  if (form > kArticulated) throw nb::value_error("form must be -1 (choose), 0 (sparse) or 1 (articulated)");
  for (int b = 0; b < nb_; b++) {
    if (parent[b] < -1 || parent[b] >= b) throw nb::value_error("parent: bodies must come after their parents");
    if (joint[b] < kFixed || joint[b] > kPlanar) throw nb::value_error("joint: unknown code");
    if (joint[b] == kFree && parent[b] >= 0) throw nb::value_error("joint: a free joint needs the world as parent");
    nv += joint_nv(joint[b]);
  }
  for (int d : motor_dof)
    if (d < 0 || d >= nv) throw nb::value_error("motor_dof: no such dof");
}

template <class E>
void op_call(const PyTree& t, int op, bool adjoint, long worlds, nb::sequence values, nb::sequence outs, nb::object in_bars) {
  OpShape s = op_shape(op, t.tree);
  OpCall<E> c{};
  c.tree = &t.tree, c.op = op, c.adjoint = adjoint, c.worlds = worlds;
  Buffer in[6], out[3], bar[6];
  for (int k = 0; k < s.n_in; k++) {
    new (&in[k]) Buffer(values[k], "input", false);
    c.in[k] = array<E>(in[k], "input", s.in[k], worlds);
    // only a wrench may be missing
    bool optional = s.in[k] == 6 * t.tree.nb && (op == kJointForces || op == kAcceleration || op == kLinearize);
    if (!c.in[k].data && s.in[k] && !optional) throw nb::value_error("an input is missing");
  }
  for (int k = 0; k < s.n_out; k++) {
    new (&out[k]) Buffer(outs[k], "output", !adjoint);
    Array<E> a = array<E>(out[k], "output", s.out[k], worlds);
    if (a.data && a.stride == 0 && worlds > 1) bad_size("output", out[k].size(), s.out[k], worlds);
    (adjoint ? c.out_bar : c.out)[k] = a;
  }
  if (adjoint)
    for (int k = 0; k < s.n_in; k++) {
      new (&bar[k]) Buffer(nb::borrow<nb::sequence>(in_bars)[k], "bar", true);
      c.in_bar[k] = array<E>(bar[k], "bar", s.in[k], worlds);
      if (c.in_bar[k].data && c.in_bar[k].stride != c.in[k].stride) throw nb::value_error("a bar must have its input's shape");
    }
  nb::gil_scoped_release release;
  run(c);
}

void op(const PyTree& t, int op, long worlds, nb::sequence values, nb::sequence outs) {
  if (op < 0 || op > kLinearize || worlds < 1) throw nb::value_error("no such op, or no worlds");
  bool is_double = Buffer(values[0], "input", false).kind() == 'd';
  is_double ? op_call<double>(t, op, false, worlds, values, outs, nb::none())
            : op_call<float>(t, op, false, worlds, values, outs, nb::none());
}
void op_adj(const PyTree& t, int op, long worlds, nb::sequence values, nb::sequence out_bars, nb::sequence in_bars) {
  if (op < 0 || op >= kLinearize || worlds < 1) throw nb::value_error("no such op, no adjoint, or no worlds");
  bool is_double = Buffer(values[0], "input", false).kind() == 'd';
  is_double ? op_call<double>(t, op, true, worlds, values, out_bars, in_bars)
            : op_call<float>(t, op, true, worlds, values, out_bars, in_bars);
}

const char* kInputNames[] = {"q", "v", "control", "dt", "external", "params"};

// the six inputs of a rollout as buffers and arrays
template <class E> struct RolloutInputs {
  Buffer buffer[kRolloutInputs];
  void fill(RolloutCall<E>& c, const nb::handle* h, Array<E>* to, bool writable) {
    const Tree& t = *c.tree;
    long sizes[] = {t.nq, t.nv, t.nu, 1, 6L * t.nb, params_size(t)};
    for (int k = 0; k < kRolloutInputs; k++) {
      new (&buffer[k]) Buffer(h[k], kInputNames[k], writable);
      bool timed = k == kU || (k == kExternal && buffer[k].is_none() == false && buffer[k].size() != sizes[k] * c.worlds);
      if (k == kExternal && c.steps == 1) timed = false;
      to[k] = array<E>(buffer[k], kInputNames[k], sizes[k], c.worlds, timed ? c.steps : 0);
      bool per_world = k == kQ || k == kV || k == kU || k == kExternal;
      if (to[k].data && per_world && c.worlds > 1 && !to[k].stride)
        bad_size(kInputNames[k], buffer[k].size(), sizes[k], c.worlds);
    }
  }
};

// returns -1, or field * 2^48 + index of the first number that is not finite, or (field + 8) * 2^48 + index of a zero quaternion
template <class E> long check_inputs(const RolloutCall<E>& c, const RolloutInputs<E>& in) {
  for (int k = 0; k < kTheta; k++) {
    if (!c.in[k].data) continue;
    long i = first_not_finite(c.in[k].data, in.buffer[k].size());
    if (i >= 0) return (long(k) << 48) + i;
  }
  long i = first_zero_quaternion(*c.tree, c.in[kQ].data, c.worlds);
  return i < 0 ? -1 : (8L << 48) + i;
}

template <class E> long rollout_call(const PyTree& t, long worlds, long steps, long substeps, const nb::handle* inputs,
                                     nb::handle q, nb::handle v, nb::handle diverged_at) {
  RolloutCall<E> c{};
  c.tree = &t.tree, c.worlds = worlds, c.steps = steps, c.substeps = substeps;
  RolloutInputs<E> in;
  in.fill(c, inputs, c.in, false);
  Buffer bq(q, "q", true), bv(v, "v", true), bd(diverged_at, "diverged_at", true);
  c.q = array<E>(bq, "q", t.tree.nq, worlds, steps), c.v = array<E>(bv, "v", t.tree.nv, worlds, steps);
  c.diverged_at = bd.ints();
  if (bd.size() != worlds) bad_size("diverged_at", bd.size(), 1, worlds);
  long bad = check_inputs(c, in);
  if (bad >= 0) return bad;
  nb::gil_scoped_release release;
  run(c);
  return -1;
}

template <class E> void rollout_adj_call(const PyTree& t, long worlds, long steps, long substeps, const nb::handle* inputs,
                                         nb::handle q, nb::handle v, nb::handle diverged_at, nb::handle q_bar, nb::handle v_bar,
                                         const nb::handle* bars, double decay, long truncate) {
  RolloutCall<E> c{};
  c.tree = &t.tree, c.worlds = worlds, c.steps = steps, c.substeps = substeps, c.adjoint = true;
  c.decay = E(decay), c.truncate = truncate;
  RolloutInputs<E> in, bar;
  in.fill(c, inputs, c.in, false);
  bar.fill(c, bars, c.in_bar, true);
  for (int k = 0; k < kRolloutInputs; k++)
    if (c.in_bar[k].data && (c.in_bar[k].stride != c.in[k].stride || c.in_bar[k].time != c.in[k].time))
      throw nb::value_error("a bar must have its input's shape");
  Buffer bq(q, "q", false), bv(v, "v", false), bd(diverged_at, "diverged_at", true), gq(q_bar, "q_bar", false),
      gv(v_bar, "v_bar", false);
  c.q = array<E>(bq, "q", t.tree.nq, worlds, steps), c.v = array<E>(bv, "v", t.tree.nv, worlds, steps);
  c.q_bar = array<E>(gq, "q_bar", t.tree.nq, worlds, steps), c.v_bar = array<E>(gv, "v_bar", t.tree.nv, worlds, steps);
  c.diverged_at = bd.ints();
  if (bd.size() != worlds) bad_size("diverged_at", bd.size(), 1, worlds);
  nb::gil_scoped_release release;
  run(c);
}

void check_counts(long worlds, long steps, long substeps) {
  if (worlds < 1 || steps < 1 || substeps < 1) throw nb::value_error("worlds, steps and substeps must be at least 1");
}

bool params_ok_any(const PyTree& t, nb::handle theta, long worlds) {
  Buffer b(theta, "params", false);
  int P = params_size(t.tree);
  if (b.size() != P * worlds) bad_size("params", b.size(), P, worlds);
  for (long w = 0; w < worlds; w++) {
    bool ok = b.kind() == 'd' ? params_ok(t.tree, t.massless, b.data<double>() + w * P)
                              : params_ok(t.tree, t.massless, b.data<float>() + w * P);
    if (!ok) return false;
  }
  return true;
}

long first_not_finite_any(nb::handle x) {
  Buffer b(x, "array", false);
  return b.kind() == 'd' ? first_not_finite(b.data<double>(), b.size()) : first_not_finite(b.data<float>(), b.size());
}

long first_zero_quaternion_any(const PyTree& t, nb::handle q) {
  Buffer b(q, "q", false);
  long worlds = t.tree.nq ? b.size() / t.tree.nq : 0;
  return b.kind() == 'd' ? first_zero_quaternion(t.tree, b.data<double>(), worlds)
                         : first_zero_quaternion(t.tree, b.data<float>(), worlds);
}

using H = nb::handle;

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "costate's compiled core";
  nb::set_leak_warnings(false);
  m.def("num_threads", &num_threads);
  m.def("set_num_threads", &set_num_threads, nb::arg("n"));
  m.def("instruction_set", &instruction_set);
  m.def("set_instruction_set", [](const std::string& s) { set_instruction_set(s.c_str()); }, nb::arg("name"));
  m.def("first_not_finite", [](H x) { return first_not_finite_any(x); }, nb::arg("array").none());

  nb::class_<PyTree>(m, "Tree", "The structure of a model, and every call that reaches the core")
      .def(
          "__init__",
          [](PyTree* self, std::vector<int> parent, std::vector<int> joint, std::vector<int> motor_dof, std::vector<int> massless,
             int form) {
            check_structure(parent, joint, motor_dof, massless, form);
            new (self) PyTree(std::move(parent), std::move(joint), std::move(motor_dof), std::move(massless), form);
          },
          nb::arg("parent"), nb::arg("joint"), nb::arg("motor_dof"), nb::arg("massless"), nb::arg("form") = -1)
      .def_prop_ro("nq", [](const PyTree& t) { return t.tree.nq; })
      .def_prop_ro("nv", [](const PyTree& t) { return t.tree.nv; })
      .def_prop_ro("form", [](const PyTree& t) { return t.tree.form; })
      .def_prop_ro("params_size", [](const PyTree& t) { return params_size(t.tree); })
      .def("op", &op, nb::arg("op"), nb::arg("worlds"), nb::arg("inputs"), nb::arg("outputs"))
      .def("op_adj", &op_adj, nb::arg("op"), nb::arg("worlds"), nb::arg("inputs"), nb::arg("output_bars"), nb::arg("input_bars"))
      .def(
          "rollout",
          [](const PyTree& t, long worlds, long steps, long substeps, H q, H v, H u, H h, H ext, H theta, H q_out, H v_out,
             H diverged_at) {
            check_counts(worlds, steps, substeps);
            const H in[] = {q, v, u, h, ext, theta};
            bool is_double = Buffer(q, "q", false).kind() == 'd';
            return is_double ? rollout_call<double>(t, worlds, steps, substeps, in, q_out, v_out, diverged_at)
                             : rollout_call<float>(t, worlds, steps, substeps, in, q_out, v_out, diverged_at);
          },
          nb::arg("worlds"), nb::arg("steps"), nb::arg("substeps"), nb::arg("q"), nb::arg("v"), nb::arg("control").none(),
          nb::arg("dt"), nb::arg("external").none(), nb::arg("theta"), nb::arg("q_out"), nb::arg("v_out"), nb::arg("diverged_at"))
      .def(
          "rollout_adj",
          [](const PyTree& t, long worlds, long steps, long substeps, nb::sequence inputs, H q, H v, H diverged_at, H q_bar,
             H v_bar, nb::sequence bars, double decay, long truncate) {
            check_counts(worlds, steps, substeps);
            nb::object keep[2 * kRolloutInputs];
            H in[kRolloutInputs], out[kRolloutInputs];
            for (int k = 0; k < kRolloutInputs; k++) {
              in[k] = keep[k] = nb::object(inputs[k]);
              out[k] = keep[kRolloutInputs + k] = nb::object(bars[k]);
            }
            bool is_double = Buffer(in[0], "q", false).kind() == 'd';
            auto call = is_double ? &rollout_adj_call<double> : &rollout_adj_call<float>;
            call(t, worlds, steps, substeps, in, q, v, diverged_at, q_bar, v_bar, out, decay, truncate);
          },
          nb::arg("worlds"), nb::arg("steps"), nb::arg("substeps"), nb::arg("inputs"), nb::arg("q"), nb::arg("v"),
          nb::arg("diverged_at"), nb::arg("q_bar").none(), nb::arg("v_bar").none(), nb::arg("bars"), nb::arg("decay"),
          nb::arg("truncate"))
      .def(
          "params_ok", [](const PyTree& t, H theta, long worlds) { return params_ok_any(t, theta, worlds); }, nb::arg("theta"),
          nb::arg("worlds"))
      .def("first_zero_quaternion", [](const PyTree& t, H q) { return first_zero_quaternion_any(t, q); }, nb::arg("q"));
  bind_stepper(m);
}
