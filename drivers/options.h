// The solver's options as Python sends them: one list of numbers, in the order of costate/solver.py.
#pragma once
#include <cmath>
#include <stdexcept>
#include <vector>

#include "../core/data/model.h"
#include "../core/data/options.h"

namespace costate {

constexpr int kOptions = 15;

inline Options read_options(const std::vector<double>& x, const Tree& t) {
  if (int(x.size()) != kOptions) throw std::invalid_argument("options: wrong number of entries");
  Options o{};
  o.iterations = int(x[0]), o.polish = int(x[1]), o.tolerance = x[2];
  o.margin = x[3], o.recovery = x[4], o.push_speed = x[5], o.bounce_speed = x[6];
  double cone = x[7];
  bool square = cone == 4.5;
  o.sides = square ? 4 : int(cone);
  o.exact = int(x[8]), o.relative_softness = x[9], o.absolute_softness = x[10], o.form = int(x[11]);
  if (o.form == kByModel && !o.polish) o.form = kSweepsByModel;
  o.project = int(x[12]), o.method = int(x[13]), o.impacts = int(x[14]);
  bool ok = o.iterations >= 1 && o.iterations <= 100000 && o.polish >= 0 && o.polish <= 1000 && o.tolerance > 0 &&
            o.margin >= 0 && o.recovery > 0 && o.recovery <= 1 && o.push_speed >= 0 && o.bounce_speed >= 0 &&
            o.relative_softness >= 0 && o.absolute_softness > 0 && o.project >= 0 && o.project <= 1000 && o.sides <= kMaxSides &&
            (o.sides == 0 || o.sides >= 3) && (o.method == kRounds || o.method == kInterior) && o.impacts >= 0 &&
            o.impacts <= 1000 && o.form >= kSweepsByModel && o.form <= kAlternate;
  if (!ok) throw std::invalid_argument("options: a number is out of range");
  if (o.form == kAlternate && t.large)
    throw std::invalid_argument("PGS: form 'alternating' needs a matrix of all rows: this model has room for too many contacts");
  if (o.method == kInterior && t.large) throw std::invalid_argument("options: too many contacts for an interior point");
  if (t.planar) {
    o.sides = 2;
    return o;
  }
  // a square has its edges across the axes, at mu lambda_n; a pyramid its corners on the disc, the first on the first axis
  const double pi = 3.14159265358979323846;
  o.apothem = square ? 1.0 : o.sides ? std::cos(pi / o.sides) : 0.0;
  o.half_edge = square ? 1.0 : o.sides ? std::sin(pi / o.sides) : 0.0;
  for (int k = 0; k < o.sides; k++) {
    double angle = (2 * k + (square ? 0 : 1)) * pi / o.sides;
    o.normal_x[k] = std::cos(angle), o.normal_y[k] = std::sin(angle);
  }
  return o;
}

}  // namespace costate
