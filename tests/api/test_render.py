"""costate.render.draw: artists are where the physics is, in the world and with the params that were asked for."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from math import cos, pi, sin

import matplotlib
import numpy as np
import pytest
import torch

import costate as cs

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.patches import Circle, Polygon

from costate import render
from costate.render.artists import HalfPlane, clip, zigzag
from costate.render.picture import PUSH
from costate.render.view import COLORS, GREY

TIGHT = 1e-12  # m, in float64: poses go through a quaternion and back
TRIANGLE = ((0.0, 0.0), (0.3, 0.0), (0.1, 0.2))
# x, y and angle of ball, crate and wedge, then the angle of the pendulum
Q = (-0.5, 0.4, 0.7, 0.2, 0.3, -0.4, 0.9, 0.1, 0.5, 0.6)
AT = torch.tensor(Q, dtype=torch.float64)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@cache
def yard(**options) -> cs.Model:
    """One of every shape, a pendulum, a post in the ground, and constraints of several kinds."""
    scene = cs.Scene(planar=True, **options)
    scene.add_ground(friction=0.5, name="ground")
    scene.add_shape(cs.HalfPlane(pos=(1.0, 0.0), angle=0.5), name="slope")
    scene.add_body("ball", pos=(-0.5, 1.0), shapes=cs.Circle(0.1, mass=1.0, restitution=0.4))
    scene.add_body("crate", pos=(0.2, 0.3), shapes=cs.Rectangle((0.2, 0.1), mass=1.0, pos=(0.05, 0.0), angle=0.3))
    scene.add_body("wedge", pos=(0.9, 0.1), shapes=cs.Polygon(TRIANGLE, mass=1.0))
    rod = cs.Rectangle((0.02, 0.25), mass=0.5, pos=(0.0, -0.25))
    scene.add_body("pendulum", joint=cs.Revolute(), pos=(-1.2, 1.5), shapes=rod)
    scene.add_body("post", joint=cs.Fixed(), pos=(-1.2, 1.6), shapes=cs.Rectangle((0.05, 0.1), mass=1.0))
    scene.add_site("tip", body="pendulum", pos=(0.0, -0.5))
    scene.add_distance("ball", "crate", pos=(0.0, 0.0), pos_b=(0.1, 0.0), name="rod")
    scene.add_distance("crate", None, pos=(0.0, 0.0), pos_b=(0.2, 1.5), softness=0.01, name="spring")
    scene.add_hinge("crate", "wedge", pos=(0.2, 0.0), name="pin")
    return scene.build()


def moved(angle: float, point, *, by) -> np.ndarray:
    """A point of a body that has turned by an angle and lies at `by`."""
    return np.array(((cos(angle), -sin(angle)), (sin(angle), cos(angle)))) @ np.asarray(point, dtype=float) + np.asarray(by)


def near(a, b) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=TIGHT))


def circles(ax) -> list[Circle]:
    return [patch for patch in ax.patches if isinstance(patch, Circle)]


def outlines(ax) -> list[np.ndarray]:
    """Corners [n, 2] of all polygons: of crate, wedge, pendulum, post."""
    solid = [patch for patch in ax.patches if isinstance(patch, Polygon) and not isinstance(patch, HalfPlane)]
    return [patch.get_path().vertices[:-1] for patch in solid]


def lines(ax) -> list[np.ndarray]:
    """Points [n, 2] of all lines and markers, but edges of half planes."""
    return [line.get_xydata() for line in ax.lines if type(line).__name__ == "Line2D"]


def has(found: list[np.ndarray], points) -> bool:
    return any(len(x) == len(points) and near(x, points) for x in found)


def test_artists_are_where_the_physics_is():
    ax = render.draw(yard(), AT)
    (ball,) = circles(ax)
    assert near(ball.center, Q[:2]) and ball.radius == pytest.approx(0.1)
    assert has(lines(ax), (Q[:2], moved(Q[2], (0.1, 0.0), by=Q[:2])))  # the radius shows the angle
    corners = [moved(0.3, (0.2 * x, 0.1 * y), by=(0.05, 0.0)) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    crate, wedge, pendulum, post = outlines(ax)
    assert near(crate, [moved(Q[5], corner, by=Q[3:5]) for corner in corners])
    assert near(sorted(map(tuple, wedge)), sorted(tuple(moved(Q[8], corner, by=Q[6:8])) for corner in TRIANGLE))
    assert near(pendulum.mean(0), moved(Q[9], (0.0, -0.25), by=(-1.2, 1.5)))
    assert near(post.mean(0), (-1.2, 1.6)) and near(np.ptp(post, axis=0), (0.1, 0.2))


def test_joints_and_constraints():
    model = yard()
    ax = render.draw(model, AT)
    found = lines(ax)
    ball, crate = np.array(Q[:2]), lambda point: moved(Q[5], point, by=Q[3:5])
    assert has(found, ((-1.2, 1.5), (-1.2, 1.5)))  # the pendulum's joint
    assert has(found, (ball, crate((0.1, 0.0))))
    springs = [x for x in found if len(x) > 10]
    assert len(springs) == 1 and near(springs[0][[0, -1]], (crate((0.0, 0.0)), (0.2, 1.5)))
    on_wedge = np.array((0.2 + 0.2 - 0.9, 0.3 - 0.1))  # at first both bodies are level
    assert has(found, (crate((0.2, 0.0)), moved(Q[8], on_wedge, by=Q[6:8])))
    bare = lines(render.draw(model, AT, joints=False))
    assert len(bare) == 1 and len(bare[0]) == 2  # the radius


def test_slides_welds_and_springs_of_joints():
    scene = cs.Scene(planar=True, collisions=False)
    for name in ("a", "b", "c"):
        scene.add_body(name, shapes=cs.Circle(0.1))
    scene.add_body("cart", joint=cs.Prismatic((0.0, 1.0), stiffness=10.0), pos=(2.0, 1.0), shapes=cs.Circle(0.1))
    scene.add_slide(None, "a", axis=(1.0, 1.0), pos=(0.0, 0.5), pos_b=(0.1, 0.0))
    scene.add_weld("a", "b", pos=(0.2, 0.0), pos_b=(0.0, 0.3))
    scene.add_lock("b", "c", rotation=True)  # at no point
    scene.add_lock("a", "c", x=True, pos=(0.0, 0.7), pos_b=(0.0, 0.0))
    q = np.array((1.0, 2.0, 0.4, 3.0, 4.0, 0.2, 5.0, 6.0, 0.0, 0.5))
    ax = render.draw(scene.build(), q)
    drawn = [line for line in ax.lines if type(line).__name__ == "Line2D"]
    slide, weld, lock = (line for line in drawn if line.get_marker() == "s")
    a, b = (lambda point: moved(0.4, point, by=(1.0, 2.0))), (lambda point: moved(0.2, point, by=(3.0, 4.0)))
    assert near(slide.get_xydata(), ((0.0, 0.5), a((0.1, 0.0)))) and slide.get_markevery() == [1]
    assert near(weld.get_xydata(), (a((0.2, 0.0)), b((0.0, 0.3)))) and weld.get_markevery() is None
    assert near(lock.get_xydata(), (a((0.0, 0.7)), (5.0, 6.0)))
    (spring,) = (line.get_xydata() for line in drawn if len(line.get_xydata()) > 10)
    assert near(spring[[0, -1]], ((2.0, 1.0), (2.0, 1.5))) and len(drawn) == 4 + 3 + 1  # radii, squares, spring


def test_numpy_and_torch_and_states_agree():
    q, v = np.array(Q), np.zeros(10)
    given = (q, AT.clone().requires_grad_(), cs.State(q, v), cs.State(torch.tensor(q), torch.tensor(v)), np.float32(q))
    drawn = [outlines(render.draw(yard(), state)) for state in given]
    assert all(np.allclose(a, b, atol=1e-6 if k == 4 else TIGHT) for k, x in enumerate(drawn) for a, b in zip(x, drawn[0]))


def test_worlds_of_batches():
    q = AT.repeat(2, 3, 1)
    q[..., 0] = torch.arange(6.0).reshape(2, 3)
    radius = yard().defaults["shape_size"].repeat(3, 1, 1)
    radius[:, yard().shape("ball/0"), 0] = torch.tensor((0.1, 0.2, 0.3))
    params = yard().params().replace(shape_size=radius)
    for world, x, size in ((0, 0.0, 0.1), (4, 4.0, 0.2), (-1, 5.0, 0.3), ((1, 0), 3.0, 0.1), ((0, -1), 2.0, 0.3)):
        (ball,) = circles(render.draw(yard(), q, params=params, world=world))
        assert near(ball.center, (x, Q[1])) and ball.radius == pytest.approx(size)
    (ball,) = circles(render.draw(yard(), AT, params=params, world=2))  # only params have worlds
    assert near(ball.center, Q[:2]) and ball.radius == pytest.approx(0.3)
    for world in (6, (2, 0), (0, 0, 0), True, "1"):
        with pytest.raises(ValueError, match=r"draw: world must be below 6, or an index into batch dimensions \(2, 3\)"):
            render.draw(yard(), q, world=world)


def test_params_move_and_resize():
    model = yard()
    index = {name: model.shape(f"{name}/0") for name in ("ball", "crate", "wedge")}
    fields = {name: model.defaults[name].clone() for name in ("shape_size", "shape_pos", "hull_vertex", "joint_pos")}
    fields["shape_size"][index["crate"], :2] = torch.tensor((0.5, 0.4), dtype=torch.float64)
    fields["shape_pos"][index["ball"], :2] = torch.tensor((0.05, 0.02), dtype=torch.float64)
    fields["hull_vertex"][model.vertices("wedge/0")] *= 2.0
    fields["joint_pos"][model.body("pendulum"), 0] = -2.0
    params = model.params(requires_grad=True).replace(**fields)
    ax = render.draw(model, AT, params=params)
    crate, wedge, pendulum, _ = outlines(ax)
    assert near(np.linalg.norm(crate[1] - crate[0]), 1.0) and near(np.linalg.norm(crate[2] - crate[1]), 0.8)
    assert near(circles(ax)[0].center, moved(Q[2], (0.05, 0.02), by=Q[:2]))
    assert near(sorted(map(tuple, wedge)), sorted(tuple(moved(Q[8], 2 * np.array(corner), by=Q[6:8])) for corner in TRIANGLE))
    assert near(pendulum.mean(0), moved(Q[9], (0.0, -0.25), by=(-2.0, 1.5)))


def test_shapes_that_touch_nothing_are_drawn():
    ax = render.draw(yard(collisions=False), AT)
    with_contact = render.draw(yard(), AT)
    assert near(circles(ax)[0].center, Q[:2]) and len(outlines(ax)) == 4
    assert all(near(a, b) for a, b in zip(outlines(ax), outlines(with_contact), strict=True))


def test_bodies_without_shapes():
    scene = cs.Scene(planar=True)
    scene.add_body("upper", joint=cs.Revolute(), pos=(0.0, 1.0), mass=1.0, com=(0.0, -0.5), inertia=0.1)
    scene.add_body("lower", parent="upper", joint=cs.Revolute(), pos=(0.0, -0.5), mass=1.0, com=(0.3, 0.0), inertia=0.1)
    found = lines(render.draw(scene.build(), np.array((pi / 2, 0.0))))
    elbow, tip = (0.5, 1.0), (0.5, 1.3)
    assert has(found, (elbow,)) and has(found, (tip,))  # masses
    assert has(found, ((0.0, 1.0), elbow)) and has(found, (elbow, tip))  # links


# ---- half planes and the view ----------------------------------------------------------------------------------------------
def test_half_planes_fill_the_view():
    ax = render.draw(yard(), AT)
    ground, slope = (patch for patch in ax.patches if isinstance(patch, HalfPlane))
    for limits in ((ax.get_xlim(), ax.get_ylim()), ((-3.0, 5.0), (-1.0, 4.0))):
        ax.set(xlim=limits[0], ylim=limits[1])
        ax.figure.canvas.draw()
        (x0, x1), (y0, _) = limits
        floor = ground.get_xy()[:-1]
        assert near(floor.min(0), (x0, y0)) and near(floor.max(0), (x1, 0.0))
        below = slope.get_xy()[:-1] - (1.0, 0.0)
        assert (below @ (-sin(0.5), cos(0.5)) <= TIGHT).all() and near(below[:, 0].max() + 1.0, x1)
    ax.set(xlim=(-3.0, -2.0), ylim=(1.0, 2.0))  # nothing of them is here
    ax.figure.canvas.draw()


def test_clip():
    square = np.array(((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)))
    half = clip(square, np.array((0.0, 0.25)), np.array((0.0, 1.0)))
    assert near(sorted(map(tuple, half)), ((0.0, 0.0), (0.0, 0.25), (1.0, 0.0), (1.0, 0.25)))
    assert len(clip(square, np.array((0.0, -1.0)), np.array((0.0, 1.0)))) == 0
    assert near(clip(square, np.array((0.0, 2.0)), np.array((0.0, 1.0))), np.roll(square, 0, 0))


def test_limits():
    ax = render.draw(yard(), AT)
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    everything = np.concatenate((*outlines(ax), *lines(ax)))
    assert (everything > (x0, y0)).all() and (everything < (x1, y1)).all()
    assert y0 < 0.0  # the ground is seen
    assert ax.get_aspect() == 1.0
    ax = render.draw(yard(), AT, limits=((-1, 2), (0, 1)))
    assert ax.get_xlim() == (-1, 2) and ax.get_ylim() == (0, 1)
    away = AT.clone()
    away[0] = 30.0
    render.draw(yard(), away, ax=ax)
    assert ax.get_xlim()[1] > 30.1 and ax.get_xlim()[0] < -1.2  # what comes to the same axes is seen too


def test_a_far_ground_is_seen():
    scene = cs.Scene(planar=True)
    scene.add_ground(-2.0)
    scene.add_body("ball", pos=(1.0, 5.0), shapes=cs.Circle(0.1))
    ax = render.draw(scene.build(), np.array((1.0, 5.0, 0.0)))
    assert ax.get_ylim()[0] < -2.0 and ax.get_ylim()[1] > 5.1 and ax.get_xlim()[0] < 0.9 and ax.get_xlim()[1] > 1.1


def test_given_axes_are_used():
    figure, axes = plt.subplots(1, 2)
    assert render.draw(yard(), AT, ax=axes[1]) is axes[1]
    assert len(axes[0].patches) == 0 and len(axes[1].patches) > 0 and plt.get_fignums() == [figure.number]


# ---- colours, names, trails, contacts --------------------------------------------------------------------------------------
def test_colors():
    def face(**look) -> dict[str, tuple]:
        ax = render.draw(yard(), AT, **look)
        solid = [patch for patch in ax.patches if not isinstance(patch, HalfPlane)]
        return dict(
            zip(("ball", "crate", "wedge", "pendulum", "post"), (patch.get_facecolor()[:3] for patch in solid), strict=True)
        )

    own = face()
    assert [own[name] for name in ("ball", "crate", "wedge", "pendulum")] == [to_rgb(color) for color in COLORS[:4]]
    assert own["post"] == to_rgb(GREY)  # it cannot move
    assert face() == own
    assert face(colors={"crate": "red"}) == {**own, "crate": to_rgb("red")}
    assert set(face(colors="teal").values()) == {to_rgb("teal"), to_rgb(GREY)}
    with pytest.raises(ValueError, match="no body named 'crat'; did you mean 'crate'"):
        face(colors={"crat": "red"})


def test_labels():
    ax = render.draw(yard(), AT, labels=True)
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert set(places) == set(yard().body_names)
    assert near(places["ball"], Q[:2]) and near(places["pendulum"], moved(Q[9], (0.0, -0.25), by=(-1.2, 1.5)))


def test_trails():
    q = AT.repeat(5, 2, 1)
    q[:, 1, 0] = torch.linspace(0, 1, 5, dtype=torch.float64)
    q[:, 1, 9] = torch.linspace(0, 2, 5, dtype=torch.float64)
    ax = render.draw(yard(), q[-1], world=1, trail=q, trail_of=("ball", "tip"))
    ball, tip = ax.collections
    segments = np.array(ball.get_segments())
    assert near(segments[:, 0, 0], (0.0, 0.25, 0.5, 0.75)) and near(segments[:, 1, 0], (0.25, 0.5, 0.75, 1.0))
    assert near(segments[..., 1], Q[1]) and (np.diff(ball.get_colors()[:, 3]) > 0).all()
    assert near(np.array(tip.get_segments())[-1, 1], moved(2.0, (0.0, -0.5), by=(-1.2, 1.5)))
    assert len(render.draw(yard(), q[-1], trail=q).collections) == 4  # all that moves
    with pytest.raises(ValueError, match="trail_of: no body or site named 'tipp'; did you mean 'tip'"):
        render.draw(yard(), q[-1], trail=q, trail_of=("tipp",))


def test_contacts():
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.5)
    scene.add_body("ball", pos=(0.0, 0.1), shapes=cs.Circle(0.1, mass=1.0))
    scene.add_body("crate", pos=(1.0, 0.2), shapes=cs.Rectangle((0.3, 0.2), mass=2.0))
    sim = cs.Simulator(scene.build(), dt=0.01)
    start = sim.initial_state(worlds=2)
    start.q[0, 1] = 3.0  # the ball of the first world is in the air
    start.v[1, 0] = 1.0
    state, info = sim.step(start, info=True)
    for given in (info, info.contacts):
        ax = render.draw(sim.model, state, world=1, contacts=given, impulse_scale=2.0)
        dots, arrows = ax.collections
        c = info.contacts
        active = c.active[1]
        assert active.sum() == 3 and near(sorted(dots.get_offsets()[:, 0]), (0.0, 0.7, 1.3))
        assert near(np.stack((arrows.U, arrows.V), -1), 2.0 * c.impulse[1][active][:, :2]) and arrows.scale == 1.0
        assert near(arrows.XY, c.point[1][active][:, :2]) and (arrows.V > 0).all()
    others, _ = render.draw(sim.model, state, contacts=info).collections
    assert len(others.get_offsets()) == 2 and near(others.get_facecolors(), to_rgba(PUSH))
    start.v[1, 1] = 0.2  # the ball goes up
    hollow, _ = render.draw(sim.model, state, world=1, contacts=sim.step(start, info=True)[1]).collections
    assert hollow.get_facecolors()[hollow.get_offsets()[:, 0] == 0.0].tolist() == [[1.0, 1.0, 1.0, 1.0]]
    ax = render.draw(sim.model, state, world=1, contacts=info, limits=((-1, 2), (-0.5, 1.5)))
    longest = np.hypot(ax.collections[1].U, ax.collections[1].V).max()
    assert longest == pytest.approx(0.25 * 2.0)
    with pytest.raises(TypeError, match="contacts must be the Info of a step"):
        render.draw(sim.model, state, contacts=3)


def test_zigzag_ends_where_the_spring_ends():
    a, b = np.array((0.0, 1.0)), np.array((2.0, 1.0))
    line = zigzag(a, b, 0.1)
    assert near(line[[0, -1]], (a, b)) and near((line[:, 1].min(), line[:, 1].max()), (0.9, 1.1))
    assert np.isfinite(zigzag(a, a, 0.1)).all()


# ---- what is refused -------------------------------------------------------------------------------------------------------
def test_refused():
    model = yard()
    with pytest.raises(TypeError, match="draw: unknown option 'colours'; did you mean 'colors'"):
        render.draw(model, AT, colours="red")
    with pytest.raises(ValueError, match=r"draw: q must have shape \[..., 10\], got \(9,\)"):
        render.draw(model, AT[:9])
    with pytest.raises(TypeError, match="draw: a State, a Trajectory or an array of configurations q is needed, got list"):
        render.draw(model, list(Q))
    with pytest.raises(ValueError, match=r"limits must be \(\(left, right\), \(bottom, top\)\)"):
        render.draw(model, AT, limits=((1, 0), (0, 1)))
    scene = cs.Scene()
    scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(0.1))
    space = scene.build()
    with pytest.raises(NotImplementedError, match=r"draw: only planar scenes, Scene\(planar=True\), can be drawn so far"):
        render.draw(space, torch.tensor(space.q0))


def test_matplotlib_is_imported_late_and_missed_clearly():
    code = (
        "import sys, costate, costate.render\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "try: costate.render.draw\n"
        "except ImportError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "costate.render.draw needs matplotlib and pillow: pip install costate[render]"
    with pytest.raises(AttributeError, match="has no attribute 'paint'"):
        render.paint  # noqa: B018
