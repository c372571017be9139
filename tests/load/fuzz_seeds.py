"""What the fuzzer starts from: Gymnasium's and pybullet_data's files, and small ones here that use many features of MJCF."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.load.urdf_text import LIMIT, collision, dae, inertial, joint, link, obj, robot, stl


@dataclass(frozen=True)
class Seed:
    """A file that loads: its name, its text, further files beside it, and a folder in which it finds the rest."""

    name: str
    text: bytes
    files: dict[str, bytes] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix


ARM = """<body name="arm" pos="0 0 .5"><joint name="a" axis="0 1 0" range="-90 90" damping=".1"/><geom name="ga" type="capsule"
 size=".05" fromto="0 0 0 .3 0 0"/><site name="s0" pos=".1 0 0"/><body name="hand" pos=".3 0 0"><joint name="b" axis="0 1 0"
 armature=".01"/><joint name="c" type="slide" axis="1 0 0" range="0 .1"/><geom name="gb" size=".06"/><site
 name="s1"/></body></body>
<body name="ball" pos="1 0 1"><freejoint name="f"/><geom name="gc" type="box" size=".1 .1 .1"/><site name="s2"/></body>
<body name="bob" pos="-1 0 1"><joint name="d" type="ball" damping=".1"/><geom name="gd" type="ellipsoid" size=".1 .2 .1"
 pos="0 0 -.3"/>
</body>"""
FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'

ACTUATORS = f"""<mujoco model="actuators"><option timestep="0.002"/><worldbody>{FLOOR}{ARM}</worldbody>
<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon>
<actuator><motor name="m" joint="a" gear="30" ctrlrange="-1 1" forcerange="-9 9"/><position joint="b" kp="40" kv="2"/>
<velocity joint="b" kv="3"/><general joint="c" gainprm="2" biastype="affine" biasprm="1 -3 -.5"/><intvelocity joint="a" kp="2"
 actrange="-1 1"/><damper joint="a" kv="1" ctrlrange="0 1"/><cylinder joint="c" area="1"/><muscle joint="b" lengthrange="0
 1"/><adhesion body="ball"
 ctrlrange="0 1"/><motor tendon="t"/><motor site="s1" refsite="s0" gear="1 0 0 0 0 0"/><motor jointinparent="d" gear="1 0 0"/>
<position joint="a" kp="5" dampratio="1"/><pid joint="a" kp="3"/><dcmotor joint="b" motorconst="1" resistance="1"/><general
 joint="b" dyntype="filter" dynprm=".1"/></actuator></mujoco>"""

TENDONS = f"""<mujoco model="tendons"><worldbody>{FLOOR}<site name="w" pos="0 0 2"/>{ARM}</worldbody><tendon>
<spatial name="t0" limited="true" range="0 3" stiffness="2" damping=".1"><site site="w"/><geom geom="gb" sidesite="s0"/><site
 site="s1"/><pulley divisor="2"/><site site="s0"/><site site="s2"/></spatial>
<spatial name="t1"><site site="w"/><site site="s2"/></spatial><fixed name="t2" frictionloss=".1"><joint joint="a" coef="1"/><joint
 joint="c" coef="2"/></fixed></tendon><sensor><tendonpos tendon="t0"/><tendonvel tendon="t2"/></sensor></mujoco>"""

EQUALITY = f"""<mujoco model="equality"><compiler autolimits="true"/><worldbody>{FLOOR}{ARM}</worldbody><equality>
<connect name="e0" body1="hand" body2="ball" anchor=".1 0 0"/><weld body1="ball" body2="bob" relpose="0 0 0 1 0 0 0"
 torquescale="1"/>
<joint joint1="b" joint2="a" polycoef="0 1 .1 0 0"/><joint joint1="c"/><connect site1="s1" site2="s2"/><weld site1="s0" site2="s2"
 active="false"/><tendon tendon1="t"/></equality><tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>
<contact><exclude body1="arm" body2="ball"/><pair geom1="ga" geom2="gc" friction="1 1 .1 .1 .1" condim="6"/></contact></mujoco>"""

GEOMS = f"""<mujoco model="geoms"><asset><mesh name="cube" vertex="0 0 0 1 0 0 0 1 0 0 0 1 1 1 1" scale=".1 .1 .1"/><mesh
 name="file"
 file="mesh.stl" scale=".1 .1 .1"/><mesh file="solid.obj" refpos="0 0 .1"/><hfield name="h" nrow="3" ncol="4" size="2 2 .3 .1"
 elevation="0 1 2 3 4 5 6 7 8 9 10 11"/><texture name="t" type="2d" builtin="checker" width="64" height="64"/><material name="m"
 texture="t"/></asset><worldbody>{FLOOR}<geom type="hfield" hfield="h" pos="0 0 -1"/><geom type="mesh" mesh="solid" contype="0"
 conaffinity="0"/>{ARM}<body pos="0 2 2"><freejoint/><geom type="mesh" mesh="cube" material="m" condim="4" solref=".05 1"
 solimp=".8 .9 .01"/></body><body pos="0 3 2"><freejoint/><geom type="mesh" mesh="file" margin=".01"/><geom type="cylinder"
 size=".1 .2" condim="6" friction="1 .1 .1" priority="1"/></body></worldbody></mujoco>"""

MOTION = f"""<mujoco model="motion"><option gravity="0 0 -9.81" integrator="RK4" cone="elliptic" density="1" viscosity="1e-3"
 wind="1 0 0"
><flag energy="enable" filterparent="enable"/></option><worldbody>{FLOOR}<body name="target" mocap="true" pos="1 1 1"><geom
 size=".1" contype="0" conaffinity="0"/></body>{ARM}<camera name="cam" pos="0 0 3"/><light pos="0 0 4"/><body gravcomp="1"
 pos="3 0
 3"><joint type="free" frictionloss=".1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1.5"/></body></worldbody>
<equality><weld body1="target" body2="ball"/></equality><sensor><jointpos joint="a"/><gyro site="s1"/><accelerometer
 site="s0"/><touch
 site="s1"/><framepos objtype="body" objname="ball"/><rangefinder site="s2"/><user dim="3"/></sensor>
<actuator><motor joint="a"/></actuator><keyframe><key name="home" qpos="0 .1 .02 1 0 1 1 0 0 0 1 0 0 0 3 0 3 1 0 0 0"
 ctrl=".3"/><key
 time="1" mpos="1 1 2" mquat="1 0 0 0"/></keyframe></mujoco>"""

SOFT = """<mujoco model="soft"><extension/><option timestep="0.001"/><worldbody><flexcomp name="cloth" type="grid" count="4 4 1"
 spacing=".1 .1 .1" mass="1" dim="2" pos="0 0 1"><edge equality="true"/><contact selfcollide="none"/><pin id="0 3"/></flexcomp>
<body name="core" pos="0 0 2"><geom size=".1"/><flexcomp name="block" type="box" count="3 3 3" spacing=".1 .1 .1" dim="3" mass="1"
 radius=".01"><elasticity young="1e4" poisson=".2"/></flexcomp></body><replicate count="3" offset=".5 0 0" euler="0 0 30"><body
 pos="2 0 1"><joint type="hinge" axis="0 1 0"/><geom size=".1"/></body></replicate></worldbody></mujoco>"""

PARTS = """<mujoco model="parts"><compiler angle="radian" eulerseq="zyx"/><include file="defaults.xml"/><asset><model name="leg"
 file="leg.xml"/></asset><custom><numeric name="n" size="3" data="1 2 3"/><text name="x" data="y"/></custom><worldbody>
<frame pos="0 0 1" euler="0 0 .5" childclass="soft"><body name="base"><freejoint/><geom class="soft" size=".2"/><frame
 pos=".2 0 0"><attach model="leg" body="thigh" prefix="left_"/></frame><attach model="leg" body="thigh" prefix="right_"/></body>
</frame><include file="floor.xml"/></worldbody></mujoco>"""
PART_FILES = {
    "defaults.xml": b'<mujoco><default><joint damping=".2"/><default class="soft"><geom solref=".1 1" condim="1"/></default>'
    b"</default></mujoco>",
    "floor.xml": b'<mujocoinclude><geom name="floor" type="plane" size="3 3 1"/></mujocoinclude>',
    "leg.xml": b'<mujoco><worldbody><body name="thigh"><joint name="hip" range="-1 1"/><geom type="capsule" size=".03" '
    b'fromto="0 0 0 0 0 -.3"/></body></worldbody><actuator><motor joint="hip"/></actuator></mujoco>',
}
MESHES = {"mesh.stl": stl(), "solid.obj": obj()}

WILD = robot(
    link("world"),
    link("base", inertial(), collision('<mesh filename="a.obj" scale="1 1 1"/>'), collision('<mesh filename="b.stl"/>')),
    link("arm", inertial(1.0, 1.0, 2.0, 5.0, 0.1), collision('<box size="1 2 3"/>'), collision('<mesh filename="c.dae"/>')),
    link("finger", inertial(1.0, 0, 0, 0), collision('<capsule radius="1" length="2"/>')),
    link("wheel", inertial(2.0), collision('<cylinder radius=".2" length=".1"/>'), collision('<sphere radius=".1"/>')),
    joint("anchor", "world", "base", "fixed", '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'),
    joint("hinge", "base", "arm", more=LIMIT + '<dynamics damping="1" friction="2"/>'),
    joint("slide", "arm", "finger", "prismatic", LIMIT + '<mimic joint="hinge" multiplier="2" offset="1"/>'),
    joint("roll", "arm", "wheel", "continuous", ""),
)
WILD_FILES = {"a.obj": obj(), "b.stl": stl(), "c.dae": dae()}

INLINE = {
    "actuators.xml": (ACTUATORS, {}),
    "tendons.xml": (TENDONS, {}),
    "equality.xml": (EQUALITY, {}),
    "geoms.xml": (GEOMS, MESHES),
    "motion.xml": (MOTION, {}),
    "soft.xml": (SOFT, {}),
    "parts.xml": (PARTS, PART_FILES),
    "wild.urdf": (WILD, WILD_FILES),
}
PYBULLET = (
    "a1/a1", "biped/biped2d_pybullet", "cartpole", "cube", "differential/diff_ring", "franka_panda/panda", "husky/husky",
    "humanoid/humanoid", "kuka_iiwa/model", "laikago/laikago_toes", "laikago/laikago_toes_zup_lores", "mini_cheetah/mini_cheetah",
    "pendulum5", "plane", "pr2_gripper", "quadruped/minitaur", "quadruped/spirit40", "r2d2", "racecar/racecar", "sphere2",
    "spherical_joint_limit",
)  # fmt: skip


@cache
def seeds() -> tuple[tuple[Seed, ...], ...]:
    """In groups from which the fuzzer draws alike: those here, Gymnasium's, pybullet_data's."""
    groups = [tuple(Seed(name, text.encode(), dict(files)) for name, (text, files) in INLINE.items())]
    for package, inner, names in (("gymnasium", "envs/mujoco/assets", None), ("pybullet_data", ".", PYBULLET)):
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:  # pybullet has no wheel for every Python
            continue
        folder = Path(found.origin).parent / inner
        paths = sorted(folder.glob("*.xml")) if names is None else [folder / f"{name}.urdf" for name in names]
        groups.append(tuple(Seed(path.name, path.read_bytes(), folder=path.parent) for path in paths))
    return tuple(groups)
