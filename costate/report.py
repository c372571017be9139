"""gradient_report: where along a trajectory gradients grow, and where contacts and limits switch or nearly do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from costate import batch as b
from costate.autodiff.torch import CONTACTS, ROW_WIDTH, SLOT_WIDTH, RolloutSpec, costate_norms, rollout
from costate.info import SEPARATED, STICKING, candidate_shapes, contact_names, row_motors, row_names
from costate.inputs import check_counts
from costate.scene import Model, Params
from costate.scene.codes import MOTOR
from costate.state import State, Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from costate.sim import Simulator

# A step computed once more is the same to the last bit on one machine; another one rounds differently.
_SAME = {torch.float64: 1e-6, torch.float32: 1e-3}
_NAMED = 3  # how many steps and names the summary tells
_LINES = 32  # more worlds than this are drawn as a band


@dataclass(frozen=True, eq=False, repr=False)
class GradientReport:
    """What happens to a gradient on its way back along a trajectory of T control steps; print it, or `plot` it.

    Attributes
    ----------
    costate_norm : [T, ...] norm of the gradient with respect to the state before each step, q (tangent) and v together.
    end_norm : [...] the same at the end of the trajectory.
    changes : [T, ...] int, contacts and joint rows whose state is another than in the step before.
    closest : [T, ...] m/s, how near to such a change the closest of them is; infinite where there are none.
    contacts : [T, ...] int, contacts that push.
    converged : [T, ...] bool, the solve reached its tolerance.
    flips : what changed -> how often, in all worlds, most frequent first.
    """

    costate_norm: Any
    end_norm: Any
    changes: Any
    closest: Any
    contacts: Any
    converged: Any
    flips: Mapping[str, int]

    @property
    def growth(self) -> Any:
        """[T, ...] by which factor the norm grows in each step, on its way back; not a number where it was zero."""
        norm, end = _array(self.costate_norm), _array(self.end_norm)
        after = np.concatenate((norm[1:], end[None]))
        with np.errstate(invalid="ignore", divide="ignore"):
            grown = np.where(after > 0, norm / after, np.nan)
        return torch.from_numpy(grown).to(self.costate_norm.device) if isinstance(self.costate_norm, Tensor) else grown

    def __len__(self) -> int:
        """T, the number of control steps."""
        return len(self.costate_norm)

    def __repr__(self) -> str:
        return f"GradientReport(steps={len(self)}, worlds={tuple(self.end_norm.shape)})"

    def __str__(self) -> str:
        """A summary in a few lines."""
        norm, end, changes, closest, contacts, converged = self._arrays()
        worlds = norm.shape[1]
        lines = [f"GradientReport: {len(norm)} steps" + (f" of {worlds} worlds" if worlds > 1 else "")]
        many = f" (largest {norm[0].max():.3g}{self._world(norm[0].argmax())})" if worlds > 1 else ""
        lines.append(f"  costate norm   {np.median(end):.3g} at the end, {np.median(norm[0]):.3g} at the start{many}")
        growth = np.nan_to_num(_array(self.growth).reshape(len(norm), -1), nan=0.0)
        most = np.argsort(-growth.max(1), kind="stable")[:_NAMED]
        grown = ", ".join(f"{growth[t].max():.3g} times in {self._place(t, growth[t])}" for t in most)
        lines.append(f"  grows most     {grown}")
        lines.append(f"  contacts       {contacts.mean():.3g} that push on average, {contacts.max()} at most")
        total, busy = changes.sum(1), int((changes.sum(1) > 0).sum())
        steps = [t for t in np.argsort(-total, kind="stable")[:_NAMED] if total[t]]
        most = "; most in " + ", ".join(f"step {t} ({total[t]})" for t in steps) if steps else ""
        lines.append(f"  changes        {total.sum()} in {busy} steps{most}")
        if self.flips:
            lines.append("  of             " + ", ".join(f"{name}: {n}" for name, n in list(self.flips.items())[:_NAMED]))
        if np.isfinite(closest).any():
            t = int(closest.min(1).argmin())
            lines.append(f"  closest to one {closest.min():.3g} m/s in {self._place(t, -closest[t])}")
        bad = ~converged
        first = f", the first is {self._place(int(bad.any(1).argmax()), bad[bad.any(1).argmax()])}" if bad.any() else ""
        lines.append(f"  not converged  {bad.sum()} of {bad.size} steps{first}")
        return "\n".join(lines)

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw costate norm, changes and distance to the next change over the steps; also to a file where `path` is given."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("GradientReport.plot needs matplotlib: pip install matplotlib") from error
        norm, end, changes, closest, _, _ = self._arrays()
        figure = Figure(figsize=(8, 7), layout="constrained")
        top, middle, low = figure.subplots(3, 1, sharex=True)
        _draw(top, np.concatenate((norm, end[None])))
        top.set(ylabel="costate norm", title="gradients go from right to left")
        middle.bar(np.arange(len(changes)), changes.sum(1), width=1.0, color="tab:red")
        middle.set(ylabel="changes of contacts\nand joint rows, all worlds")
        _draw(low, closest)
        low.set(ylabel="closest to a change [m/s]", xlabel="step")
        for axes in (top, middle, low):
            axes.grid(alpha=0.3)
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure

    def _arrays(self) -> tuple[np.ndarray, ...]:
        """All as numpy: [T, worlds], end_norm [worlds]."""
        names = ("costate_norm", "end_norm", "changes", "closest", "contacts", "converged")
        arrays = (_array(getattr(self, name)) for name in names)
        return tuple(x.reshape(-1) if name == "end_norm" else x.reshape(len(self), -1) for name, x in zip(names, arrays))

    def _place(self, t: int, worlds: np.ndarray) -> str:
        return f"step {t}{self._world(worlds.argmax())}"

    def _world(self, flat: Any) -> str:
        shape = tuple(self.end_norm.shape)
        return "" if not shape else f" of world {', '.join(str(int(k)) for k in np.unravel_index(int(flat), shape))}"


def _array(x: Any) -> np.ndarray:
    """As numpy; from a GPU a copy."""
    return np.asarray(x.cpu() if isinstance(x, Tensor) else x)


def _draw(axes: Any, values: np.ndarray) -> None:
    """Lines of a few worlds, or median and range of many, on a logarithmic scale; zeros and infinities are left out."""
    values = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    if np.isnan(values).all():
        return
    steps = np.arange(len(values))
    if values.shape[1] <= _LINES:
        axes.plot(steps, values, linewidth=1.0, marker="." if len(values) < 3 else None)
    else:
        some = ~np.isnan(values).all(1)
        low, middle, high = np.nanquantile(values[some], (0.0, 0.5, 1.0), axis=1)
        axes.fill_between(steps[some], low, high, alpha=0.3, label=f"{values.shape[1]} worlds")
        axes.plot(steps[some], middle, label="median")
        axes.legend()
    axes.set_yscale("log")


def gradient_report(
    sim: Simulator, trajectory: Trajectory, params: Params | None, *, loss: Callable[[Trajectory], Tensor] | None, substeps: int,
    external: Any, dt: Any,
) -> GradientReport:  # fmt: skip
    """See Simulator.gradient_report."""
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"trajectory must be a costate.Trajectory, got {type(trajectory).__name__}")
    check_counts(substeps=substeps)
    model, steps, as_numpy = sim.model, len(trajectory), b.is_numpy(trajectory.q)
    if steps < 1:
        raise ValueError("trajectory must have at least one step")
    traj = _as_tensors(trajectory, model, sim)
    batch = tuple(traj.q.shape[1:-1])
    with torch.no_grad():
        inputs, found = sim.gather(traj[0], traj.controls, params, external, dt, time=steps)
    if found != batch:
        raise ValueError(f"the trajectory has worlds {batch}, but with params, dt and external they are {found}")
    spec = RolloutSpec(b.worlds(batch), steps, substeps, options=sim.options)
    q, v = traj.q.reshape(steps + 1, spec.worlds, -1), traj.v.reshape(steps + 1, spec.worlds, -1)
    at = torch.as_tensor(traj.diverged_at).to(q.device, torch.int32).reshape(spec.worlds, 1)
    walk = _Walk(model, spec, inputs, q, v, at.cpu().numpy()[:, 0])
    q_bar, v_bar = _bars(model, traj, loss)
    q_bar, v_bar = q_bar.reshape(q.shape), v_bar.reshape(v.shape)
    norms = costate_norms(model.engine, spec, inputs, q[1:], v[1:], at, q_bar[1:], v_bar[1:])
    norms = torch.where(at[:, 0] < steps, torch.zeros_like(norms), norms)  # a world that diverged gives no gradient
    end = _tangent_norm(model, q[-1], q_bar[-1], v_bar[-1]).reshape(batch)
    told = (torch.from_numpy(x).to(q.device) for x in walk.arrays())
    whole = [x.reshape(steps, *batch) for x in (norms, *told)] + [end]
    norm, changes, closest, contacts, converged, end = [x.numpy() for x in whole] if as_numpy else whole
    return GradientReport(norm, end, changes, closest, contacts, converged, walk.flips())


def _as_tensors(trajectory: Trajectory, model: Model, sim: Simulator) -> Trajectory:
    kind = (sim.dtype, sim.device)
    q = b.tensor("trajectory.q", trajectory.q, (model.nq,), *kind).detach()
    v = b.tensor("trajectory.v", trajectory.v, (model.nv,), *kind).detach()
    controls = trajectory.controls
    if controls is not None:
        controls = b.tensor("trajectory.controls", controls, (model.nu,), *kind).detach()
    return replace(trajectory, q=q, v=v, controls=controls)


def _bars(model: Model, traj: Trajectory, loss: Callable[[Trajectory], Tensor] | None) -> tuple[Tensor, Tensor]:
    """Gradient of the loss with respect to all states; without one, norm 1 at the end, all tangent entries equal."""
    q, v = traj.q.clone().requires_grad_(), traj.v.clone().requires_grad_()
    with torch.enable_grad():
        if loss is None:
            entry = (2 * max(model.nv, 1)) ** -0.5
            value = entry * (model.difference(traj.q[-1], q[-1]).sum() + v[-1].sum())
        else:
            value = loss(replace(traj, q=q, v=v))
            if not isinstance(value, Tensor) or value.numel() != 1:
                raise TypeError(f"loss must give a scalar tensor, got {value!r}")
            if not value.requires_grad:
                raise ValueError("loss does not depend on the trajectory's q or v")
        bars = torch.autograd.grad(value, (q, v), allow_unused=True)
    q_bar, v_bar = (torch.zeros_like(x) if bar is None else bar for x, bar in zip((q, v), bars, strict=True))
    return q_bar, v_bar


def _tangent_norm(model: Model, q: Tensor, q_bar: Tensor, v_bar: Tensor) -> Tensor:
    """[worlds] norm of a costate, that of q taken in tangent coordinates."""
    turn = torch.zeros_like(v_bar).requires_grad_()
    with torch.enable_grad():
        (q_tan,) = torch.autograd.grad(model.integrate(q, turn), turn, q_bar)
    return torch.cat((q_tan, v_bar), -1).norm(dim=-1)


class _Walk:
    """All steps once more, each from its own start, for the states of contacts and joint rows: arrays [T, worlds]."""

    def __init__(self, model: Model, spec: RolloutSpec, inputs: tuple[Any, ...], q: Tensor, v: Tensor, at: np.ndarray) -> None:
        self.model, self.spec, self.inputs = model, spec, inputs
        self.candidates = len(candidate_shapes(model)) - 1
        shape = (spec.steps, spec.worlds)
        self.changes, self.contacts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.closest, self.converged = np.full(shape, np.inf), np.ones(shape, bool)
        self.codes: np.ndarray | None = None  # [worlds, candidates + rows] states in the step before
        self.counts: np.ndarray | int = 0
        # a motor on a constraint is a row whose bounds are both its force: it has no state that could change
        motors = enumerate(row_motors(model), len(model.dry_dof))
        self.stateless = [row for row, k in motors if model.actuator_type[k] == MOTOR]
        for t in range(spec.steps):
            self._control_step(t, State(q[t], v[t]), State(q[t + 1], v[t + 1]), t < at)

    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.changes, self.closest, self.contacts, self.converged

    def flips(self) -> dict[str, int]:
        counts = np.atleast_1d(self.counts)
        order = np.argsort(-counts, kind="stable")
        changed = order[counts[order] > 0]
        points = changed[changed < self.candidates]
        names = dict(zip(points.tolist(), contact_names(self.model, points), strict=True))
        names.update(enumerate(row_names(self.model), self.candidates))
        return {names[k]: int(counts[k]) for k in changed.tolist()}

    def _control_step(self, t: int, state: State, after: State, alive: np.ndarray) -> None:
        _, _, control, h, external, theta = self.inputs
        control = None if control is None else control[t : t + 1]
        external = external[t] if external is not None and external.ndim == 3 else external
        one = self.spec._replace(steps=1, substeps=1, detail=CONTACTS)
        for _ in range(self.spec.substeps):
            with torch.no_grad():
                q, v, _, *told = rollout(self.model.engine, one, *state, control, h, external, theta)
            state = State(q[0], v[0])
            self._note(t, alive, *(x.cpu().numpy() for x in told))
        self._check(t, state, after, alive)

    def _note(self, t: int, alive: np.ndarray, status: np.ndarray, slots: np.ndarray, ids: np.ndarray, rows: np.ndarray) -> None:
        """Compare with the step before. A contact or limit that is too far away for a row counts as one that does not push."""
        worlds, candidates = len(ids), self.candidates
        slots = slots.reshape(worlds, -1, SLOT_WIDTH)
        rows = rows.reshape(worlds, -1, ROW_WIDTH)[:, : self.model.engine.tree.rows]  # those of constraints have no states
        rows[:, self.stateless, 1] = 0
        codes = np.full((worlds, candidates + rows.shape[1]), SEPARATED, np.int8)
        world, slot = np.nonzero(ids >= 0)
        codes[world, ids[world, slot]] = np.maximum(slots[world, slot, 10], SEPARATED)
        codes[:, candidates:] = np.maximum(rows[:, :, 1], SEPARATED)
        if self.codes is not None:
            changed = (codes != self.codes) & alive[:, None]
            self.changes[t] += changed.sum(1)
            self.counts = self.counts + changed.sum(0)
        self.codes = codes
        pushing = (codes[:, :candidates] >= STICKING).sum(1)
        self.contacts[t] = np.where(alive, np.maximum(self.contacts[t], pushing), 0)
        contact, row = np.where(ids >= 0, slots[:, :, 11], np.inf), np.where(rows[:, :, 1] > 0, rows[:, :, 2], np.inf)
        closest = np.concatenate((contact, row), 1).min(1, initial=np.inf)
        self.closest[t] = np.where(alive, np.minimum(self.closest[t], closest), np.inf)
        self.converged[t] &= (status[:, 1] == 0) | ~alive

    def _check(self, t: int, found: State, kept: State, alive: np.ndarray) -> None:
        """The steps must be those of the trajectory, or the report would tell of another one."""
        for name, x, y in zip("qv", found, kept, strict=True):
            off = ((x - y).abs() > _SAME[y.dtype] * (1 + y.abs())).any(-1).cpu().numpy() & alive
            if off.any():
                w = int(off.argmax())
                raise ValueError(
                    f"the trajectory is another than these params, substeps, external and dt give: in step {t} of world {w} "
                    f"{name} becomes {x[w].tolist()}, not {y[w].tolist()}. Pass what it was made with"
                )
