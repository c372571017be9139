"""Repairs of names, trees and joints of URDFs."""

import mujoco
import numpy as np
import pytest

from costate.load import LoadError
from costate.load.urdf import is_urdf, repair
from tests.load.urdf_text import LIMIT, collision, inertial, joint, link, pendulum, repaired, robot

ARM, HINGE = link("arm", inertial()), joint("hinge", "base", "arm")
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


def names(m) -> list[str]:
    return [m.body(i).name for i in range(1, m.nbody)]


# ---- limits, losses, types -----------------------------------------------------------------------------------------
LIMITS = {
    "": (None, "no limits"),
    '<limit effort="1" velocity="1"/>': (None, "no limits"),
    '<limit upper="1"/>': ((0, 1), "no lower limit: 0 is taken"),
    '<limit lower="-1"/>': ((-1, 0), "no upper limit: 0 is taken"),
    '<limit lower="1" upper="-1"/>': (None, "above the upper one"),
    '<limit lower="0" upper="0"/>': (None, "equal to the upper one"),
    '<limit lower="-1" upper="2"/>': ((-1, 2), None),
}


@pytest.mark.parametrize("more", LIMITS)
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_limits(more, kind):
    expected, said = LIMITS[more]
    m, notes = repaired(pendulum(more=more, kind=kind))
    assert bool(m.jnt_limited[0]) == (expected is not None)
    assert expected is None or tuple(m.jnt_range[0]) == expected
    assert len(notes) == (said is not None) and all("'hinge'" in note and said in note for note in notes)


def test_continuous_joints_have_no_limits_and_need_none():
    m, notes = repaired(pendulum(kind="continuous"))
    assert notes == [] and not m.jnt_limited[0]


def test_damping_friction_and_effort_are_kept():
    m, notes = repaired(pendulum(more=f'<dynamics damping="0.5" friction="0.25"/>{LIMIT}'))
    assert notes == [] and (m.dof_damping[0], m.dof_frictionloss[0], m.jnt_actfrcrange[0, 1]) == (0.5, 0.25, 2.0)
    m, notes = repaired(pendulum(more=f'<dynamics damping="-0.5" friction="0.25"/>{LIMIT}'))
    assert m.dof_damping[0] == 0 and "damping is -0.5, 0 is taken" in notes[0]


def test_types_of_joints():
    m, notes = repaired(pendulum(kind=" Revolute"))
    assert m.jnt_limited[0] and "' Revolute' is read as 'revolute'" in notes[0]
    m, _ = repaired(pendulum(kind="ball", more=""))
    assert m.jnt_type[0] == BALL
    with pytest.raises(LoadError, match=r"joint 'hinge': type must be one of revolute, .*, got 'screw'"):
        repaired(pendulum(kind="screw"))
    m, notes = repaired(robot(link("base"), ARM, joint("hinge", "base", "arm", axis="0 0 0")))
    assert m.jnt_axis[0].tolist() == [1, 0, 0] and "axis is zero" in notes[0]
    _, notes = repaired(robot(link("base"), ARM, joint("weld", "base", "arm", "fixed", "", axis="0 0 0")))
    assert notes == []


def test_planar_joints_move_across_their_axis():
    m, notes = repaired(robot(link("base"), ARM, joint("table", "base", "arm", "planar", "", axis="0 1 0")))
    assert notes == [] and m.nv == 3 and np.allclose(m.jnt_axis[:2] @ [0, 1, 0], 0) and np.allclose(m.jnt_axis[2], [0, 1, 0])


# ---- mimics --------------------------------------------------------------------------------------------------------
def mimic(leader: str, kind: str = "revolute") -> str:
    follower = joint("follower", "base", "finger", kind, f'{LIMIT}<mimic joint="{leader}" multiplier="-2" offset="0.5"/>')
    return robot(
        link("base"), ARM, HINGE, link("finger", inertial()), link("plate"), joint("weld", "base", "plate", "fixed", ""), follower
    )


def test_a_mimic_is_an_equality():
    m, notes = repaired(mimic("hinge"))
    assert notes == [] and m.neq == 1 and m.eq_data[0, :3].tolist() == [0.5, -2.0, 0.0]
    assert (m.joint(m.eq_obj1id[0]).name, m.joint(m.eq_obj2id[0]).name) == ("follower", "hinge")


@pytest.mark.parametrize(("leader", "said"), [("nobody", "not there"), ("follower", "itself"), ("weld", "which is fixed")])
def test_mimics_of_nothing_are_left_out(leader, said):
    m, notes = repaired(mimic(leader))
    assert m.neq == 0 and len(notes) == 1 and "'follower' mimics" in notes[0] and said in notes[0]


# ---- joints that float ---------------------------------------------------------------------------------------------
def test_a_floating_joint_below_a_moving_link_starts_at_the_world():
    up, turn = '<origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>', '<origin xyz="1 0 0" rpy="0.1 0.2 0.3"/>'
    text = robot(
        link("base"),
        ARM,
        link("ball", inertial()),
        joint("hinge", "base", "arm", more=up + LIMIT),
        joint("throw", "arm", "ball", "floating", turn),
    )
    m, notes = repaired(text)
    ball = m.body("ball")
    assert m.jnt_type.tolist() == [FREE, 3] or m.jnt_type.tolist() == [3, FREE]
    assert ball.parentid[0] == 0 and np.allclose(ball.pos, [0, 1, 1])
    expected, about_z, rpy = np.zeros(4), np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5)]), np.zeros(4)
    mujoco.mju_euler2Quat(rpy, [0.1, 0.2, 0.3], "XYZ")  # capitals: fixed axes
    mujoco.mju_mulQuat(expected, about_z, rpy)
    assert abs(abs(expected @ ball.quat) - 1) < 1e-12
    assert len(notes) == 1 and "'throw' floats below link 'arm'" in notes[0]


def test_a_base_fixed_to_a_link_world_can_float():
    text = robot(link("world"), link("base", inertial()), joint("anchor", "world", "base", "fixed", '<origin xyz="0 0 2"/>'))
    m, notes = repaired(text)
    assert notes == [] and m.nv == 0 and m.body("base").pos[2] == 2
    m, notes = repaired(text, floating=True)
    assert m.jnt_type.tolist() == [FREE] and m.body("base").pos[2] == 2 and "'anchor'" in notes[0]
    with pytest.raises(
        LoadError, match="with floating=True the root link 'world' must have one joint, a fixed one, got joint 'hinge'"
    ):
        repair(robot(link("world"), ARM, joint("hinge", "world", "arm")), None, floating=True)


# ---- names and trees -----------------------------------------------------------------------------------------------
def test_names_with_slashes_and_all_links_survive():
    m, notes = repaired(
        robot(
            link("r/base"),
            link("r/arm", inertial()),
            joint("r/hinge", "r/base", "r/arm"),
            link("r/tip"),
            joint("t", "r/arm", "r/tip", "fixed", ""),
        )
    )
    assert notes == [] and names(m) == ["r/base", "r/arm", "r/tip"] and m.joint(0).name == "r/hinge"


def test_copies_of_links_and_names_that_are_there_twice():
    m, notes = repaired(robot(link("base"), ARM, ARM, HINGE))
    assert names(m) == ["base", "arm"] and len(notes) == 1 and "same content" in notes[0]
    text = robot(link("base"), ARM, link("arm", inertial(2.0)), HINGE, joint("hinge", "base", "arm"))
    m, notes = repaired(text)
    assert names(m) == ["base", "arm", "arm_2"] and m.body("arm_2").mass[0] == 2.0
    assert [m.joint(i).name for i in range(m.njnt)] == ["hinge", "hinge_2"] and len(notes) == 2


def test_several_roots_are_fixed_to_the_world():
    m, notes = repaired(robot(link("base"), ARM, HINGE, link("table", inertial(), collision('<box size="1 1 1"/>'))))
    assert m.body("table").parentid[0] == 0 and len(notes) == 1 and "'base', 'table'" in notes[0]


def test_a_link_called_world_that_moves_is_not_the_world():
    m, notes = repaired(robot(link("base"), link("world", inertial()), joint("hinge", "base", "world")))
    assert names(m) == ["base", "world_2"] and "'world'" in notes[0]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((link("base"), ARM, joint("hinge", "base", "leg")), "joint 'hinge': <child link> must name a link, got 'leg'"),
        (
            (link("base"), ARM, HINGE, joint("loop", "base", "arm")),
            "link 'arm' must have one parent, got joints 'hinge' and 'loop'",
        ),
        (
            (link("base"), ARM, link("leg"), joint("a", "arm", "leg"), joint("b", "leg", "arm")),
            "ring of joints with 'arm', 'leg'",
        ),
        ((), "must have a link"),
    ],
)
def test_what_is_no_tree_is_refused(parts, message):
    with pytest.raises(LoadError, match=message):
        repair(robot(*parts), None)


# ---- the text ------------------------------------------------------------------------------------------------------
def test_what_mujoco_does_not_know_is_left_behind():
    junk = '<transmission name="t"><joint name="hinge"/></transmission><gazebo><plugin name="p"/></gazebo><material name="m"/>'
    m, notes = repaired(pendulum().replace("</robot>", junk + "</robot>"))
    assert notes == [] and m.njnt == 1
    _, notes = repaired(pendulum().replace("</robot>", "<xacro:arm/></robot>"))
    assert len(notes) == 1 and "xacro" in notes[0]


def test_text_that_is_not_quite_xml():
    text = '\ufeff<?xml version="1.0" encoding="latin-1"?><!-- made -- by hand --->\n' + pendulum() + "\r\n\0"
    m, notes = repaired(text)
    assert notes == [] and m.nv == 1 and is_urdf(text.encode())
    assert not is_urdf(b"<mujoco/>") and not is_urdf(b"") and not is_urdf(b"<!-- <robot> --><mujoco/>")


def test_repeated_elements():
    m, notes = repaired(pendulum(more=f'<axis xyz="0 1 0"/>{LIMIT}'))
    assert m.jnt_axis[0].tolist() == [0, 0, 1] and "2 <axis>: the first one is taken" in notes[0]


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE robot [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot name="&b;"><link name="base"/></robot>',
        "<robot>" + "<a>" * 300 + "</a>" * 300 + "</robot>",
        "<robot>" + '<link name="a"/>' * 20_000 + "</robot>",
        "<robot",
        "<mujoco/>",
        "",
    ],
)
def test_bombs_and_rubbish_are_refused(text):
    with pytest.raises(LoadError):
        repair(text, None)
