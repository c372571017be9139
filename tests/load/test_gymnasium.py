"""Gymnasium's MuJoCo models against MuJoCo: mass matrix, bias forces, poses, forward dynamics, forces of actuators, pairs."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

gymnasium = pytest.importorskip("gymnasium")

import mujoco  # noqa: E402

import costate as cs  # noqa: E402
from costate.load import examine, load, mujoco_model  # noqa: E402
from tests.load.compare import differences, motor_force, mujoco_touching, random_state, touching  # noqa: E402

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
NAMES = sorted(path.stem for path in ASSETS.glob("*.xml"))
EXACT = 1e-8  # relative, what is asked for; measured 2e-14
WAY = 1e-9  # m, rad; 1e-5 is asked for, 2e-13 measured
FORCE = 1e-7  # relative; a step of 1e-6 s loses that many digits


@pytest.mark.parametrize("name", NAMES)
def test_dynamics_are_mujocos(name, rng):
    path = ASSETS / f"{name}.xml"
    model, _ = examine(path)
    m = mujoco_model(path)
    m.opt.density = m.opt.viscosity = 0.0
    assert (model.nq, model.nv, model.nu) == (m.nq, m.nv, m.nu)
    assert max(differences(model, m, rng).values()) < EXACT


@pytest.mark.parametrize("name", NAMES)
def test_a_second_without_contact_is_mujocos(name, rng, tmp_path):
    """With MuJoCo's Euler, with controls, without limits, which are soft there."""
    text = re.sub(r'integrator="RK4"|density="4000"|viscosity="0.1"', "", (ASSETS / f"{name}.xml").read_text())
    flags = '<option integrator="Euler"><flag limit="disable" contact="disable"/></option>'
    text = re.sub(r"(<mujoco[^>]*>)", rf"\1{flags}", text, count=1)
    path = tmp_path / "model.xml"
    path.write_text(text)
    model, m = load(path), mujoco_model(path)
    data = mujoco.MjData(m)
    controls = rng.uniform(-0.3, 0.3, (round(1 / m.opt.timestep), m.nu))
    data.qvel[:] = v = 0.1 * rng.normal(size=m.nv)
    theirs = [data.qpos.copy()]
    for u in controls:
        data.ctrl[:] = u
        mujoco.mj_step(m, data)
        theirs.append(data.qpos.copy())
    assert model.timestep == m.opt.timestep
    ours = (
        cs.Simulator(model, dt=m.opt.timestep)
        .rollout(cs.State(torch.tensor(theirs[0]), torch.tensor(v)), torch.tensor(controls))
        .q
    )
    assert np.abs(ours.numpy() - theirs).max() < WAY


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_mujocos(name):
    model, _ = examine(ASSETS / f"{name}.xml")
    m = mujoco_model(ASSETS / f"{name}.xml")
    homes = [m.body(b).name or (f"body{b}" if b else "world") for b in m.geom_bodyid]
    geoms = [m.geom(i).name or f"{homes[i]}/{homes[:i].count(homes[i])}" for i in range(m.ngeom)]
    assert touching(model) == mujoco_touching(m, geoms)


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "pusher_v5", "walker2d_v5"])
def test_forces_of_motors_are_mujocos(name, rng):
    path = ASSETS / f"{name}.xml"
    model, _ = examine(path, collisions=False)
    m = mujoco_model(path)
    data = mujoco.MjData(m)
    q, v, u = random_state(m, rng, 0.0)
    limited = np.flatnonzero(m.jnt_limited)
    q[m.jnt_qposadr[limited]] = m.jnt_range[limited].mean(1)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, 2 * u  # some beyond their limits
    mujoco.mj_forward(m, data)
    scale = np.abs(data.qfrc_actuator).max()
    assert scale > 0 and np.abs(motor_force(model, q, v, 2 * u) - data.qfrc_actuator).max() < FORCE * scale


def test_all_of_them_are_there():
    assert len(NAMES) >= 9 and {"ant", "half_cheetah", "hopper", "humanoid", "swimmer"} <= set(NAMES)


def test_what_is_said_about_them():
    _, findings = examine(ASSETS / "ant.xml")
    assert not findings.refused
    assert any("RK4" in line for line in findings.approximated) and any("margin" in line for line in findings.approximated)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(ASSETS / "pusher_v5.xml", collisions=False).nv == 11
