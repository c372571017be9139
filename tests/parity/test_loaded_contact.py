"""Robots of public files that land, stand, fall over or press on the ground: they come to rest as in MuJoCo.

MuJoCo's contacts are soft: shapes sink in by millimetres, feet that stick creep by millimetres per second, and limits yield. So
there are two comparisons. With stiff contacts and limits (time constant of two steps of a quarter of the size, impedance 0.99,
elliptic cones) MuJoCo comes close to rigid ones, and heights, tilts and joint angles at rest are compared. As the file says, the
height must be the same to a centimetre and the tilt to two degrees; where more is allowed, the reason stands beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

mujoco: Any = pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra: dev)")
pytest.importorskip("gymnasium", reason="Gymnasium is not installed (extra: dev)")
pytest.importorskip("pybullet_data", reason="pybullet has no wheel for this Python")

import costate as cs  # noqa: E402
from bench.found import A1, ANT, ARM, LAIKAGO, LORES, MINI_CHEETAH, PANDA, STANDING, Found  # noqa: E402
from tests.parity.loaded import mujoco_rollout  # noqa: E402

SUBSTEPS = 4  # MuJoCo's steps in one of costate's, where it is stiff
STIFF = (0.99, 0.99, 0.001, 0.5, 2.0)  # solimp: a hundredth of the force of a rigid contact is missing


class Rest(NamedTuple):
    """A robot, where it starts, and how well its rest must agree with MuJoCo's.

    height (m), tilt (rad) : of the base, of an arm its hand; angles (rad or m) : of all joints; None: they are not compared.
    soft : height and tilt where MuJoCo is as the file says.
    """

    found: Found
    seconds: float
    start: tuple[float, ...] = ()  # added to the tangent of the stance
    target: tuple[float, ...] | None = None  # of position actuators; default: the stance
    height: float = 1e-3
    tilt: float = 0.001
    angles: float | None = 0.005
    soft: tuple[float, float] = (0.01, 0.035)
    watched: int = 1  # MuJoCo's number of the body


def wheels(file: str, height: float) -> Found:
    return Found(file, **STANDING, kp=20.0, kd=1.0, height=height, quat=(1.0, 0.0, 0.0, 0.0))


KUKA = Found("kuka_iiwa/model.urdf", **ARM, legs=(0.0, 1.2, 0.0, -0.5, 0.0, 0.0, 0.0))
STANDS: dict[str, Any] = {"height": 1e-4, "tilt": 5e-4, "angles": 1e-3}  # and does nothing else
HULLS: dict[str, Any] = {"height": 3e-3, "tilt": 0.03, "angles": 0.03, "soft": (0.01, 0.1)}
# it bumps and slides before it rests: MuJoCo's own rest moves by as much with its step
FALLS: dict[str, Any] = {"height": 5e-3, "tilt": 0.03, "angles": 0.1}
RESTS = {
    "ant": Rest(ANT, 4.0),
    # soft: 1 cm of depth, and feet that creep outwards until nothing pushes them; its legs are springs, so that the body sinks
    "half_cheetah": Rest(Found("half_cheetah.xml"), 4.0, soft=(0.04, 0.03)),
    # soft: which way the knee slides is decided by how it bumps
    "hopper falls over": Rest(Found("hopper.xml"), 4.0, start=(0, 0, -0.2), **FALLS, soft=(0.04, 0.2)),
    "walker2d falls over": Rest(Found("walker2d.xml"), 4.0, start=(0, 0, -0.2), **FALLS),
    # arms that start within the thighs are thrown out by MuJoCo, the more the stiffer it is
    "humanoid on its back": Rest(Found("humanoidstandup.xml"), 4.0, start=(0, 0, 0.04), **{**FALLS, "angles": None}),
    "laikago_toes": Rest(LAIKAGO, 3.0, **STANDS),
    "laikago_toes_zup_lores": Rest(LORES, 3.0, **STANDS),
    "a1": Rest(A1, 3.0, **STANDS),
    "mini_cheetah": Rest(MINI_CHEETAH, 3.0, **STANDS),
    "racecar": Rest(wheels("racecar/racecar.urdf", 0.1), 2.0, **STANDS, soft=(5e-4, 1e-3)),
    "r2d2": Rest(wheels("r2d2.urdf", 0.5), 2.0, **STANDS, soft=(5e-4, 1e-3)),
    "husky": Rest(wheels("husky/husky.urdf", 0.1), 2.0, **STANDS, soft=(5e-4, 1e-3)),
    # their hulls have 64 vertices here and all in MuJoCo, 3 mm apart; soft: hands that press creep
    "kuka_iiwa presses": Rest(KUKA, 3.0, target=(0.3, 1.9, 0.2, -0.3, 0.0, 0.5, 0.0), watched=-1, **HULLS),
    "panda presses": Rest(PANDA, 3.0, target=(0.2, 1.5, 0.1, -1.0, 0.0, 1.5, 0.0, 0.02, 0.02), watched=-1, **HULLS),
}


def stiffen(m: Any) -> None:
    """Contacts and limits of MuJoCo nearly as rigid as costate's."""
    m.opt.timestep /= SUBSTEPS
    for kind in ("geom", "jnt"):
        getattr(m, f"{kind}_solref")[:] = (2 * m.opt.timestep, 1.0)
        getattr(m, f"{kind}_solimp")[:] = STIFF
        getattr(m, f"{kind}_margin")[:] = 0.0
    m.eq_solref[:], m.eq_solimp[:] = (2 * m.opt.timestep, 1.0), STIFF
    m.opt.cone, m.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0


def settle(rest: Rest, *, stiff: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    """MuJoCo's model, and q at the end in costate and in MuJoCo."""
    m, model = rest.found.mujoco(), rest.found.load()
    dt, params = m.opt.timestep, model.params()
    # dampers of position actuators are implicit here, which Euler's are not in MuJoCo
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    if stiff:
        stiffen(m)
        params = params.replace(softness=torch.zeros_like(params["softness"]))
    q, steps = rest.found.stance(), round(rest.seconds / dt)
    mujoco.mj_integratePos(m, q, np.resize((*rest.start, *np.zeros(m.nv)), m.nv), 1.0)
    held = np.zeros(m.nu)
    if rest.found.kp is not None:
        held = np.array(rest.target) if rest.target else q[-m.nu :]
    controls = np.tile(held, (steps, 1))
    ours = cs.Simulator(model, dt=dt).rollout(cs.State(q, np.zeros(m.nv)), controls, params)
    assert not ours.diverged.any() and not ours.status.overflow.any()
    return m, ours.q[-1], mujoco_rollout(m, q, np.zeros(m.nv), controls, SUBSTEPS if stiff else 1)[0][-1]


def apart(m: Any, watched: int, q1: np.ndarray, q2: np.ndarray) -> tuple[float, float, float]:
    """By how much two poses differ in height (m) and tilt (rad) of a body, and in joint angles (rad or m)."""
    heights, ups, data = [], [], mujoco.MjData(m)
    for q in (q1, q2):
        data.qpos[:] = q
        mujoco.mj_kinematics(m, data)
        heights.append(data.xpos[watched, 2])
        ups.append(data.xmat[watched, 6:9].copy())  # the world's z in the body's axes
    difference = np.zeros(m.nv)
    mujoco.mj_differentiatePos(m, difference, 1.0, q1, q2)
    base = 6 if m.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else 0
    tilt = np.arctan2(np.linalg.norm(np.cross(*ups)), np.dot(*ups))
    return abs(heights[0] - heights[1]), float(tilt), float(np.abs(difference[base:]).max())


@pytest.mark.parametrize("name", RESTS)
def test_rests_as_in_mujoco_with_stiff_contacts(name):
    rest = RESTS[name]
    height, tilt, angles = apart(rest.found.mujoco(), rest.watched, *settle(rest, stiff=True)[1:])
    assert height < rest.height and tilt < rest.tilt, (height, tilt, angles)
    assert rest.angles is None or angles < rest.angles, (height, tilt, angles)


@pytest.mark.parametrize("name", RESTS)
def test_rests_as_in_mujoco(name):
    rest = RESTS[name]
    height, tilt, angles = apart(rest.found.mujoco(), rest.watched, *settle(rest, stiff=False)[1:])
    assert height < rest.soft[0] and tilt < rest.soft[1], (height, tilt, angles)
