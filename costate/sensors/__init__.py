"""Sensors of robots, as differentiable functions of the state: encoders, inertial units, poses, contact, torques, ranges."""

from costate.sensors.actuators import ActuatorForce, JointTorque, LimitForce
from costate.sensors.contact import ContactForce, Touch
from costate.sensors.frames import (
    FrameAcceleration,
    FrameAngularAcceleration,
    FrameAngularVelocity,
    FramePosition,
    FrameQuaternion,
    FrameVelocity,
)
from costate.sensors.guard import NoGradientError
from costate.sensors.imu import Accelerometer, Gyro, Magnetometer, Velocimeter
from costate.sensors.joints import Encoder, EncoderRate, LimitDistance
from costate.sensors.ranges import RangeFinder
from costate.sensors.reaction import ReactionForce, ReactionTorque
from costate.sensors.sensor import Sensor
from costate.sensors.sensors import Sensors
from costate.sensors.subtree import SubtreeAngularMomentum, SubtreeCentre, SubtreeVelocity

__all__ = [
    "Accelerometer", "ActuatorForce", "ContactForce", "Encoder", "EncoderRate", "FrameAcceleration", "FrameAngularAcceleration",
    "FrameAngularVelocity", "FramePosition", "FrameQuaternion", "FrameVelocity", "Gyro", "JointTorque", "LimitDistance",
    "LimitForce", "Magnetometer", "NoGradientError", "RangeFinder", "ReactionForce", "ReactionTorque", "Sensor", "Sensors",
    "SubtreeAngularMomentum", "SubtreeCentre", "SubtreeVelocity", "Touch", "Velocimeter",
]  # fmt: skip
