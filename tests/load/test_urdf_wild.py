"""URDFs of pybullet_data: all compile after the repair, those that MuJoCo takes stay as they are, dynamics are MuJoCo's."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from costate.load import LoadError, examine, mujoco_model
from costate.load.urdf import repair
from tests.load.compare import differences

pybullet_data = pytest.importorskip("pybullet_data", reason="pybullet has no wheel for this Python")

ROOT = Path(pybullet_data.getDataPath())
ROBOTS = {  # and their joints' degrees of freedom
    "laikago/laikago_toes.urdf": 12,
    "laikago/laikago_toes_zup_lores.urdf": 12,
    "a1/a1.urdf": 12,
    "kuka_iiwa/model.urdf": 7,
    "franka_panda/panda.urdf": 9,
    "racecar/racecar.urdf": 6,
    "r2d2.urdf": 8,
    "mini_cheetah/mini_cheetah.urdf": 12,
    "husky/husky.urdf": 4,
    "biped/biped2d_pybullet.urdf": 9,
}
FLOATING = [name for name in ROBOTS if "biped2d" not in name]  # its root is the world, and slides on it
EXACT = 1e-8  # relative, what is asked for; measured 4e-13
DT, STEPS = 0.002, 500
GAIN = 1e-9  # of the energy of a fall over 1 m: rounding; measured: no gain
FALL = -9.81 * DT**2 * STEPS * (STEPS + 1) / 2  # m, of semi-implicit Euler
PUSHED = 0.01  # m: knees of a1 start beyond their limits, which moves its base by 1 mm
SAME = (
    "body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat", "body_parentid", "jnt_type", "jnt_axis",
    "jnt_pos", "jnt_range", "jnt_limited", "jnt_actfrcrange", "dof_damping", "dof_frictionloss", "geom_type", "geom_pos",
    "geom_quat", "geom_size", "mesh_vert", "eq_data",
)  # fmt: skip


def files() -> list[Path]:
    """All URDFs but most of a thousand that differ in nothing but their mesh."""
    found = sorted(path for path in ROOT.rglob("*.urdf") if "random_urdfs" not in path.parts)
    return found + sorted((ROOT / "random_urdfs").rglob("*.urdf"))[::100]


def alone(path: Path):
    """MuJoCo's own model of the file with all its links, or None where it refuses it."""
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        spec.compiler.fusestatic = False
        return spec.compile()
    except ValueError:
        return None


def test_all_files_compile_and_those_that_mujoco_takes_stay_the_same():
    taken = refused = 0
    for path in files():
        try:
            text, assets, notes = repair(path.read_text(encoding="utf-8", errors="replace"), path.parent)
        except LoadError as error:
            assert path.name == "torus_deform.urdf" and "must have a link" in str(error)  # it has a <deformable> only
            continue
        m, m_alone = mujoco.MjModel.from_xml_string(text, assets), alone(path)
        assert m_alone is not None or notes, path
        taken += m_alone is not None
        refused += m_alone is None
        for name in SAME if m_alone is not None else ():
            assert np.array_equal(getattr(m, name), getattr(m_alone, name)), (path, name)
    assert taken >= 50 and refused >= 40  # of pybullet 3.2.7: 59 and 45


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_are_mujocos_on_the_repaired_file(name, floating, rng):
    path = ROOT / name
    if floating and name not in FLOATING:
        with pytest.raises(LoadError, match="with floating=True the root link 'world' must have one joint, a fixed one"):
            examine(path, floating=True)
        return
    chosen = {"floating": True} if floating else {}
    (model, findings), m = examine(path, **chosen), mujoco_model(path, **chosen)
    assert findings.refused == [] and (model.nq, model.nv) == (m.nq, m.nv) and model.nv == ROBOTS[name] + 6 * floating
    assert max(differences(model, m, rng).values()) < EXACT


@pytest.mark.parametrize("ground", [False, -1.0])
@pytest.mark.parametrize("name", ROBOTS)
def test_a_second_without_motors_gains_no_energy(name, ground):
    """From its first pose, floating where it can; links of one robot do not touch each other, for some overlap there."""
    chosen = {"floating": True} if name in FLOATING else {}
    model, _ = examine(ROOT / name, ground=ground, self_collision=False, **chosen)
    sim = cs.Simulator(model, dt=DT)
    traj = sim.rollout(sim.initial_state(), steps=STEPS)
    energy = torch.stack([sum(cs.energy(model, traj.q[k], traj.v[k])) for k in range(0, STEPS + 1, 50)])
    scale = float(model.defaults["mass"].sum()) * 9.81
    assert torch.isfinite(traj.q).all() and float((energy - energy[0]).max()) < GAIN * scale
    if name in FLOATING:
        height = traj.q[-1, 2]
        assert float(height) == pytest.approx(FALL, abs=PUSHED) if ground is False else -1.05 < float(height) < 0.0


WARNED = {
    "laikago/laikago_toes.urdf": ["link 'chassis' moves, but has no inertia", "link 'FR_hip_motor' moves, but has no inertia"],
    "franka_panda/panda.urdf": ["'panda_link0', 'panda_link1'", "meshes of 'package://' are taken from"],
    "mini_cheetah/mini_cheetah.urdf": ["link 'thigh_fr': the principal moments of inertia do not fulfil A + B >= C"],
    "husky/husky.urdf": ["joint 'imu_joint': <origin xyz> is '$(optenv HUSKY_IMU_XYZ 0.19 0 0.149)', read as 0.19 0 0.149"],
    "kuka_iiwa/model.urdf": ["link 'lbr_iiwa_link_0' moves, but has no mass: it gets 1.75e-05 kg (1e-06 of the robot's mass)"],
}


@pytest.mark.parametrize("name", WARNED)
def test_repairs_are_told(name):
    notes = "\n".join(examine(ROOT / name, floating=True)[1].approximated)
    assert all(words in notes for words in WARNED[name])
