"""Sensors against MuJoCo's own, on the same robot in the same states."""

import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from costate.sensors import (
    Accelerometer,
    ActuatorForce,
    Encoder,
    EncoderRate,
    FrameAcceleration,
    FrameAngularAcceleration,
    FrameAngularVelocity,
    FramePosition,
    FrameQuaternion,
    FrameVelocity,
    Gyro,
    JointTorque,
    Magnetometer,
    RangeFinder,
    ReactionForce,
    ReactionTorque,
    Sensors,
    SubtreeAngularMomentum,
    SubtreeCentre,
    SubtreeVelocity,
    Touch,
    Velocimeter,
)
from tests.sensors.robots import DT, GRAVITY, MJCF, random_control, random_state, robot

KINEMATIC = 1e-9  # of numbers of the order of 1 to 10
# relative: accelerations come from two factorisations of mass matrices with entries from 1e-3 to 5; measured 1e-12
DYNAMIC = 1e-9

OBJECT, SITE, BODY = 'objtype="site" objname', 'reftype="site" refname', 'reftype="xbody" refname'
STATE = {
    '<jointpos joint="hip"/>': Encoder("hip"),
    '<jointpos joint="slide"/>': Encoder("rail"),  # joints go by the names of their bodies, too
    '<jointvel joint="knee"/>': EncoderRate("knee"),
    '<ballquat joint="ball"/>': Encoder("ball"),
    '<ballangvel joint="ball"/>': EncoderRate("ball"),
    '<gyro site="imu"/><gyro site="hand"/>': Gyro(["imu", "hand"]),
    '<velocimeter site="end"/>': Velocimeter("end"),
    '<magnetometer site="hand"/>': Magnetometer("hand"),
    f'<framepos {OBJECT}="end"/>': FramePosition("end"),
    '<framepos objtype="xbody" objname="arm"/>': FramePosition("arm"),
    '<framepos objtype="body" objname="arm"/>': FramePosition("com:arm"),
    f'<framepos {OBJECT}="end" {SITE}="imu"/>': FramePosition("end", relative_to="imu"),
    f'<framequat {OBJECT}="imu"/>': FrameQuaternion("imu"),
    f'<framequat {OBJECT}="end" {BODY}="thigh"/>': FrameQuaternion("end", relative_to="thigh"),
    f'<framelinvel {OBJECT}="hand"/>': FrameVelocity("hand"),
    f'<framelinvel {OBJECT}="end" {SITE}="ankle"/>': FrameVelocity("end", relative_to="ankle"),
    f'<frameangvel {OBJECT}="end"/>': FrameAngularVelocity("end"),
    f'<frameangvel {OBJECT}="end" {SITE}="ankle"/>': FrameAngularVelocity("end", relative_to="ankle"),
    '<subtreecom body="thigh"/>': SubtreeCentre("thigh"),
    '<subtreelinvel body="trunk"/>': SubtreeVelocity("trunk"),
    '<subtreeangmom body="thigh"/>': SubtreeAngularMomentum("thigh"),
}
STEP = {
    '<accelerometer site="imu"/><accelerometer site="hand"/>': Accelerometer(["imu", "hand"]),
    '<accelerometer site="end"/>': Accelerometer("end"),
    f'<framelinacc {OBJECT}="end"/>': FrameAcceleration("end"),
    f'<frameangacc {OBJECT}="end"/>': FrameAngularAcceleration("end"),
    '<force site="ankle"/><force site="hand"/>': ReactionForce(["ankle", "hand"]),
    '<torque site="ankle"/><torque site="hand"/>': ReactionTorque(["ankle", "hand"]),
    '<force site="imu"/>': ReactionForce("imu"),  # nothing holds a free body
    '<actuatorfrc actuator="hip"/><actuatorfrc actuator="knee"/>': ActuatorForce(["hip", "knee"]),
    '<jointactuatorfrc joint="slide"/>': JointTorque("slide"),
}


def peer(model, elements, state, control):
    """MuJoCo's sensordata of every world."""
    mj = mujoco.MjModel.from_xml_string(MJCF.format(sensors="".join(elements)))
    data, found = mujoco.MjData(mj), []
    for q, v, u in zip(*(x.numpy() for x in (*state, control)), strict=True):
        data.qpos, data.qvel, data.ctrl = q, v, u
        mujoco.mj_forward(mj, data)
        found.append(data.sensordata.copy())
    return np.stack(found)


@pytest.mark.parametrize(("table", "bound"), [(STATE, KINEMATIC), (STEP, DYNAMIC)], ids=["state", "step"])
def test_readings_are_mujocos(table, bound):
    model = robot()
    sensors, state, control = Sensors(model, table.values()), random_state(model, 20), random_control(model, 20)
    found = sensors(cs.Simulator(model, dt=DT), state, control)
    expected = peer(model, table, state, control)
    assert found.shape == expected.shape == (20, sensors.width)
    for (name, x), y in zip(sensors.named(found.numpy()).items(), sensors.named(expected).values(), strict=True):
        if name == "frame acceleration end":
            y = y + np.array(GRAVITY)  # MuJoCo's has minus gravity in it
        np.testing.assert_allclose(x, y, rtol=bound, atol=bound * max(1, np.abs(y).max()), err_msg=name)


TOUCH = """
<mujoco>
  <option timestep="0.002" cone="elliptic"/>
  <default><geom solref="0.004 1" friction="0.5"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <site name="eye" pos="1.05 0.02 3" euler="180 0 0"/>
    <body pos="0 0 0.0999">
      <freejoint/>
      <geom type="sphere" size="0.1" mass="2"/>
      <site name="ball" size="0.2"/>
    </body>
    <body pos="1 0 0.1">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.1" mass="5"/>
      <site name="crate" type="box" size="0.3 0.2 0.2"/>
    </body>
  </worldbody>
  <sensor><touch site="ball"/><touch site="crate"/><rangefinder site="eye"/></sensor>
</mujoco>
"""
# N. MuJoCo's contacts are soft and still creep after a second
RESTING = 1e-3


def test_touch_and_range_at_rest_are_mujocos():
    mj = mujoco.MjModel.from_xml_string(TOUCH)
    data = mujoco.MjData(mj)
    for _ in range(1500):
        mujoco.mj_step(mj, data)
    mujoco.mj_forward(mj, data)
    scene = cs.Scene(friction_rule="maximum")
    scene.add_ground(friction=0.5)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, mass=2.0, friction=0.5))
    scene.add_body("crate", joint=cs.Free(), pos=(1, 0, 0.1), shapes=cs.Box((0.2, 0.1, 0.1), mass=5.0, friction=0.5))
    scene.add_body("mast", pos=(1.05, 0.02, 3), quat=(0, 1, 0, 0), mass=1.0, inertia=(1, 1, 1))
    model = scene.build()
    sim, sensors = cs.Simulator(model, dt=DT), Sensors(model, [Touch(["ball", "crate"]), RangeFinder("mast")])
    found = sensors(sim, sim.rollout(sim.initial_state(), steps=500)[-1])
    assert torch.allclose(found[:2], torch.tensor(data.sensordata[:2]), rtol=0, atol=RESTING)
    assert torch.allclose(found[:2], 9.81 * torch.tensor([2.0, 5.0], dtype=torch.float64), rtol=1e-6)
    assert abs(found[2] - data.sensordata[2]) < 1e-3 and abs(found[2] - 2.8) < 1e-6  # MuJoCo's crate sinks in
