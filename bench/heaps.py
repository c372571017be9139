"""Heaps of boxes above a plane: the same ones for costate and, as MJCF, for MuJoCo; and what is in a pile after they fell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
import torch

import costate as cs
from bench.timing import Work
from costate._native.cpu import Engine

DT, FRICTION, DENSITY = 0.01, 0.6, 500.0  # s, -, kg/m^3
HALF = (0.04, 0.06)  # m, between which half the lengths of boxes are
LAYERS, APART, ABOVE, JITTER = 2.5, 0.15, 0.16, 0.02  # m; layers of a heap as wide as high
SETTLE = 150  # steps before anything is measured


@dataclass(frozen=True)
class Heap:
    """Boxes in the air: halves of their lengths [n, 3] m, and their first q [worlds, 7 n]."""

    half: np.ndarray
    q: np.ndarray

    def __len__(self) -> int:
        return len(self.half)


def heap(n: int, worlds: int = 1, seed: int = 0) -> Heap:
    """n boxes turned at random, in layers; all worlds have the same boxes, each its own places."""
    rng = np.random.default_rng(seed)
    half, side = rng.uniform(*HALF, (n, 3)), ceil((n / LAYERS) ** (1 / 3))
    layer, place = np.divmod(np.arange(n), side * side)
    grid = np.stack((APART * (place // side - side / 2), APART * (place % side - side / 2), 0.1 + ABOVE * layer), -1)
    pos = grid + rng.uniform(-JITTER, JITTER, (worlds, n, 3))
    quat = rng.normal(size=(worlds, n, 4))
    quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
    return Heap(half, np.concatenate((pos, quat), -1).reshape(worlds, -1))


def costate_model(given: Heap) -> cs.Model:
    """Free boxes and the ground."""
    scene = cs.Scene()
    scene.add_ground(friction=FRICTION)
    for half in given.half:
        scene.add_body(joint=cs.Free(), shapes=cs.Box(tuple(half), density=DENSITY, friction=FRICTION))
    return scene.build()


def mujoco_model(given: Heap, solver: str) -> mujoco.MjModel:
    """The same as MJCF; everything that is not said has MuJoCo's default."""
    friction = f'friction="{FRICTION} 0 0"'
    boxes = (f'<geom type="box" size="{_text(half)}" density="{DENSITY}" {friction}/>' for half in given.half)
    bodies = "".join(f"<body><freejoint/>{box}</body>" for box in boxes)
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}" solver="{solver}"/><size memory="2G"/>'
        f'<worldbody><geom type="plane" size="1 1 1" {friction}/>{bodies}</worldbody></mujoco>'
    )


def _text(numbers: Iterable[float]) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)


@dataclass(frozen=True)
class Pile:
    """What lies there, per world: contacts, those that push, deepest and mean penetration of these (m), residual (m/s)."""

    contacts: float
    pushing: float
    deepest: float
    mean: float
    residual: float | None = None


def in_lanes(given: Heap) -> cs.Simulator:
    """Of the same worlds, several of which share an instruction."""
    model = costate_model(given)
    model.__dict__["engine"] = Engine(model, one_group=0)
    return cs.Simulator(model, DT)


def settle(sim: cs.Simulator, given: Heap) -> cs.State:
    """Let it fall: with sweeps alone, which saves minutes where there are many worlds."""
    q = torch.tensor(given.q)
    return cs.Simulator(sim.model, DT, solver=cs.PGS(polish=0)).rollout(
        cs.State(q, q.new_zeros(len(q), sim.model.nv)), steps=SETTLE
    )[-1]


def look(sim: cs.Simulator, state: cs.State) -> Pile:
    """One step of costate."""
    _, info = sim.step(state, info=True)
    c = info.contacts
    push = c.active & (c.impulse.norm(dim=-1) > 0)
    depth = (-c.gap[push]).clamp(min=0)
    residual = float(info.status.residual.max())
    worlds = len(state.q)
    return Pile(float(c.active.sum()) / worlds, float(push.sum()) / worlds, float(depth.max()), float(depth.mean()), residual)


def forward(sim: cs.Simulator, state: cs.State, steps: int) -> Work:
    """A rollout."""

    def work() -> None:
        with torch.no_grad():
            sim.rollout(state, steps=steps)

    return work


def both(sim: cs.Simulator, state: cs.State, steps: int) -> Work:
    """A rollout and the gradient of all its states by the first one and all parameters."""
    q, v = (x.clone().requires_grad_() for x in state)
    params = sim.model.params(requires_grad=True)
    wanted = [x for x in (q, v, *params.leaves()) if x.numel()]

    def work() -> tuple[Any, ...]:
        traj = sim.rollout(cs.State(q, v), params=params, steps=steps)
        return torch.autograd.grad((traj.q, traj.v), wanted, (traj.q.detach(), traj.v.detach()), allow_unused=True)

    assert all(g is None or torch.isfinite(g).all() for g in work()), "a gradient of a pile is not finite"
    return work


class Peer:
    """The heap in MuJoCo, fallen. It falls with the CG solver, which finds the same forces and takes large piles sooner."""

    def __init__(self, given: Heap) -> None:
        model = mujoco_model(given, "CG")
        data, self.given = mujoco.MjData(model), given
        kind, warm = mujoco.mjtState.mjSTATE_FULLPHYSICS, mujoco.mjtState.mjSTATE_WARMSTART
        self.state = np.empty((len(given.q), mujoco.mj_stateSize(model, kind)))
        self.warm = np.empty((len(given.q), mujoco.mj_stateSize(model, warm)))
        for w, q in enumerate(given.q):
            mujoco.mj_resetData(model, data)
            data.qpos[:] = q
            mujoco.mj_step(model, data, SETTLE)
            mujoco.mj_getState(model, data, self.state[w], kind)
            mujoco.mj_getState(model, data, self.warm[w], warm)

    def work(self, solver: str, steps: int) -> Work:
        """mujoco.rollout of all worlds on the calling thread, everything allocated before."""
        model = mujoco_model(self.given, solver)
        worlds = len(self.state)
        models, data = [model] * worlds, [mujoco.MjData(model)]
        state, sensors = np.empty((worlds, steps, self.state.shape[1])), np.empty((worlds, steps, 0))
        controls, runner = np.empty((worlds, steps, 0)), mujoco.rollout.Rollout(nthread=0)
        options: dict[str, Any] = {"skip_checks": True, "nstep": steps, "state": state, "sensordata": sensors}
        return lambda: runner.rollout(models, data, self.state, controls, initial_warmstart=self.warm, **options)

    def look(self) -> Pile:
        """Its contacts, over all worlds."""
        model = mujoco_model(self.given, "CG")
        data, kind = mujoco.MjData(model), mujoco.mjtState.mjSTATE_FULLPHYSICS
        total, push, depth = 0, 0, []
        for state, warm in zip(self.state, self.warm, strict=True):
            mujoco.mj_setState(model, data, state, kind)
            data.qacc_warmstart[:] = warm
            mujoco.mj_forward(model, data)
            total += data.ncon
            normal = np.array([_normal_force(model, data, i) for i in range(data.ncon)])
            push += int((normal > 0).sum())
            depth.append(-data.contact.dist[normal > 0])
        depths = np.concatenate(depth).clip(min=0)
        return Pile(total / len(self.state), push / len(self.state), float(depths.max()), float(depths.mean()))


def _normal_force(model: mujoco.MjModel, data: mujoco.MjData, contact: int) -> float:
    force = np.empty(6)
    mujoco.mj_contactForce(model, data, contact, force)
    return float(force[0])
