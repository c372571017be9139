"""MJCF: joints and their stacks, ref and springref, masses, sites, keyframes, names, pickles; all against MuJoCo."""

from __future__ import annotations

import pickle

import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from costate.load import load_string
from costate.scene.keyframe import Keyframe
from tests.load.compare import differences, text_model

EXACT = 1e-8  # relative, what is asked for; measured 1e-14
NEAR = 1e-12  # of numbers that are copied or turned once

STACKS = """
<mujoco><compiler angle="radian"/><option timestep="0.003" gravity="1 2 -5"/><worldbody>
  <body name="a" pos=".1 .2 .3" quat=".9 .1 .2 .3">
    <joint name="s" type="slide" axis="1 2 0" ref=".3" springref=".2" stiffness="7" frictionloss=".4"/>
    <joint name="h" axis="0 1 1" pos=".1 0 .2" ref="-.4" springref=".1" stiffness="3" damping=".2"/>
    <joint name="b" type="ball" pos="0 .1 0" damping=".1" stiffness="2" range="0 1.2" limited="true"/>
    <geom type="box" size=".1 .2 .3"/>
    <body name="f" pos="0 0 .3" quat=".7 0 .7 0"><geom size=".1"/>
      <body name="c" pos="0 .2 .1">
        <joint axis="1 0 0" pos="0 0 .1" ref="1" armature=".3" range="-.5 2" limited="true"/>
        <joint type="slide" axis="0 1 0" ref="-1"/>
        <geom type="capsule" size=".1 .2" quat="1 1 0 0" mass="2"/>
        <site name="tip" pos=".1 .2 .3" quat="0 1 0 0"/>
        <body pos=".3 0 0"><joint/><geom size=".1"/></body>
      </body>
    </body>
  </body>
  <body name="free" pos="1 1 1" quat=".5 .5 .5 .5"><freejoint name="flight"/><geom type="cylinder" size=".1 .2"/></body>
  <site name="origin" pos="0 0 1"/>
</worldbody></mujoco>
"""


@pytest.fixture(scope="module")
def stacks() -> cs.Model:
    return load_string(STACKS)


def test_a_stack_of_joints_moves_as_in_mujoco(stacks, rng):
    assert max(differences(stacks, text_model(STACKS), rng).values()) < EXACT


def test_names_and_layout(stacks):
    assert stacks.body_names == ("a:s", "a:h", "a", "f", "c:c", "c", "body4", "free", "world:sites")
    assert stacks.joint_names == ("s", "h", "b", "f", "c", "c_1", "body4", "flight", "world:sites")
    m = text_model(STACKS)
    assert (stacks.nq, stacks.nv, stacks.nu) == (m.nq, m.nv, m.nu)
    assert np.array_equal(stacks.q0, m.qpos0)
    assert stacks.massless == (True, True, False, False, True, False, False, False, True)


def test_numbers_of_joints(stacks):
    m = text_model(STACKS)
    assert np.allclose(stacks.defaults["damping"], m.dof_damping, atol=0)
    assert np.allclose(stacks.defaults["armature"], m.dof_armature, atol=0)
    assert np.allclose(stacks.defaults["rest"], m.qpos_spring, atol=0)
    assert stacks.dry_dof == (0,) and stacks.defaults["dry_friction"].tolist() == [0.4]
    assert stacks.limit_body == (stacks.body("a"), stacks.joint("c"))
    assert stacks.defaults["limit_upper"].tolist() == [1.2, 2.0]


def test_options_are_kept(stacks):
    assert stacks.timestep == 0.003 and stacks.source == "<string>"
    assert stacks.defaults["gravity"].tolist() == [1, 2, -5]


def test_sites(stacks, rng):
    m = text_model(STACKS)
    data = mujoco.MjData(m)
    mujoco.mj_integratePos(m, data.qpos, rng.normal(size=m.nv), 1.0)
    mujoco.mj_kinematics(m, data)
    found = cs.kinematics(stacks, torch.tensor(data.qpos))
    for name in ("tip", "origin"):
        assert np.abs(found.site_position[stacks.site(name)].numpy() - data.site(name).xpos).max() < NEAR


def test_models_pickle_with_their_keyframes():
    keys = '<keyframe><key name="up" qpos="1"/></keyframe>'
    text = f'<mujoco><worldbody><body name="p"><joint/><geom size=".1" pos="0 0 1"/></body></worldbody>{keys}</mujoco>'
    model = load_string(text)
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model and copy.keyframes["up"].q.tolist() == [1.0] and copy.source == "<string>"
    other = load_string(text.replace('qpos="1"', 'qpos="2"'))
    assert other != model and other.topology == model.topology
    assert load_string(text, name="elsewhere") == model


def test_keyframes():
    text = """<mujoco><worldbody><body name="p" pos="0 0 1"><freejoint/><geom size=".1"/>
      <body><joint name="j"/><geom size=".1" pos="0 0 1"/></body></body></worldbody>
      <actuator><motor name="m" joint="j"/></actuator>
      <keyframe><key name="home" qpos="1 2 3 0 2 0 0 .5" qvel="1 2 3 4 5 6 7" ctrl=".3"/><key/></keyframe></mujoco>"""
    model, m = load_string(text), text_model(text)
    assert tuple(model.keyframes) == ("home", "key1")
    home = model.keyframes["home"]
    assert np.array_equal(home.q, m.key_qpos[0]) and home.q[4] == 1.0  # normalised
    assert home.v.tolist() == [1, 2, 3, 4, 5, 6, 7] and home.control.tolist() == [0.3]
    assert np.array_equal(model.keyframes["key1"].q, m.qpos0)
    with pytest.raises(ValueError, match="read-only"):
        home.q[0] = 1.0
    with pytest.raises(TypeError):
        model.keyframes["home"] = home  # type: ignore[index]
    assert Keyframe(home.q, home.v, home.control) == home and hash(home) == hash(Keyframe(home.q, home.v, home.control))


def test_names_that_clash_or_are_reserved():
    text = """<mujoco><worldbody><body name="x"><geom name="x" size=".1"/><site name="world"/>
      <body name="y"><joint name="x"/><geom size=".1" pos="0 0 1"/></body></body></worldbody>
      <equality><joint name="y" joint1="x"/></equality></mujoco>"""
    model = load_string(text)
    assert model.body_names == ("x", "y") and model.joint_names == ("x_1", "x")
    assert model.coupling_names == ("y",) and model.site_names == ("site0",)


def test_a_mocap_body_is_placed_by_parameters():
    text = """<mujoco><worldbody><body name="hand" mocap="true" pos="1 0 0"><geom size=".1"/></body>
      <body name="ball" pos="0 0 2"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    model = load_string(text)
    q = torch.tensor(model.q0)
    pos = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], dtype=torch.float64, requires_grad=True)
    params = model.params().place("hand", pos, (0.0, 1.0, 0.0, 0.0))
    found = cs.kinematics(model, q.expand(2, -1), params=params)
    assert torch.equal(found.position[:, model.body("hand")], pos)
    assert found.quaternion[1, model.body("hand")].tolist() == [0, 1, 0, 0]
    found.position.sum().backward()
    assert torch.equal(pos.grad, torch.ones_like(pos))
    assert model.params()["joint_pos"][model.body("hand")].tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="'ball' moves freely"):
        model.params().place("ball", (0.0, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"joint_pos must be 3 numbers, or \[\*batch, 3\], got shape \(2,\)"):
        model.params().place("hand", (0.0, 1.0))


POINT_MASS = """<mujoco><compiler boundmass="0"/><worldbody><body name="arm"><joint axis="0 1 0"/>
  <inertial pos="0 0 -1" mass="2" diaginertia="{arm}"/>
  <body name="tip" pos="0 0 -2" quat="1 0 1 0"><inertial pos="0 .1 0" mass="1" diaginertia="{tip}"/></body>
</body></worldbody></mujoco>"""


@pytest.mark.parametrize(("arm", "tip"), [("1 1 1", "0 0 0"), ("0 0 0", "1 2 2")])
def test_point_masses_that_are_fixed_to_a_body(arm, tip, rng):
    text = POINT_MASS.format(arm=arm, tip=tip)
    model = load_string(text)
    assert model.massless == (False, True)
    assert max(differences(model, text_model(text), rng).values()) < EXACT


def test_flags_switch_forces_off(rng):
    words = ("gravity", "spring", "damper", "limit", "frictionloss", "contact")
    flags = "<option><flag " + " ".join(f'{word}="disable"' for word in words) + "/></option>"
    joint = '<joint damping="1" stiffness="2" frictionloss="3" range="-1 1" limited="true"/>'
    bodies = f'<body>{joint}<geom size=".1" pos="1 0 0"/></body><body pos="3 0 0"><freejoint/><geom size=".1"/></body>'
    text = f"<mujoco>{flags}<worldbody>{bodies}</worldbody></mujoco>"
    model = load_string(text)
    assert not model.limit_body and not model.dry_dof and not len(model.pairs)
    assert max(differences(model, text_model(text), rng).values()) < EXACT
