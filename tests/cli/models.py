"""Files that the tests of the command line read, and a way to call it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import costate as cs
from costate.cli import main

MJCF = """
<mujoco model="hopper">
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <body name="trunk" pos="0 0 0.6">
      <freejoint name="root"/>
      <geom name="box" type="box" size="0.1 0.1 0.1"/>
      <body name="leg" pos="0 0 -0.1">
        <joint name="hip" axis="0 1 0" range="-60 60"/>
        <geom name="shank" type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="hip motor" joint="hip" gear="20"/></actuator>
  <keyframe><key name="crouch" qpos="0 0 0.5 1 0 0 0 0.3" qvel="0 0 0 0 0 0 1" ctrl="0.5"/></keyframe>
</mujoco>
"""
FLUID = MJCF.replace('<option timestep="0.004"/>', '<option timestep="0.004" density="1000" viscosity="0.1"/>')


class Ran(NamedTuple):
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        assert self.out.count("\n") == 1 and self.out.endswith("\n"), self.out
        return json.loads(self.out, parse_constant=lambda word: f"{word} is not JSON")

    @property
    def complaint(self) -> str:
        """The one line of a user's mistake."""
        assert self.code in (1, 2) and self.err.count("\n") == 1 and self.err.startswith("costate: "), self
        assert "Traceback" not in self.err
        return self.err[len("costate: ") : -1]


def call(capsys: Any, *words: object) -> Ran:
    """Run `costate words` in this process."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    return Ran(code, *capsys.readouterr())


def robot() -> cs.Model:
    """A body with two legs on the ground: 8 dofs, two motors."""
    scene = cs.Scene()
    scene.add_ground(friction=0.8)
    scene.add_body("base", joint=cs.Free(), pos=(0, 0, 0.4), shapes=cs.Box((0.2, 0.1, 0.05)))
    for name, x in (("front", 0.15), ("rear", -0.15)):
        hinge = cs.Revolute((0, 1, 0), limits=(-1, 1), damping=0.1)
        limb = cs.Capsule(0.03, 0.1, pos=(0, 0, -0.15))
        scene.add_body(name, parent="base", pos=(x, 0, 0), joint=hinge, shapes=limb)
    scene.add_motors(gear=5.0)
    return scene.build()
