"""Rollouts with a policy or forces in the loop: torch between the steps, the engine inside them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from costate import batch as b
from costate.autodiff.costate import clip_gradient, scale_gradient
from costate.autodiff.torch import STATUS, transforming
from costate.info import Status, join_status
from costate.inputs import count_steps
from costate.scene.joints import JOINTS
from costate.state import State, Trajectory
from costate.warn import is_watched, warn_status

if TYPE_CHECKING:
    from costate.scene import Model, Params
    from costate.sim import Simulator


def rollout_stepwise(
    sim: Simulator, state: State, controls: Any, params: Params | None, steps: int | None, substeps: int, external: Any, dt: Any,
    carry: Any, decay: float, truncate: int | None, clip: float | None,
) -> Trajectory:  # fmt: skip
    """With a policy(state, carry, t) -> control or (control, carry), or forces(state, t), or both; see Simulator.rollout."""
    policy, forces = (f if callable(f) else None for f in (controls, external))
    if policy is None:
        steps = count_steps(sim.model, controls, steps)
    elif steps is None:
        raise ValueError("steps must be given where a policy controls")
    if not isinstance(state.q, Tensor):
        what = "a policy" if forces is None else "external as a function"
        raise TypeError(f"a rollout with {what} takes torch tensors; state.torch() makes them from numpy arrays")
    params = b.check_params(sim.model, params)
    lead = {"q": state.q.shape[:-1], "v": state.v.shape[:-1], "params": params.batch_shape, "dt": getattr(dt, "shape", ())}
    if policy is None and controls is not None:
        lead["control"] = controls.shape[1:-1]
    batch = b.broadcast(lead)
    varies = forces is None and b.varies(sim.model, external, steps, batch)
    span = substeps * (sim.dt if dt is None else float(dt) if isinstance(dt, int) else dt)  # of a control step, s
    quaternions = _quaternions(sim.model)
    if clip is not None:
        state = State(*(x.expand(*batch, -1) for x in state))
    states, used, status = [state], [], []
    theta = b.theta(sim.model, params, sim.dtype, sim.device)  # once: its gradient is collected there
    alive = [torch.ones(batch, dtype=torch.int32, device=sim.device)]
    for t in range(steps):
        # what the past may hear of the future: all of it, a part, or nothing
        if truncate and t > 0 and t % truncate == 0:
            state, carry = _map(Tensor.detach, (state, carry))
        elif decay != 1.0:
            state, carry = _map(lambda x: scale_gradient(x, decay), (state, carry))
        if clip is not None and sim.model.nv:
            state = State(*clip_gradient(*state, quaternions, clip))
        if policy is None:
            control = None if controls is None else controls[t]
        else:
            control, carry = _control(policy(state, carry, t), carry)
        wrench = external[t] if varies else external if forces is None else forces(state, t * span)
        done = sim.advance(state, control, params, external=wrench, dt=dt, substeps=substeps, detail=STATUS, theta=theta)
        still, state = _hold(alive[-1], done.at, t, state, done.state)
        alive.append(still)
        states.append(state)
        used.append(control)
        status.append(done.detail[0])
    first = State(*(x.expand_as(y) for x, y in zip(states[0], states[1], strict=True)))
    diverged_at = torch.stack(alive[1:]).sum(0, dtype=torch.int32)
    # a world that diverged gives no gradient at all, not even through the steps before
    whole, gone = State(*(torch.stack(xs) for xs in zip(first, *states[1:], strict=True))), diverged_at < steps
    whole = whole.where(gone, whole) if _unknown(gone) or bool(gone.any()) else whole
    joined = join_status(status)
    later = sim.told_later(diverged_at, steps, (joined,), "rollout", (*states[0], None, None, None))
    if not later and is_watched(sim.model, sim.solver):
        warn_status(sim.model, sim.solver, joined, "rollout", stacklevel=5)
    told = Status(joined.reshape(*diverged_at.shape, -1))
    if policy is not None:
        controls = None if any(u is None for u in used) else torch.stack(used)
    return Trajectory(*whole, diverged_at, controls, carry, told)


def _quaternions(model: Model) -> tuple[int, ...]:
    """Where quaternions start in q."""
    starts = ((JOINTS[code].quaternion, at) for code, at in zip(model.joint_type, model.q_address, strict=True))
    return tuple(at + start for start, at in starts if start is not None)


def _control(out: Any, carry: Any) -> tuple[Any, Any]:
    """A policy may return the control alone, or with its carry."""
    if isinstance(out, tuple):
        if len(out) != 2:
            raise TypeError(f"policy must return a control or (control, carry), got a tuple of {len(out)}")
        return out
    return out, carry


def _hold(alive: Tensor, finite: Tensor, t: int, old: State, new: State) -> tuple[Tensor, State]:
    """Worlds that diverged, now or before, stay where they last were finite and lose their graph.

    alive : int [*batch], 1 where a world had not diverged before step t. finite : the same of this step alone.
    """
    still = alive * finite
    if not _unknown(still):
        if bool(still.all()):
            return still, new
        if newly := int((alive - still).sum()):
            text = f"rollout: {newly} of {still.numel()} worlds diverged in step {t}; they are held and give no gradient"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
    return still, new.where(still == 0, State(old.q.expand_as(new.q), old.v.expand_as(new.v)))


def _unknown(x: Tensor) -> bool:
    """Whether nobody can look at x now: inside functional transforms, and on a GPU, which would be waited for."""
    return x.is_cuda or transforming()


def _map(f: Any, tree: Any) -> Any:
    """f on every floating-point tensor of a nested structure."""
    return pytree.tree_map(lambda x: f(x) if isinstance(x, Tensor) and x.is_floating_point() else x, tree)
