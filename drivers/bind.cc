// The Python extension costate._native._core. Arrays come in through the buffer protocol (numpy, or torch's .numpy()): it costs
// a tenth of a microsecond each. Python has checked dtypes and shapes; sizes are checked once more here, so that nothing can crash.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "bind_rollout.h"
#include "buffer.h"
#include "check.h"
#include "dispatch.h"
#include "options.h"
#include "pool.h"
#include "stepper.h"

namespace nb = nanobind;
using namespace costate;

namespace {

void require(bool ok, const char* message) {
  if (!ok) throw nb::value_error(message);
}
bool all_below(const std::vector<int>& x, int n, int least = 0) {
  for (int i : x)
    if (i < least || i >= n) return false;
  return true;
}

int check_tree(const Structure& s) {
  int nb_ = int(s.parent.size()), nv = 0;
  require(s.joint.size() == s.parent.size() && s.massless.size() == s.parent.size(),
          "parent, joint and massless differ in length");
  require(s.large <= 1 && (s.large < 1 || (s.tie_a.empty() && s.coupling_dof1.empty())), "large: not with equality rows");
  require(s.form <= kArticulated, "form must be -1 (choose), 0 (sparse) or 1 (articulated)");
  for (int b = 0; b < nb_; b++) {
    require(s.parent[b] >= -1 && s.parent[b] < b, "parent: bodies must come after their parents");
    require(s.joint[b] >= kFixed && s.joint[b] <= kPlanar, "joint: unknown code");
    require(s.joint[b] != kFree || s.parent[b] < 0, "joint: a free joint needs the world as parent");
    nv += joint_nv(s.joint[b]);
  }
  return nv;
}

// what Python has checked with better words; here only so that nothing can crash
void check_structure(const Structure& s) {
  int nb_ = int(s.parent.size()), nv = check_tree(s), nu = int(s.motor_dof.size()), ns = int(s.shape_body.size());
  require(all_below(s.motor_dof, nv, -1), "motor_dof: no such dof");
  auto fits = [&](const std::vector<int>& x) { return x.empty() || int(x.size()) == nu; };
  require(fits(s.actuator) && fits(s.clip) && fits(s.bound), "actuator_type, clip and bound need an entry for each actuator");
  require(all_below(s.actuator, kGeneral + 1) && all_below(s.clip, nu, -1) && all_below(s.bound, nu, -1),
          "actuator_type, clip or bound");
  require(all_below(s.dry_dof, nv) && all_below(s.limit_body, nb_) && all_below(s.limit_dof, nv),
          "limit or dry_dof: no such dof");
  require(s.limit_body.size() == s.limit_dof.size(), "limit_body and limit_dof differ in length");
  for (int b : s.limit_body)
    require(s.joint[b] == kRevolute || s.joint[b] == kPrismatic || s.joint[b] == kBall, "limit_body: this joint has no limits");
  require(all_below(s.shape_body, nb_, -1) && all_below(s.shape_type, kPolygon + 1), "shape_body or shape_type");
  require(s.shape_condim.empty() || s.shape_condim.size() == s.shape_body.size(), "shape_condim differs in length");
  for (int n : s.shape_condim) require(n == 1 || n == 3 || n == 4 || n == 6, "shape_condim must be 1, 3, 4 or 6");
  require(s.shape_type.size() == s.shape_body.size() && s.pair_a.size() == s.pair_b.size(), "shapes or pairs differ in length");
  require(all_below(s.pair_a, ns) && all_below(s.pair_b, ns), "pair: no such shape");
  for (size_t p = 0; p < s.pair_a.size(); p++) {
    int a = s.shape_type[s.pair_a[p]], b = s.shape_type[s.pair_b[p]];
    auto flat = [](int type) { return type == kPlane || type == kField; };
    require(!(flat(a) && flat(b)), "pair: these shapes have no contact");
    auto planar = [](int type) { return type == kPlane || type == kSphere || shape_flat(type); };
    require(s.planar ? planar(a) && planar(b) : !shape_flat(a) && !shape_flat(b), "pair: planar and other shapes");
    require(s.shape_body[s.pair_a[p]] != s.shape_body[s.pair_b[p]], "pair: both shapes are on one body");
  }
  require(s.friction_rule >= 0 && s.friction_rule <= kProduct && s.restitution_rule >= 0 && s.restitution_rule <= kProduct,
          "rule");
}

// hulls and fields
void check_solids(const Structure& s) {
  const ShapeLists& l = s.shapes;
  auto count = [&](int type) { return std::count(s.shape_type.begin(), s.shape_type.end(), type); };
  require(long(l.hull_vertices.size()) == count(kHull) + count(kPolygon) && l.hull_faces.size() == l.hull_vertices.size(),
          "hull_vertices or hull_faces");
  require(long(l.field_nx.size()) == count(kField) && l.field_ny.size() == l.field_nx.size(), "field_nx or field_ny");
  for (size_t i = 0; i < l.field_nx.size(); i++)
    require(l.field_nx[i] >= 2 && l.field_ny[i] >= 2 && long(l.field_nx[i]) * l.field_ny[i] < 1 << 28,
            "field_nx, field_ny: too few or too many heights");
  std::vector<int> solids;
  for (int type : s.shape_type)
    if (type == kHull || type == kPolygon) solids.push_back(type);
  size_t faces = 0, at = 0;
  for (size_t h = 0; h < l.hull_vertices.size(); h++) {
    int n = l.hull_vertices[h];
    bool polygon = solids[h] == kPolygon;
    require(n >= (polygon ? 3 : 4) && n <= kMaxVertices && (polygon ? l.hull_faces[h] == 0 : l.hull_faces[h] >= 4),
            "hull_vertices: a hull needs 4 to 64 vertices, a polygon 3 to 64 and no faces");
    for (int f = 0; f < l.hull_faces[h]; f++, faces++) {
      require(faces < l.hull_loop_size.size() && l.hull_loop_size[faces] >= 3, "hull_loop_size");
      require(3 * faces + 3 <= l.hull_plane.size(), "hull_plane");
      for (int k = 0; k < 3; k++)
        require(l.hull_plane[3 * faces + k] >= 0 && l.hull_plane[3 * faces + k] < n, "hull_plane: no such vertex");
      for (int k = 0; k < l.hull_loop_size[faces]; k++, at++)
        require(at < l.hull_loop.size() && l.hull_loop[at] >= 0 && l.hull_loop[at] < n, "hull_loop: no such vertex");
    }
  }
  require(faces == l.hull_loop_size.size() && 3 * faces == l.hull_plane.size() && at == l.hull_loop.size(),
          "hulls: lists differ in length");
}

// ties, couplings, and actuators on ties
void check_equality(const Structure& s, int nv) {
  int nb_ = int(s.parent.size()), nu = int(s.motor_dof.size()), n = int(s.tie_a.size()), locks = int(s.lock.size());
  require(all_below(s.tie_a, nb_, -1) && all_below(s.tie_b, nb_, -1) && s.tie_b.size() == s.tie_a.size(), "tie_a or tie_b");
  require(int(s.tie_axis.size()) == n && all_below(s.tie_axis, kSlideAxis + 1), "tie_axis");
  require(all_below(s.lock, kLocks), "lock: unknown code");
  require(n == 0 ? s.tie_first.size() <= 1 : int(s.tie_first.size()) == n + 1 && s.tie_first[0] == 0 && s.tie_first[n] == locks,
          "tie_first");
  for (int k = 0; k < n; k++) {
    int m = s.tie_first[k + 1] - s.tie_first[k];
    require(m >= 1 && m <= 6 && s.tie_a[k] != s.tie_b[k], "tie: needs two bodies and one to six locks");
  }
  require(
      all_below(s.coupling_dof1, nv) && all_below(s.coupling_dof2, nv, -1) && s.coupling_dof1.size() == s.coupling_dof2.size(),
      "coupling_dof1 or coupling_dof2");
  require(s.motor_tie.empty() || int(s.motor_tie.size()) == nu, "motor_tie needs an entry for each actuator");
  require(all_below(s.motor_tie, n, -1), "motor_tie: no such tie");
  for (int k = 0; k < nu; k++) {
    int tie = s.motor_tie.empty() ? -1 : s.motor_tie[k];
    require((tie >= 0) == (s.motor_dof[k] < 0), "an actuator needs a dof or a tie");
    require(tie < 0 || s.tie_axis[tie] != kNoAxis, "motor_tie: this tie has no axis to drive");
    require(s.actuator.empty() || s.actuator[k] != kServo || (!s.bound.empty() && s.bound[k] >= 0), "a servo needs force limits");
  }
}

// what holds or couples a coordinate needs one
void check_coordinates(const TreeStorage& t) {
  for (size_t k = 0; k < t.s.motor_dof.size(); k++) {
    bool holds = t.s.actuator[k] == kPosition || t.s.actuator[k] == kServo;
    require(!holds || t.s.motor_tie[k] >= 0 || t.motor_q[k] >= 0, "actuator_type: this dof has no coordinate to hold");
  }
  for (size_t k = 0; k < t.coupling_q.size(); k++)
    require(t.coupling_q[k] >= 0 || t.coupling_dof[k] < 0, "coupling: this dof has no coordinate");
}

template <class E> void op_call(const PyTree& t, int op, bool adjoint, long worlds, nb::sequence values, nb::sequence outs,
                                nb::object in_bars, const std::vector<double>& options) {
  OpShape s = op_shape(op, t.tree);
  OpCall<E> c{};
  if (op == kDistance && t.tree.np != 1) throw nb::value_error("distance needs a tree with one pair");
  if (op == kLinearize) c.options = read_options(options, t.tree);
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

void op(const PyTree& t, int op, long worlds, nb::sequence values, nb::sequence outs, nb::object options) {
  if (op < 0 || op > kLinearize || worlds < 1) throw nb::value_error("no such op, or no worlds");
  bool is_double = Buffer(values[0], "input", false).kind() == 'd';
  auto call = is_double ? &op_call<double> : &op_call<float>;
  call(t, op, false, worlds, values, outs, nb::none(),
       options.is_none() ? std::vector<double>() : nb::cast<std::vector<double>>(options));
}
void op_adj(const PyTree& t, int op, long worlds, nb::sequence values, nb::sequence out_bars, nb::sequence in_bars) {
  if (op < 0 || op >= kLinearize || worlds < 1) throw nb::value_error("no such op, no adjoint, or no worlds");
  bool is_double = Buffer(values[0], "input", false).kind() == 'd';
  auto call = is_double ? &op_call<double> : &op_call<float>;
  call(t, op, true, worlds, values, out_bars, in_bars, {});
}

bool params_ok_any(const PyTree& t, nb::handle theta, long worlds) {
  Buffer b(theta, "params", false);
  int P = params_size(t.tree);
  if (b.size() != P * worlds) bad_size("params", b.size(), P, worlds);
  for (long w = 0; w < worlds; w++) {
    bool ok = b.kind() == 'd' ? params_ok(t.tree, t.storage.s.massless, b.data<double>() + w * P)
                              : params_ok(t.tree, t.storage.s.massless, b.data<float>() + w * P);
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

// how Python makes a Tree
void bind_structure(nb::class_<PyTree>& tree) {
  using Ints = std::vector<int>;
  tree.def(
      "__init__",
      [](PyTree* self, Ints parent, Ints joint, Ints motor_dof, Ints massless, int form, Ints actuator_type, Ints clip,
         Ints bound, Ints limit_body, Ints limit_dof, Ints dry_dof, Ints shape_body, Ints shape_type, Ints pair_a, Ints pair_b,
         int friction_rule, int restitution_rule, int max_contacts, Ints tie_a, Ints tie_b, Ints tie_axis, Ints tie_first,
         Ints lock, Ints coupling_dof1, Ints coupling_dof2, Ints motor_tie, Ints hull_vertices, Ints hull_faces,
         Ints hull_loop_size, Ints hull_loop, Ints hull_plane, Ints field_nx, Ints field_ny, int large, bool planar,
         Ints shape_condim, int one_group) {
        Structure s = {parent,
                       joint,
                       motor_dof,
                       massless,
                       form,
                       actuator_type,
                       clip,
                       bound,
                       limit_body,
                       limit_dof,
                       dry_dof,
                       shape_body,
                       shape_type,
                       pair_a,
                       pair_b,
                       friction_rule,
                       restitution_rule,
                       max_contacts,
                       tie_a,
                       tie_b,
                       tie_axis,
                       tie_first,
                       lock,
                       coupling_dof1,
                       coupling_dof2,
                       motor_tie,
                       {hull_vertices, hull_faces, hull_loop_size, hull_loop, hull_plane, field_nx, field_ny},
                       large};
        s.planar = planar, s.shape_condim = shape_condim, s.one_group = one_group;
        check_structure(s);
        check_solids(s);
        check_equality(s, check_tree(s));
        TreeStorage tables(std::move(s));
        check_coordinates(tables);
        new (self) PyTree(std::move(tables));
      },
      nb::arg("parent"), nb::arg("joint"), nb::arg("motor_dof"), nb::arg("massless"), nb::arg("form") = -1, nb::kw_only(),
      nb::arg("actuator_type") = Ints(), nb::arg("clip") = Ints(), nb::arg("bound") = Ints(), nb::arg("limit_body") = Ints(),
      nb::arg("limit_dof") = Ints(), nb::arg("dry_dof") = Ints(), nb::arg("shape_body") = Ints(), nb::arg("shape_type") = Ints(),
      nb::arg("pair_a") = Ints(), nb::arg("pair_b") = Ints(), nb::arg("friction_rule") = 0, nb::arg("restitution_rule") = 0,
      nb::arg("max_contacts") = -1, nb::arg("tie_a") = Ints(), nb::arg("tie_b") = Ints(), nb::arg("tie_axis") = Ints(),
      nb::arg("tie_first") = Ints(), nb::arg("lock") = Ints(), nb::arg("coupling_dof1") = Ints(),
      nb::arg("coupling_dof2") = Ints(), nb::arg("motor_tie") = Ints(), nb::arg("hull_vertices") = Ints(),
      nb::arg("hull_faces") = Ints(), nb::arg("hull_loop_size") = Ints(), nb::arg("hull_loop") = Ints(),
      nb::arg("hull_plane") = Ints(), nb::arg("field_nx") = Ints(), nb::arg("field_ny") = Ints(), nb::arg("large") = -1,
      nb::arg("planar") = false, nb::arg("shape_condim") = Ints(), nb::arg("one_group") = -1);
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

  nb::class_<PyTree> tree(m, "Tree", "The structure of a model, and every call that reaches the core");
  bind_rollout(tree);
  bind_structure(tree);
  bind_cuda(tree);
  tree.def_prop_ro("nq", [](const PyTree& t) { return t.tree.nq; })
      .def_prop_ro("nv", [](const PyTree& t) { return t.tree.nv; })
      .def_prop_ro("form", [](const PyTree& t) { return t.tree.form; })
      .def_prop_ro("params_size", [](const PyTree& t) { return params_size(t.tree); })
      .def_prop_ro("max_contacts", [](const PyTree& t) { return t.tree.max_contacts; })
      .def_prop_ro("rows", [](const PyTree& t) { return joint_rows(t.tree); })
      .def_prop_ro("equality_rows", [](const PyTree& t) { return t.tree.ne; })
      .def_prop_ro("large", [](const PyTree& t) { return t.tree.large != 0; })
      .def_prop_ro("candidates", [](const PyTree& t) { return t.tree.nk; })
      .def_prop_ro("candidate_pair", [](const PyTree& t) { return t.storage.pairs.candidate_pair(); })
      .def("op", &op, nb::arg("op"), nb::arg("worlds"), nb::arg("inputs"), nb::arg("outputs"),
           nb::arg("options").none() = nb::none())
      .def("op_adj", &op_adj, nb::arg("op"), nb::arg("worlds"), nb::arg("inputs"), nb::arg("output_bars"), nb::arg("input_bars"))
      .def(
          "params_ok", [](const PyTree& t, H theta, long worlds) { return params_ok_any(t, theta, worlds); }, nb::arg("theta"),
          nb::arg("worlds"))
      .def("first_zero_quaternion", [](const PyTree& t, H q) { return first_zero_quaternion_any(t, q); }, nb::arg("q"));
  bind_stepper(m);
}
