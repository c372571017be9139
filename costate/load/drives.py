"""Actuators for files that have none: one for each dof of every joint that is neither free nor fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from costate.load.source import Source, unique
from costate.scene.builder import Scene

Kind = Literal["torque", "position", "servo"]
FREE, BALL = 0, 1  # mjtJoint
SERVO_GAIN = 20.0  # 1/s, what `kp` of a servo is unless it is given: an error is gone in some 50 ms


@dataclass(frozen=True)
class Drives:
    """What `load` was told about actuators, see there."""

    kind: Kind
    kp: float | None = None
    kd: float | None = None
    max_force: float | None = None
    max_speed: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"load: actuators must be one of {', '.join(map(repr, get_args(Kind)))} or None, got {self.kind!r}")
        if self.kind == "position" and self.kp is None:
            raise ValueError("load: kp is missing: actuators='position' needs a gain, got None")
        if self.kind == "servo" and self.max_speed is None:
            raise ValueError("load: max_speed is missing: actuators='servo' needs one, got None")
        needless = {"torque": ("kp", "kd", "max_speed"), "position": ("max_speed",), "servo": ("kd",)}[self.kind]
        for name in needless:
            if getattr(self, name) is not None:
                raise ValueError(f"load: {name} has no meaning for actuators={self.kind!r}, got {getattr(self, name)!r}")


def add_drives(source: Source, scene: Scene, drives: Drives) -> None:
    """Add them; forces are limited by `max_force`, else by what the file says about the joint (effort of a URDF)."""
    m = source.m
    joints = [j for j in range(m.njnt) if m.jnt_type[j] != FREE]
    dofs = [(j, dof) for j in joints for dof in range(3 if m.jnt_type[j] == BALL else 1)]
    fallback = [f"{source.joint_names[j]}_{dof}" for j, dof in dofs]
    names = unique([source.joint_names[j] if m.jnt_type[j] != BALL else "" for j, _ in dofs], fallback)
    for (j, dof), name in zip(dofs, names):
        joint, most = source.joint_names[j], drives.max_force
        if most is None and m.jnt_actfrclimited[j]:
            most = float(max(abs(m.jnt_actfrcrange[j])))
        if drives.kind == "torque":
            scene.add_motor(joint, dof=dof, control_limits=most or None, name=name)
            continue
        if m.jnt_type[j] == BALL:
            source.findings.refuse(f"joint {joint!r}: actuators={drives.kind!r} on a ball joint, which has no angle to hold")
            continue
        if drives.kind == "position" and drives.kp is not None:
            scene.add_position(joint, kp=drives.kp, kd=drives.kd or 0.0, force_limits=most or None, name=name)
        elif drives.max_speed is not None:
            if most is None:
                raise ValueError(f"actuators='servo' needs max_force: joint {joint!r} has no limit of its own, got None")
            gain = SERVO_GAIN if drives.kp is None else drives.kp
            scene.add_servo(joint, gain=gain, max_force=most, max_speed=drives.max_speed, name=name)
