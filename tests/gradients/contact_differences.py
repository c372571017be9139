"""Derivatives of steps with contacts against extrapolated central differences, world by world; kinks are found and named.

A difference counts only where both of its sides are on the smooth piece that the step is on: same contacts, same states of
contacts and rows, same branches of targets and limits. Several step sizes are extrapolated to zero (Ridders 1982) and the limit
in the smallest doubt is taken; the doubt does not look at the derivative under test. Where the smallest steps still leave the
smooth piece, the case is a kink.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

import costate as cs
from tests.gradients.contact_scenes import BALL, Worlds, step_with_info, without_effect
from tests.gradients.scenes import generator, normal

# Step sizes as parts of each input's own scale: the first still has few kinks, the last few digits
LEVELS, FIRST, RATIO = 6, 1e-3, 4.0
# How much an input may change by: m and rad, m/s, N ... Parameters that are not named change by parts of their values.
SCALES = {
    "q": 0.05, "v": 0.5, "control": 0.3, "external": 1.0, "gravity": 1.0, "com": 0.02, "joint_pos": 0.02, "joint_anchor": 0.02,
    "joint_axis": 0.1, "joint_quat": 0.1, "rest": 0.1, "shape_pos": 0.02, "shape_quat": 0.1, "limit_lower": 0.1,
    "limit_upper": 0.1, "hull_vertex": 0.02, "height": 0.02,
}  # fmt: skip
PART = 0.3
# Errors are relative to the derivative, or to this part of what a step changes at all: a solve that stops at its tolerance
# (1e-10 m/s) has a derivative of its own below that.
FLOOR = 3e-3
# A difference in more doubt than this says nothing.
DOUBT = 1e-5
UNDECIDED = "differences disagree: only softness of 1e-9 decides which rows bear a load"
# m/s, ten times the solver's tolerance: closer to its switch no state of a contact or row is certain. Where many rows hold a body
# that fewer could hold, some of them have speeds like that.
SWITCH = 1e-9
UNCERTAIN = "a state is not certain within the solver's tolerance"
ROUNDING = 1e-16  # of a sum of outputs, relative to its terms; the least that a step has of its own, which is measured
# Steps so small that only noise is left of f(h) + f(-h) - 2 f(0): a solve multiplies rounding by its condition number
TINY = (1e-9, 2e-9, 3e-9)

MOTOR = 0  # code of actuators

Tensors = dict[str, Tensor]
Function = Callable[[cs.Simulator, Tensors, cs.Params], tuple[Tensors, Tensors]]  # outputs, and their branches


class Case(NamedTuple):
    """One derivative: of a weighted output of one world along a direction of one input."""

    scene: str
    world: int
    mode: str
    input: str
    output: str
    exact: float  # from the adjoint
    difference: float
    doubt: float  # of the difference, relative like the error
    error: float  # relative
    kink: str  # its name, or nothing


def distances(model: cs.Model, q: Tensor, params: cs.Params) -> Tensor:
    """[..., limits] how far limited joints are from their nearer limit."""
    found = [q.new_zeros(*q.shape[:-1], 0)]
    for i, body in enumerate(model.limit_body):
        x, upper = q[..., model.q_address[body] :], params["limit_upper"][..., i]
        if model.joint_type[body] == BALL:
            distance = upper - 2 * torch.atan2(x[..., 1:4].norm(dim=-1), x[..., 0].abs())
        else:
            distance = torch.minimum(upper - x[..., 0], x[..., 0] - params["limit_lower"][..., i])
        found.append(distance.unsqueeze(-1))
    return torch.cat(found, -1)


def clipped(model: cs.Model, control: Tensor, params: cs.Params) -> Tensor:
    """[..., n] on which side of its limits each control, and each motor's force, is."""
    found = [control.new_zeros(*control.shape[:-1], 0)]
    for word, places in (("control", model.clip), ("force", model.bound)):
        for motor, i in enumerate(places):
            if i >= 0 and (word == "control" or model.actuator_type[motor] == MOTOR):
                lower, upper = params[f"{word}_lower"][..., i], params[f"{word}_upper"][..., i]
                found.append(((control[..., motor] > lower).long() + (control[..., motor] > upper).long()).unsqueeze(-1))
    return torch.cat(found, -1)


def branches(sim: cs.Simulator, x: Tensors, params: cs.Params, info: cs.Info) -> Tensors:
    """[..., n] numbers that are constant on a smooth piece of the step, by the name of the kink where they change."""
    contacts, model, dt = info.contacts, sim.model, x["dt"].unsqueeze(-1)
    gaps = torch.cat((torch.where(contacts.active, contacts.gap, 1.0), distances(model, x["q"], params)), -1)
    fast = sim.contact.recovery * gaps / dt < -sim.contact.push_speed
    return {
        "a contact comes or goes": contacts.candidate,
        "a contact changes its state": contacts.state,
        "a row changes its state": info.rows.state,
        "a gap closes": gaps < 0,
        "a gap is pushed open at full speed": fast,
        "a control reaches its limit": clipped(model, x["control"], params),
    }


def step(sim: cs.Simulator, x: Tensors, params: cs.Params) -> tuple[Tensors, Tensors]:
    """Outputs [..., n] of one step by name, and its branches."""
    state, info = step_with_info(sim, x, params)
    outputs = {"q": state.q, "v": state.v, "acceleration": info.acceleration, "impulse": info.contacts.impulse.flatten(-2)}
    return outputs, branches(sim, x, params, info)


def rollout(sim: cs.Simulator, x: Tensors, params: cs.Params, steps: int = 20) -> tuple[Tensors, Tensors]:
    """The same for the last state of a rollout, with the branches of all its steps."""
    controls = x["control"].expand(steps, *x["control"].shape)
    traj = sim.rollout(cs.State(x["q"], x["v"]), controls, params, external=x["external"], dt=x["dt"])
    with torch.no_grad():
        held = {name: x[name].expand(steps, *x[name].shape) for name in ("external", "dt")}
        _, found = step(sim, {"q": traj.q[:-1], "v": traj.v[:-1], "control": controls, **held}, params)
    along = {name: b.movedim(0, -2).flatten(-2) for name, b in found.items()}
    return {"q": traj.q[-1], "v": traj.v[-1]}, along


def uncertain(info: cs.Info) -> Tensor:
    """[W] bool: some contact or row is so close to its switch that the solver does not know its state."""
    contacts, rows = info.contacts, info.rows
    return (contacts.active & (contacts.distance < SWITCH)).any(-1) | ((rows.state > 0) & (rows.distance < SWITCH)).any(-1)


def impulse_weights(worlds: Worlds, contacts: cs.Contacts, gen: torch.Generator) -> Tensor:
    """[W, 3 K] weights of impulses: velocities of the contact points for random v, so that the sum is a generalised impulse.

    Any other weights would ask how impulses share a load that several contacts could bear alone; only the softness that keeps
    such rows solvable decides that, 1e-9, on a scale no difference resolves. One contact of free bodies shares with nobody.
    """
    x, model = worlds.inputs, worlds.model
    if model.engine.tree.max_contacts == 1:
        return normal(gen, *contacts.impulse.flatten(-2).shape)
    bodies = cs.kinematics(model, x["q"], normal(gen, *x["v"].shape), worlds.params)
    body, each = torch.tensor([*model.shape_body, -1]), torch.arange(len(x["q"])).unsqueeze(-1)

    def velocity(shape: Tensor) -> Tensor:
        on = body[shape]
        twist, arm = bodies.velocity[each, on], contacts.point - bodies.position[each, on]
        return torch.where((on >= 0).unsqueeze(-1), twist[..., 3:] + torch.linalg.cross(twist[..., :3], arm), 0.0)

    return (velocity(contacts.shape_b) - velocity(contacts.shape_a)).flatten(-2)


def names(worlds: Worlds) -> list[str]:
    """All inputs and parameter fields that have entries, and do something."""
    inert = without_effect(worlds.model)
    return [name for name, t in (*worlds.inputs.items(), *worlds.params.items()) if t.numel() and name not in inert]


def directions(worlds: Worlds, seed: int = 1) -> Tensors:
    """For every input a random direction [W, ...] of its own scale; of q a tangent one."""
    gen, found = generator(seed), {}
    massive = ~torch.tensor(worlds.model.massless)
    for name in names(worlds):
        x = worlds.inputs[name] if name in worlds.inputs else worlds.params[name]
        d = normal(gen, *(worlds.inputs["v"].shape if name == "q" else x.shape))
        scale = SCALES.get(name)
        if name == "com":
            d = d * massive.unsqueeze(-1)
        found[name] = d * (scale if scale is not None else PART * x)
    return found


def moved(worlds: Worlds, name: str, by: Tensor) -> tuple[Tensors, cs.Params]:
    """All inputs and parameters with one of them moved."""
    if name == "q":
        return {**worlds.inputs, "q": worlds.model.integrate(worlds.inputs["q"].expand(*by.shape[:-1], -1), by)}, worlds.params
    if name in worlds.inputs:
        return {**worlds.inputs, name: worlds.inputs[name] + by}, worlds.params
    return worlds.inputs, worlds.params.replace(**{name: worlds.params[name] + by})


def derivatives(
    sim: cs.Simulator, worlds: Worlds, along: Tensors, weights: Tensors, function: Function
) -> dict[tuple[str, str], Tensor]:
    """(input, output) -> [2, W]: the adjoint's derivative of the weighted output along the direction, and its likely size."""
    zero = {name: torch.zeros_like(d).requires_grad_() for name, d in along.items()}
    inputs = {name: moved(worlds, name, zero[name])[0][name] if name in zero else x for name, x in worlds.inputs.items()}
    params = worlds.params.replace(**{name: worlds.params[name] + z for name, z in zero.items() if name not in worlds.inputs})
    outputs, _ = function(sim, inputs, params)
    found = {}
    for output, y in outputs.items():
        grads = torch.autograd.grad((weights[output] * y).sum(), list(zero.values()), retain_graph=True, allow_unused=True)
        for (name, d), g in zip(along.items(), grads):
            g, d = (torch.zeros_like(d) if g is None else g).reshape(len(d), -1), d.reshape(len(d), -1)
            found[name, output] = torch.stack(((g * d).sum(-1), g.norm(dim=-1) * d.norm(dim=-1) / d.shape[-1] ** 0.5))
    return found


def extrapolate(slopes: Tensor, smooth: Tensor, rounding: Tensor) -> tuple[Tensor, Tensor]:
    """Of central differences [K, W] with step sizes that fall by RATIO the limit and its doubt, at least that of `rounding`.

    smooth : which of them count. A limit that smaller steps contradict by more than their own round-off is in doubt as well.
    """
    slopes = torch.where(smooth, slopes, torch.nan)
    row, best, doubt = [slopes[0]], slopes[0], torch.full_like(slopes[0], torch.inf)
    for k in range(1, len(slopes)):
        before, row = row, [slopes[k]]
        for j in range(1, k + 1):
            row.append(row[j - 1] + (row[j - 1] - before[j - 1]) / (RATIO ** (2 * j) - 1))
            error = torch.maximum((row[j] - row[j - 1]).abs(), (row[j] - before[j - 1]).abs()).clamp(min=rounding[k])
            better = error < doubt  # not where one of them is no number
            best, doubt = torch.where(better, row[j], best), torch.where(better, error, doubt)
    apart = (slopes - best).abs() - 100 * rounding
    return best, torch.maximum(doubt, apart[-2:].amax(0).nan_to_num(0.0))


def differences(
    sim: cs.Simulator, worlds: Worlds, name: str, d: Tensor, weights: Tensors, function: Function, first: float
) -> tuple[dict[str, tuple[Tensor, Tensor]], list[str]]:
    """Output -> difference [W] and doubt [W] along d; and the name of each world's kink."""
    sizes = first / RATIO ** torch.arange(LEVELS, dtype=torch.float64)
    tiny = torch.tensor(TINY, dtype=torch.float64)
    h = torch.cat((sizes, -sizes, tiny, -tiny, torch.zeros(1, dtype=torch.float64))).reshape(-1, *[1] * d.ndim)
    inputs, params = moved(worlds, name, h * d)
    lead = (len(h), len(d))
    inputs = {key: t.expand(*lead, *worlds.inputs[key].shape[1:]) for key, t in inputs.items()}
    with torch.no_grad():
        outputs, found = function(sim, inputs, params)
    same = {kink: (b == b[-1]).all(-1) for kink, b in found.items()}
    smooth = torch.stack(list(same.values())).all(0)
    smooth = smooth[:LEVELS] & smooth[LEVELS : 2 * LEVELS]
    kinks = ["" if smooth[-2:, w].all() else next((k for k, s in same.items() if not s[:, w].all()), "") for w in range(len(d))]
    result = {}
    for output, y in outputs.items():
        total = (weights[output] * y).sum(-1)
        slopes = (total[:LEVELS] - total[LEVELS : 2 * LEVELS]) / (2 * sizes.unsqueeze(-1))
        there, back = total[2 * LEVELS : -1].chunk(2)
        noise = torch.maximum((there + back - 2 * total[-1]).abs().amax(0), ROUNDING * (weights[output] * y[-1]).abs().sum(-1))
        rounding = noise / sizes.unsqueeze(-1)
        best, doubt = extrapolate(slopes, smooth, rounding)
        # half of the difference of slopes to both sides falls with the step, unless the middle is on a kink, or on another of the
        # solutions that redundant rows have, which both sides do not show
        sides = (total[:LEVELS] + total[LEVELS : 2 * LEVELS] - 2 * total[-1]) / (2 * sizes.unsqueeze(-1))
        result[output] = best, torch.maximum(doubt, (sides[-1] - sides[-2] / RATIO).abs() - 100 * rounding[-1])
    return result, kinks


def scales(worlds: Worlds, outputs: Tensors, weights: Tensors) -> Tensors:
    """[W] how large each weighted output is, or as large as speeds before the step make it (contacts may stop everything)."""
    speed = torch.maximum(torch.maximum(rms(worlds.inputs["v"]), rms(outputs["v"])), 10 * worlds.inputs["dt"])
    mass = worlds.params["mass"].mean(-1)
    least = {"q": rms(outputs["q"]), "v": speed, "acceleration": speed / worlds.inputs["dt"], "impulse": mass * speed}
    return {name: weights[name].norm(dim=-1) * least[name] for name in outputs}


def rms(x: Tensor) -> Tensor:
    return x.norm(dim=-1) / x.shape[-1] ** 0.5


def compare(
    scene: str, worlds: Worlds, sims: dict[str, cs.Simulator], *, function: Function = step,
    only: Collection[str] | None = None, first: float = FIRST, most_doubt: float = DOUBT, seed: int = 1,
    as_ran: bool = False,
) -> list[Case]:  # fmt: skip
    """Every derivative of all worlds (by the inputs named in `only`) in each mode of `sims`, which must step alike.

    as_ran : sweeps are differentiated as they ran, whatever state they end in
    """
    along, gen = directions(worlds, seed), generator(seed + 1)
    along = {name: d for name, d in along.items() if only is None or name in only}
    some = next(iter(sims.values()))
    with torch.no_grad():
        outputs, _ = function(some, worlds.inputs, worlds.params)
        weights = {name: normal(gen, *y.shape) for name, y in outputs.items()}
        _, info = step_with_info(some, worlds.inputs, worlds.params)
        # a rollout has more steps than this one
        close = (uncertain(info) & ("impulse" in outputs and not as_ran)).tolist()
        if "impulse" in weights:
            weights["impulse"] = impulse_weights(worlds, info.contacts, gen)
    sizes = scales(worlds, outputs, weights)
    exact = {mode: derivatives(sim, worlds, along, weights, function) for mode, sim in sims.items()}
    cases = []
    for name, d in along.items():
        found, kinks = differences(some, worlds, name, d, weights, function, first)
        for output, (difference, doubt) in found.items():
            for mode in sims:
                value, likely = exact[mode][name, output]
                scale = torch.stack((value.abs(), likely, difference.abs(), FLOOR * sizes[output])).amax(0).clamp(min=1e-300)
                error = ((value - difference).abs() / scale).tolist()
                doubts = (doubt / scale).tolist()
                why = [
                    kink or (UNCERTAIN if near else UNDECIDED if unsure > most_doubt else "")
                    for kink, near, unsure in zip(kinks, close, doubts)
                ]
                rows = zip(value.tolist(), difference.tolist(), doubts, error, why)
                cases += [Case(scene, w, mode, name, output, *row) for w, row in enumerate(rows)]
    return cases


class Summary(NamedTuple):
    """What `compare` found: errors of the cases that are no kinks, and the kinks by name."""

    count: int
    median: float  # of derivatives that are not zero
    worst: list[Case]
    kinks: Counter[str]
    share: float  # of kinks

    def __str__(self) -> str:
        kinks = ", ".join(f"{name} {n}" for name, n in self.kinks.most_common())
        worst = "".join(f"\n    {case}" for case in self.worst)
        return f"{self.count} cases, median {self.median:.1e}, {self.share:.2%} kinks ({kinks}), worst:{worst}"


def summary(cases: Iterable[Case], show: int = 5) -> Summary:
    cases = list(cases)
    kinks = Counter(case.kink for case in cases if case.kink)
    kept = [case for case in cases if not case.kink]
    errors = torch.tensor([case.error for case in kept if case.exact != 0 or case.difference != 0])
    worst = sorted(kept, key=lambda case: case.error if case.error == case.error else float("inf"), reverse=True)[:show]
    return Summary(len(cases), errors.median().item(), worst, kinks, sum(kinks.values()) / len(cases))
