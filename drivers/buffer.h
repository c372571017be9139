// Buffer: an array from Python through the buffer protocol, as the calls want it: contiguous, of one dtype, with checked sizes.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "kernels.h"

namespace costate {

namespace nb = nanobind;

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

[[noreturn]] inline void bad_size(const char* what, long got, long n, long worlds) {
  throw nb::value_error((std::string(what) + ": " + std::to_string(got) + " numbers, expected " + std::to_string(n) + " or " +
                         std::to_string(n) + " for each of " + std::to_string(worlds) + " worlds")
                            .c_str());
}

// an array with one row of n numbers for all worlds or for each; with steps > 0 also for each step
template <class E> inline Array<E> array(const Buffer& b, const char* what, long n, long worlds, long steps = 0) {
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

}  // namespace costate
