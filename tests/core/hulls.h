// Shapes with tables of their own, for scenes: a tetrahedron, a box without one corner, a field; with vertices for them.
#pragma once
#include "../../core/data/params.h"
#include "../../drivers/tree.h"
#include "check.h"

namespace test {

using namespace costate;

struct HullForm {
  std::vector<Vec3<double>> x;
  std::vector<std::vector<int>> faces;  // counterclockwise seen from outside
};

// faces may be given in either direction: those that look inwards are turned
inline HullForm hull_form(std::vector<Vec3<double>> x, std::vector<std::vector<int>> faces) {
  for (std::vector<int>& f : faces) {
    Vec3<double> n = cross(x[f[1]] - x[f[0]], x[f[2]] - x[f[0]]);
    if (dot(n, x[f[0]]) < 0) std::reverse(f.begin(), f.end());
  }
  return {std::move(x), std::move(faces)};
}

inline HullForm tetrahedron() {
  return hull_form({{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}}, {{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}});
}

// the corners of a box from number 1 on (bits: x, y, z negative); instead of corner 0 one point on each of its edges: 7, 8, 9
inline HullForm cut_box() {
  std::vector<Vec3<double>> x;
  for (int id = 1; id < 8; id++) x.push_back({id & 1 ? -1.0 : 1.0, id & 2 ? -1.0 : 1.0, id & 4 ? -1.0 : 1.0});
  x.insert(x.end(), {{0.2, 1, 1}, {1, 0.2, 1}, {1, 1, 0.2}});
  return hull_form(x, {{8, 1, 5, 3, 9}, {0, 2, 6, 4}, {7, 0, 4, 3, 9}, {1, 2, 6, 5}, {7, 0, 2, 1, 8}, {3, 4, 6, 5}, {7, 8, 9}});
}

inline void add_hull(Structure& s, int body, const HullForm& form) {
  ShapeLists& to = s.shapes;
  s.shape_body.push_back(body), s.shape_type.push_back(kHull);
  to.hull_vertices.push_back(int(form.x.size())), to.hull_faces.push_back(int(form.faces.size()));
  for (const std::vector<int>& f : form.faces) {
    size_t n = f.size();
    to.hull_loop_size.push_back(int(n)), to.hull_loop.insert(to.hull_loop.end(), f.begin(), f.end());
    to.hull_plane.insert(to.hull_plane.end(), {f[0], f[n / 3], f[2 * n / 3]});
  }
}

inline void add_field(Structure& s, int body, int nx, int ny) {
  s.shape_body.push_back(body), s.shape_type.push_back(kField);
  s.shapes.field_nx.push_back(nx), s.shapes.field_ny.push_back(ny);
}

// a shape of any type but a field
inline void add_shape(Structure& s, int body, int type, Random& rng) {
  if (type == kHull) return add_hull(s, body, rng.below(2) ? tetrahedron() : cut_box());
  s.shape_body.push_back(body), s.shape_type.push_back(type);
}

// vertices of hull s, stretched along its axes
inline void put_hull(const Tree& t, const Params<double>& th, int s, Vec3<double> size) {
  HullForm form = t.solid_n[3 * s] == 4 ? tetrahedron() : cut_box();
  for (size_t v = 0; v < form.x.size(); v++)
    th.hull_vertex[t.hull_adr[s] + int(v)] = {size.x * form.x[v].x, size.y * form.x[v].y, size.z * form.x[v].z};
}

}  // namespace test
