"""A Robot as a costate Model, a MuJoCo MjModel and a Pinocchio Model, and the check that the three agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import torch

import costate as cs
from bench.in_mujoco import mujoco_model
from bench.ours import costate_model
from bench.robots import Robot

AGREE = 1e-9  # relative to the largest acceleration; the peers themselves agree to 1e-12 or so


def pinocchio_model(robot: Robot) -> pin.Model:
    """With Pinocchio's own free-flyer, which is what its users have; its velocity is in body axes."""
    model = pin.Model()
    for link in robot.links:
        kind = pin.JointModelFreeFlyer() if link.joint == "free" else _hinge(link.axis)
        place = pin.SE3.Identity() if link.joint == "free" else pin.SE3(np.eye(3), np.array(link.pos))
        joint = model.addJoint(link.parent + 1, kind, place, link.name)
        inertia = pin.Inertia(link.mass, np.array(link.com), np.diag(link.inertia))
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    return model


def _hinge(axis: tuple[float, float, float]) -> Any:
    """The joint with a known axis, faster than the general one; every robot here turns about coordinate axes."""
    return (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)[axis.index(1.0)]()


@dataclass(frozen=True)
class Worlds:
    """A random state and joint forces for every world: q [n, nq] and v, tau [n, nv] as costate and MuJoCo have them."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray

    def torch(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """As torch tensors."""
        return tuple(torch.tensor(x, dtype=dtype) for x in (self.q, self.v, self.tau))  # type: ignore[return-value]


def random_worlds(robot: Robot, count: int, seed: int = 0) -> Worlds:
    """Angles within a radian, velocities of 1 rad/s or m/s, forces of a few N m: no two worlds alike."""
    rng = np.random.default_rng(seed)
    nv = robot.nv
    q, v, tau = rng.uniform(-1, 1, (count, nv)), rng.normal(size=(count, nv)), 3 * rng.normal(size=(count, nv))
    if robot.floating:
        quat = rng.normal(size=(count, 4))
        q = np.concatenate((q[:, :3], quat / np.linalg.norm(quat, axis=1, keepdims=True), q[:, 6:]), axis=1)
    return Worlds(q, v, tau)


def to_pinocchio(robot: Robot, worlds: Worlds) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """One array per world; quaternions xyzw, and the base's velocity and force in body axes."""
    q, v, tau = worlds.q.copy(), worlds.v.copy(), worlds.tau.copy()
    if robot.floating:
        q[:, 3:7] = np.roll(q[:, 3:7], -1, axis=1)
        for i in range(len(q)):
            R = pin.Quaternion(q[i, 3:7]).matrix()
            v[i, :3], tau[i, :3] = R.T @ v[i, :3], R.T @ tau[i, :3]
    return list(q), list(v), list(tau)


def accelerations_from_pinocchio(robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Pinocchio's a (of one world) as costate has it: world axes, and of the base's origin instead of spatial."""
    out = a.copy()
    if robot.floating:
        out[:3] = pin.Quaternion(q[3:7]).matrix() @ (a[:3] + np.cross(v[3:6], v[:3]))
    return out


def check_agreement(robot: Robot, count: int = 4, *, agree: float = AGREE, pinocchio: bool = True) -> float:
    """Forward dynamics of a few random worlds in all three; the largest relative difference, AssertionError above `agree`."""
    worlds = random_worlds(robot, count, seed=1)
    ours = cs.forward_dynamics(costate_model(robot), worlds.q, worlds.v, worlds.tau)
    mj, model = mujoco_model(robot), pinocchio_model(robot)
    data, pdata, worst = mujoco.MjData(mj), model.createData() if pinocchio else None, 0.0
    for i, (q, v, tau) in enumerate(zip(*to_pinocchio(robot, worlds), strict=True)):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = worlds.q[i], worlds.v[i], worlds.tau[i]
        mujoco.mj_forward(mj, data)
        peers = {"MuJoCo": data.qacc}
        if pinocchio:
            peers["Pinocchio"] = accelerations_from_pinocchio(robot, q, v, pin.aba(model, pdata, q, v, tau))
        for name, theirs in peers.items():
            difference = float(np.abs(ours[i] - theirs).max() / np.abs(theirs).max())
            assert difference < agree, f"{robot.name}: costate and {name} differ by {difference:.1e}"
            worst = max(worst, difference)
    return worst
