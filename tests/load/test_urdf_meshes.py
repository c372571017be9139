"""Mesh files of URDFs: where they are looked for, which forms are read, what happens to shapes without."""

import mujoco
import numpy as np
import pytest

from costate.load import LoadError
from costate.load.urdf import repair
from costate.load.urdf_meshes import THICKNESS
from costate.load.urdf_vertices import vertices
from tests.load.urdf_text import CUBE, FACES, collision, dae, inertial, obj, pendulum, repaired, stl, stl_text

SMALL = 1e-6  # m: MuJoCo keeps vertices in single precision


def mesh(filename: str, scale: str = "") -> str:
    return f'<mesh filename="{filename}"{f" scale={chr(34)}{scale}{chr(34)}" if scale else ""}/>'


def arm(filename: str, scale: str = "", weight: str | None = None) -> str:
    return pendulum(inertial() if weight is None else weight, collision(mesh(filename, scale)))


def corners(m) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest coordinates of the vertices of geom 0, in its body's frame."""
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, m.geom_quat[0])
    points = m.mesh_vert @ rotation.reshape(3, 3).T + m.geom_pos[0]
    return points.min(0), points.max(0)


# ---- places --------------------------------------------------------------------------------------------------------
@pytest.fixture
def folder(tmp_path):
    for name in (
        "robot/meshes/arm.obj",
        "robot/pack/meshes/arm.obj",
        "elsewhere/arm.obj",
        "robot/flat.obj",
        "other/tools/arm.obj",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(obj())
    return tmp_path / "robot"


@pytest.mark.parametrize(
    ("filename", "noted"),
    [
        ("meshes/arm.obj", False), ("./meshes/arm.obj", False), ("meshes\\arm.obj", False), ("package://meshes/arm.obj", True),
        ("package://robot/meshes/arm.obj", True), ("package://pack/meshes/arm.obj", True), ("$(find pack)/meshes/arm.obj", True),
        ("model://renamed/meshes/arm.obj", True), ("lost/flat.obj", True), ("file://meshes/arm.obj", True),
        ("pack/../flat.obj", False),
    ],
)  # fmt: skip
def test_meshes_are_found(folder, filename, noted):
    m, notes = repaired(arm(filename), folder)
    assert m.ngeom == 1 and len(notes) == noted and all("link 'arm': meshes of" in note for note in notes)


def test_absolute_paths_must_be_inside(folder):
    m, _ = repaired(arm(f"file://{folder}/flat.obj"), folder)
    assert m.ngeom == 1


@pytest.mark.parametrize(
    "filename",
    [
        "../elsewhere/arm.obj",
        "package://../elsewhere/arm.obj",
        "/etc/passwd",
        "file:///etc/passwd",
        "meshes/../../elsewhere/arm.obj",
        "../x.obj",
    ],
)
def test_paths_that_leave_the_folder_are_refused(folder, filename):
    with pytest.raises(LoadError, match=r"link 'arm': mesh file .* is outside of .*search="):
        repair(arm(filename), folder)


def test_links_that_lead_outside_are_refused(folder):
    (folder / "link.obj").symlink_to(folder.parent / "elsewhere" / "arm.obj")
    with pytest.raises(LoadError, match="outside"):
        repair(arm("link.obj"), folder)


def test_further_folders(folder):
    m, _ = repaired(arm("../elsewhere/arm.obj"), folder, search=[folder.parent / "elsewhere"])
    assert m.ngeom == 1
    m, _ = repaired(arm("package://tools/arm.obj"), folder, search=[folder.parent / "other"])
    assert m.ngeom == 1


def test_files_given_as_bytes():
    for filename in ("arm.obj", "package://pack/meshes/arm.obj", "meshes/arm.obj"):
        m, _ = repaired(arm(filename), None, assets={"arm.obj": obj()})
        assert m.ngeom == 1


def test_missing_meshes(folder):
    m, notes = repaired(arm("package://nobody/lost.obj"), folder)
    assert m.ngeom == 0 and len(notes) == 1 and "link 'arm'" in notes[0] and "is not there" in notes[0] and "search=" in notes[0]
    m, notes = repaired(arm("x" * 5000 + ".obj"), folder)
    assert m.ngeom == 0 and "is not there" in notes[0]


def test_visual_meshes_go_without_a_word(folder):
    for filename in ("lost.dae", "../../secret.obj", "meshes/arm.obj"):
        m, notes = repaired(pendulum(inertial(), f"<visual><geometry>{mesh(filename)}</geometry></visual>"), folder)
        assert notes == [] and m.nmesh == 0


def test_visual_meshes_tell_the_size_of_a_link_without_inertia(folder):
    text = pendulum(inertial(12.0, 0, 0, 0), f"<visual><geometry>{mesh('flat.obj', '1 2 3')}</geometry></visual>")
    m, notes = repaired(text, folder)
    assert np.allclose(np.sort(m.body("arm").inertia), [5, 10, 13]) and m.nmesh == 0 and "1 x 2 x 3 m" in notes[0]


def test_a_file_used_by_several_shapes_is_there_once_and_names_do_not_clash(folder):
    text = pendulum(inertial(), *(collision(mesh(name)) for name in ("meshes/arm.obj", "meshes/arm.obj", "pack/meshes/arm.obj")))
    text, assets, _ = repair(text, folder)
    assert sorted(assets) == ["arm.obj", "arm_2.obj"] and "package" not in text


def test_the_folder_of_meshes_in_the_files_settings(folder):
    setting = '<mujoco><compiler meshdir="meshes"/></mujoco>'
    m, _ = repaired(arm("arm.obj").replace('"test">', f'"test">{setting}'), folder)
    assert m.ngeom == 1


# ---- forms ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", ["", "2 3 4", "-2 3 4"])
@pytest.mark.parametrize(
    ("name", "data"),
    [("a.obj", obj()), ("a.OBJ", obj()), ("a.stl", stl()), ("a.STL", stl()), ("a.stl", stl_text()), ("a.dae", dae())],
)
def test_forms_of_files(name, data, scale):
    m, notes = repaired(arm(name, scale), assets={name: data})
    x, y, z = (float(part) for part in (scale or "1 1 1").split())
    low, high = corners(m)
    assert np.allclose(low, [min(x, 0), 0, 0], atol=SMALL) and np.allclose(high, [max(x, 0), y, z], atol=SMALL)
    said = "Collada" if name == "a.dae" else "text form" if data == stl_text() else None
    assert len(notes) == (said is not None) and all(said in note and "link 'arm'" in note for note in notes)


def test_text_and_binary_stl_have_the_same_mass():
    masses = [repaired(arm("a.stl", weight=""), assets={"a.stl": data})[0].body("arm").mass[0] for data in (stl(), stl_text())]
    assert masses[0] == masses[1] == pytest.approx(1000.0)


def test_a_binary_stl_that_begins_with_solid():
    data = b"solid" + stl()[5:]
    assert len(vertices(data, "stl")) == 3 * len(FACES) and repaired(arm("a.stl"), assets={"a.stl": data})[0].ngeom == 1


def test_collada_units_and_nodes():
    place = "<translate>1 0 0</translate><rotate>0 0 1 90</rotate><scale>2 1 1</scale>"
    points = vertices(dae(meter=0.01, place=place), "dae")
    expected = [(0.01 * (1 - y), 0.01 * 2 * x, 0.01 * z) for x, y, z in CUBE]
    assert np.allclose(points, expected, atol=1e-15)
    matrix = "<matrix>1 0 0 5 0 1 0 6 0 0 1 7 0 0 0 1</matrix>"
    assert np.allclose(vertices(dae(place=matrix), "dae"), np.array(CUBE) + np.array([5, 6, 7]))


def test_collada_bombs_are_left_out():
    bomb = b'<!DOCTYPE a [<!ENTITY b "bbbb">]><COLLADA>&b;</COLLADA>'
    for data in (bomb, b"", b"<COLLADA>", b"rubbish", dae()[:-40]):
        m, notes = repaired(arm("a.dae"), assets={"a.dae": data})
        assert m.ngeom == 0 and len(notes) == 1 and "left out" in notes[0]


def test_an_obj_file_with_several_groups_is_one_hull():
    moved = [(x + 3, y, z) for x, y, z in CUBE]
    data = b"mtllib no.mtl\ng one\n" + obj() + b"g two\nusemtl none\n" + obj(moved, FACES, 9)
    m, notes = repaired(arm("a.obj"), assets={"a.obj": data})
    assert notes == [] and m.ngeom == 1 and corners(m)[1][0] == pytest.approx(4, abs=SMALL)


def test_flat_meshes_get_a_thickness():
    square = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 1.0, 0.0)]
    m, notes = repaired(arm("a.obj", "1 1 2"), assets={"a.obj": obj(square, [(0, 1, 2), (0, 2, 3)])})
    low, high = corners(m)
    assert high[2] - low[2] == pytest.approx(THICKNESS, rel=1e-3) and "flat" in notes[0]


BAD = {
    "no vertices": b"",
    "a line": obj([(float(i), 0.0, 0.0) for i in range(5)], []),
    "not finite": obj().replace(b"v 0.0", b"v nan", 1),
    "words": obj().replace(b"v 0.0", b"v zero", 1),
    "tiny": obj([(x * 1e-6, y * 1e-6, z * 1e-6) for x, y, z in CUBE]),
    "huge": obj([(x * 1e9, y, z) for x, y, z in CUBE]),
}


@pytest.mark.parametrize("name", BAD)
def test_meshes_that_are_none_are_left_out(name):
    m, notes = repaired(arm("a.obj"), assets={"a.obj": BAD[name]})
    assert m.ngeom == 0 and len(notes) == 1 and "link 'arm'" in notes[0] and "the shape is left out" in notes[0]


# ---- shapes without files ------------------------------------------------------------------------------------------
def test_capsules_cylinders_and_planes():
    kinds = {
        '<capsule radius="0.1" length="1"/>': [0.1, 0.5, 0],
        '<cylinder radius="0.1" length="1"/>': [0.1, 0.5, 0],
        '<sphere radius="2"/>': [2, 0, 0],
    }
    for geometry, size in kinds.items():
        m, notes = repaired(pendulum(inertial(), collision(geometry)))
        assert notes == [] and m.geom_size[0].tolist() == size
    m, notes = repaired(pendulum(inertial(), collision('<plane normal="0 3 4"/>', '<origin xyz="0 0 1"/>')))
    normal = np.array([0, 0.6, 0.8])
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, m.geom_quat[0])
    assert np.allclose(rotation.reshape(3, 3)[:, 2], normal) and np.allclose(
        m.geom_pos[0] + m.geom_size[0, 2] * normal, [0, 0, 1]
    )
    assert "'arm': a collision <plane> becomes a box" in notes[0]


@pytest.mark.parametrize(
    "geometry",
    [
        '<box size="0 1 1"/>',
        '<sphere radius="-1"/>',
        "<sphere/>",
        '<cdf filename="x"/>',
        "",
        '<mesh filename="a" scale="0 1 1"/>',
    ],
)
def test_shapes_without_size_are_left_out(geometry):
    m, notes = repaired(pendulum(inertial(), collision(geometry)))
    assert m.ngeom == 0 and len(notes) == 1 and "link 'arm'" in notes[0] and "left out" in notes[0]
