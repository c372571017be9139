// Stepper: one step of one world in numpy. The step itself takes a microsecond or two, so this file counts nanoseconds: numpy's
// C interface instead of the buffer protocol, fixed parameters and step size, the result made as a State right here.
// Whatever is unusual (another dtype or shape, a number that is not finite, a step that diverges) gives None: the caller then
// takes the long way, which broadcasts, warns and raises.
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include "stepper.h"

#include <nanobind/stl/vector.h>
#include <numpy/arrayobject.h>

#include "check.h"
#include "dispatch.h"
#include "options.h"
#include "tree.h"

namespace nb = nanobind;

namespace costate {
namespace {

// Models above this size are worth handing the GIL to others while they step
constexpr int kLargeModel = 64;

PyArrayObject* as_array(PyObject* o) { return reinterpret_cast<PyArrayObject*>(o); }

class Stepper {
 public:
  Stepper(nb::object tree, nb::object theta, nb::object dt, nb::object state, const std::vector<double>& options)
      : tree_(tree),
        theta_(theta),
        dt_(dt),
        state_(state),
        t_(nb::cast<PyTree&>(tree).tree),
        options_(read_options(options, t_)) {
    if (!PyArray_Check(theta.ptr()) || !PyArray_Check(dt.ptr())) throw nb::type_error("theta and dt must be numpy arrays");
    type_ = PyArray_TYPE(as_array(theta.ptr()));
    if ((type_ != NPY_DOUBLE && type_ != NPY_FLOAT) || !fits(theta.ptr(), params_size(t_)) || !fits(dt.ptr(), 1))
      throw nb::type_error("theta and dt must be flat, contiguous and of one floating-point dtype");
    if (!PyType_Check(state.ptr()) ||
        !PyType_FastSubclass(reinterpret_cast<PyTypeObject*>(state.ptr()), Py_TPFLAGS_TUPLE_SUBCLASS))
      throw nb::type_error("state must be the State type");
  }

  nb::object step(nb::handle state, nb::handle control) const {
    return type_ == NPY_DOUBLE ? step_as<double>(state, control) : step_as<float>(state, control);
  }

 private:
  bool fits(PyObject* o, int n) const {
    if (!PyArray_CheckExact(o)) return false;
    PyArrayObject* a = as_array(o);
    return PyArray_TYPE(a) == type_ && PyArray_NDIM(a) == 1 && PyArray_DIM(a, 0) == n && PyArray_ISCARRAY_RO(a);
  }
  template <class E> static Array<E> array(PyObject* o, int n) {
    Array<E> a;
    a.data = static_cast<E*>(PyArray_DATA(as_array(o)));
    a.stride = n;
    return a;
  }

  template <class E> nb::object step_as(nb::handle state, nb::handle control) const {
    auto* type = reinterpret_cast<PyTypeObject*>(state_.ptr());
    if (Py_TYPE(state.ptr()) != type) return nb::none();
    PyObject *q = PyTuple_GET_ITEM(state.ptr(), 0), *v = PyTuple_GET_ITEM(state.ptr(), 1);
    bool controlled = !control.is_none();
    if (!fits(q, t_.nq) || !fits(v, t_.nv) || (controlled && !fits(control.ptr(), t_.nu))) return nb::none();
    RolloutCall<E> c{};
    c.tree = &t_, c.worlds = c.steps = c.substeps = 1, c.options = options_;
    E status[kStatusNumbers] = {};
    c.status.data = status;
    c.in[kQ] = array<E>(q, t_.nq), c.in[kV] = array<E>(v, t_.nv);
    if (controlled && t_.nu) c.in[kU] = array<E>(control.ptr(), t_.nu);
    c.in[kH] = array<E>(dt_.ptr(), 1), c.in[kTheta] = array<E>(theta_.ptr(), params_size(t_));
    bool finite = first_not_finite(c.in[kQ].data, t_.nq) < 0 && first_not_finite(c.in[kV].data, t_.nv) < 0 &&
                  (!c.in[kU].data || first_not_finite(c.in[kU].data, t_.nu) < 0);
    if (!finite || first_zero_quaternion(t_, c.in[kQ].data, 1) >= 0) return nb::none();

    npy_intp nq = t_.nq, nv = t_.nv;
    nb::object q_next = nb::steal(PyArray_SimpleNew(1, &nq, type_)), v_next = nb::steal(PyArray_SimpleNew(1, &nv, type_));
    if (!q_next.is_valid() || !v_next.is_valid()) throw nb::python_error();
    c.q = array<E>(q_next.ptr(), t_.nq), c.v = array<E>(v_next.ptr(), t_.nv);
    int finite_steps = 1;
    c.diverged_at = &finite_steps;
    if (t_.nb > kLargeModel) {
      nb::gil_scoped_release release;
      run(c);
    } else {
      run(c);
    }
    // whatever there is to warn about: overflow, constraints far off or contradicting
    E missed = sizeof(E) == 8 ? E(1e-3) : E(5e-2);
    if (!finite_steps || status[5] > E(0) || status[8] > E(0.1) || status[9] > missed) return nb::none();
    PyObject* result = type->tp_alloc(type, 2);
    if (!result) throw nb::python_error();
    PyTuple_SET_ITEM(result, 0, q_next.release().ptr());
    PyTuple_SET_ITEM(result, 1, v_next.release().ptr());
    return nb::steal(result);
  }

  nb::object tree_, theta_, dt_, state_;
  const Tree& t_;
  Options options_;
  int type_;
};

int import_numpy() {
  import_array1(-1);
  return 0;
}

}  // namespace

void bind_stepper(nb::module_& m) {
  if (import_numpy() < 0) throw nb::python_error();
  nb::class_<Stepper>(m, "Stepper", "One step of one world in numpy; None where it needs a closer look")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, const std::vector<double>&>(), nb::arg("tree"),
           nb::arg("theta"), nb::arg("dt"), nb::arg("state"), nb::arg("options"))
      .def("step", &Stepper::step, nb::arg("state"), nb::arg("control").none());
}

}  // namespace costate
