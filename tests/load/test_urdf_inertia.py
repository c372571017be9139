"""Repairs of inertias: exactly what the note says, as little as possible, and nothing where MuJoCo asks for nothing."""

import mujoco
import numpy as np
import pytest

from costate.load.urdf_inertia import LIGHT_END, LIGHT_INSIDE, MARGIN, RADIUS, SLIMMEST, WATER, possible
from tests.load.urdf_text import collision, inertial, joint, link, pendulum, repaired, robot

DIGITS = 1e-7  # relative: MARGIN of 1e-9 and rounding, with room
BOX = collision('<box size="0.2 0.4 0.6"/>')


def moments(m, name: str) -> np.ndarray:
    return np.sort(m.body(name).inertia)


def test_possible_inertias_stay_as_they_are():
    m, notes = repaired(pendulum(inertial(2.0, 1.0, 2.0, 3.0)))
    assert notes == [] and m.body("arm").mass[0] == 2.0 and moments(m, "arm").tolist() == [1.0, 2.0, 3.0]


def test_moments_that_break_the_triangle_go_to_the_nearest_that_do_not():
    m, notes = repaired(pendulum(inertial(2.0, 1.0, 1.0, 5.0)))
    assert np.allclose(moments(m, "arm"), [2.0, 2.0, 4.0], rtol=DIGITS)  # each moves by (5 - 1 - 1) / 3
    assert m.body("arm").mass[0] == 2.0
    assert len(notes) == 1 and "'arm'" in notes[0] and "1, 1, 5" in notes[0] and "2, 2, 4" in notes[0]


def test_the_nearest_inertia_is_the_nearest(rng):
    """No possible inertia in a dense random sample around it is nearer to the one given; axes stay."""
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    given = axes @ np.diag([0.1, 0.3, 1.0]) @ axes.T
    nearest, words = possible(given)
    distance = np.linalg.norm(nearest - given)
    assert "A + B >= C" in words and np.allclose(axes.T @ nearest @ axes, np.diag([0.3, 0.5, 0.8]), atol=DIGITS)
    rivals = 0
    for _ in range(2000):
        step = rng.normal(size=(3, 3))
        rival = nearest + 0.2 * rng.random() * (step + step.T)
        A, B, C = np.linalg.eigvalsh(rival)
        if A > 0 and A + B >= C:
            rivals += 1
            assert np.linalg.norm(rival - given) > distance - 10 * MARGIN
    assert rivals > 100


@pytest.mark.parametrize("least", [0.0, -0.3])
def test_a_moment_that_is_not_positive_becomes_small(least):
    m, notes = repaired(pendulum(inertial(2.0, 1.0, 1.0, least)))
    assert np.allclose(moments(m, "arm"), [SLIMMEST, 1.0, 1.0], rtol=DIGITS)
    assert len(notes) == 1 and "not all positive" in notes[0]


def test_links_that_do_not_move_are_repaired_only_where_mujoco_refuses_them():
    joints = joint("hinge", "base", "arm"), joint("weld", "arm", "plate", "fixed", "")
    rest = link("base", inertial(0, 0, 0, 0)), link("arm", inertial()), *joints
    m, notes = repaired(robot(*rest, link("plate", inertial(1.0, 0, 0, 0))))
    assert notes == [] and m.body("plate").mass[0] == 1.0 and not m.body("plate").inertia.any()
    m, notes = repaired(robot(*rest, link("plate", inertial(1.0, 1, 1, 0))))
    assert len(notes) == 1 and "'plate'" in notes[0]


def test_a_moving_link_with_mass_but_no_inertia_gets_that_of_a_box():
    shifted = '<origin xyz="0.01 0.02 0.03" rpy="0.1 0.2 0.3"/>'
    m, notes = repaired(pendulum(inertial(3.0, 0, 0, 0, origin=shifted), BOX))
    body = m.body("arm")
    x, y, z = 0.2, 0.4, 0.6
    assert np.allclose(moments(m, "arm"), np.sort([y * y + z * z, x * x + z * z, x * x + y * y]) * 3.0 / 12, rtol=DIGITS)
    assert body.mass[0] == 3.0 and np.allclose(body.ipos, [0.01, 0.02, 0.03], atol=0)
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, body.iquat)
    assert np.allclose(np.abs(rotation.reshape(3, 3)).max(0), 1.0)  # the box lies along the link's axes
    assert len(notes) == 1 and "'arm'" in notes[0] and "0.2 x 0.4 x 0.6 m" in notes[0]


def test_without_shapes_it_is_a_ball_of_water():
    m, notes = repaired(pendulum(inertial(3.0, 0, 0, 0)))
    radius = (3 * 3.0 / (4 * np.pi * WATER)) ** (1 / 3)
    assert np.allclose(moments(m, "arm"), 0.4 * 3.0 * radius**2, rtol=DIGITS) and "ball of water" in notes[0]


def test_a_link_fixed_to_a_moving_one_carries_the_inertia():
    text = robot(
        link("base"), link("arm", inertial(0, 0, 0, 0)), link("weight", inertial(4.0)), joint("hinge", "base", "arm"),
        joint("weld", "arm", "weight", "fixed", ""),
    )  # fmt: skip
    m, notes = repaired(text)
    assert notes == [] and m.body("arm").mass[0] == 0 and m.body("weight").mass[0] == 4.0


def test_massless_links_on_the_way_to_mass_get_a_millionth_of_it():
    links = link("base"), link("slide"), link("arm", inertial(2.0))
    m, notes = repaired(robot(*links, joint("rail", "base", "slide", "prismatic"), joint("hinge", "slide", "arm")))
    assert m.body("slide").mass[0] == LIGHT_INSIDE * 2.0
    assert np.allclose(m.body("slide").inertia, LIGHT_INSIDE * 2.0 * RADIUS**2)
    assert len(notes) == 1 and "'slide'" in notes[0] and "2e-06 kg" in notes[0]


def test_massless_links_at_the_end_get_a_thousandth():
    text = robot(
        link("base"), link("arm", inertial(2.0)), link("tip"), joint("hinge", "base", "arm"), joint("wrist", "arm", "tip")
    )
    m, notes = repaired(text)
    assert m.body("tip").mass[0] == LIGHT_END * 2.0 and len(notes) == 1 and "'tip'" in notes[0]


def test_a_given_inertia_stays_where_only_mass_is_missing():
    m, _ = repaired(pendulum(inertial(0.0, 1.0, 2.0, 2.5)))
    assert moments(m, "arm").tolist() == [1.0, 2.0, 2.5] and m.body("arm").mass[0] > 0


def test_the_root_is_repaired_only_if_it_floats():
    text = robot(link("base", inertial(5.0, 0, 0, 0), BOX), link("arm", inertial()), joint("hinge", "base", "arm"))
    m, notes = repaired(text)
    assert notes == [] and not m.body("base").inertia.any()
    m, notes = repaired(text, floating=True)
    assert len(notes) == 1 and "'base'" in notes[0] and m.body("base").inertia.all()


def test_a_link_without_inertial_has_the_inertia_of_its_shapes():
    m, notes = repaired(pendulum(BOX))
    assert m.body("arm").mass[0] == pytest.approx(WATER * 0.2 * 0.4 * 0.6) and "no <inertial>" in notes[0] and "'arm'" in notes[0]


def test_incomplete_inertials():
    m, notes = repaired(pendulum('<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'))
    assert moments(m, "arm").tolist() == [1.0, 1.0, 1.0] and "ixy, ixz, iyz" in notes[0]
    m, notes = repaired(pendulum('<inertial><mass value="2"/></inertial>', BOX))
    assert m.body("arm").mass[0] == 2.0 and "no <inertia>" in notes[0] and "box around its shapes" in notes[1]
    m, notes = repaired(pendulum('<inertial><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'))
    assert "no mass" in notes[0] and m.body("arm").mass[0] == LIGHT_END
    m, notes = repaired(pendulum(inertial(-1.0)))
    assert "the mass is -1 kg" in notes[0]


def test_what_the_file_leaves_to_mujocos_compiler_is_left_to_it():
    balance = '<mujoco><compiler balanceinertia="true"/></mujoco>'
    m, notes = repaired(pendulum(inertial(1.0, 1.0, 1.0, 5.0)).replace('"test">', f'"test">{balance}'))
    assert notes == [] and np.allclose(moments(m, "arm"), 7 / 3)
    bound = '<mujoco><compiler boundmass="0.25" boundinertia="0.125"/></mujoco>'
    m, notes = repaired(pendulum(inertial(0, 0, 0, 0)).replace('"test">', f'"test">{bound}'))
    assert notes == [] and m.body("arm").mass[0] == 0.25
