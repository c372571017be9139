"""Derivatives of ray casts against central differences: by q, rays and every parameter that places or shapes a surface."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import costate as cs
from costate.rotation import rotate
from tests.gradients.differences import error_of_derivative
from tests.gradients.scenes import generator, normal

TOLERANCE = 1e-7  # relative, of the best step size; rounding of the differences
MARGIN = 3e-3  # m: rays that hit another piece of surface this close by are near a kink, where differences see both sides
PLACES = ("joint_pos", "joint_quat", "joint_axis", "joint_anchor", "shape_pos", "shape_quat")
INPUTS = ("q", "origin", "direction", *PLACES)
KINDS = {
    "plane": (),
    "sphere": ("shape_size",),
    "capsule": ("shape_size",),
    "box": ("shape_size",),
    "cylinder": ("shape_size",),
    "hull": ("hull_vertex",),
    "terrain": ("shape_size", "height"),
}
WHERE = {"pos": (0.1, -0.2, 0.05), "quat": (0.9, 0.2, -0.3, 0.1)}


def build() -> cs.Model:
    """One of each on the end of an arm; what never moves, tilted, on a fixed body."""
    rng = np.random.default_rng(0)
    scene = cs.Scene()
    scene.add_body("base", joint=cs.Fixed(), pos=(0.1, 0.2, -1.0), quat=(0.95, 0.1, 0.2, 0.1), massless=True)
    scene.add_shape(cs.Plane(**WHERE, name="plane"), body="base")
    heights = rng.normal(size=(5, 6)) * 0.1
    scene.add_shape(cs.Heightfield(heights, (0.6, 0.8), pos=(0, 0, 0.5), quat=WHERE["quat"], name="terrain"), body="base")
    points = rng.normal(size=(10, 3))
    solids = {
        "sphere": cs.Sphere(0.3, **WHERE), "capsule": cs.Capsule(0.2, 0.3, **WHERE), "box": cs.Box((0.2, 0.3, 0.25), **WHERE),
        "cylinder": cs.Cylinder(0.3, 0.25, **WHERE),
        "hull": cs.Hull(0.4 * points / np.linalg.norm(points, axis=-1, keepdims=True), **WHERE),
    }  # fmt: skip
    for k, (name, shape) in enumerate(solids.items()):
        joint = cs.Revolute((0.2, 1, 0.1), anchor=(0.05, 0.02, -0.1))
        arm = scene.add_body(f"arm {name}", joint=joint, pos=(2.0 * k, 0, 2), quat=(0.8, 0.1, 0.1, 0.5), mass=1.0, com=(0, 0, 0),
                             inertia=(1, 1, 1, 0, 0, 0))  # fmt: skip
        scene.add_body(parent=arm, joint=cs.Ball(), pos=(0.2, 0.1, 0.3), shapes=replace(shape, name=name))
    return scene.build()


class Case(NamedTuple):
    """Rays that hit one shape, well away from its edges and silhouettes."""

    model: cs.Model
    name: str
    inputs: dict[str, Tensor]
    params: cs.Params

    def outputs(self, name: str, x: Tensor) -> Tensor:
        """Distances, points and normals with `x` in place of one input."""
        inputs = {**self.inputs, **({name: x} if name in self.inputs else {})}
        params = self.params if name in self.inputs else self.params.replace(**{name: x})
        rays = cs.ray_cast(self.model, **inputs, params=params, shapes=self.name)
        return torch.cat([part.reshape(-1) for part in rays[:3]])


def near_kink(model: cs.Model, name: str, q: Tensor, o: Tensor, d: Tensor, gen: torch.Generator) -> Tensor:
    """Rays beside which the surface jumps or bends."""
    rays = cs.ray_cast(model, q, o, d, shapes=name)
    bad = rays.shape < 0
    for _ in range(30):
        other = cs.ray_cast(model, q, o + MARGIN * normal(gen, *o.shape), d, shapes=name)
        bend = (other.normal - rays.normal).norm(dim=-1)
        bad |= (other.shape < 0) | ((other.distance - rays.distance).abs() > 10 * MARGIN) | (bend > 20 * MARGIN)
    return bad


def make_case(name: str, inside: bool, rays: int = 40) -> Case:
    model, gen = build(), generator(3)
    q = model.integrate(torch.tensor(model.q0), 0.3 * normal(gen, model.nv))
    body = model.shape_body[model.shape(name)]
    centre = cs.kinematics(model, q).position[body]
    local = model.defaults["shape_pos"][model.shape(name)]
    centre = centre + rotate(cs.kinematics(model, q).quaternion[body], local)
    o = centre + (0.05 if inside else 0.1) * normal(gen, 2000, 3)
    d = normal(gen, 2000, 3)
    if not inside:
        d[:, 2] = -d[:, 2].abs() if name in ("plane", "terrain") else d[:, 2]
        o = o - 2 * d / d.norm(dim=-1, keepdim=True)
    keep = ~near_kink(model, name, q, o, d, gen)
    assert keep.sum() > 2 * rays
    inputs = {"q": q, "origin": o[keep][:rays], "direction": d[keep][:rays]}
    return Case(model, name, inputs, model.params())


CASES = [(name, inside) for name in KINDS for inside in (False, True) if not (inside and name in ("plane", "terrain"))]


@pytest.mark.parametrize(("name", "inside"), CASES, ids=[f"{name}, {'inside' if i else 'outside'}" for name, i in CASES])
def test_central_differences(name, inside):
    case, gen = make_case(name, inside), generator(4)
    errors = {}
    for field in (*INPUTS, *KINDS[name]):
        x = case.inputs[field] if field in case.inputs else case.params[field].detach()
        w = normal(gen, len(case.outputs(field, x)))
        errors[field] = error_of_derivative(lambda y, f=field: case.outputs(f, y), x, normal(gen, *x.shape), w)
    assert max(errors.values()) < TOLERANCE, errors


def gradients(case: Case) -> dict[str, Tensor]:
    inputs = {name: x.clone().requires_grad_() for name, x in case.inputs.items()}
    params = case.params.detach(requires_grad=True)
    rays = cs.ray_cast(case.model, **inputs, params=params)
    torch.cat([part.reshape(-1) for part in rays[:3]]).nan_to_num(posinf=0).sum().backward()
    return {name: x.grad for name, x in {**inputs, **params}.items() if x.grad is not None}


def test_rays_that_hit_nothing_have_zero_gradients():
    case = make_case("sphere", False)
    away = case._replace(
        inputs={**case.inputs, "origin": case.inputs["origin"] * 0 + 50, "direction": case.inputs["origin"] * 0 + 1}
    )
    found = gradients(away)
    assert {"q", "origin", "direction", "shape_pos"} <= set(found) and not any(x.any() for x in found.values())


def test_a_hit_among_misses_has_the_gradient_that_it_has_alone():
    case = make_case("capsule", False, rays=5)
    lone = gradients(case)
    far = torch.full((5, 3), 50.0, dtype=torch.float64)
    mixed = {name: torch.cat((case.inputs[name], far)) for name in ("origin", "direction")}
    both = gradients(case._replace(inputs={**case.inputs, **mixed}))
    for name, x in lone.items():
        other = both[name][:5] if name in mixed else both[name]
        torch.testing.assert_close(other, x, rtol=1e-12, atol=1e-12)


AXES = torch.eye(3, dtype=torch.float64)
KINKS = {
    "on the axis of a capsule": (cs.Capsule(0.2, 0.3), AXES[2] * 2, -AXES[2]),
    "on the axis of a cylinder": (cs.Cylinder(0.2, 0.3), AXES[2] * 2, -AXES[2]),
    "through the centre of a sphere": (cs.Sphere(0.2), AXES[0] * 2, -AXES[0]),
    "from the centre of a sphere": (cs.Sphere(0.2), AXES[0] * 0, -AXES[0]),
    "touches a sphere": (cs.Sphere(0.25), AXES[0] * 2 + AXES[2] * 0.25, -AXES[0]),
    "along the face of a box": (cs.Box((0.25, 0.25, 0.25)), AXES[0] * 2 + AXES[2] * 0.25, -AXES[0]),
    "at an edge of a box": (cs.Box((0.25, 0.25, 0.25)), AXES[0] * 2 + AXES[2] * 2, -AXES[0] - AXES[2]),
    "at a corner of a box": (cs.Box((0.25, 0.25, 0.25)), 2 * AXES.sum(0), -AXES.sum(0)),
    "at the rim of a cylinder": (cs.Cylinder(0.25, 0.25), AXES[0] * 2 + AXES[2] * 2, -AXES[0] - AXES[2]),
    "along the side of a cylinder": (cs.Cylinder(0.25, 0.25), AXES[0] * 0.25 + AXES[2] * 2, -AXES[2]),
    "starts on a box": (cs.Box((0.25, 0.25, 0.25)), AXES[0] * 0.25, -AXES[0]),
}


@pytest.mark.parametrize("name", KINKS)
def test_no_gradient_is_nan_where_the_surface_has_a_kink(name):
    shape, origin, direction = KINKS[name]
    scene = cs.Scene()
    scene.add_ground(-5)
    scene.add_body("body", joint=cs.Free(), shapes=shape)
    model = scene.build()
    inputs = {"q": torch.tensor(model.q0), "origin": origin.unsqueeze(0), "direction": direction.unsqueeze(0)}
    found = gradients(Case(model, "body/0", inputs, model.params()))
    assert found and all(x.isfinite().all() for x in found.values())


def test_a_distance_is_fitted_by_descent():
    """Range readings tell the height of a ball and its radius."""
    scene = cs.Scene()
    scene.add_ground(-5)
    scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(0.4))
    model = scene.build()
    at = torch.tensor([[0.3, 0, 3], [0, 0, 3], [0.1, 0.2, 3], [-0.25, 0.1, 3]], dtype=torch.float64)
    down = torch.tensor([[0.0, 0, -1]], dtype=torch.float64)
    truth = cs.ray_cast(model, torch.tensor(model.q0), at, down).distance
    q, params = torch.tensor(model.q0), model.params()
    guess = torch.tensor([0.1, -0.7], dtype=torch.float64, requires_grad=True)  # height, logarithm of the radius
    descent = torch.optim.LBFGS([guess], line_search_fn="strong_wolfe", max_iter=50, tolerance_change=1e-14, tolerance_grad=1e-12)

    def loss() -> Tensor:
        descent.zero_grad()
        size = torch.stack((model.defaults["shape_size"][0], guess[1].exp() * AXES[0]))
        pose = torch.cat((q[:2], guess[:1], q[3:]))
        error = (cs.ray_cast(model, pose, at, down, params.replace(shape_size=size)).distance - truth).square().sum()
        error.backward()
        return error

    descent.step(loss)
    found = torch.stack((guess[0], guess[1].exp())).detach()
    torch.testing.assert_close(found, torch.tensor([0.0, 0.4]).double(), rtol=0, atol=1e-6)
