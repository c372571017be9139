"""Public robots in costate and in MuJoCo, side by side: the list of them, random states, and what both compute."""

from __future__ import annotations

from functools import cache
from typing import Any

import mujoco
import numpy as np
import torch

import costate as cs
from bench.found import MJCF, URDF, WALKERS

MODELS = {found.name: found for found in (*MJCF, *URDF)} | {f"{found.name}, floating": found for found in WALKERS}

FAR = 1e6  # rad or m: a limit there is none
LOOSE = 1e12  # m/N or rad/(N m): a constraint as soft as that pulls with nothing


@cache
def both(name: str) -> tuple[cs.Model, cs.Params, Any]:
    """costate's model, its parameters and MuJoCo's model, without contacts, limits, equality constraints, fluid; MuJoCo's Euler.

    None of these is the same in both: MuJoCo's are soft (costate's are rigid), and costate has no fluid. Dry friction would be
    another, but none of these robots has any. All else is as in the file.
    """
    found = MODELS[name]
    m = found.mujoco()
    assert not m.dof_frictionloss.any()
    bits = mujoco.mjtDisableBit
    m.opt.disableflags |= int(bits.mjDSBL_CONTACT) | int(bits.mjDSBL_LIMIT) | int(bits.mjDSBL_EQUALITY)
    m.opt.density = m.opt.viscosity = 0.0
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    model = found.load(collisions=False)
    params = model.params()
    gone = {"limit_lower": -FAR, "limit_upper": FAR, "tie_softness": LOOSE, "coupling_softness": LOOSE}
    return model, params.replace(**{field: torch.full_like(params[field], value) for field, value in gone.items()}), m


def random_states(m: Any, count: int, *, size: float, speed: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q [count, nq] about the first pose, v [count, nv], and controls [count, nu] that accelerate joints by a few rad/s^2."""
    rng = np.random.default_rng(0)
    q = np.tile(m.qpos0, (count, 1))
    for row in q:
        mujoco.mj_integratePos(m, row, size * rng.normal(size=m.nv), 1.0)
    return q, speed * rng.normal(size=(count, m.nv)), random_controls(m, count, rng)


def random_controls(m: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """[count, nu]: up to 1.5 where the file has a range (so that some are cut off), else about what inertia asks for."""
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, M)
    inertia = np.diag(M)[m.jnt_dofadr[m.actuator_trnid[:, 0]]]
    scale = np.where(m.actuator_ctrllimited, 1.5, 3 * inertia)
    return scale * rng.uniform(-1, 1, (count, m.nu))


def instant(m: Any, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> dict[str, np.ndarray]:
    """What MuJoCo computes in one state; rotations as matrices, velocities angular first."""
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
    mujoco.mj_forward(m, data)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, M)
    found = {"mass matrix": M, "bias forces": data.qfrc_bias - data.qfrc_passive, "accelerations": data.qacc.copy()}
    found |= {"actuators": data.qfrc_actuator.copy()}
    kinds = {"body": (mujoco.mjtObj.mjOBJ_XBODY, range(1, m.nbody)), "site": (mujoco.mjtObj.mjOBJ_SITE, range(m.nsite))}
    for word, (kind, places) in kinds.items():
        velocity = np.zeros((len(places), 6))
        for row, i in zip(velocity, places):
            mujoco.mj_objectVelocity(m, data, kind, i, row, 0)
        found[f"{word} velocities"] = velocity
    found |= {"body positions": data.xpos[1:].copy(), "body rotations": data.xmat[1:].reshape(-1, 3, 3).copy()}
    found |= {"site positions": data.site_xpos.copy(), "site rotations": data.site_xmat.reshape(-1, 3, 3).copy()}
    mujoco.mj_step(m, data)
    found["changes of speed"] = (data.qvel - v) / m.opt.timestep
    return found


def our_instant(
    model: cs.Model, params: cs.Params, names: list[str], states: tuple[np.ndarray, ...], force: np.ndarray
) -> dict[str, np.ndarray]:
    """The same by costate for all states together; `names`: bodies in MuJoCo's order, `force` [count, nv]: of the actuators."""
    q, v, u = (torch.tensor(x) for x in states)
    kin, bodies = cs.kinematics(model, q, v, params), [model.body(name) for name in names]
    step = cs.Simulator(model, dt=model.timestep or 0.0).step(cs.State(q, v), u, params)
    found = {
        "mass matrix": cs.mass_matrix(model, q, params),
        "bias forces": cs.inverse_dynamics(model, q, v, torch.zeros_like(v), params),
        "accelerations": cs.forward_dynamics(model, q, v, torch.tensor(force), params),
        "changes of speed": (step.v - v) / model.timestep,
        "body positions": kin.position[:, bodies],
        "body rotations": matrices(kin.quaternion[:, bodies]),
        "body velocities": kin.velocity[:, bodies],
        "site positions": kin.site_position,
        "site rotations": matrices(kin.site_quaternion),
        "site velocities": kin.site_velocity,
    }
    return {word: np.asarray(x) for word, x in found.items()}


def matrices(quat: torch.Tensor) -> torch.Tensor:
    """Rotation matrices [..., 3, 3] of unit quaternions [..., 4]."""
    w, x, y, z = quat.unbind(-1)
    rows = (
        (w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def mujoco_rollout(
    m: Any, q: np.ndarray, v: np.ndarray, controls: np.ndarray, steps_each: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """q [T + 1, nq] and v [T + 1, nv] of MuJoCo under controls [T, nu], each held for some steps."""
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:] = q, v
    qs, vs = [data.qpos.copy()], [data.qvel.copy()]
    for u in controls:
        data.ctrl[:] = u
        mujoco.mj_step(m, data, steps_each)
        qs.append(data.qpos.copy())
        vs.append(data.qvel.copy())
    return np.array(qs), np.array(vs)
