"""Measures memory in a process of its own; run by test_memory.py. Prints bytes: what was measured, and what it may be."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import torch

import costate as cs
from tests.gradients.scenes import generator, normal, quadruped
from tests.gradients.shape_scenes import heap

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def size(*tensors: torch.Tensor) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)


def backward_of_rollout(sim: cs.Simulator, params: cs.Params, steps: int) -> tuple[int, int]:
    """Peak growth of resident memory over a rollout and its backward pass, and the size of inputs and outputs within it."""
    model, gen = sim.model, generator()
    q, v = torch.tensor(model.q0).requires_grad_(), normal(gen, model.nv).requires_grad_()
    controls = normal(gen, steps, model.nu).requires_grad_()
    # the loss is linear, its weights are made before: what a user's loss needs is not the engine's memory
    weights = normal(gen, steps + 1, model.nq), normal(gen, steps + 1, model.nv)
    gc.collect()
    CLEAR.write_text("5")  # the peak starts again from here
    before = status("VmRSS")
    traj = sim.rollout(cs.State(q, v), controls, params)
    torch.autograd.backward([traj.q, traj.v], weights)
    growth = status("VmHWM") - before
    assert controls.grad is not None and q.grad is not None and v.grad is not None
    assert not traj.diverged.any() and torch.isfinite(controls.grad).all() and controls.grad.any()
    return growth, size(traj.q, traj.v, controls.grad, q.grad, v.grad, *(x.grad for x in params.leaves() if x.grad is not None))


def rollout(steps: int) -> None:
    of_model(quadruped().build(), steps, steps // 50)


def pile(steps: int) -> None:
    """The same for 70 bodies, whose sweeps are kept for the adjoint of one step at a time."""
    of_model(heap(), steps, steps // 10)


def of_model(model: cs.Model, steps: int, before: int) -> None:
    torch.set_num_threads(1)  # whole pools of threads are not what is measured
    sim, params = cs.Simulator(model, dt=0.002), model.params(requires_grad=True)
    for _ in range(3):  # loads libraries, makes the engine and its scratch
        backward_of_rollout(sim, params, before)
    growth, outputs = backward_of_rollout(sim, params, steps)
    print(growth, outputs)


def repeat(count: int) -> None:
    """Resident memory after `count` steps with gradients of 256 worlds, above that after a few."""
    model = quadruped().build()
    sim, params, gen = cs.Simulator(model), model.params(requires_grad=True), generator()
    q = torch.tensor(model.q0).expand(256, -1).clone().requires_grad_()
    v, u = normal(gen, 256, model.nv), normal(gen, 256, model.nu)
    after = []
    for i in range(10 + count):
        state = sim.step(cs.State(q, v), u, params)
        (state.q.sum() + state.v.sum() + cs.energy(model, state.q, state.v, params)[0].sum()).backward()
        q.grad = None
        if i in (9, 9 + count):
            gc.collect()
            after.append(status("VmRSS"))
    print(after[1] - after[0], 0)


if __name__ == "__main__":
    {"rollout": rollout, "pile": pile, "repeat": repeat}[sys.argv[1]](int(sys.argv[2]))
