"""Models from files: MJCF and URDF, through MuJoCo's compiler."""

from costate.load.errors import LoadError, LoadWarning, UnsupportedFeature
from costate.load.findings import Findings
from costate.load.loading import examine, load, load_string, mujoco_model

__all__ = ["Findings", "LoadError", "LoadWarning", "UnsupportedFeature", "examine", "load", "load_string", "mujoco_model"]
