"""Actuators of a compiled model: motors, positions, velocities, and what is affine in control, length and speed.

MuJoCo's force is gain u + b0 + b1 L + b2 dL/dt, with length L = gear q.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from costate.load.source import Source, unique
from costate.scene.builder import Scene

JOINT, JOINT_IN_PARENT = 0, 1  # mjtTrn
TRANSMISSIONS = {2: "slider-crank", 3: "tendon", 4: "site", 5: "body (adhesion)", 6: "rotation (SO3)"}
DYNAMICS = {1: "integrator", 2: "filter", 3: "exact filter", 4: "muscle", 5: "DC motor", 6: "PID", 7: "user"}
FIXED, AFFINE = 0, 1  # mjtGain, mjtBias
GAINS = {1: "affine", 2: "muscle", 3: "DC motor", 4: "SO3", 5: "PID", 6: "user"}
BIASES = {2: "muscle", 3: "DC motor", 4: "SO3", 5: "user"}
BALL = 1  # mjtJoint


Limits: TypeAlias = tuple[float, float]


class Drive(NamedTuple):
    """Which dof of which joint an actuator drives, and by which gear."""

    joint: int
    dof: int
    gear: float


def add_actuators(source: Source, scene: Scene) -> None:
    """Add all actuators in MuJoCo's order; those that cannot be represented are refused, and become motors without force."""
    m = source.m
    count = int(getattr(m, "nactuator", m.nu))
    names = unique([m.actuator(i).name for i in range(count)], [f"actuator{i}" for i in range(count)])
    driving = Counter(int(m.actuator_trnid[i, 0]) for i in range(count) if m.actuator_trntype[i] in (JOINT, JOINT_IN_PARENT))
    for i, name in enumerate(names):
        problem = _problem(source, i)
        drive = None if problem else _drive(source, i)
        if drive is None:
            source.findings.refuse(f"actuator {name!r}: {problem or 'a gear with several numbers'}")
            _add_idle(source, scene, name, _controls(source, i)[1])
            continue
        forces, problem = _force_limits(source, i, drive, alone=driving[drive.joint] == 1)
        if problem:
            source.findings.refuse(f"actuator {name!r}: {problem}")
        _add(source, scene, i, name, drive, forces)


def _problem(source: Source, i: int) -> str:
    """What there is no counterpart for, empty if all is well."""
    m = source.m
    if _controls(source, i)[1] != 1:
        return "several controls"
    if m.actuator_trntype[i] not in (JOINT, JOINT_IN_PARENT):
        return f"transmission by {TRANSMISSIONS.get(int(m.actuator_trntype[i]), 'another kind')}"
    if m.actuator_dyntype[i] != 0:
        return f"activation dynamics ({DYNAMICS.get(int(m.actuator_dyntype[i]), 'another kind')})"
    if m.actuator_gaintype[i] != FIXED and not _constant_gain(source, i):
        return f"gain of type {GAINS.get(int(m.actuator_gaintype[i]), 'another kind')}"
    if m.actuator_biastype[i] not in (0, AFFINE):
        return f"bias of type {BIASES.get(int(m.actuator_biastype[i]), 'another kind')}"
    bias = _bias(source, i)
    if bias[1] > 0 or bias[2] > 0:
        return f"a force that grows with length or speed, biasprm {tuple(float(b) for b in bias)}"
    if source.numbers("actuator_delay").any() and source.numbers("actuator_delay")[i] > 0:
        return "delay"
    for word in ("armature", "damping", "dampingpoly"):
        numbers = source.numbers(f"actuator_{word}")
        if len(numbers) and np.any(numbers[i]):
            return f"{word} of its own"
    return ""


def _constant_gain(source: Source, i: int) -> bool:
    return source.m.actuator_gaintype[i] == AFFINE and not source.m.actuator_gainprm[i, 1:3].any()


def _bias(source: Source, i: int) -> np.ndarray:
    """b0, b1, b2."""
    return np.array(source.m.actuator_biasprm[i, :3]) if source.m.actuator_biastype[i] == AFFINE else np.zeros(3)


def _drive(source: Source, i: int) -> Drive | None:
    """The one dof that an actuator drives, None if it drives several or, by its rotation, none that has a length."""
    m = source.m
    joint = int(m.actuator_trnid[i, 0])
    kind = int(m.jnt_type[joint])
    gears = np.array(m.actuator_gear[i, : (6, 3, 1, 1)[kind]])
    used = np.flatnonzero(gears)
    if len(used) > 1 or (m.actuator_trntype[i] == JOINT_IN_PARENT and kind <= BALL and (used >= (3, 0)[kind]).any()):
        return None
    dof = int(used[0]) if len(used) else 0
    return Drive(joint, dof, float(gears[dof]))


def _force_limits(source: Source, i: int, drive: Drive, *, alone: bool) -> tuple[Limits | None, str]:
    """Those of the actuator and of its joint, and what cannot be kept of them."""
    m = source.m
    low, high = (float(x) for x in m.actuator_forcerange[i]) if m.actuator_forcelimited[i] else (-np.inf, np.inf)
    if m.jnt_actfrclimited[drive.joint] and drive.gear != 0:
        if not alone:
            return (low, high) if np.isfinite(low) else None, "actuatorfrcrange of a joint that several actuators drive"
        bounds = sorted(float(x) / drive.gear for x in m.jnt_actfrcrange[drive.joint])
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return ((low, high) if np.isfinite(low) or np.isfinite(high) else None), ""


def _add(source: Source, scene: Scene, i: int, name: str, drive: Drive, forces: Limits | None) -> None:
    """Add the simplest actuator that does the same."""
    m = source.m
    gain, (b0, b1, b2) = float(m.actuator_gainprm[i, 0]), (float(b) for b in _bias(source, i))
    joint, kind = source.joint_names[drive.joint], int(m.jnt_type[drive.joint])
    common: dict[str, Any] = {"dof": drive.dof, "gear": drive.gear, "name": name}
    u, _ = _controls(source, i)
    clamped = m.actuator_ctrllimited[u] and not source.off("CLAMPCTRL")
    controls = (float(m.actuator_ctrlrange[u, 0]), float(m.actuator_ctrlrange[u, 1])) if clamped else None
    if b1 and kind <= BALL and drive.dof >= (3, 0)[kind]:
        source.findings.refuse(f"actuator {name!r}: the position of a joint that turns in space")
        _add_idle(source, scene, name)
    elif (b0, b1, b2) == (0.0, 0.0, 0.0) and gain == 1.0:
        scene.add_motor(joint, **common, control_limits=controls, force_limits=forces)
    elif b1 == b2 == 0.0:
        controls, b0 = _folded(controls, forces, gain, b0)
        scene.add_general(joint, gain=gain, bias=b0, **common, control_limits=controls)
    elif b0 == 0.0 and gain > 0.0 and b1 == -gain:
        scene.add_position(joint, kp=gain, kd=abs(b2), **common, control_limits=controls, force_limits=forces)
    elif b0 == b1 == 0.0 and gain > 0.0 and b2 == -gain:
        scene.add_velocity(joint, kd=gain, **common, control_limits=controls, force_limits=forces)
    else:
        common |= {"kp": abs(b1), "kd": abs(b2), "control_limits": controls, "force_limits": forces}
        scene.add_general(joint, gain=gain, bias=b0, **common)


def _folded(controls: Limits | None, forces: Limits | None, gain: float, bias: float) -> tuple[Limits | None, float]:
    """Control limits that keep gain u + bias within the limits of forces, too; and the bias, which they bound where gain is 0."""
    if forces is None:
        return controls, bias
    if gain == 0.0:
        return controls, min(max(bias, forces[0]), forces[1])
    low, high = sorted((force - bias) / gain for force in forces)
    if controls is None:
        return (low, high), bias
    return (min(max(controls[0], low), high), min(max(controls[1], low), high)), bias


def _controls(source: Source, i: int) -> tuple[int, int]:
    """Where the controls of an actuator start in u, and how many it has."""
    start, count = source.numbers("actuator_ctrladr"), source.numbers("actuator_ctrlnum")
    return (int(start[i]), int(count[i])) if len(start) else (i, 1)  # older MuJoCo: one each


def _add_idle(source: Source, scene: Scene, name: str, count: int = 1) -> None:
    """Motors without force, one for each control, so that controls keep their places; none if the model has no joint."""
    for k in range(count if source.joint_names else 0):
        scene.add_motor(source.joint_names[0], gear=0.0, name=name if k == 0 else f"{name}:{k}")
