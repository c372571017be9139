// Newton steps that stall and begin again without a contact (ops/rounds.h): they solve what would not be solved, and their adjoint is that of the
// solver as it ran, against Dual.
#include "step_check.h"
using namespace test;

// steps of the solver that began again without a block and were kept
static int kept(const Run& r) {
  int n = 0;
  for (int e = 0; r.s.rw.count[0] && r.s.rw.event[e]; e++) n += r.s.rw.event[e] == 4 && r.s.rw.took[e] > 0;
  return n;
}

int main() {
  Random rng(27);
  Parts parts;
  parts.floor_only = true, parts.limits = parts.dry = parts.servos = false;
  int seen = 0, solved = 0, chained = 0, trials = 6000;
  for (int trial = 0; trial < trials; trial++) {
    World w = random_scene(parts, trial % 2, rng);
    CHECK(!w.t.chained);
    Params<double> th = w.theta();
    for (int i = 0; i < w.t.ns; i++) th.friction[i] = 1.5;  // enough for friction to push a contact apart
    Asked asked = exact(20, 12, 0);
    Run r(w, asked);
    solved += r.solved();
    w.t.chained = 1;  // without it
    chained += Run(w, asked).solved();
    w.t.chained = 0;
    if (!kept(r)) continue;
    seen++;
    CHECK(r.solved());
    check_adj("exact, let go", w, asked, kNewton, rng);
    if (Run(w, implicit(0)).solved()) check_modes(w, 0, rng);
  }
  std::printf("%d of %d worlds began again; %d are solved, %d without it\n", seen, trials, solved, chained);
  CHECK(seen > 20);
  CHECK(solved >= chained);
  return report("let_go");
}
