"""costate: a differentiable physics engine. Steps of thousands of worlds at once, with exact reverse-mode gradients."""

from costate import render
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
from costate.lcp import LCPError, LCPSolution, lcp
from costate.load import LoadError, LoadWarning, UnsupportedFeature, load, load_string
from costate.ray import Rays, ray_cast
from costate.report import GradientReport
from costate.scene import (
    Ball,
    Box,
    Capsule,
    Circle,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    HalfPlane,
    Heightfield,
    Hull,
    Model,
    Params,
    Planar,
    Plane,
    Polygon,
    Prismatic,
    Rectangle,
    Revolute,
    Scene,
    Sphere,
    Unconstrained,
)
from costate.scene.keyframe import Keyframe
from costate.sensors import (
    Accelerometer,
    ActuatorForce,
    ContactForce,
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
    LimitDistance,
    LimitForce,
    Magnetometer,
    NoGradientError,
    RangeFinder,
    ReactionForce,
    ReactionTorque,
    Sensor,
    Sensors,
    SubtreeAngularMomentum,
    SubtreeCentre,
    SubtreeVelocity,
    Touch,
    Velocimeter,
)
from costate.sim import Simulator
from costate.solver import PGS, Contact, InteriorPoint
from costate.state import State, Trajectory

__version__ = "0.1.0"

__all__ = [
    "PGS", "Accelerometer", "ActuatorForce", "Ball", "Box", "Capsule", "Circle", "Constraints", "Contact", "ContactForce",
    "Contacts", "Cylinder", "Distance", "Ellipsoid", "Encoder", "EncoderRate", "Fixed", "FrameAcceleration",
    "FrameAngularAcceleration", "FrameAngularVelocity", "FramePosition", "FrameQuaternion", "FrameVelocity", "Free",
    "GradientReport", "Gyro", "HalfPlane", "Heightfield", "Hull", "Info", "InteriorPoint", "JointTorque", "Keyframe",
    "Kinematics", "LCPError", "LCPSolution", "LimitDistance", "LimitForce", "LoadError", "LoadWarning", "Magnetometer", "Model",
    "NoGradientError", "Params", "Planar", "Plane", "Polygon", "Prismatic", "RangeFinder", "Rays", "ReactionForce",
    "ReactionTorque", "Rectangle", "Revolute", "Rows", "Scene", "Sensor", "Sensors", "Simulator", "Sphere", "State", "Status",
    "SubtreeAngularMomentum", "SubtreeCentre", "SubtreeVelocity", "Touch", "Trajectory", "Unconstrained", "UnsupportedFeature",
    "Velocimeter", "centre_of_mass", "constraint_error", "distance", "energy", "forward_dynamics", "get_num_threads",
    "instruction_set", "inverse_dynamics", "kinematics", "lcp", "load", "load_string", "mass_matrix", "momentum",
    "point_jacobian", "project", "ray_cast", "render", "set_num_threads",
]  # fmt: skip
