"""Worlds that stand and step: random states and controls for the robots of walkers.py, and a look at what happens in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

import costate as cs
from bench.ours import costate_model
from bench.robots import Robot
from bench.timing import Work

if TYPE_CHECKING:  # imported where it is used: walks also run on machines without it
    import mujoco

BURN_IN = 100  # steps before the clock starts: by then the worlds are in the middle of something
ACCURATE = 1e-6  # m/s, natural residual that counts as solved
HOLD, POWER = 5, 0.2  # steps that an ant's random control is held, and the largest: with more it is in the air most of the time
NOISE = 0.03  # rad, of a servo's target, new in every step


@dataclass(frozen=True)
class Walk:
    """Start states [worlds, n] after the burn-in and controls [steps, worlds, nu], both random, and how long a step is (s)."""

    robot: Robot
    model: cs.Model
    dt: float
    q: np.ndarray
    v: np.ndarray
    controls: np.ndarray

    @property
    def world_steps(self) -> int:
        """Steps of all worlds together."""
        return self.controls.shape[0] * self.controls.shape[1]

    def torch(self, dtype: torch.dtype = torch.float64) -> tuple[cs.State, torch.Tensor]:
        """State and controls as torch tensors."""
        q, v, u = (torch.tensor(x, dtype=dtype) for x in (self.q, self.v, self.controls))
        return cs.State(q, v), u


def walk(robot: Robot, worlds: int, steps: int, *, dt: float, seed: int = 0) -> Walk:
    """Random states around the stance, random controls, and BURN_IN steps of them behind us."""
    rng = np.random.default_rng(seed)
    model = costate_model(robot)
    controls = (_gait if robot.kp else _thrash)(robot, worlds, BURN_IN + steps, dt, rng)
    q, v = _start(robot, worlds, rng)
    traj = cs.Simulator(model, dt).rollout(cs.State(q, v), torch.tensor(controls[:BURN_IN]))
    assert not traj.diverged.any(), f"{robot.name}: a world diverged"
    return Walk(robot, model, dt, np.asarray(traj.q[-1]), np.asarray(traj.v[-1]), controls[BURN_IN:])


def _start(robot: Robot, worlds: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bases within 1 cm and a few degrees of upright, at 0.1 m/s and rad/s; hinges within 0.1 rad of the stance, at 0.3 rad/s."""
    q, hinge = [], 0
    for link in robot.links:
        if link.joint == "free":
            axis = rng.normal(size=(worlds, 3)) * 0.03
            quat = np.concatenate((np.ones((worlds, 1)), axis / 2), axis=1)
            q += [np.array(link.pos) + rng.uniform(-0.01, 0.01, (worlds, 3)), quat / np.linalg.norm(quat, axis=1, keepdims=True)]
        else:
            q.append(robot.stance[hinge] + rng.uniform(-0.1, 0.1, (worlds, 1)))
            hinge += 1
    scale = [s for link in robot.links for s in ([0.1] * 6 if link.joint == "free" else [0.3])]
    return np.concatenate(q, axis=1), scale * rng.normal(size=(worlds, robot.nv))


def _gait(robot: Robot, worlds: int, steps: int, dt: float, rng: np.random.Generator) -> np.ndarray:
    """Servo targets of a trot in place, each robot with its own height (from 0: standing), pace and phase, and noise."""
    height, pace, phase = (rng.uniform(*span, (worlds, robot.bases)) for span in ((0.0, 0.15), (1.5, 2.5), (0.0, 1.0)))
    clock = phase + pace * dt * np.arange(steps)[:, None, None]
    # legs 0 and 3 of a robot stand crosswise, and so do 1 and 2
    lift = height[..., None] * np.maximum(0.0, np.sin(2 * np.pi * (clock[..., None] + np.array((0.0, 0.5, 0.5, 0.0)))))
    out = np.tile(np.array(robot.stance), (steps, worlds, 1)) + NOISE * rng.normal(size=(steps, worlds, robot.nu))
    legs = out.reshape(steps, worlds, robot.bases, 4, 3)
    legs[..., 1] += lift
    legs[..., 2] -= 2 * lift
    return out


def _thrash(robot: Robot, worlds: int, steps: int, dt: float, rng: np.random.Generator) -> np.ndarray:
    """Motors anywhere up to POWER backwards or forwards, a new choice every HOLD steps."""
    choices = rng.uniform(-POWER, POWER, (-(-steps // HOLD), worlds, robot.nu))
    return np.repeat(choices, HOLD, axis=0)[:steps]


class Look(NamedTuple):
    """What happens in a walk: shares of steps, and means over steps."""

    accurate: float  # share of steps with a natural residual under ACCURATE
    converged: float  # share of steps under the solver's own tolerance
    worst: float  # m/s, the largest residual
    contacts: float  # contacts with rows
    pushing: float  # contacts with an impulse
    sliding: float  # contacts that slide
    lowest: float  # m, lowest base at the end of the walk
    highest: float


def look(sim: cs.Simulator, walk: Walk) -> Look:
    """Run it, and every step of it once more as a world of its own, with a look inside."""
    state, controls = walk.torch(sim.dtype)
    with torch.no_grad():
        traj = sim.rollout(state, controls)
        assert not traj.diverged.any(), f"{walk.robot.name}: a world diverged"
        before = cs.State(traj.q[:-1].flatten(0, 1), traj.v[:-1].flatten(0, 1))
        info = sim.step(before, controls.flatten(0, 1), info=True)[1]
    residual, kind = info.status.residual, info.contacts.state
    heights = traj.q[-1, :, 2]
    n = walk.world_steps
    return Look(
        float((residual < ACCURATE).double().mean()), float(info.status.converged.double().mean()), float(residual.max()),
        float((kind > 0).sum()) / n, float((kind > 1).sum()) / n, float((kind == 3).sum()) / n,
        float(heights.min()), float(heights.max()),
    )  # fmt: skip


def forward(sim: cs.Simulator, walk: Walk) -> Work:
    """A rollout without gradient."""
    state, controls = walk.torch(sim.dtype)

    def work() -> None:
        with torch.no_grad():
            sim.rollout(state, controls)

    return work


def leaves(sim: cs.Simulator, walk: Walk, *, own: bool = False) -> tuple[cs.State, torch.Tensor, cs.Params]:
    """State, controls and all parameters, that require grad; own: every world has its own parameters."""
    state, controls = walk.torch(sim.dtype)
    params = sim.model.params(dtype=sim.dtype, requires_grad=not own)
    if own:
        params = params.expand(len(state.q)).detach(requires_grad=True)
    return cs.State(state.q.requires_grad_(), state.v.requires_grad_()), controls.requires_grad_(), params


def both(sim: cs.Simulator, walk: Walk, *, own: bool = False) -> Work:
    """A rollout and the gradient of all its states by the first one, the controls and all parameters."""
    state, controls, params = leaves(sim, walk, own=own)
    wanted = [*state, controls, *(t for t in params.leaves() if t.numel())]
    with torch.no_grad():
        traj = sim.rollout(state, controls)
        bars = [torch.ones_like(x) for x in (traj.q, traj.v)]

    def work() -> tuple[Any, ...]:
        traj = sim.rollout(state, controls, params)
        return torch.autograd.grad((traj.q, traj.v), wanted, bars, allow_unused=True)

    gradients = work()
    assert all(g is None or torch.isfinite(g).all() for g in gradients), f"{walk.robot.name}: a gradient is not finite"
    return work


def backward(sim: cs.Simulator, walk: Walk) -> Work:
    """The gradient alone, of a rollout that was made before."""
    state, controls, params = leaves(sim, walk)
    wanted = [*state, controls, *(t for t in params.leaves() if t.numel())]
    traj = sim.rollout(state, controls, params)
    bars = [torch.ones_like(x) for x in (traj.q, traj.v)]
    return lambda: torch.autograd.grad((traj.q, traj.v), wanted, bars, retain_graph=True, allow_unused=True)


def mujoco_states(walk: Walk, model: mujoco.MjModel) -> np.ndarray:
    """The start of every world as mujoco.rollout takes it: time, qpos, qvel."""
    import mujoco

    states = np.concatenate((np.zeros((len(walk.q), 1)), walk.q, walk.v), axis=1)
    assert states.shape[1] == mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    return states


def mujoco_rollout(walk: Walk, model: mujoco.MjModel) -> Work:
    """The same worlds and controls in mujoco.rollout, on the calling thread, everything allocated before."""
    import mujoco
    import mujoco.rollout

    start, controls = mujoco_states(walk, model), np.ascontiguousarray(walk.controls.swapaxes(0, 1))
    worlds, steps = controls.shape[:2]
    models, data = [model] * worlds, [mujoco.MjData(model)]
    state, sensors = np.empty((worlds, steps, start.shape[1])), np.empty((worlds, steps, 0))
    runner = mujoco.rollout.Rollout(nthread=0)
    options: dict[str, Any] = {"skip_checks": True, "nstep": steps, "state": state, "sensordata": sensors}
    return lambda: runner.rollout(models, data, start, controls, **options)


def mujoco_contacts(walk: Walk, model: mujoco.MjModel, worlds: int = 16) -> float:
    """Contacts per step in a few of the worlds."""
    import mujoco

    data, total = mujoco.MjData(model), 0
    for w in range(worlds):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = walk.q[w], walk.v[w]
        for control in walk.controls[:, w]:
            data.ctrl[:] = control
            mujoco.mj_step(model, data)
            total += data.ncon
    return total / (worlds * len(walk.controls))


def mujoco_heights(walk: Walk, model: mujoco.MjModel) -> np.ndarray:
    """Of the bases at the end of the walk [worlds], m."""
    work = mujoco_rollout(walk, model)
    return np.asarray(work()[0])[:, -1, 3]  # type: ignore[index]
