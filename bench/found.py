"""Robots in files that come with the Python packages gymnasium and pybullet, in costate and in MuJoCo alike.

MuJoCo gets the same text as costate's loader gives to its compiler: MJCF as it is, URDF as `load` repairs it. What the options of
`load` add (a free base, a ground, position actuators, no contact within the robot) is added with MuJoCo's own means.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import costate as cs
from costate.load.urdf import repair

PLACES = {".xml": ("gymnasium", "envs/mujoco/assets"), ".urdf": ("pybullet_data", "")}
ON_GROUND, IN_ROBOT = 1, 2  # bits of contact: the ground meets the robot, and nothing else meets anything


@dataclass(frozen=True)
class Found:
    """A file and how it is loaded.

    file : its name, below the folder of its package. floating : its base moves freely. ground : it stands on a plane at z = 0.
    self_collision : its links touch each other, as the file says.
    kp, kd : of position actuators, N m/rad and N m s/rad; None: those of the file, and motors in a URDF, which has none.
    height, quat, legs : where it stands: height of the base (m), its orientation, the angles of a leg (rad), all legs alike.
    """

    file: str
    floating: bool = False
    ground: bool = False
    self_collision: bool = True
    kp: float | None = None
    kd: float | None = None
    height: float | None = None
    quat: tuple[float, ...] | None = None
    legs: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """For tables: the file's name without its ending; that of the folder where all are called model."""
        path = Path(self.file)
        return path.parent.name if path.stem == "model" else path.stem

    @property
    def path(self) -> Path:
        """Where it is."""
        package, folder = PLACES[Path(self.file).suffix]
        return home(package) / folder / self.file

    def load(self, **options: Any) -> cs.Model:
        """costate's model, without warnings of what is not exactly as in MuJoCo; `options` as of `load`."""
        chosen: dict[str, Any] = {"ground": self.ground, "strict": False}
        if self.floating:
            chosen["floating"] = True
        if not self.self_collision:
            chosen["self_collision"] = False
        if self.kp is not None:
            chosen |= {"actuators": "position", "kp": self.kp, "kd": self.kd}
        elif self.path.suffix == ".urdf":
            chosen["actuators"] = "torque"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cs.LoadWarning)
            return cs.load(self.path, **{**chosen, **options})

    def mujoco(self) -> mujoco.MjModel:
        """MuJoCo's model."""
        if self.path.suffix == ".xml":
            spec = mujoco.MjSpec.from_file(str(self.path))
        else:
            text = self.path.read_text(encoding="utf-8", errors="replace")
            text, assets, _ = repair(text, self.path.parent, floating=self.floating)
            spec = mujoco.MjSpec.from_string(text, assets=assets)
        self._complete(spec)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of attributes that are out of fashion
            return spec.compile()

    def stance(self) -> np.ndarray:
        """q where it stands; what is not said is as in the file."""
        q = self.load(collisions=False).q0.copy()
        if self.height is not None:
            q[2] = self.height
        if self.quat is not None:
            q[3:7] = self.quat
        if self.legs:
            joints = q[7 if self.quat is not None else 0 :]
            joints[:] = np.tile(self.legs, len(joints) // len(self.legs))
        return q

    def _complete(self, spec: Any) -> None:
        """Add what the options ask for."""
        if not self.self_collision:
            for geom in spec.geoms:
                if geom.contype or geom.conaffinity:
                    geom.contype, geom.conaffinity = IN_ROBOT, ON_GROUND
        if self.floating:
            for body in spec.worldbody.bodies:
                body.add_freejoint()
        for joint in spec.joints if self.path.suffix == ".urdf" else ():
            if joint.type != mujoco.mjtJoint.mjJNT_FREE:
                drive = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
                if self.kp is not None:
                    drive.set_to_position(kp=self.kp, kv=self.kd or 0.0)
        if self.ground:
            bits = {} if self.self_collision else {"contype": ON_GROUND, "conaffinity": IN_ROBOT}
            spec.worldbody.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 1), **bits)


NAMES = (
    "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum", "inverted_pendulum", "point",
    "pusher", "pusher_v5", "reacher", "swimmer", "walker2d", "walker2d_v5",
)  # fmt: skip
MJCF = tuple(Found(f"{name}.xml") for name in NAMES)  # all of Gymnasium
FILES = (
    "laikago/laikago_toes.urdf", "laikago/laikago_toes_zup_lores.urdf", "a1/a1.urdf", "kuka_iiwa/model.urdf",
    "franka_panda/panda.urdf", "racecar/racecar.urdf", "r2d2.urdf", "mini_cheetah/mini_cheetah.urdf", "husky/husky.urdf",
    "biped/biped2d_pybullet.urdf",
)  # fmt: skip
URDF = tuple(Found(file) for file in FILES)  # some of pybullet_data
ROOTED = ("kuka_iiwa", "panda", "biped2d_pybullet")  # arms; the biped slides on the world by joints of its own
WALKERS = tuple(replace(found, floating=True) for found in URDF if found.name not in ROOTED)

UPRIGHT, Y_UP = (1.0, 0.0, 0.0, 0.0), (0.5**0.5, 0.5**0.5, 0.0, 0.0)  # Y_UP: turned so that its y axis is up
STANDING: dict[str, Any] = {"floating": True, "ground": True, "self_collision": False}
ARM: dict[str, Any] = {"ground": True, "self_collision": False, "kp": 100.0, "kd": 20.0}
HEAVY, LIGHT = {"kp": 300.0, "kd": 9.0}, {"kp": 100.0, "kd": 2.0}  # Laikago has 26 kg, the others 12 and 9
LAIKAGO = Found("laikago/laikago_toes.urdf", **STANDING, **HEAVY, height=0.54, quat=Y_UP, legs=(0.0, -0.6, 0.66))
LORES = Found("laikago/laikago_toes_zup_lores.urdf", **STANDING, **HEAVY, height=0.47, quat=UPRIGHT, legs=(0.0, 0.0, -0.8))
A1 = Found("a1/a1.urdf", **STANDING, **LIGHT, height=0.28, quat=UPRIGHT, legs=(0.0, 0.9, -1.8))
MINI_CHEETAH = Found("mini_cheetah/mini_cheetah.urdf", **STANDING, **LIGHT, height=0.3, quat=UPRIGHT, legs=(0.0, -0.8, 1.6))
PANDA = Found("franka_panda/panda.urdf", **ARM, legs=(0.0, 0.6, 0.0, -1.5, 0.0, 1.8, 0.0, 0.02, 0.02))
# as Gymnasium starts it; ankles at 0 would be beyond their limits
ANT = Found("ant.xml", height=0.75, quat=UPRIGHT, legs=(0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0))
HUMANOID = Found("humanoid.xml")


def home(package: str) -> Path:
    """The folder of an installed package, found without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed (extra: dev)", name=package)
    return Path(spec.origin).parent
