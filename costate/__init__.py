"""costate: a differentiable physics engine. Steps of thousands of worlds at once, with exact reverse-mode gradients."""

from costate._native.cpu import get_num_threads, instruction_set, set_num_threads
from costate.distance import Distance, distance
from costate.dynamics import (
    Kinematics,
    centre_of_mass,
    constraint_error,
    energy,
    forward_dynamics,
    inverse_dynamics,
    kinematics,
    mass_matrix,
    momentum,
    point_jacobian,
    project,
)
from costate.info import Constraints, Contacts, Info, Rows, Status
from costate.ray import Rays, ray_cast
from costate.report import GradientReport
from costate.scene import (
    Ball,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    Heightfield,
    Hull,
    Model,
    Params,
    Planar,
    Plane,
    Prismatic,
    Revolute,
    Scene,
    Sphere,
    Unconstrained,
)
from costate.sim import Simulator
from costate.solver import PGS, Contact
from costate.state import State, Trajectory

__version__ = "0.1.0"

__all__ = [
    "PGS", "Ball", "Box", "Capsule", "Constraints", "Contact", "Contacts", "Cylinder", "Distance", "Ellipsoid", "Fixed",
    "Free", "GradientReport", "Heightfield", "Hull", "Info", "Kinematics", "Model", "Params", "Planar", "Plane", "Prismatic",
    "Rays", "Revolute", "Rows", "Scene", "Simulator", "Sphere", "State", "Status", "Trajectory", "Unconstrained",
    "centre_of_mass", "constraint_error", "distance", "energy", "forward_dynamics", "get_num_threads", "instruction_set",
    "inverse_dynamics", "kinematics", "mass_matrix", "momentum", "point_jacobian", "project", "ray_cast", "set_num_threads",
]  # fmt: skip
