"""Models to be saved, and their files taken apart and put together again."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import costate as cs
from costate.scene.archive import HEADER
from costate.scene.keyframe import Keyframe
from tests.gradients import constraint_scenes, contact_scenes, planar_scenes, scenes


def solids() -> cs.Model:
    """Every shape in space, also such as only give inertia."""
    scene = cs.Scene(max_contacts=12, friction_rule="maximum", restitution_rule="product")
    heights = 0.1 * torch.rand(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scene.add_shape(cs.Heightfield(heights, (2.0, 3.0), softness=1e-5), name="hills")
    scene.add_ground(-1.0)
    corners = torch.randn(12, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    kinds = (
        cs.Sphere(0.1), cs.Box((0.1, 0.2, 0.3)), cs.Capsule(0.1, 0.2), cs.Cylinder(0.1, 0.2), cs.Hull(0.1 * corners),
        cs.Ellipsoid((0.1, 0.2, 0.3), collide=False, mass=2.0, name="an egg, größer"),
    )  # fmt: skip
    for i, kind in enumerate(kinds):
        shapes = (replace(kind, friction=0.1 * i, group=1 << i, mask=-1), cs.Sphere(0.05, collide=False))
        scene.add_body(joint=cs.Free(), pos=(i, 0, 2), shapes=shapes)
    return scene.build()


def plane() -> cs.Model:
    """Every shape of planar scenes."""
    scene = cs.Scene(planar=True)
    scene.add_ground(angle=0.1)
    for i, shape in enumerate((cs.Circle(0.2), cs.Rectangle((0.1, 0.2)), cs.Polygon(((0, 0), (0.3, 0), (0.1, 0.4))))):
        scene.add_body(pos=(i, 1), angle=0.1 * i, shapes=shape)
    return scene.build()


def with_keyframes() -> cs.Model:
    model = scenes.build("arm")
    rng = np.random.default_rng(0)
    frames = {
        name: Keyframe(model.q0, rng.normal(size=model.nv), rng.normal(size=model.nu)) for name in ("home", "", "für später")
    }
    return replace(model, timestep=0.002, source="robots/arm.xml", keyframes=frames)


def models() -> dict[str, cs.Model]:
    made = {"solids": solids(), "plane": plane(), "keyframes": with_keyframes()}
    sources = (scenes.SCENES, contact_scenes.SCENES, constraint_scenes.SCENES, planar_scenes.SEVERAL)
    for source in sources:
        made |= {f"{name} {len(made)}": make().build() for name, make in source.items()}
    return made


MODELS = models()


def through_file(model, path):
    model.save(path)
    return cs.Model.load(path)


def every_part() -> cs.Model:
    """Joints, motors, limits, dry friction, ties and couplings in one model."""
    scene = cs.Scene(collisions=False)
    box = cs.Box((0.1, 0.1, 0.1))
    scene.add_body("a", joint=cs.Free(), shapes=box)
    scene.add_body("b", parent="a", joint=cs.Ball(limit=1.0), pos=(0, 0, 1), shapes=box)
    scene.add_body("c", parent="b", joint=cs.Revolute(limits=(-1, 1), friction=0.1), pos=(0, 0, 1), shapes=box)
    scene.add_body("d", joint=cs.Prismatic(friction=0.2), pos=(1, 0, 0), shapes=box)
    scene.add_hinge("c", None, name="door")
    scene.add_point("d", None, name="pin")
    scene.add_coupling("c", "d")
    scene.add_position("c", kp=1.0, force_limits=2.0, control_limits=1.0)
    scene.add_servo("door", gain=1.0, max_force=1.0, max_speed=1.0)
    scene.add_general("c", gain=2.0, bias=0.5, kp=1.0, name="general")
    scene.add_site("s", body="d")
    return scene.build()


def unpacked(path):
    """The header and the arrays of a file."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(arrays.pop(HEADER).tobytes()), arrays


def packed(path, header, arrays, **options):
    text = np.frombuffer((header if isinstance(header, str) else json.dumps(header)).encode(), np.uint8)
    np.savez(path, **{HEADER: text, **arrays}, **options)


def check_refused(path, match):
    with pytest.raises(ValueError, match=match) as error:
        cs.Model.load(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)
