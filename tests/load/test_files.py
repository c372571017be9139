"""Files that a model is made of: includes, meshes, attached models; only those in allowed folders are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from costate.load import LoadError, load, load_string
from tests.load.meshes import BLOCK

MESH = '<body name="{0}"><joint/><geom type="mesh" mesh="{0}"/></body>'
BODY = '<body name="b"><joint/><geom size=".1" pos="0 0 1"/></body>'


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / next(iter(files))


def test_includes_and_meshes(tmp_path):
    path = write(tmp_path, {
        "robot.xml": '<mujoco><compiler meshdir="assets"/><include file="parts/assets.xml"/>'
        '<worldbody><include file="parts/body.xml"/></worldbody></mujoco>',
        "parts/assets.xml": '<mujocoinclude><asset><mesh file="sub/block.stl"/><texture name="t" file="missing.png" type="2d"/>'
        '<material name="m" texture="t"/></asset></mujocoinclude>',
        "parts/body.xml": f'<mujocoinclude>{MESH.format("block")}<include file="more.xml"/></mujocoinclude>',
        "parts/more.xml": f"<mujocoinclude>{BODY}</mujocoinclude>",
        "assets/sub/block.stl": BLOCK,
    })  # fmt: skip
    model = load(path)
    assert model.body_names == ("block", "b") and model.source == str(path)
    parts = {name: (tmp_path / name).read_bytes() for name in ("parts/assets.xml", "parts/body.xml", "parts/more.xml")}
    same = load_string(path.read_text(), assets={**parts, "assets/sub/block.stl": BLOCK})
    assert same == model


def test_attached_models_bring_their_own_files(tmp_path):
    path = write(tmp_path, {
        "robot.xml": '<mujoco><asset><model name="arm" file="arm/arm.xml"/></asset><worldbody><body name="base">'
        '<freejoint/><geom size=".1"/><attach model="arm" body="upper" prefix="left_"/></body></worldbody></mujoco>',
        "arm/arm.xml": f'<mujoco><compiler meshdir="meshes"/><asset><mesh name="upper" file="block.stl"/></asset>'
        f"<worldbody>{MESH.format('upper')}</worldbody></mujoco>",
        "arm/meshes/block.stl": BLOCK,
    })  # fmt: skip
    assert load(path).body_names == ("base", "left_upper")


def test_strippath_and_backslashes(tmp_path):
    mesh = '<compiler strippath="true"/><asset><mesh name="m" file="C:\\somewhere\\else/block.stl"/></asset>'
    text = f"<mujoco>{mesh}<worldbody>{MESH.format('m')}</worldbody></mujoco>"
    path = write(tmp_path, {"robot.xml": text, "block.stl": BLOCK})
    assert load(path).nb == 1


OUTSIDE = ("../outside/block.stl", "/etc/passwd", "sub/../../outside/block.stl", "..\\outside\\block.stl")


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize(
    "element", ['<asset><mesh name="m" file="{}"/></asset>', '<include file="{}"/>', '<asset><model name="m" file="{}"/></asset>']
)
def test_paths_that_leave_the_folder_are_refused(tmp_path, name, element):
    path = write(tmp_path / "robot", {"robot.xml": f"<mujoco>{element.format(name)}<worldbody>{BODY}</worldbody></mujoco>"})
    write(tmp_path / "outside", {"block.stl": BLOCK})
    with pytest.raises(LoadError, match=r"robot.xml: <\w+> in line 1: file .* is outside of .*search"):
        load(path)


def test_links_that_leave_the_folder_are_refused(tmp_path):
    path = write(
        tmp_path / "robot",
        {"robot.xml": f'<mujoco><asset><mesh name="m" file="a.stl"/></asset><worldbody>{MESH.format("m")}</worldbody></mujoco>'},
    )
    write(tmp_path / "outside", {"block.stl": BLOCK})
    (tmp_path / "robot" / "a.stl").symlink_to(tmp_path / "outside" / "block.stl")
    with pytest.raises(LoadError, match="is outside of"):
        load(path)
    assert load(path, search=[tmp_path / "outside"]).nb == 1


def test_search_allows_further_folders(tmp_path):
    text = (
        f'<mujoco><asset><mesh name="m" file="../outside/block.stl"/></asset><worldbody>{MESH.format("m")}</worldbody></mujoco>'
    )
    path = write(tmp_path / "robot", {"robot.xml": text})
    write(tmp_path / "outside", {"block.stl": BLOCK})
    assert load(path, search=[tmp_path / "outside"]).nb == 1
    with pytest.raises(ValueError, match="search must name folders"):
        load(path, search=[tmp_path / "nowhere"])


def test_missing_files_are_named(tmp_path):
    path = write(tmp_path, {"robot.xml": f'<mujoco>\n<asset><mesh file="a.stl"/></asset><worldbody>{BODY}</worldbody></mujoco>'})
    with pytest.raises(LoadError, match=r"robot.xml: <mesh> in line 2: file 'a.stl' does not exist in"):
        load(path)
    with pytest.raises(LoadError, match=r"file 'a.stl' is not among the assets that were given: 'b.stl'"):
        load_string(path.read_text(), assets={"b.stl": BLOCK})
    with pytest.raises(LoadError, match="the file does not exist"):
        load(tmp_path / "no.xml")
    with pytest.raises(LoadError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(TypeError, match="path must be the path of a file"):
        load(3)  # type: ignore[arg-type]


def test_includes_in_a_circle_are_refused(tmp_path):
    path = write(
        tmp_path, {"a.xml": '<mujoco><include file="b.xml"/></mujoco>', "b.xml": '<mujoco><include file="b.xml"/></mujoco>'}
    )
    with pytest.raises(LoadError, match=r"'b.xml' is included already"):
        load(path)
    path = write(tmp_path, {"c.xml": '<mujoco><asset><model name="c" file="c.xml"/></asset></mujoco>'})
    with pytest.raises(LoadError, match="nested at most 8 deep"):
        load(path)


@pytest.mark.parametrize("name", ["a\x7f.stl", "x" * 5000, "a/" * 2000 + "b"])
def test_names_of_no_file(tmp_path, name):
    path = write(
        tmp_path, {"robot.xml": f'<mujoco><asset><mesh name="m" file="{name}"/></asset><worldbody>{BODY}</worldbody></mujoco>'}
    )
    with pytest.raises(LoadError, match=r"does not exist|is no name of a file"):
        load(path)


def test_a_broken_mesh_is_a_load_error():
    text = f'<mujoco><asset><mesh name="m" file="a.stl"/></asset><worldbody>{MESH.format("m")}</worldbody></mujoco>'
    for data in (b"", b"solid nothing", BLOCK[:100], BLOCK[:80] + b"\xff" * 100):
        with pytest.raises(LoadError, match="MuJoCo's compiler"):
            load_string(text, assets={"a.stl": data})
