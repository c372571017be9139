// SolidTables: faces and edges of a solid by the numbers of its vertices, as core/ops/collide/solid.h reads them. Of boxes and cylinders
// they are always the same; of hulls they come from the loops of their faces.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace costate {

struct SolidTables {
  int vertices = 0;
  std::vector<int> loop_adr{0};  // [faces + 1]
  std::vector<int> loop;         // vertices of each face, counterclockwise seen from outside
  std::vector<int> plane;        // [faces, 3] vertices that span its plane
  std::vector<int> edge;         // [edges, 4] v0, v1, face with v0 -> v1, face with v1 -> v0

  int faces() const { return int(loop_adr.size()) - 1; }
  int edges() const { return int(edge.size()) / 4; }

  // plane: three corners of the loop, where none are given as far from each other as numbers can tell
  void add_face(const std::vector<int>& corners, std::vector<int> three = {}) {
    size_t n = corners.size();
    if (n < 3) throw std::invalid_argument("face " + std::to_string(faces()) + " has fewer than 3 vertices");
    if (three.empty()) three = {corners[0], corners[n / 3], corners[2 * n / 3]};
    loop.insert(loop.end(), corners.begin(), corners.end());
    loop_adr.push_back(int(loop.size()));
    plane.insert(plane.end(), three.begin(), three.end());
  }

  // every edge belongs to two faces, which run along it in opposite directions
  void find_edges() {
    std::map<std::pair<int, int>, int> face_of;
    for (int f = 0; f < faces(); f++)
      for (int i = loop_adr[f]; i < loop_adr[f + 1]; i++) {
        int v = loop[i], w = loop[i + 1 < loop_adr[f + 1] ? i + 1 : loop_adr[f]];
        std::string name = "edge " + std::to_string(v) + " -> " + std::to_string(w) + " of face " + std::to_string(f);
        if (v < 0 || v >= vertices || w < 0 || w >= vertices || v == w)
          throw std::invalid_argument(name + ": not two of " + std::to_string(vertices) + " vertices");
        if (!face_of.insert({{v, w}, f}).second) throw std::invalid_argument(name + " occurs twice");
      }
    edge.clear();
    for (const auto& [ends, f] : face_of) {
      auto [v, w] = ends;
      auto back = face_of.find({w, v});
      if (back == face_of.end())
        throw std::invalid_argument("edge " + std::to_string(v) + " -> " + std::to_string(w) + " of face " + std::to_string(f) +
                                    " has no face on its other side");
      if (v < w) edge.insert(edge.end(), {v, w, f, back->second});
    }
    if (vertices - edges() + faces() != 2)
      throw std::invalid_argument(std::to_string(vertices) + " vertices, " + std::to_string(edges()) + " edges and " +
                                  std::to_string(faces()) + " faces do not close to a hull");
  }
};

// faces +x, -x, +y, -y, +z, -z; bits of a vertex: x, y, z negative
inline SolidTables box_tables() {
  SolidTables t;
  t.vertices = 8;
  for (int axis = 0; axis < 3; axis++) {
    int i = 1 << axis, j = 1 << (axis + 1) % 3, k = 1 << (axis + 2) % 3;
    t.add_face({0, j, j | k, k}, {0, j, k});
    t.add_face({i, i | k, i | j | k, i | j}, {i, i | k, i | j});
  }
  t.find_edges();
  return t;
}

// a prism: top, bottom, then the sides; vertex k of the top lies above 16 + k
inline SolidTables cylinder_tables() {
  constexpr int kSides = 16;
  SolidTables t;
  t.vertices = 2 * kSides;
  std::vector<int> top, bottom;
  for (int k = 0; k < kSides; k++) top.push_back(k), bottom.push_back(2 * kSides - 1 - k);
  t.add_face(top), t.add_face(bottom);
  for (int k = 0; k < kSides; k++) {
    int next = (k + 1) % kSides;
    t.add_face({k, kSides + k, kSides + next, next}, {k, kSides + k, next});
  }
  t.find_edges();
  return t;
}

// loop_size: vertices of each face; loop: all of them; plane: three per face that span it best, or nothing
inline SolidTables hull_tables(int vertices, const std::vector<int>& loop_size, const std::vector<int>& loop,
                               const std::vector<int>& plane = {}) {
  SolidTables t;
  t.vertices = vertices;
  size_t at = 0;
  if (!plane.empty() && plane.size() != 3 * loop_size.size()) throw std::invalid_argument("plane must have 3 vertices per face");
  for (size_t f = 0; f < loop_size.size(); f++) {
    if (loop_size[f] < 3) throw std::invalid_argument("face " + std::to_string(f) + " has fewer than 3 vertices");
    size_t end = at + size_t(loop_size[f]);
    if (end > loop.size()) throw std::invalid_argument("loop ends within face " + std::to_string(f));
    std::vector<int> corners(loop.begin() + long(at), loop.begin() + long(end)), three;
    if (!plane.empty()) three = {plane[3 * f], plane[3 * f + 1], plane[3 * f + 2]};
    t.add_face(corners, three);
    at = end;
  }
  if (at != loop.size()) throw std::invalid_argument("loop has vertices of no face");
  t.find_edges();
  return t;
}

}  // namespace costate
