"""Constraints that say the same twice change nothing; those that contradict each other are reported, and stay finite."""

import warnings

import numpy as np
import pytest

import costate as cs
from tests.physics.contact_scenes import G, look, run, turn

SAME = 1e-6  # m, rad over 1 s; what is asked for
H = 0.01


def pendulum(*extra: str) -> cs.Model:
    """Three free links on hinges, swinging out of the plane too; `extra`: what else holds at every hinge."""
    scene, parent = cs.Scene(), None
    for i in range(3):
        name, axis = f"link{i}", (0.0, 1.0, 0.0) if i != 1 else (0.6, 0.8, 0.0)
        scene.add_body(name, joint=cs.Free(), pos=(0.3 * i, 0, 0), mass=1.0, com=(0.15, 0, 0), inertia=(0.002, 0.01, 0.01))
        ends = {"pos": (0.3 if i else 0, 0, 0)}
        scene.add_hinge(parent, name, axis=axis, **ends)
        for kind in extra:
            if kind == "hinge":
                scene.add_hinge(parent, name, axis=axis, **ends)
            elif kind == "turned hinge":  # another zero of the angle, other axes across: the same freedom
                scene.add_hinge(parent, name, axis=axis, quat=turn(axis, 0.7), **ends)
            elif kind == "shifted hinge":  # anywhere on the axis
                at = np.array(ends["pos"]) + 0.2 * np.array(axis)
                scene.add_hinge(parent, name, axis=axis, pos=at)
            else:
                scene.add_point(parent, name, **ends)
        parent = name
    return scene.build()


@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize(
    "extra", [("hinge",), ("point",), ("turned hinge",), ("shifted hinge",), ("hinge", "point", "turned hinge")]
)
def test_doubled_constraints_are_harmless(extra, project):
    one, two = (run(m, 500, dt=0.002, project=project) for m in (pendulum(), pendulum(*extra)))
    assert np.abs(one.q - one.q[0]).max() > 0.5
    assert np.abs(two.q - one.q).max() < SAME and two.status.contradiction < 1e-5


@pytest.mark.parametrize("count", [1, 2, 5])
def test_alike_constraints_share_the_load_alike(count):
    scene = cs.Scene()
    scene.add_body("b", joint=cs.Free(), mass=2.0, inertia=(0.1, 0.1, 0.1))
    for _ in range(count):
        scene.add_weld(None, "b")
    impulse = look(scene, dt=H)[1].constraints.impulse.reshape(count, 6) / H
    np.testing.assert_allclose(impulse[:, 2], 2.0 * G / count, rtol=1e-6)
    np.testing.assert_allclose(np.delete(impulse, 2, 1), 0, atol=1e-6)


def test_constraints_beside_joints_that_hold_already():
    """A pendulum on a revolute joint with a hinge constraint on top of it: five rows that do nothing."""
    poses = []
    for doubled in (False, True):
        scene = cs.Scene()
        scene.add_body("rod", joint=cs.Revolute((0, 1, 0), initial=1.0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        if doubled:
            scene.add_hinge(None, "rod", axis=(0, 1, 0))
        poses.append(run(scene, 200, dt=H).q)
    assert np.abs(poses[1] - poses[0]).max() < 1e-12 and np.ptp(poses[0]) > 1.5


# ---- contradictions ------------------------------------------------------------------------------------------------
def body(scene: cs.Scene, name: str = "b", joint=None) -> cs.Scene:
    scene.add_body(name, joint=joint or cs.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    return scene


def two_points() -> cs.Scene:
    """One point of the body in two places, 0.1 m apart."""
    scene = body(cs.Scene())
    for x in (0.0, 0.1):
        scene.add_point(None, "b", pos=(x, 0, 0), pos_b=(0, 0, 0))
    return scene


def two_welds() -> cs.Scene:
    scene = body(cs.Scene())
    for angle in (0.0, 0.3):
        scene.add_weld(None, "b", pos_b=(0, 0, 0), quat_b=turn((0, 1, 0), angle))
    return scene


def two_couplings() -> cs.Scene:
    scene = body(body(cs.Scene(), "a", cs.Revolute()), "b", cs.Revolute())
    for offset in (0.0, 0.1):
        scene.add_coupling("a", "b", ratio=2.0, offset=offset)
    return scene


def out_of_reach() -> cs.Scene:
    """The end of a 1 m rod is to be 3 m away. No rows contradict each other; only the drift can tell."""
    scene = cs.Scene()
    joint = cs.Revolute((0, 1, 0), initial=0.3)
    scene.add_body("rod", joint=joint, mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    scene.add_point(None, "rod", pos=(3, 0, 0), pos_b=(0, 0, -1))
    return scene


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize("make", [two_points, two_welds, two_couplings])
def test_contradicting_constraints_are_reported(make, project):
    """Finite, at rest halfway, and the status tells: half the distance cannot be undone, at recovery / h."""
    traj = run(make(), 300, dt=H, project=project)
    apart = {two_points: 0.1, two_welds: 0.3, two_couplings: 0.1}[make]
    speed = cs.Contact().recovery * apart / 2 / H
    assert np.isfinite(traj.q).all() and np.abs(traj.v[-1]).max() < 1e-4
    assert traj.status.contradiction == pytest.approx(speed, rel=0.02)
    last = cs.constraint_error(make().build(), traj.q[-1])
    assert np.abs(last).max() == pytest.approx(apart / 2, rel=0.02), "halfway"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("project", [0, 1, 2])
def test_what_cannot_be_reached_is_reported_as_drift(project):
    traj = run(out_of_reach(), 300, dt=H, project=project)
    assert np.isfinite(traj.q).all() and traj.status.drift > 1.9


def test_constraints_that_agree_are_not_reported():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for extra in ((), ("hinge", "point")):
            status = run(pendulum(*extra), 500, dt=0.002).status
            assert status.contradiction < 1e-6 and status.drift < 1e-6
