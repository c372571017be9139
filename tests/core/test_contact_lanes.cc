// A step with rows and its adjoint in packs whose worlds have different contacts (lane_check.h).
#include "lane_check.h"
using namespace test;

int main() {
  Random rng(27);
  int floats = 0;
  for (int trial = 0; trial < 12; trial++) {
    Parts parts;
    parts.limits = parts.dry = parts.servos = trial % 4 != 0;
    if (trial == 5) parts.max_contacts = 2;
    parts.moving_plane = trial == 2, parts.solids = trial % 4 >= 1, parts.field = trial % 3 == 0, parts.floor_only = trial == 6;
    World w = random_scene(parts, trial % 2, rng);
    Asked asked;
    asked.relative_softness = 1e-6, asked.cone = trial % 3 == 2 ? 4.5 : 0, asked.exact = trial / 2 % 2,
    asked.form = trial / 4 % 3;
    check_lanes<Pack<double, 2>>(w, asked, rng), check_lanes<Pack<double, 8>>(w, asked, rng);
    check_lanes<Pack<float, 16>>(w, asked, rng);
    check_asked(w, asked, rng);
    asked.iterations = 3, asked.polish = 1;  // some worlds are solved, some fall back to the exact mode
    check_lanes<Pack<double, 8>>(w, asked, rng);
    check_asked(w, asked, rng);
    for (int again = 0; again < 4; again++) floats += check_float(random_scene(parts, trial % 2, rng), asked, rng);
  }
  CHECK(floats > 8);
  return report("contact_lanes");
}
