// Newton steps that stall and begin again without a contact, and those that are kept although the residual rises (ops/rounds.h): they solve what would
// not be solved, and their adjoint is that of the solver as it ran, against Dual.
#include "step_check.h"
using namespace test;

// steps of the solver that began again without a block and were kept
static int kept(const Run& r) {
  int n = 0;
  for (int e = 0; r.s.rw.count[0] && r.s.rw.event[e]; e++) n += r.s.rw.event[e] == 4 && r.s.rw.took[e] > 0;
  return n;
}

// whether a whole step was kept of which else a part would have been tried; `careful`: the same world where none is
static bool bold(const Run& r, const Run& careful) {
  for (int e = 0; r.s.rw.count[0] && r.s.rw.event[e] && r.s.rw.event[e] == careful.s.rw.event[e]; e++)
    if (r.s.rw.took[e] != careful.s.rw.took[e]) return r.s.rw.event[e] == 2 && r.s.rw.took[e] == 1;
  return false;
}

int main() {
  Random rng(27);
  Parts parts;
  parts.floor_only = true, parts.limits = parts.dry = parts.servos = false;
  int seen = 0, solved = 0, chained = 0, rises = 0, trials = 6000;
  for (int trial = 0; trial < trials; trial++) {
    World w = random_scene(parts, trial % 2, rng);
    CHECK(!w.t.chained);
    Params<double> th = w.theta();
    for (int i = 0; i < w.t.ns; i++) th.friction[i] = 1.5;  // enough for friction to push a contact apart
    Asked asked = exact(20, 12, 0);
    Run r(w, asked);
    solved += r.solved();
    w.t.chained = 1;  // without it
    Run careful(w, asked);
    chained += careful.solved();
    w.t.chained = 0;
    if (bold(r, careful) && r.solved() && !kept(r)) {
      rises++;
      check_adj("exact, bold", w, asked, kNewton, rng);
    }
    if (!kept(r)) continue;
    seen++;
    CHECK(r.solved());
    check_adj("exact, let go", w, asked, kNewton, rng);
    if (Run(w, implicit(0)).solved()) check_modes(w, 0, rng);
  }
  std::printf("%d of %d worlds began again; %d are solved, %d without it\n", seen, trials, solved, chained);
  std::printf("%d kept a step that made the residual rise\n", rises);
  CHECK(seen > 20);
  CHECK(rises > 20);
  CHECK(solved >= chained);
  return report("let_go");
}
