"""Joints: how a body moves against its parent. One joint per body; coordinates are laid out like MuJoCo's."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import ClassVar

from costate.scene.values import Numbers


@dataclass(frozen=True, kw_only=True)
class Joint:
    """What all joints share. Every number but `initial` may be a torch tensor that requires grad.

    Parameters
    ----------
    name : defaults to the name of the body.
    damping : N s/m or N m s/rad, one number or `nv` numbers; integrated implicitly.
    armature : rotor inertia, kg or kg m^2, one number or `nv` numbers, added to the diagonal of the mass matrix.
    friction : dry, the force (N) or torque (N m) up to which it holds, one number or `nv` numbers; zeros add nothing.
    stiffness : spring, N/m or N m/rad, one number for the joint.
    rest : where the spring is at rest, `nq` numbers; defaults to zero, for `Free` to the initial pose.
    initial : default of the state, `nq` numbers; part of no gradient.
    """

    code: ClassVar[int]
    nq: ClassVar[int]
    nv: ClassVar[int]
    quaternion: ClassVar[int | None] = None  # where the quaternion starts in q

    name: str | None = None
    damping: Numbers = 0.0
    armature: Numbers = 0.0
    friction: Numbers = 0.0
    stiffness: Numbers = 0.0
    rest: Numbers | None = None
    initial: Numbers | None = None

    @classmethod
    def zero(cls) -> tuple[float, ...]:
        """The configuration [nq] in which body and joint frame agree."""
        return tuple(1.0 if i == cls.quaternion else 0.0 for i in range(cls.nq))

    @classmethod
    def has_coordinate(cls, dof: int) -> bool:
        """Whether a dof is the rate of one coordinate: a rotation in space has three rates, but no three coordinates."""
        return cls.quaternion is None or dof < cls.quaternion


@dataclass(frozen=True)
class Fixed(Joint):
    """No motion."""

    code, nq, nv = 0, 0, 0


@dataclass(frozen=True)
class Revolute(Joint):
    """Turn by q (rad) about `axis` through `anchor` (m), both in the body frame; `limits` (lower, upper) keep q (rad)."""

    code, nq, nv = 1, 1, 1
    axis: Numbers = (0.0, 0.0, 1.0)
    anchor: Numbers = (0.0, 0.0, 0.0)
    limits: Numbers | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Prismatic(Joint):
    """Slide by q (m) along `axis`, in the body frame; `limits` (lower, upper) keep q (m)."""

    code, nq, nv = 2, 1, 1
    axis: Numbers = (0.0, 0.0, 1.0)
    limits: Numbers | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Ball(Joint):
    """Turn freely about `anchor` (m, body frame). q: quaternion wxyz; v: angular velocity (rad/s) in body axes.

    `limit` : largest angle of rotation (rad), above 0 and at most pi.
    """

    code, nq, nv, quaternion = 3, 4, 3, 0
    anchor: Numbers = (0.0, 0.0, 0.0)
    limit: Numbers | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Free(Joint):
    """Move freely in the world. q: position (m), quaternion wxyz; v: velocity in world axes, angular in body axes."""

    code, nq, nv, quaternion = 4, 7, 6, 3


@dataclass(frozen=True)
class Planar(Joint):
    """Slide along x and y of the joint frame (m) and turn about its z (rad), through `anchor` (m, body frame)."""

    code, nq, nv = 5, 3, 3
    anchor: Numbers = (0.0, 0.0, 0.0)


def check_dof(subject: str, joint: Joint, dof: int) -> None:
    """`dof` must be one of the joint's; errors start with `subject`."""
    if not isinstance(dof, Integral) or isinstance(dof, bool):
        raise TypeError(f"{subject} must be an int, got {dof!r}")
    if not 0 <= dof < joint.nv:
        raise ValueError(f"{subject} must be below {joint.nv}, the dofs of this joint, got {dof}")


JOINTS: tuple[type[Joint], ...] = (Fixed, Revolute, Prismatic, Ball, Free, Planar)  # by code
