"""MuJoCo Warp beside costate: the worlds of a crowd in float32, the same robot, states and controls, on the same device.

It is measured where the package mujoco_warp can be imported; nothing else here needs it.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch

from bench import crowd as c
from bench.ours import neighbours
from bench.robots import Robot
from bench.tables import Table

Apart = tuple[tuple[str, str], ...]  # links that do not touch each other

ROOM = 64  # contacts of a world, before it is known how many there are; each has 4 rows
SPARE = (1.25, 2.0)  # times what was needed: no two runs on a GPU are the same to the last bit
TILE = 16  # rows that are handled together: a multiple of it is compiled for fewer sizes
QUOTED = "{words}. Quoted, the highest for that number of worlds, since MuJoCo Warp cannot be\nmeasured here ({why})"
MEASURED = """MuJoCo Warp in this run, in float32: the same robot, states, controls and device, a step captured in a
graph where there is a GPU. Copying the first states is part of the time; what costate does in addition is to keep all states.
Its contacts are those within a margin (0, for the ant 1 cm), costate's also those that may close in a step.
To compare: {words}"""

SLOW = "\nIt is made for GPUs: how fast it is on a CPU says nothing."


class Seen(NamedTuple):
    """What happens in a crowd: means are over all steps of all worlds."""

    contacts: float  # mean
    rows: float  # of constraints, mean: 4 of a contact, 1 of a limit that is exceeded
    iterations: float  # of the solver, mean
    most_contacts: int  # of all worlds together, in a step, or pairs that might touch, if those are more
    most_rows: int  # of a world
    most_iterations: int
    lost: int  # worlds that had more contacts or rows than there was room for
    diverged: int  # worlds with a state that is not finite


class Measured(NamedTuple):
    """How fast it is, what happens, with room for how many contacts and rows of a world, and the options, in words."""

    speed: float  # steps of all worlds per second
    seen: Seen
    room: tuple[float, int]
    options: str

    def words(self, worlds: int) -> str:
        """For the notes of a table."""
        seen, (contacts, rows) = self.seen, self.room
        mean = f"mean of a step: {seen.contacts:.1f} contacts, {seen.rows:.1f} rows, {seen.iterations:.1f} iterations"
        room = f"room for {contacts:.1f} contacts and {rows} rows in a world, none lost; {seen.diverged} worlds diverged."
        fast = f"{worlds:,} worlds of MuJoCo Warp: {self.speed / 1e6:.3g} M steps/s"
        return f"{fast}; {mean} (at most {seen.most_iterations});\n{room}"


# ---- for tables ---------------------------------------------------------------------------------------------------------
def told(quoted: str) -> str:
    """Whose numbers these are, in words: measured here, or `quoted` and why."""
    why = missing()
    return (QUOTED if why else MEASURED).format(words=quoted, why=why)


def speed(table: Table, crowd: c.Crowd, quoted: float | None, *, apart: Apart | None, seconds: float) -> float | None:
    """Steps per second on a crowd: measured, which the table's notes tell, or `quoted` where it is missing. None if it fails."""
    if missing():
        return quoted
    found, worlds = None, crowd.controls.shape[1]
    try:
        found = measure(crowd, apart=apart, seconds=seconds)
    except (RuntimeError, MemoryError) as error:
        lines = [f"{worlds:,} worlds of MuJoCo Warp failed: {str(error).splitlines()[0]}"]
    else:
        lines = [line for line in (found.options, found.words(worlds)) if line not in table.notes]
    table.notes = "\n".join((table.notes, *lines))
    print(lines[-1], file=sys.stderr, flush=True)  # a table takes minutes
    return found.speed if found else None


def missing() -> str:
    """Why MuJoCo Warp cannot be measured here; nothing where it can."""
    try:
        _packages()
        import_module("bench.in_mujoco")
    except (ImportError, OSError) as error:  # the latter of a library that cannot be loaded
        return str(error).splitlines()[0]
    return ""


def versions() -> str:
    """Of all that is measured."""
    mjw, wp = _packages()
    return f"MuJoCo Warp {mjw.__version__}, Warp {wp.__version__}, MuJoCo {import_module('mujoco').__version__}"


def mujoco_model(robot: Robot, dt: float, apart: Apart | None = None) -> Any:
    """As in the tables of the CPU. With `apart` links touch each other as in costate_model: all but those that follow each
    other and those that are named."""
    from bench import in_mujoco

    model = in_mujoco.mujoco_model(robot, dt=dt)
    if apart is not None:
        # every link has a bit, and the bits of those that it may touch: a compiled model takes no more exclusions
        without = {frozenset(pair) for pair in (*neighbours(robot), *apart)}
        names = ["world", *(link.name for link in robot.links if link.geoms)]
        for geom, body in enumerate(model.geom_bodyid):
            own = model.body(body).name
            others = [i for i, name in enumerate(names) if name != own and frozenset((name, own)) not in without]
            for of, at in (("geom", geom), ("body", body)):  # all geoms of a body have the same
                getattr(model, f"{of}_contype")[at] = 1 << names.index(own)
                getattr(model, f"{of}_conaffinity")[at] = sum(1 << i for i in others)
    return model


def measure(crowd: c.Crowd, *, apart: Apart | None = None, seconds: float) -> Measured:
    """The time of all steps from the start states, which are copied in every time; RuntimeError if contacts are lost.

    A look with more room than enough says how much is needed: room that stays empty takes time, too."""
    model, worlds = mujoco_model(crowd.robot, crowd.dt, apart), crowd.controls.shape[1]
    seen = Peer(crowd, model, contacts=ROOM * worlds, rows=4 * ROOM).look()
    for spare in () if seen.lost else SPARE:
        gc.collect()  # the memory of the one before
        rows = TILE * max(1, ceil(spare * seen.most_rows / TILE))
        peer = Peer(crowd, model, contacts=max(worlds, ceil(spare * seen.most_contacts)), rows=rows)
        spent = c.timed(peer.run, str(crowd.controls.device), seconds=seconds)
        seen = seen._replace(lost=peer.lost(), diverged=peer.diverged())
        if not seen.lost:
            return Measured(crowd.world_steps / spent, seen, (peer.data.naconmax / worlds, rows), peer.options())
    raise RuntimeError(f"{seen.lost} worlds had more contacts than there was room for")


class Peer:
    """The worlds of a crowd in MuJoCo Warp. There is room for contacts of all worlds together, and for rows of each."""

    def __init__(self, crowd: c.Crowd, model: Any, *, contacts: int, rows: int) -> None:
        self._mjw, self._wp = mjw, wp = _packages()
        q, v, controls = (x.to(torch.float32).contiguous() for x in (*crowd.start, crowd.controls))
        wp.set_device(str(q.device))
        self._start, self._controls = (wp.from_torch(q), wp.from_torch(v)), [wp.from_torch(u) for u in controls]
        self.model, self.data = mjw.put_model(model), mjw.make_data(model, nworld=len(q), naconmax=contacts, njmax=rows)
        self.model.opt.warn_overflow = 0  # no words: data.overflow keeps what happened
        self._graph: Any = None
        wp.synchronize()  # torch, on its own stream, has drawn the states
        self.reset()
        self.step(self._controls[0])  # compiles
        if wp.get_device().is_cuda:
            with wp.ScopedCapture() as capture:
                mjw.step(self.model, self.data)
            self._graph = capture.graph

    def reset(self) -> None:
        """To the start, with nothing known of the forces."""
        for to, given in zip((self.data.qpos, self.data.qvel), self._start, strict=True):
            self._wp.copy(to, given)
        self.data.qacc_warmstart.zero_()

    def step(self, controls: Any) -> None:
        """Of all worlds, with controls as warp has them."""
        self._wp.copy(self.data.ctrl, controls)
        if self._graph is None:
            self._mjw.step(self.model, self.data)
        else:
            self._wp.capture_launch(self._graph)

    def run(self) -> None:
        """All steps from the start."""
        self.reset()
        for controls in self._controls:
            self.step(controls)

    def look(self) -> Seen:
        """The same, with a look at every step."""
        self.reset()
        d, steps = self.data, []
        for controls in self._controls:
            self.step(controls)
            # on the CPU numpy() shows the memory itself, which has other numbers after the next step
            contacts, near = (int(x.numpy()[0]) for x in (d.nacon, d.ncollision))
            rows, iterations = d.nefc.numpy(), d.solver_niter.numpy()
            means = contacts / d.nworld, rows.mean(), iterations.mean()
            steps.append((*means, max(contacts, near), rows.max(), iterations.max()))
        contacts, rows, iterations = np.mean(steps, axis=0)[:3].tolist()
        most = [int(x) for x in np.max(steps, axis=0)[3:]]
        return Seen(contacts, rows, iterations, most[0], most[1], most[2], self.lost(), self.diverged())

    def lost(self) -> int:
        """Worlds that ever had more contacts or rows than there was room for."""
        kinds = self._mjw.OverflowType
        harmless = kinds.ITERATIONS | kinds.LS_ITERATIONS  # limits of the solver: nothing is lost
        return int(np.count_nonzero(self.data.overflow.numpy() & int(kinds.ALL & ~harmless)))

    def diverged(self) -> int:
        """Worlds whose state is not finite."""
        state = np.concatenate((self.data.qpos.numpy(), self.data.qvel.numpy()), axis=1)
        return int(np.count_nonzero(~np.isfinite(state).all(axis=1)))

    def options(self) -> str:
        """Those that matter, as they are in effect."""
        mjw, opt = self._mjw, self.model.opt
        kinds = ((mjw.SolverType, opt.solver), (mjw.IntegratorType, opt.integrator), (mjw.ConeType, opt.cone))
        solver, integrator, cone = (kind(value).name.lower() for kind, value in kinds)
        limits = f"{opt.iterations} iterations and {opt.ls_iterations} of its line search"
        told = f"""MuJoCo Warp has integrator {integrator}, solver {solver} with at most {limits}, tolerance
{opt.tolerance.numpy()[0]:.0e}, {cone} cones; everything else, too, is as MuJoCo has it by default: contacts are soft."""
        return told + SLOW * (self._graph is None)


def _packages() -> tuple[Any, Any]:
    """mujoco_warp and warp, which tells of no kernel that it loads."""
    mjw, wp = import_module("mujoco_warp"), import_module("warp")
    wp.config.log_level = wp.LOG_WARNING
    return mjw, wp
