"""Model.summary: readable tables of everything in a model."""

from dataclasses import replace

import numpy as np

import costate as cs
from costate.scene.keyframe import Keyframe
from costate.scene.summary import MOST_ROWS

BOX = cs.Box((0.1, 0.2, 0.3), friction=0.6)


def table(model: cs.Model, name: str) -> list[list[str]]:
    """The rows of the table whose second column has this head, as words."""
    for part in model.summary().split("\n\n"):
        head, *rows = part.splitlines()
        if head.split() and head.split()[0] == name:
            return [row.split() for row in rows]
    return []


def arm() -> cs.Model:
    scene = cs.Scene(gravity=(0, 0, -2))
    scene.add_ground(friction=0.5)
    scene.add_body("base", joint=cs.Free(), pos=(0, 0, 2), shapes=BOX)
    scene.add_body(
        "upper", parent="base", joint=cs.Revolute((0, 1, 0), name="hip", limits=(-0.5, 1.25)), shapes=BOX, pos=(0, 0, 1)
    )
    scene.add_body("lower", parent="upper", joint=cs.Ball(limit=2.0), shapes=BOX, pos=(0, 0, 1))
    scene.add_body("slider", joint=cs.Prismatic((0, 0, 1)), shapes=BOX, pos=(5, 0, 3))
    scene.add_motor("hip", gear=3.0, control_limits=(-1, 2))
    scene.add_position("slider", kp=100.0, kd=2.0, force_limits=50.0)
    scene.add_velocity("lower", dof=1, kd=0.25)
    scene.add_servo("slider", gain=20.0, max_force=7.0, max_speed=0.5, name="servo")
    scene.add_general("hip", gain=2.0, bias=-0.5, kp=1.5, name="spring")
    scene.add_site("hand", body="lower", pos=(0.1, 0, 0.25))
    return scene.build()


def test_bodies_and_joints():
    rows = table(arm(), "body")
    assert [row[:5] for row in rows] == [
        ["0", "base", "world", "base", "free"],
        ["1", "upper", "base", "hip", "revolute"],
        ["2", "lower", "upper", "lower", "ball"],
        ["3", "slider", "world", "slider", "prismatic"],
    ]
    assert rows[1][5:] == ["0", "1", "0", "-0.5", "..", "1.25", "7", "6", "48"]
    assert rows[2][5:] == ["-", "<=", "2", "8:12", "7:10", "48"]
    assert rows[3][5:] == ["0", "0", "1", "-", "12", "10", "48"]


def test_actuators():
    assert table(arm(), "actuator") == [
        ["0", "hip", "motor", "hip", "3", "-", "-1", "..", "2", "-"],
        ["1", "slider", "position", "slider", "1", "kp", "100,", "kd", "2", "-", "-50", "..", "50"],
        ["2", "lower_1", "velocity", "lower[1]", "1", "kd", "0.25", "-", "-"],
        ["3", "servo", "servo", "slider", "1", "gain", "20,", "speed", "0.5", "-", "-7", "..", "7"],
        ["4", "spring", "general", "hip", "1", "kp", "1.5,", "gain", "2,", "bias", "-0.5", "-", "-"],
    ]


def test_shapes_and_sites_and_totals():
    model = arm()
    rows = table(model, "shape")
    assert rows[0] == ["0", "ground", "plane", "world", "-", "0.5", "3", "4"]
    assert rows[1] == ["1", "base/0", "box", "base", "0.1,", "0.2,", "0.3", "0.6", "3", str((model.pairs == 1).sum())]
    assert table(model, "site") == [["0", "hand", "lower", "0.1", "0", "0.25"]]
    lines = model.summary().splitlines()
    assert lines[0] == repr(model) and lines[1] == "mass 192 kg; gravity (0, 0, -2) m/s^2"
    assert lines[-1] == f"{len(model.shape_body)} shapes in {len(model.pairs)} pairs that may touch"


def test_what_a_file_says():
    model = arm()
    frame = Keyframe(model.q0, np.zeros(model.nv), np.zeros(model.nu))
    model = replace(model, timestep=0.002, source="arm.xml", keyframes={"home": frame, "far away": frame})
    assert model.summary().splitlines()[1].endswith("time step 0.002 s; from arm.xml")
    assert table(model, "keyframe") == [["0", "home"], ["1", "far", "away"]]


def test_hulls_terrain_and_planar_shapes():
    scene = cs.Scene()
    scene.add_shape(cs.Heightfield(np.zeros((3, 4)), (1.0, 2.0)), name="hills")
    scene.add_body("stone", joint=cs.Free(), pos=(0, 0, 1), shapes=cs.Hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]))
    rows = table(scene.build(), "shape")
    assert rows[0] == ["0", "hills", "heightfield", "world", "1,", "2;", "3", "x", "4", "heights", "1", "3", "1"]
    assert rows[1] == ["1", "stone/0", "hull", "stone", "4", "corners", "1", "3", "1"]
    scene = cs.Scene(planar=True)
    scene.add_ground()
    scene.add_body("disc", pos=(0, 1), shapes=cs.Circle(0.2))
    model = scene.build()
    assert [row[2] for row in table(model, "shape")] == ["half", "circle"] and "gravity (0, -9.81)" in model.summary()


def test_only_what_there_is():
    scene = cs.Scene(collisions=False)
    scene.add_body("a", joint=cs.Free(), shapes=BOX)
    text = scene.build().summary()
    assert len(text.splitlines()) == 5
    for word in ("actuator", "shape", "constraint", "site", "keyframe", "touch"):
        assert word not in text


def test_long_tables_are_cut():
    scene = cs.Scene(collisions=False)
    for _ in range(MOST_ROWS + 5):
        scene.add_body(joint=cs.Free(), shapes=BOX)
    assert "... and 5 more" in scene.build().summary()


def test_names_may_be_anything():
    scene = cs.Scene(collisions=False)
    scene.add_body("[bold] {x} %s größer", joint=cs.Free(), shapes=BOX)
    assert "[bold] {x} %s größer" in scene.build().summary()
