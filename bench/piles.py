"""Piles of boxes: 10, 100 and 1,000 in one world, and 256 worlds of 10, against MuJoCo; memory of the largest with backward."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import costate as cs
from bench import heaps as h
from bench.tables import Table, times, us
from bench.timing import Work, interleaved

SIZES = (10, 100, 1000)
STEPS = {10: 10, 100: 20, 1000: 20}  # of one measured rollout
NEWTON_STEPS = 1  # of the largest pile with MuJoCo's Newton solver, which takes a second for each
WORLDS, QUICK_WORLDS, SMALL = 256, 32, 10
LANES = 16  # worlds whose step is also timed in lanes
GROWTH_TARGET = 2.0
MEMORY_STEPS = (4, 24)
MEMORY_TARGET = 1.5  # times the size of a state, beyond inputs and outputs
WAYS = ("step", "step and backward")
SOLVERS = ("Newton", "CG")
SETUP = f"""Boxes of {200 * h.HALF[0]:g} to {200 * h.HALF[1]:g} cm, {h.DENSITY:g} kg/m^3, friction {h.FRICTION:g}, tumbled,
fall in layers onto a plane: the same heap for both engines, each of which lets it fall for {h.SETTLE * h.DT:g} s in steps of
{1000 * h.DT:g} ms (costate with sweeps alone, MuJoCo with CG) and is timed from there on; float64, one core. costate has its
defaults: sweeps and Newton steps, but with more than 768 possible rows, that is in the two larger piles, 20 sweeps alone.
Backward is by the first state and all parameters. MuJoCo has its defaults (Euler, pyramids, solref 0.02) with its Newton solver,
the default, or its CG solver (at most 100 iterations); `mujoco.rollout` on the calling thread, warm-started. Contacts of costate
have rows from 1 cm on, MuJoCo's where boxes overlap; pushing: with a force. A ratio above 1: costate is faster."""
MEMORY_NOTES = """Peak resident memory of the process (VmHWM on Linux) above inputs and outputs (states, gradients). Scratch:
that of {short} steps with backward. Growth: by how much more that of {long} steps is, per step."""


def run(*, quick: bool) -> Iterator[Table]:
    """A table of single piles, one of what is in them, the same of many small piles, one of memory; each when it is there."""
    yield from _one_world(quick=quick)
    yield from _many_worlds(quick=quick)
    yield _memory()


def _add_pile(seen: Table, boxes: int, engine: str, pile: h.Pile) -> None:
    residual = "" if pile.residual is None else f"{pile.residual:.1e}"
    depths = (f"{1000 * pile.deepest:.2f}", f"{1000 * pile.mean:.3f}")
    seen.add(f"{boxes:,}", engine, f"{pile.contacts:,.0f}", f"{pile.pushing:,.0f}", *depths, residual)


def _piles(title: str) -> Table:
    columns = ("boxes", "engine", "contacts", "pushing", "deepest, mm", "mean, mm", "residual, m/s")
    return Table(title, columns, notes="At the end of the fall; contacts per world, the deepest penetration and residual of all.")


def _slow(n: int, what: str) -> bool:
    return n == SIZES[-1] and what == "Newton"


def _steps(n: int, what: str) -> int:
    return NEWTON_STEPS if _slow(n, what) else STEPS[n]


def _one_world(*, quick: bool) -> list[Table]:
    columns = ("boxes", "what", "us per step", "us per contact", "us per pushing contact", "ratio to Newton", "to CG")
    table = Table("Piles of boxes in one world", columns, notes=SETUP)
    seen = _piles("What is in these piles")
    works: dict[str, Work] = {}
    piles: dict[str, h.Pile] = {}
    for n in SIZES:
        heap = h.heap(n)
        sim, peer = cs.Simulator(h.costate_model(heap), h.DT), h.Peer(heap)
        state = h.settle(sim, heap)
        works |= {f"{n} step": h.forward(sim, state, STEPS[n]), f"{n} step and backward": h.both(sim, state, STEPS[n])}
        works |= {f"{n} {solver}": peer.work(solver, _steps(n, solver)) for solver in SOLVERS if not (quick and _slow(n, solver))}
        piles |= {f"{n} {way}": h.look(sim, state) for way in WAYS} | {f"{n} {solver}": peer.look() for solver in SOLVERS}
        _add_pile(seen, n, "costate", piles[f"{n} step"])
        _add_pile(seen, n, "MuJoCo", piles[f"{n} CG"])
    taken = interleaved(works, quick=quick)
    spent = {name: seconds / _steps(int(name.split()[0]), name.split()[1]) for name, seconds in taken.items()}
    for name, seconds in spent.items():
        n, what = name.split(" ", 1)
        ratios = (times(spent[key] / seconds) if key in spent else "not timed" for key in (f"{n} Newton", f"{n} CG"))
        per = (us(seconds / count) for count in (piles[name].contacts, piles[name].pushing))
        table.add(f"{int(n):,}", what if what in WAYS else f"MuJoCo, {what}", us(seconds), *per, *ratios)
    middle, largest = SIZES[1:]
    for way in WAYS:
        small, large = (spent[f"{n} {way}"] / piles[f"{n} {way}"].contacts for n in (middle, largest))
        what = f"{way}: time per contact of {largest:,} boxes under {GROWTH_TARGET:g} times that of {middle}: {large / small:.2f}"
        table.target(what, large / small < GROWTH_TARGET)
    if f"{largest} Newton" in spent:
        ours, theirs = spent[f"{largest} step"], spent[f"{largest} Newton"]
        peer_text = f"MuJoCo step: {us(theirs)} us"
        table.summary.append((f"a step of a pile of {largest:,} boxes", f"{us(ours)} us", peer_text, times(theirs / ours)))
    return [table, seen]


def _many_worlds(*, quick: bool) -> list[Table]:
    columns = ("what", "us per world and step", "us per contact", "ratio to Newton")
    notes = f"""As above; every world has its own pile of the same {SMALL} boxes. costate takes one world after the other, its
default for so many lone bodies; in lanes: {LANES} of them, several per instruction as with robots, a single step, timed once. A
pack has a row for every contact that any of its worlds has, and these share few."""
    worlds = QUICK_WORLDS if quick else WORLDS
    table = Table(f"{worlds} worlds of {SMALL} boxes", columns, notes=notes)
    seen = _piles("What is in them")
    heap = h.heap(SMALL, worlds)
    sim, peer, steps = cs.Simulator(h.costate_model(heap), h.DT), h.Peer(heap), STEPS[SMALL]
    state = h.settle(sim, heap)
    ours, theirs = h.look(sim, state), peer.look()
    _add_pile(seen, SMALL, "costate", ours)
    _add_pile(seen, SMALL, "MuJoCo", theirs)
    works = {"step": h.forward(sim, state, steps), "step and backward": h.both(sim, state, steps)}
    works |= {f"MuJoCo, {solver}": peer.work(solver, steps) for solver in SOLVERS}
    spent = {name: seconds / (worlds * steps) for name, seconds in interleaved(works, quick=quick).items()}
    spent["step, in lanes"] = _in_lanes(heap, state)
    for name, seconds in spent.items():
        count = theirs.contacts if name.startswith("MuJoCo") else ours.contacts
        table.add(name, us(seconds), us(seconds / count), times(spent["MuJoCo, Newton"] / seconds))
    ratio = spent["MuJoCo, Newton"] / spent["step"]
    cells = (f"{us(spent['step'])} us", f"MuJoCo step: {us(spent['MuJoCo, Newton'])} us", times(ratio))
    table.summary.append((f"step of {SMALL} boxes in a pile, {worlds} worlds", *cells))
    return [table, seen]


def _in_lanes(heap: h.Heap, state: cs.State) -> float:
    """Seconds per world and step if worlds share instructions."""
    work = h.forward(h.in_lanes(heap), cs.State(*(x[:LANES] for x in state)), 1)
    start = perf_counter()
    work()
    return (perf_counter() - start) / LANES


def _memory() -> Table:
    short, long = MEMORY_STEPS
    columns = ("boxes", "a state, MB", "scratch, MB", "inputs and outputs per step, MB", "growth above them per step, MB")
    table = Table("Memory of a pile with backward", columns, notes=MEMORY_NOTES.format(short=short, long=long))
    if not Path("/proc/self/clear_refs").exists():
        table.notes += " Not available on this system."
        return table
    for n in SIZES[1:]:
        command = [sys.executable, "-m", "bench.piles", str(n)]
        state, *rest = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-4:])
        table.add(f"{n:,}", f"{state:.3f}", *(f"{x:.3f}" if x >= 1e-3 else "< 0.001" for x in rest))
        if n == SIZES[-1]:
            what = f"{n:,} boxes: growth per step under {MEMORY_TARGET:g} times a state: {max(rest[-1], 0):.3f} MB"
            table.target(what, rest[-1] < MEMORY_TARGET * state)
    return table


def measure(n: int) -> tuple[float, float, float, float]:
    """MB: a state; scratch memory; inputs and outputs per step; peak growth above them per step."""
    import torch

    from bench.memory import growth
    from bench.timing import one_core

    one_core()
    heap = h.heap(n)
    sim = cs.Simulator(h.costate_model(heap), h.DT)
    start = h.settle(sim, heap)
    params = sim.model.params(requires_grad=True)

    def work(q_bar: torch.Tensor, v_bar: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, v = (x.clone().requires_grad_() for x in start)
        traj = sim.rollout(cs.State(q, v), params=params, steps=len(q_bar) - 1)
        wanted = [x for x in (q, v, *params.leaves()) if x.numel()]
        grads = torch.autograd.grad((traj.q, traj.v), wanted, (q_bar, v_bar), allow_unused=True)
        return (traj.q, traj.v, *(g for g in grads if g is not None))

    def inputs(steps: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.ones(steps + 1, 1, size, dtype=torch.float64) for size in (sim.model.nq, sim.model.nv))

    short, long = MEMORY_STEPS
    (size_short, above_short), (size, above) = (growth(work, inputs(1), inputs(steps)) for steps in (short, long))
    per_step = long - short
    state = 8e-6 * (sim.model.nq + sim.model.nv)
    return state, above_short, (size - size_short) / per_step, (above - above_short) / per_step


if __name__ == "__main__":
    print(*measure(int(sys.argv[1])))
