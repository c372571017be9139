"""Files that ask for too much, or for what is none of their business."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Files = dict[str, bytes]  # "main" is the file that is loaded
BODY = '<body pos="0 0 1"><freejoint/><geom size=".1"/></body>'
COUNTS = (2, 30, 300, 2_500, 20_000, 1_000_000, 2_147_483_647)


def _mjcf(inside: str, before: str = "") -> Files:
    return {"main": f"{before}<mujoco>{inside}</mujoco>".encode()}


def _world(inside: str, before: str = "") -> Files:
    return _mjcf(f"{before}<worldbody>{inside}</worldbody>")


def _laughs(rng: Random, text: bytes, urdf: bool) -> Files:
    """Entities of entities."""
    entities = "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefghi", "bcdefghij"))
    return {"main": f"<!DOCTYPE z [<!ENTITY a 'ha'>{entities}]>".encode() + text.replace(b'name="', b'name="&j;', 1)}


def _long_entity(rng: Random, text: bytes, urdf: bool) -> Files:
    """One long entity, often."""
    return {"main": b"<!DOCTYPE z [<!ENTITY a '" + b"x" * 10_000 + b"'>]>" + text.replace(b'name="', b'name="' + b"&a;" * 500)}


def _elsewhere(rng: Random, text: bytes, urdf: bool) -> Files:
    """An entity, a document type or a style sheet from another file."""
    head = rng.choice(
        (
            b'<!DOCTYPE z [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
            b'<!DOCTYPE z SYSTEM "http://localhost/z.dtd">',
            b'<!DOCTYPE z [<!ENTITY % a SYSTEM "file:///dev/zero">%a;]>',
            b'<?xml-stylesheet href="file:///etc/passwd"?>',
        )
    )
    return {"main": head + text.replace(b'name="', b'name="&a;', 1)}


def _deep(rng: Random, text: bytes, urdf: bool) -> Files:
    """Elements in elements."""
    tag = rng.choice(("link", "a") if urdf else ("body", "frame", "default", "replicate", "a", "plugin"))
    levels = rng.choice((50, 150, 195, 400, 100_000))
    head, tail = text.rsplit(b"</", 1)
    return {"main": head + f"<{tag}>".encode() * levels + f"</{tag}>".encode() * levels + b"</" + tail}


def _deep_bodies(rng: Random, text: bytes, urdf: bool) -> Files:
    """A chain that is as long as depth allows."""
    levels = rng.choice((20, 100, 190))
    body = '<body pos=".1 0 0"><joint axis="0 1 0"/><geom size=".02"/>'
    return _world(body * levels + "</body>" * levels)


def _long_chain(rng: Random, text: bytes, urdf: bool) -> Files:
    """A URDF may have a long chain without depth."""
    count = rng.choice((50, 150, 400, 1500))
    link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="l{i}">{link}</link>' for i in range(count))
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>' for i in range(count - 1)
    )
    return {"main": f"<robot>{links}{joints}</robot>".encode()}


def _many(rng: Random, text: bytes, urdf: bool) -> Files:
    """Very many elements, attributes, or one very long attribute."""
    inside = rng.choice(
        (
            lambda: "<a/>" * 300_000,
            lambda: "<a " + " ".join(f'b{i}="1"' for i in range(20_000)) + "/>",
            lambda: f'<a b="{"1 " * 2_000_000}"/>',
            lambda: f"<{'a' * 100_000}/>",
            lambda: f"<!--{'-.' * 500_000}-->",
            lambda: "<link/>" * 3_000 if urdf else "<worldbody/>" * 3_000,
        )
    )()
    head, tail = text.rsplit(b"</", 1)
    return {"main": head + inside.encode() + b"</" + tail}


def _replicate(rng: Random, text: bytes, urdf: bool) -> Files:
    """Copies of copies."""
    levels = rng.choice((1, 1, 2, 5))
    counts = [rng.choice(COUNTS) for _ in range(levels)]
    inside = rng.choice((BODY, '<geom size=".1"/>', "<site/>", '<body><geom size=".1"/></body>', ""))
    heads = "".join(f'<replicate count="{n}" offset="{rng.choice((0, 1))} 0 0">' for n in counts)
    return _world(heads + inside + "</replicate>" * levels + BODY)


def _flex(rng: Random, text: bytes, urdf: bool) -> Files:
    """Flexible things with many points."""
    kind = rng.choice(("grid", "box", "cylinder", "ellipsoid", "square", "disc", "circle", "mesh", "direct"))
    count = " ".join(str(rng.choice((2, 3, 30, 300, 30_000, 2_147_483_647))) for _ in range(3))
    dim = rng.choice((1, 2, 3))
    return _world(
        f'<flexcomp name="f" type="{kind}" count="{count}" dim="{dim}" spacing=".1 .1 .1" mass="1" radius=".01"/>{BODY}'
    )


def _field(rng: Random, text: bytes, urdf: bool) -> Files:
    """Heightfields of all sizes."""
    rows, columns = (rng.choice((1, 2, 50, 1_500, 3_000, 90_000, 2_147_483_647)) for _ in range(2))
    size = rng.choice(("1 1 1 1", "1 1 0 1", "1e9 1 1 1"))
    asset = f'<asset><hfield name="h" nrow="{rows}" ncol="{columns}" size="{size}"/></asset>'
    return _world(f'<geom type="hfield" hfield="h"/>{BODY}', asset)


def _buffers(rng: Random, text: bytes, urdf: bool) -> Files:
    """Sizes of what nobody needs."""
    n = rng.choice(COUNTS)
    before = rng.choice(
        (
            f'<size nuser_body="{n}" nuser_geom="{n}"/>', f'<size memory="{n}G"/>', f'<size nkey="{n}" nuserdata="{n}"/>',
            f'<custom><numeric name="n" size="{n}" data="1"/></custom>',
            f'<asset><texture name="t" type="2d" builtin="flat" width="{n}" height="{n}"/></asset>',
            f'<sensor><user dim="{n}"/></sensor>', f'<sensor><clock nsample="{n}" delay="1" interp="linear"/></sensor>',
            f'<visual><quality shadowsize="{n}" offsamples="{n}"/></visual>', f'<option iterations="{n}" ccd_iterations="{n}"/>',
        )
    )  # fmt: skip
    return _world(BODY, before)


def _meshes(rng: Random, text: bytes, urdf: bool) -> Files:
    """Meshes that are made, not read."""
    kind = rng.choice(("sphere", "hemisphere", "cone", "torus", "wedge", "plate", "supersphere", "supertorus"))
    numbers = " ".join(str(rng.choice((0, 1, 3, 7, 30, 1000, 1e9, -1, 0.5))) for _ in range(rng.choice((1, 2, 5))))
    asset = f'<asset><mesh name="m" builtin="{kind}" params="{numbers}"/></asset>'
    return _world(f'<body><freejoint/><geom type="mesh" mesh="m"/></body>{BODY}', asset)


def _points(rng: Random, text: bytes, urdf: bool) -> Files:
    """Meshes of points that are all over the place, or all in one."""
    scale = rng.choice((0, 1e-12, 1e-4, 1, 1e6, 1e18, 1e300))
    count = rng.choice((1, 3, 4, 5, 100, 5_000))
    points = " ".join(f"{scale * rng.uniform(-1, 1) * (rng.random() < 0.9):g}" for _ in range(3 * count))
    inertia = rng.choice(("", 'inertia="exact"', 'inertia="shell"'))
    asset = f'<asset><mesh name="m" vertex="{points}" {inertia}/></asset>'
    return _world(f'<body><freejoint/><geom type="mesh" mesh="m"/></body>{BODY}', asset)


def _circles(rng: Random, text: bytes, urdf: bool) -> Files:
    """Files that include or attach themselves, or each other."""
    if rng.random() < 0.5:
        inside = '<include file="{}"/>'
        return _world(inside.format(rng.choice(("case.xml", "b.xml")))) | {
            "b.xml": b'<mujoco><include file="c.xml"/></mujoco>',
            "c.xml": b'<mujoco><include file="b.xml"/></mujoco>',
        }
    attach = '<mujoco><asset><model name="m" file="{}"/></asset><worldbody><attach model="m" prefix="x"/></worldbody></mujoco>'
    return {"main": attach.format(rng.choice(("case.xml", "b.xml"))).encode(), "b.xml": attach.format("b.xml").encode()}


def _doubling(rng: Random, text: bytes, urdf: bool) -> Files:
    """Models that attach one model twice, that attaches one twice, and so on."""
    levels = rng.choice((3, 7, 12))
    files = {f"m{levels}.xml": f"<mujoco><worldbody>{BODY}</worldbody></mujoco>".encode()}
    for i in range(levels):
        frames = "".join(f'<frame><attach model="m" prefix="{prefix}"/></frame>' for prefix in "pqrs")
        inside = f'<asset><model name="m" file="m{i + 1}.xml"/></asset><worldbody>{frames}</worldbody>'
        files["main" if i == 0 else f"m{i}.xml"] = f"<mujoco>{inside}</mujoco>".encode()
    return files


def _keys(rng: Random, text: bytes, urdf: bool) -> Files:
    """Keyframes: many, or of the wrong length, or of no direction."""
    key = rng.choice(
        (
            '<key qpos="0 0 1 0 0 0 0"/>',
            "<key/>",
            '<key qpos="1 2"/>',
            '<key qpos="nan 0 0 1 0 0 0"/>',
            '<key qvel="1e300 0 0 0 0 0"/>',
        )
    )
    return _mjcf(f"<worldbody>{BODY}</worldbody><keyframe>{key * rng.choice((1, 5, 20_000))}</keyframe>")


def _heap(rng: Random, text: bytes, urdf: bool) -> Files:
    """Many bodies in one place, all of which touch."""
    geom = rng.choice(('size=".1"', 'type="box" size=".1 .1 .1"', 'type="capsule" size=".1 .1"', 'type="cylinder" size=".1 .1"'))
    count = rng.choice((5, 20, 60, 200))
    return _world('<geom type="plane" size="1 1 1"/>' + f"<body><freejoint/><geom {geom}/></body>" * count)


def _names(rng: Random, text: bytes, urdf: bool) -> Files:
    """Elements that are called the same, or oddly."""
    name = rng.choice(("world", "", "a b", "\u4e2d", "x" * 20_000, "world:sites", "a:b", "b:j", "&#10;", "&lt;"))
    inside = f'<joint name="j"/><joint name="{name}" axis="1 0 0"/><geom name="{name}" size=".1"/><site name="{name}"/>'
    return _world(f'<body name="b">{inside}</body>' + f'<body name="{name}"><geom size=".1"/></body><site name="s"/>')


BOMBS: dict[str, Callable[[Random, bytes, bool], Files]] = {
    function.__name__.strip("_"): function
    for function in (
        _laughs, _long_entity, _elsewhere, _deep, _deep_bodies, _long_chain, _many, _replicate, _flex, _field, _buffers, _meshes,
        _points, _circles, _doubling, _keys, _heap, _names,
    )
}  # fmt: skip
