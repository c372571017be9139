"""One world on the ground, alone: in a control loop against mj_step, with its gradient, and with ten robots in it."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

import costate as cs
from bench import gait as g
from bench import models as m
from bench.robots import Robot
from bench.tables import Table, times, us
from bench.timing import Work, interleaved
from bench.walkers import ant, many, standing_quadruped

DT = 0.005
WALKS, STEPS = 4, 100  # of so many worlds, one after the other
LONG = 500  # steps of a rollout with gradient
BACKWARD_TARGET, ROBOTS, ROBOTS_TARGET = 4.0, 10, 12.0
NOTES = f"""Microseconds per step. The robots of the tables above, {WALKS} worlds one after the other, {STEPS} steps each.
`sim.step` with numpy arrays and `mj_step` are called once per step with a new control (MuJoCo's default contacts). Inside:
without the price of calling, one call of the engine; for MuJoCo `mujoco.rollout` of one world."""
GRADIENT_NOTES = f"""Microseconds per step of rollouts of {LONG} steps of one world through torch; backward is by the first state,
the controls and all parameters. One step: `sim.step` of torch tensors, and its vector-Jacobian product."""
TEN_NOTES = f"""Microseconds per world and step, rollouts of {LONG} steps. Paper C's own code: backward 23 times one robot."""


def run(*, quick: bool) -> list[Table]:
    """A table of control loops, one of gradients, one of ten robots."""
    return [_loops(quick=quick), _gradients(quick=quick), _ten(quick=quick)]


def _loops(*, quick: bool) -> Table:
    columns = ("robot", "sim.step", "inside", "mj_step", "mj_step inside", "mj_step inside / sim.step")
    table = Table("One world on the ground, one step at a time, float64", columns, notes=NOTES)
    for robot in (standing_quadruped(), ant()):
        walk = g.walk(robot, WALKS, STEPS, dt=DT)
        works = {"ours": _ours(walk), "native": _native(walk), "theirs": _theirs(walk)}
        works["inside"] = g.mujoco_rollout(walk, m.mujoco_model(robot, dt=DT))
        spent = {name: seconds / walk.world_steps for name, seconds in interleaved(works, quick=quick).items()}
        ratio = spent["inside"] / spent["ours"]
        table.add(robot.name, *(us(spent[name]) for name in works), times(ratio))
        if robot.kp:
            what = f"{robot.name}: sim.step no slower than mj_step: {us(spent['ours'])} us against {us(spent['inside'])} us"
            table.target(what, ratio >= 1)
            peer = f"MuJoCo mj_step: {us(spent['inside'])} us"
            table.summary.append(
                ("one step of one world on the ground, from Python", f"{us(spent['ours'])} us", peer, times(ratio))
            )
    return table


def _ours(walk: g.Walk) -> Work:
    sim = cs.Simulator(walk.model, walk.dt)
    starts = [cs.State(q, v) for q, v in zip(walk.q, walk.v, strict=True)]
    controls = [list(walk.controls[:, w]) for w in range(WALKS)]

    def work() -> None:
        for state, inputs in zip(starts, controls, strict=True):
            for control in inputs:
                state = sim.step(state, control)

    return work


def _native(walk: g.Walk) -> Work:
    """The same steps inside native calls of one world, with everything prepared."""
    model = walk.model
    theta, h, options = model.params().flat().numpy(), np.array([walk.dt]), cs.Simulator(model, walk.dt).options
    q, v, finite = np.empty((STEPS, 1, model.nq)), np.empty((STEPS, 1, model.nv)), np.empty((1, 1), np.int32)
    controls = [np.ascontiguousarray(walk.controls[:, w : w + 1]) for w in range(WALKS)]
    rollout = model.engine.tree.rollout

    def work() -> None:
        for w in range(WALKS):
            rollout(1, STEPS, 1, walk.q[w : w + 1], walk.v[w : w + 1], controls[w], h, None, theta, q, v, finite, options)

    return work


def _theirs(walk: g.Walk) -> Work:
    mj = m.mujoco_model(walk.robot, dt=walk.dt)
    data, step = mujoco.MjData(mj), mujoco.mj_step
    ctrl = data.ctrl
    controls = [list(walk.controls[:, w]) for w in range(WALKS)]

    def work() -> None:
        for w in range(WALKS):
            data.qpos[:], data.qvel[:] = walk.q[w], walk.v[w]
            for control in controls[w]:
                ctrl[:] = control
                step(mj, data)

    return work


def _gradients(*, quick: bool) -> Table:
    columns = ("robot", "step", "backward", 'backward, gradient="exact"', "backward / step", "one step in torch", "its backward")
    table = Table("One world on the ground with its gradient, float64", columns, notes=GRADIENT_NOTES)
    for robot in (standing_quadruped(), ant()):
        walk = g.walk(robot, 1, LONG, dt=DT)
        sim, exact = cs.Simulator(walk.model, DT), cs.Simulator(walk.model, DT, gradient="exact")
        works = {"step": g.forward(sim, walk), "backward": g.backward(sim, walk), "exact": g.backward(exact, walk)}
        spent = {name: seconds / LONG for name, seconds in interleaved(works, quick=quick).items()}
        ratio = spent["backward"] / spent["step"]
        single = interleaved(_single(sim, walk), quick=quick)
        alone, pulled = single["step"], single["both"] - single["step"]
        table.add(robot.name, *(us(x) for x in spent.values()), times(ratio), us(alone), us(pulled))
        if robot.kp:
            what = f"{robot.name}: backward at most {BACKWARD_TARGET:g} times the step: {ratio:.2f}"
            table.target(what, ratio <= BACKWARD_TARGET)
    return table


def _single(sim: cs.Simulator, walk: g.Walk) -> dict[str, Work]:
    """sim.step of torch tensors that require grad, and with its vector-Jacobian product."""
    state, controls, params = g.leaves(sim, walk)
    control = controls.detach()[0].requires_grad_()
    wanted = [*state, control, *(t for t in params.leaves() if t.numel())]
    bars = [torch.ones_like(x) for x in state]

    def both() -> object:
        return torch.autograd.grad(tuple(sim.step(state, control, params)), wanted, bars, allow_unused=True)

    return {"step": lambda: sim.step(state, control, params), "both": both}


def _ten(*, quick: bool) -> Table:
    columns = ("worlds", "what", "one robot", f"{ROBOTS} robots", "ratio")
    table = Table(f"{ROBOTS} quadrupeds in one world, float64", columns, notes=TEN_NOTES)
    one, ten = standing_quadruped(), many(standing_quadruped(), ROBOTS)
    for worlds in (1, 16):
        works: dict[str, Work] = {}
        for name, robot in (("one", one), ("ten", ten)):
            works |= _walks(name, robot, worlds)
        spent = {name: seconds / (WALKS * worlds * LONG) for name, seconds in interleaved(works, quick=quick).items()}
        for what in ("step", "backward"):
            single, all_ = spent[f"{what} one"], spent[f"{what} ten"]
            table.add(worlds, what, us(single), us(all_), times(all_ / single))
            text = f"{what} of {worlds} world{'s' * (worlds > 1)}: within {ROBOTS_TARGET:g} times one robot: {all_ / single:.1f}"
            table.target(text, all_ / single <= ROBOTS_TARGET)
    return table


def _walks(name: str, robot: Robot, worlds: int) -> dict[str, Work]:
    """WALKS rollouts one after the other: how a single robot happens to walk must not decide."""
    steps, backs = [], []
    for seed in range(WALKS):
        walk = g.walk(robot, worlds, LONG, dt=DT, seed=seed)
        sim = cs.Simulator(walk.model, DT)
        steps.append(g.forward(sim, walk))
        backs.append(g.backward(sim, walk))
    return {f"step {name}": lambda: [work() for work in steps], f"backward {name}": lambda: [work() for work in backs]}
