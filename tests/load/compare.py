"""A loaded model beside the MuJoCo model it was made from: differences of what both compute."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch

import costate as cs
from costate.load.source import unique


def text_model(text: str) -> Any:
    """MuJoCo's own model of an MJCF text, for comparison."""
    return mujoco.MjModel.from_xml_string(text)


def random_state(m: Any, rng: np.random.Generator, size: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, u around the initial pose."""
    q = np.array(m.qpos0)
    mujoco.mj_integratePos(m, q, size * rng.normal(size=m.nv), 1.0)
    return q, rng.normal(size=m.nv), rng.normal(size=m.nu)


def body_names(m: Any) -> list[str]:
    """How `load` calls the bodies but the world."""
    return unique([m.body(i).name for i in range(1, m.nbody)], [f"body{i}" for i in range(1, m.nbody)])


def differences(model: cs.Model, m: Any, rng: np.random.Generator, states: int = 3) -> dict[str, float]:
    """Largest relative differences of poses, mass matrix, bias forces and accelerations without contact over random states."""
    worst: dict[str, float] = {}

    def note(word: str, ours: Any, theirs: Any) -> None:
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
        worst[word] = max(worst.get(word, 0.0), float(np.abs(ours - theirs).max(initial=0.0)) / scale)

    data = mujoco.MjData(m)
    for _ in range(states):
        q, v, u = random_state(m, rng)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(m, data)
        tq, tv = torch.tensor(q), torch.tensor(v)
        poses = cs.kinematics(model, tq)
        for i, name in enumerate(body_names(m), 1):
            body = model.body(name)
            note("position", poses.position[body], data.xpos[i])
            note("rotation", _matrix(poses.quaternion[body].numpy()), data.xmat[i].reshape(3, 3))
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, data, M)
        note("mass matrix", cs.mass_matrix(model, tq), M)
        bias = data.qfrc_bias - data.qfrc_passive
        note("bias", cs.inverse_dynamics(model, tq, tv, torch.zeros_like(tv)), bias)
        note(
            "acceleration",
            cs.forward_dynamics(model, tq, tv, torch.tensor(data.qfrc_actuator)),
            np.linalg.solve(M, data.qfrc_actuator - bias),
        )
    return worst


def _matrix(quat: np.ndarray) -> np.ndarray:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)


def motor_force(model: cs.Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, dt: float = 1e-6) -> np.ndarray:
    """Joint forces of motors: what a step with controls has more than one without. Limits must not be near."""
    sim = cs.Simulator(model, dt=dt)
    state = cs.State(torch.tensor(q), torch.tensor(v))
    more = sim.step(state, torch.tensor(u)).v - sim.step(state, torch.zeros(len(u), dtype=torch.float64)).v
    M = cs.mass_matrix(model, state.q) + dt * torch.diag(model.defaults["damping"])  # dampers are implicit
    return (M @ more / dt).numpy()


def actuator_force(model: cs.Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, dt: float = 1e-7) -> np.ndarray:
    """Joint forces of any actuators, from one very short step: what is implicit in it hardly counts."""
    state = cs.State(torch.tensor(q), torch.tensor(v))
    a = (cs.Simulator(model, dt=dt).step(state, torch.tensor(u)).v - state.v) / dt
    return cs.inverse_dynamics(model, state.q, state.v, a).numpy()


def touching(model: cs.Model) -> set[frozenset[str]]:
    """Names of the shapes of every pair that may touch."""
    return {frozenset(model.shape_names[i] for i in pair) for pair in model.pairs.tolist()}


def mujoco_touching(m: Any, geoms: list[str]) -> set[frozenset[str]]:
    """The same by MuJoCo: contacts that it finds when everything is near enough."""
    margins = [getattr(m, name) for name in ("geom_margin", "pair_margin", "body_margin") if hasattr(m, name)]
    before = [margin.copy() for margin in margins]
    for margin in margins:
        margin[:] = 1e3
    m.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    data = mujoco.MjData(m)
    mujoco.mj_kinematics(m, data)
    mujoco.mj_comPos(m, data)
    mujoco.mj_collision(m, data)
    for margin, old in zip(margins, before):
        margin[:] = old
    return {frozenset(geoms[i] for i in (contact.geom1, contact.geom2)) for contact in data.contact}
