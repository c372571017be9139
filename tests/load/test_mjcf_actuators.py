"""Actuators of MJCF files: joint forces against MuJoCo's, limits, and what is refused."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from costate.load import LoadWarning, UnsupportedFeature, load_string
from tests.load.compare import actuator_force, random_state, text_model

FORCE = 1e-5  # relative; a step of 1e-7 s, in which gains are implicit

ARM = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a"><joint name="a" axis="0 1 0"{joint}/><geom size=".1" pos="0 0 1"/>
    <body name="b" pos="0 0 1"><joint name="b" type="slide" axis="1 0 0"/><geom size=".1"/>
      <body name="c"><joint name="c" type="ball"/><geom size=".1" pos="0 .5 .5"/></body></body></body>
  <body name="f" pos="3 0 0"><freejoint name="f"/><geom type="box" size=".1 .2 .3"/></body>
</worldbody><actuator>{actuators}</actuator></mujoco>"""

CASES = {
    "motor": '<motor joint="a" gear="3"/>',
    "motor with limits": '<motor joint="a" gear="3" ctrlrange="-.1 .2" ctrllimited="true"/>',
    "motor with a force range": '<motor joint="a" gear="-3" forcerange="-.1 .05"/>',
    "general with a gain": '<general joint="a" gear="2" gainprm="-5" forcerange="-1 2"/>',
    "position": '<position joint="a" kp="30" kv="2" gear="2"/>',
    "position of a slide": '<position joint="b" kp="30" ctrlrange="-1 1" forcerange="-3 4"/>',
    "velocity": '<velocity joint="a" kv="3" gear="2"/>',
    "damper": '<general joint="b" gainprm="4" biastype="affine" biasprm="0 0 -4"/>',
    "one direction of a ball": '<motor joint="c" gear="0 2 0"/>',
    "a force on a free body": '<motor joint="f" gear="0 0 5 0 0 0"/>',
    "a torque on a free body": '<motor joint="f" gear="0 0 0 0 5 0"/>',
    "in the parent": '<motor jointinparent="a" gear="2"/>',
    "no gear": '<motor joint="a" gear="0"/>',
    "gain of type affine that is constant": '<general joint="a" gaintype="affine" gainprm="2 0 0"/>',
    "a bias with limits": '<general joint="a" gainprm="-2" biastype="affine" biasprm=".5 0 0" forcerange="-.7 .6" '
    'ctrlrange="-.2 .3"/>',
    "limits that exclude each other": '<general joint="a" gainprm="2" biastype="affine" biasprm="5 0 0" forcerange="-1 1" '
    'ctrlrange="-1 1"/>',
    "a constant force": '<general joint="a" gainprm="0" biastype="affine" biasprm="5 0 0" forcerange="-1 1"/>',
    "damping of a ball": '<general joint="c" gear="0 0 2" gainprm="1" biastype="affine" biasprm=".5 0 -.3"/>',
    "a bias": '<general joint="a" gainprm="2" biastype="affine" biasprm=".5 0 0"/>',
    "affine": '<general joint="a" gear="2" gainprm="3" biastype="affine" biasprm=".5 -4 -.3" forcerange="-7 9"/>',
    "no gain": '<general joint="b" gainprm="0" biastype="affine" biasprm="1 -2 -3"/>',
}


def check_force(text: str, rng: np.random.Generator) -> None:
    model, m = load_string(text, collisions=False), text_model(text)
    data = mujoco.MjData(m)
    for _ in range(3):
        q, v, u = random_state(m, rng)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(m, data)
        scale = max(1.0, np.abs(data.qfrc_actuator).max(), np.abs(data.qfrc_bias).max())
        assert np.abs(actuator_force(model, q, v, u) - data.qfrc_actuator).max() < FORCE * scale


@pytest.mark.parametrize("actuator", CASES.values(), ids=CASES.keys())
def test_force_is_mujocos(actuator, rng):
    check_force(ARM.format(actuators=actuator, joint=""), rng)


def test_force_range_of_a_joint(rng):
    joint = ' actuatorfrcrange="-2 3" actuatorfrclimited="true"'
    check_force(ARM.format(actuators='<motor joint="a" gear="-40"/>', joint=joint), rng)
    both = ARM.format(actuators='<motor joint="a"/><motor joint="a"/>', joint=joint)
    with pytest.raises(UnsupportedFeature, match="several actuators"):
        load_string(both)


def test_actuators_with_several_controls_keep_the_places_of_others(rng):
    text = ARM.format(actuators='<pid name="p" joint="b" kp="1"/><motor name="m" joint="a" ctrlrange="-.1 .2"/>', joint="")
    try:
        m = text_model(text)
    except ValueError:
        pytest.skip("this MuJoCo has no <pid>")
    with pytest.raises(UnsupportedFeature, match="actuator 'p': several controls"):
        load_string(text)
    with pytest.warns(LoadWarning, match="left out: actuator 'p'"):
        model = load_string(text, strict=False)
    assert model.nu == m.nu == 3 and model.motor_names == ("p", "p:1", "m") and model.clip == (-1, -1, 0)


def test_order_and_names_survive():
    text = ARM.format(
        actuators='<motor name="z" joint="b"/><velocity joint="a" kv="1"/><position name="a" joint="a" kp="1"/>', joint=""
    )
    assert load_string(text).motor_names == ("z", "actuator1", "a")


REFUSED = {
    '<muscle name="it" joint="a" lengthrange="0 1"/>': "activation dynamics (muscle)",
    '<intvelocity name="it" joint="a" actrange="-1 1"/>': "activation dynamics (integrator)",
    '<position name="it" joint="a" timeconst=".1" kp="3"/>': "activation dynamics (exact filter)",
    '<motor name="it" site="s" gear="1 0 0 0 0 0"/>': "transmission by site",
    '<motor name="it" joint="c" gear="1 1 0"/>': "several numbers",
    '<position name="it" joint="c" gear="1 0 0" kp="2"/>': "turns in space",
    '<general name="it" joint="a" biastype="affine" biasprm="0 1 0"/>': "grows with length or speed",
    '<general name="it" joint="a" gaintype="affine" gainprm="1 2 0"/>': "gain of type affine",
    '<damper name="it" joint="a" kv="1" ctrlrange="0 1"/>': "gain of type affine",
}


@pytest.mark.parametrize(("actuator", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_refused_by_name_and_without_force_otherwise(actuator, reason):
    text = ARM.format(actuators=actuator + '<motor name="last" joint="b"/>', joint="").replace(
        "<geom", '<site name="s"/><geom', 1
    )
    with pytest.raises(UnsupportedFeature) as caught:
        load_string(text)
    (line,) = caught.value.elements
    assert "'it'" in line and reason in line and line in str(caught.value)
    with pytest.warns(LoadWarning, match="left out: actuator 'it'"):
        model = load_string(text, strict=False)
    assert model.motor_names == ("it", "last") and model.defaults["gear"].tolist() == [0.0, 1.0]
