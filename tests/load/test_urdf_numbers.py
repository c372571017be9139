"""Sloppy numbers of URDFs: what is read, what is said about it, what is refused."""

import numpy as np
import pytest

from costate.load import LoadError
from costate.load.urdf_numbers import scan
from tests.load.urdf_text import collision, inertial, pendulum, repaired

EXACT = ["1.", " 1e-3 ", "+1", ".5", "-.5", "1E5", "007"]
SLOPPY = {"1,": 1.0, "0.5f": 0.5, "-1.57.": -1.57, "1e": 1.0, "1;": 1.0, "1,5": 1.5, "2 3": 2.0, "$(optenv ANGLE 0.25)": 0.25}
REFUSED = ["abc", "--1", "${pi/2}", "$(arg angle)", "nan", ","]


@pytest.mark.parametrize("text", EXACT)
def test_numbers_that_are_fine(text):
    assert scan(text, 1) == ([float(text)], True)


@pytest.mark.parametrize("text", SLOPPY)
def test_numbers_read_with_good_will(text):
    m, notes = repaired(
        pendulum(more=f'<limit lower="-2" upper="{text}"/>' if SLOPPY[text] > 0 else f'<limit lower="{text}" upper="2"/>')
    )
    assert m.jnt_range[0, 1 if SLOPPY[text] > 0 else 0] == SLOPPY[text]
    assert len(notes) == 1 and "'hinge'" in notes[0] and repr(text) in notes[0] and f"read as {SLOPPY[text]:g}" in notes[0]


@pytest.mark.parametrize("text", REFUSED)
def test_numbers_that_cannot_be_read(text):
    with pytest.raises(LoadError, match=r"joint 'hinge': <limit upper> must be a number"):
        repaired(pendulum(more=f'<limit lower="-2" upper="{text}"/>'))


VECTORS = {
    "0.5, 1, -2": ([0.5, 1, -2], True),
    "0.5,1,-2": ([0.5, 1, -2], True),
    "0,5 1,0 -2,0": ([0.5, 1, -2], True),
    "1 2 3 4": ([1, 2, 3], True),
    "1 2": ([1, 2, 0], True),
    "  1   2\n\t3 ": ([1, 2, 3], False),
    "": ([0, 0, 0], False),
}


@pytest.mark.parametrize("text", VECTORS)
def test_vectors(text):
    values, noted = VECTORS[text]
    m, notes = repaired(pendulum(more=f'<origin xyz="{text}"/><limit lower="-1" upper="1"/>'))
    assert m.body("arm").pos.tolist() == values and bool(notes) == noted


def test_a_single_scale_is_one_for_all_axes_and_a_single_side_of_a_box_is_refused():
    with pytest.raises(LoadError, match="size> must be 3 numbers"):
        repaired(pendulum(inertial(), collision('<box size="1"/>')))
    assert scan("2", 3) == ([2.0], False)


def test_huge_numbers():
    for mass in ("1e400", "1e16", "inf"):
        with pytest.raises(LoadError, match="link 'arm': <mass value> must be finite and at most 1e"):
            repaired(pendulum(inertial().replace('value="1.0"', f'value="{mass}"')))
    m, notes = repaired(pendulum(more='<limit lower="-inf" upper="inf"/>'))
    assert notes == [] and np.abs(m.jnt_range).min() >= 1e15  # far away, but finite
