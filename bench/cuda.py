"""Robots on the ground in thousands of worlds on a GPU.

    python -m bench.cuda [names] [--quick] [--device cuda|cpu] [--worlds N ...] [--seconds S]

Needs nothing but costate and torch. Where the package mujoco_warp can be imported, MuJoCo Warp runs the same worlds in the same
run; where it cannot, its numbers are quoted.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch

import costate as cs
from bench import crowd as c
from bench import warp
from bench.gait import BURN_IN, HOLD
from bench.humanoid import APART, humanoid, humanoid_model
from bench.ours import costate_model
from bench.robots import Robot
from bench.tables import Table, times
from bench.walkers import ant, standing_quadruped

SIZES = {"cuda": (8192, 65_536), "cpu": (64,)}  # worlds
STEPS, QUICK_STEPS = 100, 20  # of a rollout
SECONDS, QUICK_SECONDS = 2.0, 0.2  # of timing, for each row
POLICY_WORLDS = 8192
MEMORY_WORLDS, MEMORY_STEPS, MEMORY_TARGET = 4096, 1000, 4.0  # the last in GB
FIRST_TARGET, CACHED_TARGET = 15.0, 2.0  # s
MARGIN = 0.002  # m, of the humanoid: a smaller one lets it go deeper into the ground (by hand, on the CPU), this one does not
FORWARD, BOTH, EXACT = "forward", "forward and backward", 'forward and backward, gradient="exact"'
# steps per second of MuJoCo Warp 4.0, forward only: measured by us on an H200, and what is published for other GPUs
WARP = {8192: 10.7e6, 65_536: 16.4e6}
WARP_ELSEWHERE, ELSEWHERE_TARGET = (3e6, 9.5e6), 1.5
TARGETS = {(FORWARD, 8192): 30e6, (FORWARD, 65_536): 80e6, (BOTH, 65_536): 20e6}  # quadruped in float32, steps per second
COLUMNS = (
    "what", "precision", "worlds", "M steps/s", "MuJoCo Warp, forward", "ratio", "contacts", "unsolved", "largest residual, m/s",
    "deepest, mm", "lost", "largest gradient",
)  # fmt: skip
NOTES = f"""Rollouts of {{steps}} steps of {{dt:g}} ms {{how}}, after {{burn_in}} that
are not timed; millions of steps per second, worlds times steps over time. Every world has its own random state and controls.
{{who}}
Backward is by the first states, {{by}} and all parameters (shared by all worlds), from gradients that arrive at every state.
Contacts: with rows, mean over all steps{{near}}. Unsolved: share of steps with a natural residual above {c.UNSOLVED:g} m/s.
Deepest: of all penetrations. Lost: worlds that diverged, and steps with more contacts than there was room for. Ratios, also those
of backward, are to the forward steps of {{peer}}."""
HERE = "MuJoCo Warp 4.0, which we measured before, on an H200, on this robot, at " + " and ".join(
    f"{speed / 1e6:g} M in {worlds:,} worlds" for worlds, speed in WARP.items()
)
ELSEWHERE = f"""MuJoCo Warp as published for robots like this one, in 8,192 worlds on other GPUs: {WARP_ELSEWHERE[0] / 1e6:g} to
{WARP_ELSEWHERE[1] / 1e6:g} M"""
MEMORY_NOTES = """Inputs, outputs and all gradients included, each in a fresh process; CUDA's own context is not counted. Free
memory also falls by what the driver sets aside for all threads that the GPU could run at once, however few do. Where torch
may use less (`torch.cuda.set_per_process_memory_fraction`), numbers on the way are in torch's memory, which takes longer."""
FIRST_NOTES = """In a fresh process with an empty cache, and again in another one: from the description of the robot to the first
states of a rollout (float32, 64 worlds, 10 steps) on the host, and on to the first gradient. Kernels that are new are compiled
quickly first, and well by another process meanwhile: the whole process, with imports and CUDA's own start, waits for that."""


@dataclass(frozen=True)
class Plan:
    """Where, in how many worlds, over how many steps, for how long (s, each row), and whether some rows are left out."""

    device: str = "cuda"
    worlds: tuple[int, ...] = SIZES["cuda"]
    steps: int = STEPS
    seconds: float = SECONDS
    quick: bool = False


@dataclass(frozen=True)
class Case:
    """A robot, its model, step size (s), steps before the clock starts, what its worlds do, and the peer's numbers in words;
    `apart`: if its links touch each other, those that do not; `margin` of contacts, m, and `near`, that in words."""

    robot: Callable[[], Robot]
    model: Callable[[], cs.Model]
    dt: float
    burn_in: int
    who: str
    peer: str = ELSEWHERE
    apart: warp.Apart | None = None
    margin: float | None = None
    near: str = ""

    def crowd(self, plan: Plan, worlds: int, dtype: torch.dtype = torch.float32) -> c.Crowd:
        """Its worlds, in the middle of what they do."""
        options: dict[str, Any] = {"dt": self.dt, "burn_in": self.burn_in, "device": plan.device, "dtype": dtype}
        return c.gather(self.robot(), self.model(), worlds, plan.steps, margin=self.margin, **options)


CASES = {
    "quadruped": Case(
        standing_quadruped, lambda: costate_model(standing_quadruped()), 0.005, BURN_IN,
        "A quadruped of 25 kg and 18 dof on four feet, with servos, trots in place; targets have noise, new in every step.", HERE,
    ),
    "ant": Case(
        ant, lambda: costate_model(ant()), 0.01, BURN_IN,
        f"MuJoCo's ant of 14 dof: 25 points that may touch, 8 limits; motors of up to 30 N m, held for {HOLD} steps.",
    ),
    "humanoid": Case(
        humanoid, humanoid_model, 0.005, 5 * BURN_IN,
        f"""A humanoid of 27 dof like MuJoCo's, 41 kg. It has fallen and lies; its links touch each other, too; 21 limits; motors
of up to 4 N m, held for {HOLD} steps.""", apart=APART, margin=MARGIN, near=f""": those whose gap,
less what it closes in the step at its present speed, is below {1e3 * MARGIN:g} mm (`margin`; by
default it is 5 mm in steps of 5 ms)""",
    ),
}  # fmt: skip


def run(*, quick: bool) -> Iterator[Table]:
    """All tables, or a note where there is no GPU."""
    if not torch.cuda.is_available():
        yield Table("Robots on a GPU", ("note",), [("torch finds no CUDA device here: nothing was measured",)])
        return
    yield from tables(plan_for("cuda", quick=quick))


def plan_for(device: str, *, quick: bool, worlds: Sequence[int] = (), seconds: float | None = None) -> Plan:
    """What is not said is as in the tables of the documentation, or shorter."""
    steps, usual = (QUICK_STEPS, QUICK_SECONDS) if quick else (STEPS, SECONDS)
    sizes = tuple(worlds) or SIZES[device][: 1 if quick else None]
    return Plan(device, sizes, steps, usual if seconds is None else seconds, quick)


def tables(plan: Plan, names: Sequence[str] = ()) -> Iterator[Table]:
    """One after the other: those that are named, or all."""
    for name in names or MAKERS:
        yield MAKERS[name](plan)


# ---- throughput ---------------------------------------------------------------------------------------------------------
def titled(plan: Plan, name: str, title: str, *, how: str = "in one call", by: str = "the controls") -> Table:
    """An empty table of throughput."""
    case = CASES[name]
    words = {"who": case.who, "peer": warp.told(case.peer), "how": how, "by": by, "near": case.near}
    notes = NOTES.format(steps=plan.steps, dt=1e3 * case.dt, burn_in=case.burn_in, **words)
    return Table(f"{title}, {plan.device}", COLUMNS, notes=notes)


def throughput(
    table: Table, plan: Plan, crowd: c.Crowd, ways: Sequence[str], peer: float | None, *, policy: bool = False, besides: str = ""
) -> dict[str, float]:  # fmt: skip
    """A row for each way to run a crowd; gives steps per second. A way that fails has a row that says so, and no speed.

    besides : what is to be said of each way.
    """
    found: dict[str, float] = {}
    head = str(crowd.controls.dtype).removeprefix("torch."), f"{crowd.controls.shape[1]:,}"
    network = c.Policy(crowd) if policy else None
    seen = c.look(crowd.simulator(), crowd, network)
    told = f"{seen.contacts:.1f}", f"{seen.unsolved:.3%}", f"{seen.worst:.1e}", f"{1e3 * seen.deepest:.2g}", seen.lost
    for way in ways:
        try:
            speed, gradient = measure(plan, crowd, way, network)
        except (RuntimeError, MemoryError) as error:  # of memory, say: the other rows are still worth having
            table.add(way + besides, *head, f"failed: {str(error).splitlines()[0]}", "", "", *told, "")
        else:
            ratio = ("", "") if peer is None else (f"{peer / 1e6:.3g}", times(speed / peer))
            table.add(way + besides, *head, f"{speed / 1e6:.3g}", *ratio, *told, gradient)
            found[way] = speed
        print(" | ".join(table.rows[-1]), file=sys.stderr, flush=True)  # a table takes minutes
        gc.collect()
        if plan.device == "cuda":
            torch.cuda.empty_cache()
    return found


def measure(plan: Plan, crowd: c.Crowd, way: str, network: c.Policy | None) -> tuple[float, str]:
    """Steps per second, and the largest entry of the gradients, in words."""
    sim = crowd.simulator(gradient="exact" if way == EXACT else "implicit")
    sim.compile(gradient=way != FORWARD, worlds=crowd.start.q.shape[0])
    gradient, work = "", c.forward(sim, crowd, network)
    if way != FORWARD:
        work = c.both(sim, crowd, network)
        gradient = f"{c.largest(work()):.1e}"
    return crowd.world_steps / c.timed(work, plan.device, seconds=plan.seconds), gradient


def quadruped(plan: Plan) -> Table:
    """Forward, and with both gradients, in both precisions."""
    table = titled(plan, "quadruped", "The standing quadruped in many worlds")
    peers: dict[int, float | None] = {}
    for dtype in (torch.float32, torch.float64):
        for worlds in plan.worlds:
            crowd = CASES["quadruped"].crowd(plan, worlds, dtype)
            if worlds not in peers:
                peers[worlds] = warp.speed(table, crowd, WARP.get(worlds), apart=None, seconds=plan.seconds)
            speeds = throughput(table, plan, crowd, (FORWARD, BOTH, EXACT), peers[worlds])
            for (way, size), target in TARGETS.items() if dtype is torch.float32 else ():
                if size == worlds:
                    aim(table, f"{way}, {worlds:,} worlds", speeds.get(way), target)
    return table


def stepwise(plan: Plan) -> Table:
    """With a network between steps."""
    how = """one by one, with a network 64-64 in torch between them that reads q and v and adds to the controls
(none for MuJoCo Warp)"""
    table = titled(plan, "quadruped", "The standing quadruped, a network between steps", how=how, by="the network's weights")
    worlds = POLICY_WORLDS if POLICY_WORLDS in plan.worlds else plan.worlds[0]
    crowd = CASES["quadruped"].crowd(plan, worlds)
    peer = warp.speed(table, crowd, WARP.get(worlds), apart=None, seconds=plan.seconds)
    throughput(table, plan, crowd, (FORWARD, BOTH), peer, policy=True)
    return table


def other(plan: Plan, name: str) -> Table:
    """An ant or a humanoid, in float32."""
    table = titled(plan, name, f"The {name} in many worlds")
    for worlds in plan.worlds:
        published, case = WARP_ELSEWHERE if worlds == 8192 else (), CASES[name]
        crowd = case.crowd(plan, worlds)
        quoted = max(published, default=None)
        peer = warp.speed(table, crowd, quoted, apart=case.apart, seconds=plan.seconds)
        speeds = throughput(table, plan, crowd, (FORWARD, BOTH), peer)
        if case.margin is not None:
            usual = replace(crowd, margin=None)
            throughput(table, plan, usual, (FORWARD,), peer, besides=", margin as it is by default")
        here = () if peer is None or warp.missing() else ((peer, "in this run"),)
        for speed, where in (*here, *((speed, "elsewhere") for speed in published)):
            what = f"forward, {worlds:,} worlds, {ELSEWHERE_TARGET} times {speed / 1e6:.3g} M of MuJoCo Warp {where}"
            aim(table, what, speeds.get(FORWARD), ELSEWHERE_TARGET * speed)
    return table


def aim(table: Table, what: str, speed: float | None, target: float) -> None:
    """A line that says whether a speed was reached."""
    reached = "failed" if speed is None else f"{speed / 1e6:.3g} M, {times(speed / target)} of it"
    table.target(f"{what}: at least {target / 1e6:.4g} M steps/s: {reached}", speed is not None and speed >= target)


# ---- in processes of their own ------------------------------------------------------------------------------------------
def child(what: str, device: str, cache: str | None = None) -> list[float]:
    """The numbers that a fresh process prints; it keeps compiled code in the folder `cache`, or where everybody does."""
    command = [sys.executable, "-m", "bench.cuda", "--device", device, "--child", what]
    # NVRTC has a cache of its own, which would make an empty one of ours look fast
    own = {"COSTATE_CACHE": cache, "CUDA_CACHE_DISABLE": "1"} if cache else {}
    env, root = {**os.environ, **own}, Path(__file__).parents[1]
    done = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def first_use(plan: Plan) -> Table:
    """A new model, and the same one again in a fresh process."""
    columns = ("robot", "cache", "first states, s", "first gradient, s", "whole process, s")
    table = Table(f"First use of a new model, {plan.device}", columns, notes=FIRST_NOTES)
    for name in list(CASES)[: 1 if plan.quick else None]:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for cache, target in (("empty", FIRST_TARGET), ("filled", CACHED_TARGET)):
                began = perf_counter()
                states, gradient = child(name, plan.device, folder)
                table.add(name, cache, f"{states:.2f}", f"{gradient:.2f}", f"{perf_counter() - began:.1f}")
                for what, seconds in (("states", states), ("gradient", gradient)):
                    words = f"{name}, cache {cache}: first {what} within {target:g} s: {seconds:.2f} s, {times(target / seconds)}"
                    table.target(words, seconds < target)
    return table


def measure_first(name: str, device: str) -> tuple[float, float]:
    """Seconds to the first states, and to the first gradient."""
    torch.ones(1, device=device).sum().item()  # CUDA starts
    began, case = perf_counter(), CASES[name]
    sim = cs.Simulator(case.model(), case.dt, device=device, dtype=torch.float32)
    start, controls = sim.initial_state(64), torch.zeros(10, 64, sim.model.nu, device=device, requires_grad=True)
    with torch.no_grad():
        sim.rollout(start, controls).q.cpu()
    states = perf_counter() - began
    (gradient,) = torch.autograd.grad(sim.rollout(start, controls).q.sum(), controls)
    gradient.cpu()
    done = perf_counter() - began
    sim.compile(worlds=64)  # for the cache; what was timed was compiled quickly
    return states, done


def memory(plan: Plan) -> Table:
    """Of a long rollout with its gradient."""
    table = Table(
        f"Memory of {MEMORY_STEPS:,} steps with backward of {MEMORY_WORLDS:,} quadrupeds, float32",
        ("torch may use", "most that torch had allocated, GB", "by how much free memory fell, GB", "M steps/s"),
        notes=MEMORY_NOTES,
    )
    if plan.device != "cuda":
        table.add("not measured: it needs a GPU", "", "", "")
        return table
    for words, what in (("all", "memory"), (f"{MEMORY_TARGET:g} GB", "little-memory")):
        peak, drop, speed = child(what, plan.device)
        table.add(words, f"{peak:.2f}", f"{drop:.2f}", f"{speed:.3g}")
        most = max(peak, drop)
        table.target(f"under {MEMORY_TARGET:g} GB where torch may use {words}: {most:.2f} GB, {times(MEMORY_TARGET / most)}",
                     most < MEMORY_TARGET)  # fmt: skip
    return table


def measure_memory(device: str, *, little: bool) -> tuple[float, float, float]:
    """GB: the peak of torch's memory, and by how much less is free at the end than before; millions of steps per second."""
    torch.ones(1, device=device).sum().item()
    free, total = torch.cuda.mem_get_info()
    if little:
        torch.cuda.set_per_process_memory_fraction(1e9 * MEMORY_TARGET / total)
    crowd = CASES["quadruped"].crowd(Plan(device, steps=MEMORY_STEPS), MEMORY_WORLDS)
    torch.cuda.empty_cache()  # what it took to draw random numbers
    torch.cuda.reset_peak_memory_stats()
    sim = crowd.simulator()
    sim.compile(worlds=MEMORY_WORLDS)
    work = c.both(sim, crowd)
    work()
    torch.cuda.synchronize()
    peak, drop = torch.cuda.max_memory_allocated() / 1e9, (free - torch.cuda.mem_get_info()[0]) / 1e9
    began = perf_counter()
    work()
    torch.cuda.synchronize()
    return peak, drop, crowd.world_steps / (perf_counter() - began) / 1e6


# ---- the command line ---------------------------------------------------------------------------------------------------
MAKERS: dict[str, Callable[[Plan], Table]] = {
    "quadruped": quadruped,
    "policy": stepwise,
    "first": first_use,
    "memory": memory,
    "ant": partial(other, name="ant"),
    "humanoid": partial(other, name="humanoid"),
}


def setup(device: str) -> str:
    """The machine and the versions, as a Markdown list."""
    machine = f"CPU, one core, {cs.instruction_set()}"
    if device == "cuda":
        size = torch.cuda.get_device_properties(0).total_memory / 1e9
        machine = f"{torch.cuda.get_device_name()}, {size:.0f} GB, CUDA {torch.version.cuda}"
    peer = "" if warp.missing() else f", {warp.versions()}"
    return f"- {machine}\n- costate {cs.__version__}, torch {torch.__version__}{peer}; Python {python_version()}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Print tables as Markdown."""
    parser = argparse.ArgumentParser(prog="bench.cuda", description="costate on a GPU")
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(MAKERS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer worlds and steps, noisier numbers")
    parser.add_argument("--device", choices=tuple(SIZES), default="cuda")
    parser.add_argument("--worlds", type=int, nargs="+", default=(), help="default: 8192 and 65536; on the cpu 64")
    parser.add_argument("--seconds", type=float, help=f"of timing, for each row; default {SECONDS:g}, quick {QUICK_SECONDS:g}")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in MAKERS]
    if unknown:
        parser.error(f"no table named {unknown[0]!r}; there are {', '.join(MAKERS)}")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no CUDA device here; --device cpu runs the same on the processor")
    if args.child:
        memory = args.child in ("memory", "little-memory")
        print(*(measure_memory(args.device, little=args.child != "memory") if memory else measure_first(args.child, args.device)))
        return 0
    print(setup(args.device), flush=True)
    for table in tables(plan_for(args.device, quick=args.quick, worlds=args.worlds, seconds=args.seconds), args.names):
        print(table.markdown(), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
