"""Files for the tests of the command line."""

import pytest

from tests.cli.models import FLUID, MJCF, robot


@pytest.fixture
def saved(tmp_path):
    """A saved model."""
    path = tmp_path / "robot.npz"
    robot().save(path)
    return path


@pytest.fixture
def mjcf(tmp_path):
    """A file that loads."""
    path = tmp_path / "hopper.xml"
    path.write_text(MJCF)
    return path


@pytest.fixture
def fluid(tmp_path):
    """A file with something that cannot be represented."""
    path = tmp_path / "fluid.xml"
    path.write_text(FLUID)
    return path
