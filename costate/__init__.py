"""costate: a differentiable physics engine. Steps of thousands of worlds at once, with exact reverse-mode gradients."""

from costate._native.cpu import get_num_threads, instruction_set, set_num_threads
from costate.dynamics import (
    Kinematics,
    centre_of_mass,
    energy,
    forward_dynamics,
    inverse_dynamics,
    kinematics,
    mass_matrix,
    momentum,
    point_jacobian,
)
from costate.scene import (
    Ball,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    Model,
    Params,
    Planar,
    Prismatic,
    Revolute,
    Scene,
    Sphere,
    Unconstrained,
)
from costate.sim import Info, Simulator
from costate.state import State, Trajectory

__version__ = "0.1.0"

__all__ = [
    "Ball", "Box", "Capsule", "Cylinder", "Ellipsoid", "Fixed", "Free", "Info", "Kinematics", "Model", "Params", "Planar",
    "Prismatic", "Revolute", "Scene", "Simulator", "Sphere", "State", "Trajectory", "Unconstrained", "centre_of_mass", "energy",
    "forward_dynamics", "get_num_threads", "instruction_set", "inverse_dynamics", "kinematics", "mass_matrix", "momentum",
    "point_jacobian", "set_num_threads",
]  # fmt: skip
