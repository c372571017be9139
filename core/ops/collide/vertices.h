// vertices: where the numbered vertices of a shape are, in its own frame. Features are made of them (feature.h).
//
//   plane      0 (0, 0, 0), 1 (1, 0, 0), 2 (0, 1, 0): the face (0, 1, 2) is the plane
//   sphere     0 the centre;   capsule  0 (0, 0, half), 1 (0, 0, -half); both with a radius around them
//   box        bits of the number: x, y, z negative
//   cylinder   k and 16 + k: (r cos(k pi/8), r sin(k pi/8), +half and -half), k < 16;   32 and 33: centres of the rims
//   rectangle  (+, +), (-, +), (-, -), (+, -) of its half sizes;   polygon  its own list; of both, n + k is k raised along z by 1: the face
//              (k, l, n + k) stands on the edge from k to l
//   hull       its own list;   field  i ny + j: x = size.x (2 i/(nx - 1) - 1), y the same with j, z its height
// linear in sizes, hull vertices and heights
#pragma once
#include "../shapes.h"

CS_BEGIN

constexpr int kRimSides = 16;  // corners that stand for the rim of a cylinder

// no adjoint: a constant.   cos(k pi/8); sin(k pi/8) = rim_cos(k + 12)
CS_FN double rim_cos(int k) {
  const double eighth[5] = {1, 0.92387953251128674, 0.70710678118654752, 0.38268343236508977, 0};
  int fold = k & 15, half = fold > 8 ? 16 - fold : fold;  // cos(x) = cos(2 pi - x)
  return half > 4 ? -eighth[8 - half] : eighth[half];
}

// no adjoint: a constant.   from -1 to 1 in n - 1 steps, both ends exactly
CS_FN double grid_place(int i, int n) { return double(2 * i - (n - 1)) / double(n - 1); }

// no adjoint: a constant.   sign of x of a rectangle's corner
CS_FN int rectangle_x(int id) { return (id & 3) == 1 || (id & 3) == 2 ? -1 : 1; }

// size_vertex: of shapes that their size describes: all but hulls and fields
template <class T> CS_FN Vec3<T> size_vertex(int type, Vec3<T> size, int id) {
  using E = ElementOf<T>;
  if (type == kPlane) return {T(E(id == 1)), T(E(id == 2)), T(0)};
  if (type == kCapsule) return {T(0), T(0), T(E(id & 1 ? -1 : 1)) * size.y};
  if (type == kRectangle) return {T(E(rectangle_x(id))) * size.x, T(E(id & 2 ? -1 : 1)) * size.y, T(E(id >= 4))};
  if (type == kBox) return {T(E(id & 1 ? -1 : 1)) * size.x, T(E(id & 2 ? -1 : 1)) * size.y, T(E(id & 4 ? -1 : 1)) * size.z};
  if (type != kCylinder) return zero3<T>();
  if (id >= 2 * kRimSides) return {T(0), T(0), T(E(id & 1 ? -1 : 1)) * size.y};
  return {T(E(rim_cos(id))) * size.x, T(E(rim_cos(id + 12))) * size.x, T(E(id < kRimSides ? 1 : -1)) * size.y};
}
// adjoint: the same factors
template <class T> CS_FN void size_vertex_adj(int type, int id, Vec3<T> x_bar, Vec3<T>& size_bar) {
  using E = ElementOf<T>;
  T up = T(E(id & 1 ? -1 : 1));
  if (type == kCapsule) size_bar.y = fma(up, x_bar.z, size_bar.y);
  if (type == kRectangle) size_bar += Vec3<T>{T(E(rectangle_x(id))) * x_bar.x, T(E(id & 2 ? -1 : 1)) * x_bar.y, T(0)};
  if (type == kBox) size_bar += Vec3<T>{up * x_bar.x, T(E(id & 2 ? -1 : 1)) * x_bar.y, T(E(id & 4 ? -1 : 1)) * x_bar.z};
  if (type != kCylinder) return;
  if (id >= 2 * kRimSides) {
    size_bar.y = fma(up, x_bar.z, size_bar.y);
    return;
  }
  size_bar.x = fma(T(E(rim_cos(id))), x_bar.x, fma(T(E(rim_cos(id + 12))), x_bar.y, size_bar.x));
  size_bar.y = fma(T(E(id < kRimSides ? 1 : -1)), x_bar.z, size_bar.y);
}

template <class T> CS_FN Vec3<T> shape_vertex(const Tree& t, const Params<T>& th, int s, int id) {
  using E = ElementOf<T>;
  int type = t.shape_type[s];
  if (type == kHull) return th.hull_vertex[t.hull_adr[s] + id];
  if (type == kPolygon) {
    int n = t.solid_n[3 * s], k = id < n ? id : id - n;
    Vec3<T> x = th.hull_vertex[t.hull_adr[s] + k];
    return {x.x, x.y, T(E(id >= n))};
  }
  Vec3<T> size = th.shape_size[s];
  if (type != kField) return size_vertex(type, size, id);
  int nx = t.field_nx[s], ny = t.field_ny[s];
  return {T(E(grid_place(id / ny, nx))) * size.x, T(E(grid_place(id % ny, ny))) * size.y, th.height[t.height_adr[s] + id]};
}
// adjoint: to sizes, hull vertices and heights, where somebody asks
template <class T>
CS_FN void shape_vertex_adj(const Tree& t, const Params<T>&, int s, int id, Vec3<T> x_bar, const Params<T>& th_bar) {
  using E = ElementOf<T>;
  if (!th_bar.shape_size) return;
  int type = t.shape_type[s];
  if (type == kPolygon) {
    int n = t.solid_n[3 * s];
    th_bar.hull_vertex[t.hull_adr[s] + (id < n ? id : id - n)] += Vec3<T>{x_bar.x, x_bar.y, T(0)};
    return;
  }
  if (type == kHull) {
    th_bar.hull_vertex[t.hull_adr[s] + id] += x_bar;
    return;
  }
  Vec3<T>& size_bar = th_bar.shape_size[s];
  if (type != kField) {
    size_vertex_adj(type, id, x_bar, size_bar);
    return;
  }
  int nx = t.field_nx[s], ny = t.field_ny[s];
  size_bar.x = fma(T(E(grid_place(id / ny, nx))), x_bar.x, size_bar.x);
  size_bar.y = fma(T(E(grid_place(id % ny, ny))), x_bar.y, size_bar.y);
  th_bar.height[t.height_adr[s] + id] += x_bar.z;
}

CS_END
