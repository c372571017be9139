// Rollouts and their adjoint as Python calls them: arrays in, arrays filled.
#include "bind_rollout.h"

#include <nanobind/stl/vector.h>

#include "buffer.h"
#include "check.h"
#include "dispatch.h"
#include "options.h"

namespace costate {
namespace {

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

// what was solved, as arrays that may be missing
template <class E> struct Solved {
  Buffer status, contacts, ids, rows;
  void fill(RolloutCall<E>& c, const nb::handle* h, bool writable) {
    const Tree& t = *c.tree;
    new (&status) Buffer(h[0], "status", writable), new (&contacts) Buffer(h[1], "contacts", writable);
    new (&ids) Buffer(h[2], "contact_ids", writable), new (&rows) Buffer(h[3], "rows", writable);
    auto each = [&](const Buffer& b, const char* what, long n) {
      if (!b.is_none() && b.size() != n * c.worlds) bad_size(what, b.size(), n, c.worlds);
      return n ? b.data<E>() : nullptr;
    };
    c.status.data = each(status, "status", kStatusNumbers);
    c.contacts.data = each(contacts, "contacts", long(t.max_contacts) * kContactNumbers);
    c.rows.data = each(rows, "rows", long(joint_rows(t) + t.ne) * kRowNumbers);
    if (!ids.is_none() && ids.size() != t.max_contacts * c.worlds) bad_size("contact_ids", ids.size(), t.max_contacts, c.worlds);
    c.contact_ids = ids.is_none() || !t.max_contacts ? nullptr : ids.ints();
    if ((c.contacts.data || c.rows.data || c.contact_ids) && (c.steps != 1 || c.substeps != 1))
      throw nb::value_error("contacts and rows are shown for a single step only");
  }
};

template <class E> long rollout_call(const PyTree& t, long worlds, long steps, long substeps, const nb::handle* inputs,
                                     nb::handle q, nb::handle v, nb::handle diverged_at, const Options& options,
                                     const nb::handle* solved) {
  RolloutCall<E> c{};
  c.tree = &t.tree, c.worlds = worlds, c.steps = steps, c.substeps = substeps, c.options = options;
  RolloutInputs<E> in;
  in.fill(c, inputs, c.in, false);
  Buffer bq(q, "q", true), bv(v, "v", true), bd(diverged_at, "diverged_at", true);
  c.q = array<E>(bq, "q", t.tree.nq, worlds, steps), c.v = array<E>(bv, "v", t.tree.nv, worlds, steps);
  c.diverged_at = bd.ints();
  if (bd.size() != worlds) bad_size("diverged_at", bd.size(), 1, worlds);
  Solved<E> out;
  out.fill(c, solved, true);
  long bad = check_inputs(c, in);
  if (bad >= 0) return bad;
  nb::gil_scoped_release release;
  run(c);
  return -1;
}

template <class E> void rollout_adj_call(const PyTree& t, long worlds, long steps, long substeps, const nb::handle* inputs,
                                         nb::handle q, nb::handle v, nb::handle diverged_at, nb::handle q_bar, nb::handle v_bar,
                                         const nb::handle* bars, double decay, long truncate, const Options& options, double clip,
                                         nb::handle contacts_bar, nb::handle costate) {
  RolloutCall<E> c{};
  c.tree = &t.tree, c.worlds = worlds, c.steps = steps, c.substeps = substeps, c.adjoint = true, c.options = options;
  c.decay = E(decay), c.truncate = truncate, c.clip = E(clip);
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
  Solved<E> solved;
  const nb::handle none = nb::none(), shown[] = {none, contacts_bar, none, none};
  solved.fill(c, shown, false);
  Buffer norms(costate, "costate", true);
  if (!norms.is_none() && norms.size() != worlds * steps) bad_size("costate", norms.size(), steps, worlds);
  c.costate.data = norms.data<E>();
  nb::gil_scoped_release release;
  run(c);
}

void check_counts(long worlds, long steps, long substeps) {
  if (worlds < 1 || steps < 1 || substeps < 1) throw nb::value_error("worlds, steps and substeps must be at least 1");
}

using H = nb::handle;

}  // namespace

void bind_rollout(nb::class_<PyTree>& tree) {
  tree.def(
      "rollout",
      [](const PyTree& t, long worlds, long steps, long substeps, H q, H v, H u, H h, H ext, H theta, H q_out, H v_out,
         H diverged_at, const std::vector<double>& options, H status, H contacts, H contact_ids, H rows) {
        check_counts(worlds, steps, substeps);
        const H in[] = {q, v, u, h, ext, theta}, solved[] = {status, contacts, contact_ids, rows};
        bool is_double = Buffer(q, "q", false).kind() == 'd';
        auto call = is_double ? &rollout_call<double> : &rollout_call<float>;
        return call(t, worlds, steps, substeps, in, q_out, v_out, diverged_at, read_options(options, t.tree), solved);
      },
      nb::arg("worlds"), nb::arg("steps"), nb::arg("substeps"), nb::arg("q"), nb::arg("v"), nb::arg("control").none(),
      nb::arg("dt"), nb::arg("external").none(), nb::arg("theta"), nb::arg("q_out"), nb::arg("v_out"), nb::arg("diverged_at"),
      nb::arg("options"), nb::arg("status").none() = nb::none(), nb::arg("contacts").none() = nb::none(),
      nb::arg("contact_ids").none() = nb::none(), nb::arg("rows").none() = nb::none());
  tree.def(
      "rollout_adj",
      [](const PyTree& t, long worlds, long steps, long substeps, nb::sequence inputs, H q, H v, H diverged_at, H q_bar, H v_bar,
         nb::sequence bars, double decay, long truncate, const std::vector<double>& options, double clip, H contacts_bar,
         H costate) {
        check_counts(worlds, steps, substeps);
        nb::object keep[2 * kRolloutInputs];
        H in[kRolloutInputs], out[kRolloutInputs];
        for (int k = 0; k < kRolloutInputs; k++) {
          in[k] = keep[k] = nb::object(inputs[k]);
          out[k] = keep[kRolloutInputs + k] = nb::object(bars[k]);
        }
        bool is_double = Buffer(in[0], "q", false).kind() == 'd';
        auto call = is_double ? &rollout_adj_call<double> : &rollout_adj_call<float>;
        call(t, worlds, steps, substeps, in, q, v, diverged_at, q_bar, v_bar, out, decay, truncate, read_options(options, t.tree),
             clip, contacts_bar, costate);
      },
      nb::arg("worlds"), nb::arg("steps"), nb::arg("substeps"), nb::arg("inputs"), nb::arg("q"), nb::arg("v"),
      nb::arg("diverged_at"), nb::arg("q_bar").none(), nb::arg("v_bar").none(), nb::arg("bars"), nb::arg("decay"),
      nb::arg("truncate"), nb::arg("options"), nb::arg("clip") = 0.0, nb::arg("contacts_bar").none() = nb::none(),
      nb::arg("costate").none() = nb::none());
}

}  // namespace costate
