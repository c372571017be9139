"""Robots that carry sensors, for several tests: one with every kind of joint, here and in MuJoCo; and some that touch things."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import costate as cs

GRAVITY = (0.3, -0.2, -9.81)
DT = 0.002

# name -> body, position, quaternion
SITES: dict[str, tuple[str, tuple[float, ...], tuple[float, ...]]] = {
    "imu": ("trunk", (0.1, 0.05, -0.02), (0.9, 0.1, -0.3, 0.2)),
    "ankle": ("thigh", (0.0, 0.01, -0.2), (0.7, 0.0, 0.7, 0.1)),
    "hand": ("arm", (0.1, 0.0, 0.0), (0.5, -0.3, 0.1, 0.8)),
    "end": ("rail", (0.1, 0.0, 0.2), (0.5, 0.3, 0.1, 0.8)),
}

MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" gravity="0.3 -0.2 -9.81"><flag contact="disable"/></option>
  <worldbody>
    <body name="trunk" pos="0 0 1">
      <freejoint/>
      <inertial pos="0.02 -0.01 0.03" mass="3" diaginertia="0.03 0.05 0.06"/>
      <site name="imu" pos="0.1 0.05 -0.02" quat="0.9 0.1 -0.3 0.2"/>
      <body name="thigh" pos="0.2 0 0">
        <joint name="hip" axis="0 1 0.2" pos="0.01 0.02 0.03"/>
        <inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.01 0.002"/>
        <site name="ankle" pos="0 0.01 -0.2" quat="0.7 0 0.7 0.1"/>
        <body name="shank" pos="0 0 -0.2">
          <joint name="knee" axis="0 1 0"/>
          <inertial pos="0 0.01 -0.1" mass="0.5" diaginertia="0.005 0.005 0.001"/>
          <body name="arm" pos="0 0 -0.2">
            <joint name="ball" type="ball" pos="0 0 0.02"/>
            <inertial pos="0.03 0.01 -0.1" mass="0.2" diaginertia="0.002 0.003 0.0015"/>
            <site name="hand" pos="0.1 0 0" quat="0.5 -0.3 0.1 0.8"/>
            <body name="rail" pos="0 0.1 0">
              <joint name="slide" type="slide" axis="1 0.2 0"/>
              <inertial pos="0.03 0.01 -0.1" mass="0.1" diaginertia="0.002 0.003 0.0015"/>
              <site name="end" pos="0.1 0 0.2" quat="0.5 0.3 0.1 0.8"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="hip" joint="hip" gear="5" ctrlrange="-0.5 0.5" ctrllimited="true"/>
    <motor name="knee" joint="knee" gear="3"/>
    <motor name="slide" joint="slide" gear="2"/>
  </actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""


def robot() -> cs.Model:
    """Free, revolute, ball and prismatic joints in a chain, with sites and motors; nothing collides. The same as MJCF."""
    scene = cs.Scene(gravity=GRAVITY, collisions=False)
    inertia: dict[str, Any] = {"mass": 3.0, "com": (0.02, -0.01, 0.03), "inertia": (0.03, 0.05, 0.06)}
    scene.add_body("trunk", joint=cs.Free(), pos=(0, 0, 1), **inertia)
    hip = cs.Revolute(axis=(0, 1, 0.2), anchor=(0.01, 0.02, 0.03), name="hip")
    inertia = {"mass": 1.0, "com": (0, 0, -0.1), "inertia": (0.01, 0.01, 0.002)}
    scene.add_body("thigh", parent="trunk", pos=(0.2, 0, 0), joint=hip, **inertia)
    knee, inertia = cs.Revolute(axis=(0, 1, 0), name="knee"), {"mass": 0.5, "com": (0, 0.01, -0.1), "inertia": (5e-3, 5e-3, 1e-3)}
    scene.add_body("shank", parent="thigh", pos=(0, 0, -0.2), joint=knee, **inertia)
    ball = cs.Ball(anchor=(0, 0, 0.02), name="ball")
    inertia = {"mass": 0.2, "com": (0.03, 0.01, -0.1), "inertia": (0.002, 0.003, 0.0015)}
    scene.add_body("arm", parent="shank", pos=(0, 0, -0.2), joint=ball, **inertia)
    slide = cs.Prismatic(axis=(1, 0.2, 0), name="slide")
    scene.add_body("rail", parent="arm", pos=(0, 0.1, 0), joint=slide, **{**inertia, "mass": 0.1})
    for name, (body, pos, quat) in SITES.items():
        scene.add_site(name, body=body, pos=pos, quat=quat)
    scene.add_motor("hip", gear=5.0, control_limits=0.5)
    scene.add_motor("knee", gear=3.0)
    scene.add_motor("slide", gear=2.0)
    return scene.build()


def random_state(model: cs.Model, *batch: int, seed: int = 0) -> cs.State:
    """Anywhere, turned anyhow, with unit quaternions."""
    random = torch.Generator().manual_seed(seed)
    q0 = torch.tensor(model.q0).expand(*batch, -1)
    turn = 0.8 * torch.randn(*batch, model.nv, dtype=torch.float64, generator=random)
    v = torch.randn(*batch, model.nv, dtype=torch.float64, generator=random)
    return cs.State(model.integrate(q0.contiguous(), turn), v)


def random_control(model: cs.Model, *batch: int, seed: int = 0) -> Tensor:
    return torch.randn(*batch, model.nu, dtype=torch.float64, generator=torch.Generator().manual_seed(100 + seed))


def hopper(*, ground: Any = None) -> cs.Model:
    """A free trunk with an imu on a leg with a foot that touches the ground, driven by a spring and a motor with limits."""
    scene = cs.Scene(self_collision=False)
    if ground is None:
        scene.add_ground(friction=0.4)
    else:
        scene.add_shape(ground, name="ground")
    scene.add_body("trunk", joint=cs.Free(), pos=(0, 0, 0.45), shapes=cs.Box((0.1, 0.08, 0.05), mass=2.0, collide=False))
    rod = cs.Capsule(0.02, 0.08, mass=0.4, pos=(0, 0, -0.1), collide=False)
    scene.add_body("thigh", parent="trunk", joint=cs.Revolute((0, 1, 0), name="hip", limits=(-1, 1)), shapes=rod)
    foot = cs.Sphere(0.03, mass=0.1, pos=(0, 0, -0.2), friction=0.4)
    below = {"parent": "thigh", "pos": (0, 0, -0.2), "joint": cs.Revolute((0, 1, 0), name="knee", damping=0.1)}
    scene.add_body("shank", shapes=[rod, foot], **below)
    scene.add_site("imu", body="trunk", pos=(0.03, 0.01, 0.02), quat=(0.9, 0.1, 0.2, 0.1))
    scene.add_site("toe", body="shank", pos=(0, 0, -0.2))
    scene.add_position("hip", kp=40.0, kd=0.5, gear=1.2)
    scene.add_motor("knee", gear=2.0, force_limits=3.0)
    return scene.build()


def landed(model: cs.Model, *batch: int, seed: int = 0) -> cs.State:
    """The hopper with its foot a little in the ground and sinking in, slower or faster than friction holds: away from kinks."""
    random = torch.Generator().manual_seed(seed)
    q = torch.tensor(model.q0).expand(*batch, -1).clone()
    q[..., -2:] = torch.tensor([0.3, -0.5], dtype=torch.float64)
    toe = cs.kinematics(model, q).site_position[..., model.site("toe"), 2]
    q[..., 2] += 0.0299 - toe
    v = 0.1 * torch.randn(*batch, model.nv, dtype=torch.float64, generator=random)
    v[..., 2] -= 0.5
    v[..., 0] += torch.linspace(1.5, 8, q[..., 0].numel(), dtype=torch.float64).reshape(q.shape[:-1])
    return cs.State(q, v)
