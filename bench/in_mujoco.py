"""A Robot as a MuJoCo MjModel; needs nothing but MuJoCo."""

from __future__ import annotations

from typing import Any

import mujoco

from bench.robots import Link, Robot


def mujoco_model(robot: Robot, *, dt: float = 0.001, hard: bool = False, elliptic: bool = False) -> mujoco.MjModel:
    """Built through MjSpec: MJCF text cannot nest a thousand links. Without ground: Euler, no contact, no constraints. On the
    ground: implicitfast, Newton, MuJoCo's defaults; hard: contacts and limits as stiff as its checks allow (two steps), with
    impedance 0.99 and impratio 10; with more the quadruped does not stand still."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.compiler.degree = dt, False
    if robot.grounded:
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC if elliptic else mujoco.mjtCone.mjCONE_PYRAMIDAL
        spec.option.impratio = 10.0 if hard else 1.0
        ground = {"friction": (robot.friction, 0.005, 0.0001), "contype": 1, "conaffinity": 2}
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0.0, 0.0, 1.0), **ground)
    else:
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    bodies: list[Any] = []
    for link in robot.links:
        parent = spec.worldbody if link.parent < 0 else bodies[link.parent]
        body = parent.add_body(name=link.name, pos=link.pos)
        _fill(robot, link, body)
        bodies.append(body)
        if link.joint != "free":
            actuator = spec.add_actuator(name=link.name, target=link.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            actuator.gear[0] = robot.gear
            if robot.kp:
                actuator.set_to_position(kp=robot.kp, kv=robot.kd)
    model = spec.compile()
    if hard:
        # solref below two steps would be raised to that by MuJoCo itself
        for solref, solimp in ((model.geom_solref, model.geom_solimp), (model.jnt_solref, model.jnt_solimp)):
            solref[:, 0], solimp[:, :2] = 2 * dt, 0.99
    return model


def _fill(robot: Robot, link: Link, body: Any) -> None:
    """A body of MjSpec: inertia, joint and geoms."""
    body.explicitinertial, body.mass, body.ipos = True, link.mass, link.com
    if len(link.inertia) == 3:
        body.inertia = link.inertia
    else:
        body.fullinertia = link.inertia
    if link.joint == "free":
        body.add_freejoint()
    else:
        joint = body.add_joint(name=link.name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=link.axis)
        joint.armature = link.armature
        joint.damping[0] = link.damping
        joint.range = link.limits or (0.0, 0.0)
        joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE if link.limits else mujoco.mjtLimited.mjLIMITED_FALSE
    surface = {"friction": (robot.friction, 0.005, 0.0001), "contype": 2, "conaffinity": 1, "margin": robot.margin}
    for geom in link.geoms:
        if geom.end is None:
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(geom.radius, 0.0, 0.0), pos=geom.start, **surface)
        else:
            ends = (*geom.start, *geom.end)
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=(geom.radius, 0.0, 0.0), fromto=ends, **surface)
