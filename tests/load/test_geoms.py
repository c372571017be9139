"""Geoms of MJCF files: sizes and frames of primitives, hulls of meshes, heightfields, ellipsoids, surfaces."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

import costate as cs
from costate.load import LoadWarning, load_string
from costate.load.hulls import points_on_sphere, reduce
from costate.load.surfaces import depth, impedance
from tests.load.compare import text_model
from tests.load.meshes import BLOCK, ball, stl

NEAR = 1e-9  # m
FLOAT = 1e-6  # relative: MuJoCo keeps meshes and heightfields in float32

SOLIDS = """<mujoco><worldbody><geom name="floor" type="plane" pos="0 0 -3" size="1 1 1"/>
  <body name="b" pos="1 2 3" quat="1 .2 .3 .4"><freejoint/>{}</body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    "geom",
    [
        '<geom name="g" size=".2" pos=".1 .2 .3"/>',
        '<geom name="g" type="capsule" size=".1 .4" euler="10 20 30"/>',
        '<geom name="g" type="capsule" fromto="0 0 0 1 2 3" size=".1"/>',
        '<geom name="g" type="cylinder" size=".1 .4" euler="10 20 30" pos=".1 0 0"/>',
        '<geom name="g" type="box" size=".1 .2 .3" euler="10 20 30"/>',
    ],
)
def test_distance_to_the_floor_is_mujocos(geom):
    text = SOLIDS.format(geom)
    model, m = load_string(text), text_model(text)
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    theirs = mujoco.mj_geomDistance(m, data, m.geom("floor").id, m.geom("g").id, 100.0, None)
    assert abs(gap(model, "floor", "g") - theirs) < NEAR


def gap(model: cs.Model, a: str, b: str) -> float:
    sim = cs.Simulator(model, dt=0.001, contact=cs.Contact(margin=100.0))
    _, info = sim.step(sim.initial_state(), info=True)
    pair = {model.shape(a), model.shape(b)}
    both = torch.stack((info.contacts.shape_a, info.contacts.shape_b), -1).tolist()
    return min(float(g) for g, s, on in zip(info.contacts.gap, both, info.contacts.active) if on and set(s) == pair)


def test_a_mesh_is_its_hull():
    text = '<mujoco><asset><mesh name="m" file="x/block.stl" scale="1 1 2"/></asset>' + SOLIDS.format(
        '<geom name="g" type="mesh" mesh="m"/>'
    ).removeprefix("<mujoco>")
    model = load_string(text, assets={"x/block.stl": BLOCK})
    m = mujoco.MjModel.from_xml_string(text, {"x/block.stl": BLOCK})
    corners = model.defaults["hull_vertex"][model.vertices("g")]
    assert len(corners) == 8
    assert abs(float(model.defaults["mass"][0]) - 0.4 * 0.2 * 1.2 * 1000) < FLOAT * 96
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    theirs = mujoco.mj_geomDistance(m, data, 0, 1, 100.0, None)
    assert abs(gap(model, "floor", "g") - theirs) < FLOAT


def test_hulls_with_many_vertices_are_reduced_with_a_warning():
    text = '<mujoco><asset><mesh name="m" file="ball.stl"/></asset>' + SOLIDS.format(
        '<geom name="g" type="mesh" mesh="m"/>'
    ).removeprefix("<mujoco>")
    assets = {"ball.stl": stl(ball(500))}
    with pytest.warns(LoadWarning, match=r"mesh 'm': the hull has 64 vertices \(hull_vertices\), and lies up to .* mm inside"):
        model = load_string(text, assets=assets)
    assert model.hull_vertices == (64,)
    with pytest.warns(LoadWarning, match="has 20 vertices"):
        assert load_string(text, assets=assets, hull_vertices=20).hull_vertices == (20,)


def test_reduced_hulls_tell_how_far_they_are_off(rng):
    points = ball(400)
    kept, error = reduce(points, 40)
    planes = ConvexHull(kept).equations
    outside = (points @ planes[:, :3].T + planes[:, 3]).max()
    assert len(kept) == 40 and abs(outside - error) < NEAR and error < 0.2
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    inside = np.concatenate((cube, 0.1 + 0.8 * rng.random((300, 3))))
    corners, error = reduce(inside, 10)
    assert np.array_equal(corners, cube) and error == 0.0
    with pytest.raises(ValueError, match="must span a volume"):
        reduce(cube * (1, 1, 0), 10)


def test_meshes_only_for_drawing_are_dropped():
    geoms = '<geom name="g" size=".1"/><geom name="v" type="mesh" mesh="m" contype="0" conaffinity="0" mass="0"/>'
    text = '<mujoco><asset><mesh name="m" file="block.stl"/></asset>' + SOLIDS.format(geoms).removeprefix("<mujoco>")
    model = load_string(text, assets={"block.stl": BLOCK})
    assert [shape.name for shape in model.shapes[0]] == ["g"]


def test_a_heightfield_lies_as_mujocos(rng):
    heights = rng.random((5, 4))
    elevation = " ".join(str(float(h)) for h in heights.ravel())
    text = f"""<mujoco><asset><hfield name="h" nrow="5" ncol="4" size="2 3 .5 .1" elevation="{elevation}"/></asset><worldbody>
      <geom name="land" type="hfield" hfield="h" pos=".1 .2 .3" euler="0 0 30"/>
      <body pos="0 0 5"><freejoint/><geom size=".1"/></body>
    </worldbody></mujoco>"""
    model, m = load_string(text), text_model(text)
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    frame = data.geom_xmat[0].reshape(3, 3)
    for row in (1, 2, 3):
        for column in (1, 2):  # over corners of cells, where it does not matter how cells are cut
            x, y = -2 + 4 * column / 3, -3 + 6 * row / 4
            start = data.geom_xpos[0] + frame @ (x, y, 3.0)
            geom = np.zeros(1, np.int32)
            theirs = mujoco.mj_ray(m, data, start, np.array((0, 0, -1.0)), None, 1, 1, geom, None)
            down = torch.tensor([[0.0, 0.0, -1.0]], dtype=torch.float64)
            rays = cs.ray_cast(model, torch.tensor(model.q0), torch.tensor(start)[None], down)
            assert geom[0] == 0 and abs(float(rays.distance) - theirs) < FLOAT * 3


def test_an_ellipsoid_touches_as_a_hull():
    with pytest.warns(LoadWarning, match="geom 'g': an ellipsoid touches as the hull of 42 points"):
        model = load_string(SOLIDS.format('<geom name="g" type="ellipsoid" size=".1 .2 .3" pos=".5 0 0"/>'))
    corners = model.defaults["hull_vertex"].numpy()
    assert np.abs(np.linalg.norm(corners / (0.1, 0.2, 0.3), axis=1) - 1).max() < 1e-6
    assert np.allclose(corners.max(0), (0.1, 0.2, 0.3)) and len(points_on_sphere(42)) == 42


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_friction_and_condim(condim):
    model = load_string(SOLIDS.format(f'<geom name="g" size=".1" friction=".7 .02 .003" condim="{condim}"/>'))
    shape = model.shape("g")
    assert model.shape_condim[shape] == condim
    assert [float(model.defaults[word][shape]) for word in ("friction", "torsion", "rolling")] == [0.7, 0.02, 0.003]


# ---- softness ------------------------------------------------------------------------------------------------------
def test_default_contact_is_rigid():
    assert not load_string(SOLIDS.format('<geom name="g" size=".1"/>')).defaults["softness"].any()


SOFT = """<mujoco><option timestep="0.001" cone="{}"/><default><geom solref="{}" solimp="{}"/></default><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/><body name="b" pos="0 0 .1"><freejoint/><geom name="g" {}/></body>
</worldbody></mujoco>"""
BALL, BOX = (
    'size=".1" friction=".4"',
    'condim="4" type="box" size=".3 .3 .1"',
)  # the box carries its weight on four contacts: the same where d is constant
SOFT_DEPTH = 1e-3  # relative; what still swings


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("solref", ["0.05 1", "0.1 0.7", "-400 -40"])
@pytest.mark.parametrize(
    ("solimp", "solid"),
    [("0.9 0.95 0.001 0.5 2", BALL), ("0.0 0.8 0.01 0.5 2", BALL), ("0.5 0.6 0.02 0.3 3", BALL), ("0.7 0.7 0.01 0.5 2", BOX)],
)
def test_soft_contact_rests_where_mujocos_does(solref, solimp, solid, cone):
    text = SOFT.format(cone, solref, solimp, solid)
    with pytest.warns(LoadWarning, match="become a softness that gives the same depth at rest"):
        model = load_string(text)
    m = text_model(text)
    data = mujoco.MjData(m)
    mujoco.mj_step(m, data, nstep=4000)
    sim = cs.Simulator(model, dt=0.005)
    end = sim.rollout(sim.initial_state(), steps=400)[-1]
    theirs, ours = 0.1 - data.qpos[2], 0.1 - float(end.q[2])
    assert theirs > 1e-4 and abs(ours - theirs) < SOFT_DEPTH * theirs


def test_impedance_is_mujocos():
    """Ends, the middle, and a straight line for power 1."""
    solimp = np.array((0.2, 0.8, 0.01, 0.5, 2.0))
    assert [impedance(solimp, r) for r in (0.0, 0.005, 0.01, 1.0)] == pytest.approx([0.2, 0.5, 0.8, 0.8])
    straight = np.array((0.2, 0.8, 0.01, 0.5, 1.0))
    assert impedance(straight, 0.0025) == pytest.approx(0.35)
    rigid = depth(np.array((0.02, 1.0)), np.array((0.9, 0.95, 0.001, 0.5, 2.0)), 9.81)
    assert 1e-4 < rigid < 1e-3
