"""Central differences along random directions, and every public function as one that maps named tensors to one vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

import costate as cs
from tests.gradients.scenes import normal, random_q

# Truncation falls with h^2 and round-off grows with 1/h: where they meet depends on the function, so all are tried.
STEP_SIZES = (1e-3, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7)
# Where a function does not depend on an input, differences are round-off of the size of the outputs themselves; a
# derivative smaller than this part of the output cannot be told from zero.
FLOOR = 1e-3

Tensors = dict[str, Tensor]
Function = Callable[[cs.Simulator, Tensors, "cs.Params | None"], Any]


class Call(NamedTuple):
    """A public function and the names of the inputs it takes; `params` says whether it has parameters."""

    run: Function
    inputs: tuple[str, ...]
    params: bool = True


def _step(sim: cs.Simulator, x: Tensors, params: cs.Params | None) -> Any:
    state, info = sim.step(cs.State(x["q"], x["v"]), x["control"], params, external=x["external"], dt=x["dt"], info=True)
    return *state, info.acceleration


def _rollout(sim: cs.Simulator, x: Tensors, params: cs.Params | None) -> Any:
    external, dt = x.get("external", x.get("externals")), x.get("dt", x.get("one_dt"))
    options = {"external": external, "dt": dt, "substeps": 2}
    return sim.rollout(cs.State(x["q"], x["v"]), x["controls"], params, **options).states


def _jacobian(sim: cs.Simulator, x: Tensors, params: cs.Params | None) -> Any:
    return cs.point_jacobian(sim.model, x["q"], sim.model.nb // 2, x["point"], params)


CALLS: Mapping[str, Call] = {
    "step": Call(_step, ("q", "v", "control", "external", "dt")),
    "rollout": Call(_rollout, ("q", "v", "controls", "external", "one_dt")),
    "rollout, wrench per step": Call(_rollout, ("q", "v", "controls", "externals", "dt")),
    "mass_matrix": Call(lambda sim, x, p: cs.mass_matrix(sim.model, x["q"], p), ("q",)),
    "inverse_dynamics": Call(
        lambda sim, x, p: cs.inverse_dynamics(sim.model, x["q"], x["v"], x["a"], p, external=x["external"]),
        ("q", "v", "a", "external"),
    ),
    "forward_dynamics": Call(
        lambda sim, x, p: cs.forward_dynamics(sim.model, x["q"], x["v"], x["tau"], p, external=x["external"]),
        ("q", "v", "tau", "external"),
    ),
    "kinematics": Call(lambda sim, x, p: cs.kinematics(sim.model, x["q"], x["v"], p), ("q", "v")),
    "point_jacobian": Call(_jacobian, ("q", "point")),
    "energy": Call(lambda sim, x, p: cs.energy(sim.model, x["q"], x["v"], p), ("q", "v")),
    "centre_of_mass": Call(lambda sim, x, p: cs.centre_of_mass(sim.model, x["q"], p), ("q",)),
    "momentum": Call(lambda sim, x, p: cs.momentum(sim.model, x["q"], x["v"], p), ("q", "v")),
    "integrate": Call(lambda sim, x, p: sim.model.integrate(x["q"], x["dq"]), ("q", "dq"), params=False),
    "difference": Call(lambda sim, x, p: sim.model.difference(x["q"], x["q2"]), ("q", "q2"), params=False),
}


def random_inputs(model: cs.Model, gen: torch.Generator, names: tuple[str, ...], worlds: int, steps: int = 3) -> Tensors:
    """A random tensor for each name; float64, one row per world."""
    nb, nv, nu = model.nb, model.nv, model.nu
    make: dict[str, Callable[[], Tensor]] = {
        "q": lambda: random_q(model, gen, worlds),
        "q2": lambda: random_q(model, gen, worlds),
        "v": lambda: normal(gen, worlds, nv),
        "dq": lambda: 0.5 * normal(gen, worlds, nv),
        "a": lambda: normal(gen, worlds, nv),
        "tau": lambda: normal(gen, worlds, nv),
        "control": lambda: normal(gen, worlds, nu),
        "controls": lambda: normal(gen, steps, worlds, nu),
        "external": lambda: normal(gen, worlds, nb, 6),
        "externals": lambda: normal(gen, steps, worlds, nb, 6),
        "dt": lambda: 0.01 + 0.002 * normal(gen, worlds).tanh(),
        "one_dt": lambda: torch.tensor(0.01, dtype=torch.float64),
        "point": lambda: normal(gen, worlds, 3),
    }
    return {name: make[name]() for name in names}


def flatten(out: Any) -> Tensor:
    """Every number of a tensor or a (nested) tuple of tensors in one vector."""
    return out.reshape(-1) if isinstance(out, Tensor) else torch.cat([flatten(part) for part in out])


def direction(model: cs.Model, gen: torch.Generator, name: str, x: Tensor) -> Tensor:
    """A random direction in the space of the input or field `name`; a massless body's zeros are not free to move."""
    d = normal(gen, *x.shape)
    if name in ("mass", "com", "inertia"):
        has_mass = ~torch.tensor(model.massless)
        d = d * (has_mass if name == "mass" else has_mass.unsqueeze(-1))
    if name in ("mass", "inertia", "dt", "one_dt"):  # stay physical: move by parts of the value
        d = d * x.detach().abs().clamp(min=1e-3)
    return d


def error_of_derivative(f: Callable[[Tensor], Tensor], x: Tensor, d: Tensor, w: Tensor) -> float:
    """Relative error of <grad (w . f), d> against the best central difference.

    f : tensor -> vector, differentiable. Relative to the size that a random direction of d's length makes likely.
    """
    leaf = x.detach().clone().requires_grad_()
    loss = w @ f(leaf)
    (grad,) = torch.autograd.grad(loss, leaf, allow_unused=True) if loss.requires_grad else (None,)
    grad = torch.zeros_like(x) if grad is None else grad
    exact = (grad * d).sum().item()
    likely = (grad.norm() * d.norm()).item() / max(d.numel(), 1) ** 0.5
    with torch.no_grad():
        y = f(x)
        scale = max(likely, abs(exact), FLOOR * (w.norm() * y.norm()).item() / len(y) ** 0.5)
        errors = [abs(exact - (w @ (f(x + h * d) - f(x - h * d))).item() / (2 * h)) for h in STEP_SIZES]
    return min(errors) / scale
