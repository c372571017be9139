"""What the solver's options cost and give, on the standing quadruped and the ant; what a round starts with, on a humanoid
that lies; and what a step without contact costs."""

from __future__ import annotations

from dataclasses import replace

import torch

import costate as cs
from bench import crowd as c
from bench import gait as g
from bench import models as m
from bench.contact import DT, STEPS
from bench.cuda import CASES, MARGIN, Plan
from bench.tables import Table, us
from bench.timing import Work, interleaved
from bench.walkers import ant, standing_quadruped

WORLDS = 256
VARIANTS = (
    cs.PGS(),
    cs.PGS(form="dense"),
    cs.PGS(form="half-solved"),
    cs.PGS(form="alternating"),
    cs.PGS(iterations=5),
    cs.PGS(iterations=10),
    cs.PGS(iterations=50),
    cs.PGS(polish=1),
    cs.PGS(polish=3),
    cs.PGS(polish=6),
    cs.PGS(polish=24),
    cs.PGS(polish=0),
    cs.PGS(iterations=50, polish=0),
    cs.PGS(tolerance=1e-7),
    cs.PGS(cone="square"),
    cs.PGS(cone=8),
)
NOTES = f"""Microseconds per world and step, float64, {WORLDS} worlds, the walks of the tables above. Accurate: share of steps
with a natural residual under {g.ACCURATE:g} m/s. Backward is implicit, by the first state, the controls and all parameters."""
LYING, LYING_STEPS = 64, 20  # worlds
FORMS = ("alternating", "dense", "half-solved")  # the first one is the default of a humanoid
LYING_NOTES = f"""Microseconds per world and step, {LYING} worlds of {LYING_STEPS} steps of 5 ms. The humanoid of 27 dof fell
and lies, its links touch each other, it moves its motors; a margin of {1e3 * MARGIN:g} mm. Accurate: share of steps with a
natural residual under {c.UNSOLVED:g} m/s; converged: under the tolerance, 1e-5 m/s in float32 and 1e-10 m/s in float64. Backward
is implicit where a step converged, by the first state, the controls and all parameters."""
PARTS_NOTES = f"""Microseconds per world and step of the quadruped, float64, {WORLDS} worlds: what a step costs before there is
any contact, and what contact adds."""


def run(*, quick: bool) -> list[Table]:
    """A table per robot, one of rounds, and one of a step's parts."""
    return [*(_options(g.walk(robot, WORLDS, STEPS, dt=DT[robot.name]), quick=quick) for robot in (standing_quadruped(), ant())),
            _rounds(quick=quick), _parts(quick=quick)]  # fmt: skip


def _options(walk: g.Walk, *, quick: bool) -> Table:
    columns = ("solver", "step", "step and backward", "accurate", "converged", "largest residual, m/s")
    table = Table(f"Options of the solver, {walk.robot.name}", columns, notes=NOTES)
    works: dict[str, Work] = {}
    for solver in VARIANTS:
        sim = cs.Simulator(walk.model, walk.dt, solver=solver)
        works |= {f"step {solver}": g.forward(sim, walk), f"both {solver}": g.both(sim, walk)}
    spent = {name: seconds / walk.world_steps for name, seconds in interleaved(works, quick=quick).items()}
    for solver in VARIANTS:
        look = g.look(cs.Simulator(walk.model, walk.dt, solver=solver), walk)
        shares = (f"{look.accurate:.2%}", f"{look.converged:.2%}", f"{look.worst:.1e}")
        table.add(_name(solver), us(spent[f"step {solver}"]), us(spent[f"both {solver}"]), *shares)
    return table


def _name(solver: cs.PGS) -> str:
    """Only what differs from the default."""
    changed = {name: value for name, value in vars(solver).items() if value != getattr(cs.PGS(), name)}
    return ", ".join(f"{name} {value}" for name, value in changed.items()) or "default"


def _rounds(*, quick: bool) -> Table:
    columns = ("form", "precision", "step", "step and backward", "accurate", "converged", "largest residual, m/s")
    table = Table("What a round starts with, a humanoid that lies", columns, notes=LYING_NOTES)
    for dtype in (torch.float32, torch.float64):
        crowd = CASES["humanoid"].crowd(Plan("cpu", steps=LYING_STEPS), LYING, dtype)
        sims = {form: crowd.simulator(solver=cs.PGS(form=form)) for form in FORMS}
        works: dict[str, Work] = {f"step {form}": c.forward(sim, crowd) for form, sim in sims.items()}
        works |= {f"both {form}": c.both(sim, crowd) for form, sim in sims.items()}
        spent = {name: seconds / crowd.world_steps for name, seconds in interleaved(works, quick=quick).items()}
        for form, sim in sims.items():
            look, status = c.look(sim, crowd), sim.rollout(crowd.start, crowd.controls).status
            converged = 1 - status.unconverged.sum().item() / crowd.world_steps
            shares = f"{1 - look.unsolved:.2%}", f"{converged:.2%}", f"{look.worst:.1e}"
            table.add(form, str(dtype)[6:], us(spent[f"step {form}"]), us(spent[f"both {form}"]), *shares)
    return table


def _parts(*, quick: bool) -> Table:
    table = Table("Parts of a step", ("scene", "step", "step and backward"), notes=PARTS_NOTES)
    robot = standing_quadruped()
    bare = replace(robot, links=tuple(replace(link, geoms=()) for link in robot.links))
    walk = g.walk(robot, WORLDS, STEPS, dt=DT[robot.name])
    high = walk.q.copy()
    high[:, 2] += 10.0
    scenes = {
        "no feet, motors": replace(walk, model=m.costate_model(replace(bare, kp=0.0, kd=0.0)), q=high),
        "no feet, servos": replace(walk, model=m.costate_model(bare), q=high),
        "feet, high in the air": replace(walk, q=high),
        "on the ground": walk,
    }
    works: dict[str, Work] = {}
    for name, scene in scenes.items():
        sim = cs.Simulator(scene.model, scene.dt)
        works |= {f"step {name}": g.forward(sim, scene), f"both {name}": g.both(sim, scene)}
    spent = {name: seconds / walk.world_steps for name, seconds in interleaved(works, quick=quick).items()}
    for name in scenes:
        table.add(name, us(spent[f"step {name}"]), us(spent[f"both {name}"]))
    return table
