"""Equality constraints of MJCF files: errors in random states against MuJoCo's, and what is refused or left out."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from costate.load import LoadWarning, UnsupportedFeature, load_string
from tests.load.compare import random_state, text_model

NEAR = 1e-9  # m and rad

BODIES = """<mujoco><compiler angle="radian"/><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/><site name="s" pos=".1 .2 .3" quat="1 1 0 0"/></body>
  <body name="b" pos="1 0 1" quat="1 0 1 0"><freejoint/><geom type="box" size=".1 .2 .3"/>
    <site name="t" pos="0 .2 .1" quat="1 0 0 1"/></body>
  <body name="c" pos="3 0 0"><joint name="p" ref=".3"/><geom size=".1" pos="1 0 0"/>
    <body name="d"><joint name="q" type="slide" ref="-.2"/><geom size=".1" pos="1 0 0"/></body></body>
</worldbody><equality>{}</equality></mujoco>"""


EQUALITIES = (
    '<connect body1="a" body2="b" anchor=".1 .2 .3"/>',
    '<connect body1="b" anchor=".1 .2 .3"/>',
    '<connect site1="s" site2="t"/>',
    '<weld body1="a" body2="b"/>',
    '<weld body1="a" body2="b" relpose=".1 .2 .3 1 0 1 0" anchor=".3 .2 .1"/>',
    '<weld body1="b"/>',
    '<weld site1="s" site2="t"/>',
    '<joint joint1="p" polycoef=".4"/>',
    '<joint joint1="p" joint2="q" polycoef=".1 .2 .3 .4 .5"/>',
)


@pytest.mark.parametrize("equality", EQUALITIES)
def test_errors_are_as_large_as_mujocos(equality, rng):
    """MuJoCo's rows of a tie are in world axes, ours in those of frame a: how far points are apart agrees."""
    text = BODIES.format(equality)
    model, m = load_string(text), text_model(text)
    data = mujoco.MjData(m)
    assert model.ne == {"<connect": 3, "<weld": 6, "<joint": 1}[equality.split()[0]]
    for _ in range(4):
        data.qpos[:] = q = random_state(m, rng)[0]
        mujoco.mj_forward(m, data)
        theirs = float(np.linalg.norm(data.efc_pos[: min(data.ne, 3)]))
        ours = float(np.linalg.norm(cs.constraint_error(model, torch.tensor(q))[:3]))
        assert abs(ours - theirs) < NEAR * max(1.0, theirs)


@pytest.mark.parametrize("equality", EQUALITIES)
def test_what_satisfies_ours_satisfies_mujocos(equality, rng):
    text = BODIES.format(equality)
    model, m = load_string(text), text_model(text)
    data = mujoco.MjData(m)
    data.qpos[:] = cs.project(model, torch.tensor(random_state(m, rng, 0.2)[0])).numpy()
    mujoco.mj_forward(m, data)
    assert data.ne == model.ne and np.abs(data.efc_pos[: data.ne]).max() < NEAR


def test_tied_bodies_still_touch():
    text = BODIES.format('<connect body1="a" body2="b" anchor=".1 .2 .3"/>')
    assert frozenset(("a/0", "b/0")) in {frozenset(load_string(text).shape_names[i] for i in p) for p in load_string(text).pairs}


def test_inactive_ones_are_left_out_with_a_warning():
    text = BODIES.format('<weld name="w" body1="a" body2="b" active="false"/><joint name="j" joint1="p"/>')
    with pytest.warns(LoadWarning, match="constraint 'w': not active"):
        model = load_string(text)
    assert model.tie_names == () and model.coupling_names == ("j",)


def test_soft_ones_become_rigid_with_a_warning():
    with pytest.warns(LoadWarning, match="constraint 'w': solref and solimp; constraints are rigid"):
        model = load_string(BODIES.format('<weld name="w" body1="a" body2="b" solref=".1 1"/>'))
    assert model.defaults["tie_softness"].tolist() == [0.0]


def test_tendons_are_refused():
    text = BODIES.format('<tendon name="e" tendon1="t"/>').replace(
        "<equality>", '<tendon><fixed name="t"><joint joint="p" coef="1"/></fixed></tendon><equality>'
    )
    with pytest.raises(UnsupportedFeature, match="constraint 'e': equality of type tendon"):
        load_string(text)


def test_constraints_can_be_disabled():
    text = BODIES.format('<weld body1="a" body2="b"/>').replace(
        "<worldbody>", '<option><flag equality="disable"/></option><worldbody>'
    )
    assert load_string(text).ne == 0
