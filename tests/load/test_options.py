"""Options of load: floating base, ground, actuators, fused bodies, hulls; and what load_string and examine take."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.load import Findings, LoadError, LoadWarning, examine, load, load_string, mujoco_model
from tests.load.compare import touching

ARM = """<mujoco><worldbody><body name="base" pos="0 0 1"><geom name="base" size=".1"/>
  <body name="link" pos="0 0 .5"><geom name="link" size=".1"/>
  <body name="arm" pos="0 .5 0"><joint name="hinge" axis="1 0 0"{}/><geom name="arm" size=".1" pos="0 1 0"/></body>
</body></body></worldbody></mujoco>"""
TEXT = ARM.format("")
URDF = """<robot name="r"><link name="base">{inertial}<collision><geometry><box size=".2 .2 .2"/></geometry></collision></link>
  <link name="pad">{inertial}</link><link name="arm">{inertial}</link>
  <joint name="fix" type="fixed"><parent link="base"/><child link="pad"/><origin xyz="0 0 .1"/></joint>
  <joint name="turn" type="revolute"><parent link="pad"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="7" velocity="3"/></joint>
</robot>""".format(inertial='<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>')


def test_floating_base():
    assert load_string(TEXT).joint_type == (0, 0, 1)
    free = load_string(TEXT, floating=True)
    assert free.joint_type == (4, 0, 1) and free.q0.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert load_string(TEXT.replace("<geom", "<freejoint/><geom", 1), floating=False) == load_string(TEXT)


def test_keyframes_that_do_not_fit_the_base_any_more_are_left_out():
    text = TEXT.replace("</mujoco>", '<keyframe><key name="up" qpos="1"/></keyframe></mujoco>')
    assert load_string(text, floating=False).keyframes["up"].q.tolist() == [1.0]  # nothing was changed
    with pytest.warns(LoadWarning, match="keyframe 'up': left out, they do not fit floating=True"):
        assert not load_string(text, floating=True).keyframes


def test_floating_base_of_a_urdf():
    assert load_string(URDF).joint_type == (0, 0, 1) and load_string(URDF).body_names == ("base", "pad", "arm")
    free = load_string(URDF, floating=True)
    assert free.joint_type == (4, 0, 1) and free.body_names == ("base", "pad", "arm")


def test_fuse():
    fused = load_string(TEXT, floating=True, fuse=True)
    assert (
        fused.body_names == ("base", "arm")
        and abs(float(fused.defaults["mass"].sum() - load_string(TEXT).defaults["mass"].sum())) < 1e-9
    )
    assert load_string(URDF, floating=True, fuse=True).body_names == ("base", "arm")


def test_ground():
    assert "ground" not in load_string(TEXT).shape_names
    for ground, height in ((True, 0.0), (0.25, 0.25), (0.0, 0.0), (-1, -1.0)):
        model = load_string(TEXT, ground=ground)
        assert frozenset(("ground", "arm")) in touching(model)
        assert model.defaults["shape_pos"][model.shape("ground")].tolist() == [0, 0, height]
    deaf = TEXT.replace("<geom", '<geom contype="4" conaffinity="0"')
    assert frozenset(("ground", "arm")) in touching(load_string(deaf, ground=True))
    with pytest.raises(TypeError, match="ground must be True, False or a height"):
        load_string(TEXT, ground="yes")  # type: ignore[arg-type]


def test_torques():
    model = load_string(ARM.format(' actuatorfrcrange="-3 3"'), actuators="torque")
    assert model.motor_names == ("hinge",) and model.actuator_type == (0,)
    assert model.defaults["control_upper"].tolist() == [3.0]
    assert load_string(TEXT, actuators="torque").clip == (-1,)
    assert load_string(TEXT, actuators="torque", max_force=5.0).defaults["control_lower"].tolist() == [-5.0]
    assert load_string(URDF, actuators="torque").defaults["control_upper"].tolist() == [7.0]


def test_positions_and_servos():
    model = load_string(URDF, actuators="position", kp=50.0, kd=2.0)
    assert model.defaults["kp"].tolist() == [50] and model.defaults["kd"].tolist() == [2]
    assert model.defaults["force_upper"].tolist() == [7]
    servo = load_string(URDF, actuators="servo", max_speed=2.0)
    assert (
        servo.actuator_type == (3,)
        and servo.defaults["max_speed"].tolist() == [2]
        and servo.defaults["force_upper"].tolist() == [7]
    )
    sim = cs.Simulator(servo, dt=0.01)
    end = sim.rollout(sim.initial_state(), torch.full((300, 1), 0.5, dtype=torch.float64))[-1]
    assert abs(float(end.q[0]) - 0.5) < 1e-3


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"actuators": "muscle"}, "actuators must be one of 'torque', 'position', 'servo' or None, got 'muscle'"),
        ({"actuators": "position"}, "kp is missing"),
        ({"actuators": "servo"}, "max_speed is missing"),
        ({"actuators": "servo", "max_speed": 1.0}, "needs max_force: joint 'hinge' has no limit"),
        ({"actuators": "torque", "kp": 1.0}, "kp has no meaning for actuators='torque'"),
        ({"kd": 1.0}, "kd goes with actuators="),
        ({"hull_vertices": 65}, "hull_vertices must be an int from 4 to 64, got 65"),
        ({"timeout": 0.0}, "timeout must be positive"),
        ({"max_contacts": 0}, "max_contacts must be a positive int"),
    ],
)
def test_options_that_make_no_sense(options, match):
    with pytest.raises(ValueError, match=match):
        load_string(TEXT, **options)


def test_actuators_are_for_files_without_any():
    text = TEXT.replace("</mujoco>", '<actuator><motor joint="hinge"/></actuator></mujoco>')
    with pytest.raises(ValueError, match="actuators='torque' is for files without actuators, got one with 1"):
        load_string(text, actuators="torque")


def test_wrong_types():
    with pytest.raises(TypeError, match="text must be a str or bytes"):
        load_string(3)  # type: ignore[arg-type]
    for word in ("floating", "fuse", "strict"):
        with pytest.raises(TypeError, match=f"{word} must be"):
            load_string(TEXT, **{word: "x"})


def test_max_contacts():
    assert load_string(TEXT, ground=True, max_contacts=3).max_contacts == 3


def test_examine_tells_and_does_not_warn(tmp_path, recwarn):
    path = tmp_path / "a.xml"
    path.write_text(TEXT.replace("<worldbody>", '<option integrator="RK4" density="1.2"/><worldbody>'))
    model, findings = examine(path, ground=True)
    assert isinstance(findings, Findings) and not len(recwarn)
    assert (
        model.nv == 1
        and any("RK4" in line for line in findings.approximated)
        and any("fluid" in line for line in findings.refused)
    )
    assert any("timestep 0.002 s" in line for line in findings.honoured)
    with pytest.raises(TypeError, match="unknown option 'no'"):
        examine(path, no=1)


def test_warnings_point_to_the_caller(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text(TEXT.replace("<worldbody>", '<option integrator="implicit"/><worldbody>'))
    for call in (lambda: load(path), lambda: load_string(path.read_text())):
        with pytest.warns(LoadWarning, match="implicit") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]


def test_the_model_that_load_starts_from(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text(TEXT)
    assert mujoco_model(path, floating=True).nv == 7 and np.isclose(mujoco_model(path).opt.timestep, 0.002)


def test_bytes_are_text_too():
    assert load_string(TEXT.encode()) == load_string(TEXT)
    with pytest.raises(LoadError, match="robot7: "):
        load_string(b"\xff", name="robot7")
