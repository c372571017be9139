"""costate simulate: a model over some time, its states to a file, and a summary."""

from __future__ import annotations

import re
import time
import warnings
from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.cli import record
from costate.cli.controls import read_controls, steps_of
from costate.cli.errors import UserError, hint, user_errors
from costate.cli.load import describe_warning, load_file
from costate.cli.output import Output

if TYPE_CHECKING:
    import torch

    from costate import Model, Simulator, State

DEFAULT_TIME, DEFAULT_DT = 1.0, 0.01  # s
MOST_STEPS = 10**9
FIRST, TARGET, MOST = 16, 0.1, 4096  # steps of the first part; s that a part should take; most steps of a part


@dataclass
class Plan:
    """What is simulated. controls : [steps or 1, worlds or 1, nu], one for all steps if it is a single one; None: none."""

    model: Model
    dt: float
    steps: int
    worlds: int
    controls: np.ndarray | None
    every: int


@dataclass
class Told:
    """What was seen on the way; frames of q and v only if they are to be written."""

    wall: float = 0.0
    residual: float = 0.0
    unconverged: int = 0
    sweeps: int = 0
    contacts: int = 0
    penetration: float = 0.0
    overflow: int = 0
    drift: float = 0.0
    diverged: dict[int, int] = field(default_factory=dict)  # world -> step
    energy: list[tuple[float, float]] = field(default_factory=list)  # kinetic, potential, J; mean over worlds
    q: list[np.ndarray] = field(default_factory=list)
    v: list[np.ndarray] = field(default_factory=list)
    warnings: dict[str, str] = field(default_factory=dict)  # without numbers -> the first with them


def run(arguments: Namespace, out: Output) -> int:
    """Load, simulate, write, report."""
    import torch

    import costate as cs

    model, notes = load_file(arguments)
    for note in notes:
        out.note(note)
    plan = make_plan(arguments, model)
    if arguments.out:
        record.check_out(arguments.out, model, plan.steps // plan.every + 1, plan.worlds)
    with user_errors():
        sim = cs.Simulator(model, plan.dt, dtype=torch.float32 if arguments.float32 else torch.float64)
        state = first_state(arguments, sim, plan)
        told = simulate(sim, state, plan, out, keep=bool(arguments.out))
    if arguments.out:
        write(arguments.out, plan, told)
    for note in told.warnings.values():
        out.note(note)
    report(arguments, out, plan, told)
    return 0


def make_plan(arguments: Namespace, model: Model) -> Plan:
    """How many steps, and with which controls."""
    dt = arguments.dt or model.timestep or DEFAULT_DT
    controls, frame = None, None
    if arguments.keyframe is not None:
        if arguments.keyframe not in model.keyframes:
            raise UserError(f"--keyframe: no keyframe named {arguments.keyframe!r}; {hint(arguments.keyframe, model.keyframes)}")
        frame = model.keyframes[arguments.keyframe]
    if arguments.controls is not None:
        controls = read_controls(arguments.controls, model.motor_names, arguments.worlds)
        controls = controls[:, None] if controls.ndim == 2 else controls
    elif frame is not None and model.nu:
        controls = np.array(frame.control)[None, None]
    held = controls is None or len(controls) == 1
    lasting = len(controls) * dt if controls is not None and not held else DEFAULT_TIME
    wanted = arguments.time or lasting
    if wanted / dt > MOST_STEPS:
        raise UserError(f"--time {wanted:g} with --dt {dt:g} takes {wanted / dt:.1e} steps, more than {MOST_STEPS:.0e}")
    steps = steps_of(wanted, dt)
    if controls is not None and not held:
        if steps > len(controls):
            raise UserError(
                f"--time {wanted:g} needs {steps} steps of controls, got {len(controls)}, which last {len(controls) * dt:g} s"
            )
        controls = controls[:steps]
    return Plan(model, dt, steps, arguments.worlds, controls, arguments.every)


def first_state(arguments: Namespace, sim: Simulator, plan: Plan) -> State:
    """The default state, or that of a keyframe, with noise on its velocities."""
    import torch

    import costate as cs

    state = sim.initial_state(plan.worlds)
    q, v = state.q, state.v
    if arguments.keyframe is not None:
        frame = plan.model.keyframes[arguments.keyframe]
        q = torch.tensor(frame.q, dtype=sim.dtype).expand_as(q).clone()
        v = torch.tensor(frame.v, dtype=sim.dtype).expand_as(v).clone()
    if arguments.noise:
        generator = torch.Generator().manual_seed(arguments.seed)
        v = v + arguments.noise * torch.randn(v.shape, generator=generator, dtype=torch.float64).to(v)
    return cs.State(q, v)


def simulate(sim: Simulator, state: State, plan: Plan, out: Output, *, keep: bool) -> Told:
    """Run the plan in parts, so that a bar can move. The states do not depend on how it is parted."""
    import torch

    told, done, size = Told(), 0, FIRST
    _look(told, sim, state, plan)
    if keep:
        _keep(told, state.q[None], state.v[None], 0, plan.every)
    with out.progress() as progress, torch.no_grad():
        task = progress.add_task("simulating", total=plan.steps)
        while done < plan.steps:
            count = min(size, plan.steps - done)
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                traj = sim.rollout(state, _controls(plan, done, count, sim.dtype), steps=count)
            took = time.perf_counter() - start
            told.wall += took
            state = traj[-1]
            if keep:
                _keep(told, traj.q[1:], traj.v[1:], done + 1, plan.every)
            _note_status(told, traj, done, caught)
            done += count
            _look(told, sim, state, plan)
            progress.update(task, completed=done)
            size = int(min(max(size * TARGET / max(took, 1e-6), 1), 4 * size, MOST))
    return told


def _controls(plan: Plan, start: int, count: int, dtype: torch.dtype) -> Any:
    """Those of `count` steps, [count, worlds or 1, nu]."""
    import torch

    if plan.controls is None:
        return None
    part = plan.controls if len(plan.controls) == 1 else plan.controls[start : start + count]
    return torch.from_numpy(np.ascontiguousarray(part)).to(dtype).expand(count, plan.worlds, -1)


def _keep(told: Told, q: torch.Tensor, v: torch.Tensor, first: int, every: int) -> None:
    """Every so many of the states [n, worlds, ...], which are number `first` and those behind it."""
    offset = -first % every
    told.q.append(q[offset::every].double().numpy())
    told.v.append(v[offset::every].double().numpy())


def _look(told: Told, sim: Simulator, state: State, plan: Plan) -> None:
    import costate as cs

    kinetic, potential = cs.energy(plan.model, state.q.double(), state.v.double())
    told.energy.append((kinetic.mean().item(), potential.mean().item()))


def _note_status(told: Told, traj: Any, start: int, caught: list[warnings.WarningMessage]) -> None:
    """The worst of the solver so far; worlds that diverged; each kind of warning once."""
    status = traj.status
    told.residual = max(told.residual, float(status.residual.max()))
    told.sweeps = max(told.sweeps, int(status.sweeps.max()))
    told.contacts = max(told.contacts, int(status.contacts.max()))
    told.penetration = max(told.penetration, float(status.penetration.max()))
    told.drift = max(told.drift, float(status.drift.max()))
    told.unconverged += int(status.unconverged.sum())
    told.overflow += int(status.overflow.sum())
    at = traj.diverged_at.reshape(-1)
    for world in np.flatnonzero(traj.diverged.reshape(-1).numpy()).tolist():
        told.diverged.setdefault(world, start + int(at[world]))
    for warning in caught:
        text = describe_warning(warning)
        told.warnings.setdefault(re.sub(r"[\d.e+-]+", "", text), text)


def write(path: str, plan: Plan, told: Told) -> None:
    """The states that were kept, and the controls that were applied at them."""
    q, v = np.concatenate(told.q), np.concatenate(told.v)
    times = plan.dt * plan.every * np.arange(len(q))
    controls = plan.controls
    if controls is not None:
        controls = np.broadcast_to(controls, (max(len(controls), plan.steps), plan.worlds, plan.model.nu))
        controls = np.ascontiguousarray(controls[:: plan.every])
    diverged = np.full(plan.worlds, len(q) - 1)
    for world, step in told.diverged.items():
        diverged[world] = min(step // plan.every, len(q) - 1)
    values = {"time": times, "q": q, "v": v, "controls": controls, "diverged_at": diverged, "dt": np.array(plan.dt)}
    record.write(path, plan.model, values)


def report(arguments: Namespace, out: Output, plan: Plan, told: Told) -> None:
    """The table, and the object."""
    facts = results(arguments, plan, told)
    energy, contact, solver, speed = (facts[name] for name in ("energy", "contacts", "solver", "speed"))
    held = f"; {len(told.diverged)} of {plan.worlds} worlds diverged" if told.diverged else ""
    rows = [
        ("simulated", f"{facts['time']:g} s in {plan.steps} steps of {plan.dt:g} s, {plan.worlds} world(s){held}"),
        ("energy", f"{energy['start']:.6g} J at first, {energy['end']:.6g} J in the end (kinetic {energy['kinetic_end']:.4g} J)"),
        ("contacts", f"at most {contact['most']} at a time, {contact['penetration'] * 1e3:.3g} mm deep{_dropped(told)}"),
        (
            "solver",
            f"residual <= {solver['residual']:.2g} m/s, {solver['unconverged']} steps above the tolerance, {_more(solver)}",
        ),
        ("speed", f"{speed['steps_per_second']:,.0f} steps/s, {_short(speed['times_real_time'])} times real time"),
    ]
    out.table(facts["file"], rows + ([("written", arguments.out)] if arguments.out else []))
    out.result(facts)


def _short(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def _dropped(told: Told) -> str:
    return f"; {told.overflow} steps had more than there is room for" if told.overflow else ""


def _more(solver: dict[str, Any]) -> str:
    drift = f", constraints off by {solver['drift']:.2g} at most" if solver["drift"] else ""
    return f"{solver['sweeps']} sweeps at most{drift}"


def results(arguments: Namespace, plan: Plan, told: Told) -> dict[str, Any]:
    """All that is reported, as JSON takes it."""
    (kinetic, potential), (kinetic_end, potential_end) = told.energy[0], told.energy[-1]
    done, wall = plan.steps * plan.worlds, max(told.wall, 1e-9)
    return {
        "file": arguments.file,
        "time": plan.steps * plan.dt,
        "dt": plan.dt,
        "steps": plan.steps,
        "worlds": plan.worlds,
        "energy": {
            "start": kinetic + potential, "end": kinetic_end + potential_end, "kinetic_start": kinetic,
            "kinetic_end": kinetic_end, "most": max(sum(pair) for pair in told.energy),
        },
        "contacts": {"most": told.contacts, "penetration": told.penetration, "overflow": told.overflow},
        "solver": {
            "residual": told.residual, "unconverged": told.unconverged, "sweeps": told.sweeps, "drift": told.drift,
        },
        "speed": {"seconds": told.wall, "steps_per_second": done / wall, "times_real_time": done * plan.dt / wall},
        "diverged": {str(world): step for world, step in sorted(told.diverged.items())},
        "warnings": list(told.warnings.values()),
        "out": arguments.out,
    }  # fmt: skip
