"""Links, joints, shapes and inertias of a URDF as plain data, between reading and writing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from costate.load.check import Node

DIMENSIONS = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "mesh": 3}  # box: sides; radius, length; mesh: scale
HINGE_OR_SLIDE = ("revolute", "continuous", "prismatic")
JOINT_TYPES = (*HINGE_OR_SLIDE, "fixed", "floating", "planar", "spherical")


@dataclass
class Origin:
    """A frame seen from its link or parent link: position (m) and fixed-axis roll, pitch, yaw (rad)."""

    xyz: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rpy: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def rotation(self) -> np.ndarray:
        """The matrix [3, 3] of roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll)."""
        (sr, sp, sy), (cr, cp, cy) = np.sin(self.rpy), np.cos(self.rpy)
        return np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )

    def times(self, other: Origin) -> Origin:
        """This frame, and the other one seen from it."""
        R, R_other = self.rotation(), other.rotation()
        return Origin(self.xyz + R @ other.xyz, _roll_pitch_yaw(R @ R_other))


def _roll_pitch_yaw(R: np.ndarray) -> np.ndarray:
    across = np.hypot(R[0, 0], R[1, 0])
    pitch = np.arctan2(-R[2, 0], across)
    if across < 1e-9:  # pitch of 90 degrees: only the sum or difference of roll and yaw is defined, so yaw is 0
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


@dataclass
class Inertial:
    """Mass (kg), and the inertia [3, 3] (kg m^2) about the centre of mass, in the axes of its own frame."""

    origin: Origin
    mass: float
    inertia: np.ndarray
    line: int


@dataclass
class Shape:
    """A shape for contact, or one to look at; `numbers` as in DIMENSIONS, in m."""

    kind: str
    numbers: np.ndarray
    origin: Origin
    line: int
    collision: bool
    name: str = ""
    filename: str = ""  # of a mesh: in the file read, later in the assets
    vertices: np.ndarray | None = None  # of a mesh that was found: [n, 3], scaled, in the shape's frame


@dataclass
class Link:
    """A link; `inertial` is None where the file has none."""

    name: str
    line: int
    inertial: Inertial | None = None
    shapes: list[Shape] = field(default_factory=list)
    source: Node | None = None

    def collisions(self) -> list[Shape]:
        """The shapes that touch."""
        return [shape for shape in self.shapes if shape.collision]


@dataclass
class Mimic:
    """A joint whose coordinate is that of another one times a multiplier plus an offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass
class Joint:
    """A joint; numbers that the file does not have are None."""

    name: str
    kind: str
    parent: str
    child: str
    line: int
    origin: Origin = field(default_factory=Origin)
    axis: np.ndarray | None = None
    lower: float | None = None
    upper: float | None = None
    effort: float | None = None
    velocity: float | None = None
    damping: float | None = None
    friction: float | None = None
    mimic: Mimic | None = None


@dataclass
class Robot:
    """All of a file: links and joints in its order, and the children of its <mujoco> elements."""

    name: str
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    settings: list[Node] = field(default_factory=list)

    def setting(self, tag: str, attribute: str) -> str | None:
        """An attribute of <mujoco><tag .../></mujoco>, if the file has it."""
        found = [node.attributes[attribute] for node in self.settings if node.tag == tag and attribute in node.attributes]
        return found[-1] if found else None

    def joint_above(self) -> dict[str, Joint]:
        """By a link's name the joint that it hangs on; roots have none."""
        return {joint.child: joint for joint in self.joints}

    def roots(self) -> list[Link]:
        """Links that hang on nothing."""
        above = self.joint_above()
        return [link for link in self.links if link.name not in above]

    def downwards(self) -> Iterator[tuple[Link, Joint | None]]:
        """Links with the joints above them, parents before their children."""
        links, below = {link.name: link for link in self.links}, {link.name: [] for link in self.links}
        for joint in self.joints:
            below[joint.parent].append(joint)
        stack: list[tuple[Link, Joint | None]] = [(link, None) for link in reversed(self.roots())]
        while stack:
            link, joint = stack.pop()
            yield link, joint
            stack.extend((links[down.child], down) for down in reversed(below[link.name]))
