"""load and load_string: models from MJCF and URDF, through MuJoCo's compiler."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from costate.load.check import parse
from costate.load.compile import Settings, compile_model, read_model
from costate.load.convert import convert
from costate.load.drives import Drives, Kind
from costate.load.errors import LoadError
from costate.load.files import Files, Folder, Given, read_file
from costate.load.findings import Findings, listed
from costate.load.gather import Gathering
from costate.load.library import MjModel
from costate.load.source import Options, Source
from costate.load.urdf import is_urdf, repair
from costate.scene.faces import MAX_VERTICES
from costate.scene.model import Model

TIMEOUT, MAX_TIMEOUT = 10.0, 1e6  # s, for MuJoCo's compiler


def load(
    path: str | os.PathLike[str],
    *,
    floating: bool | None = None,
    ground: bool | float = False,
    self_collision: bool | None = None,
    collisions: bool = True,
    fuse: bool = False,
    actuators: Kind | None = None,
    kp: float | None = None,
    kd: float | None = None,
    max_force: float | None = None,
    max_speed: float | None = None,
    max_contacts: int | None = None,
    hull_vertices: int = MAX_VERTICES,
    strict: bool = True,
    search: Sequence[str | os.PathLike[str]] = (),
    timeout: float = TIMEOUT,
) -> Model:
    """The model in an MJCF or URDF file, as MuJoCo's compiler reads it; q, v and controls are laid out like MuJoCo's.

    What is not exactly the same gives a LoadWarning each; what costate cannot represent raises UnsupportedFeature.

    Parameters
    ----------
    path : of the file, <mujoco> or <robot>.
    floating : True: bodies on the world without a joint (the base of a URDF) move freely; False: free joints are taken away;
        None: as the file says.
    ground : adds a plane at z = 0, or at the height given, m; MJCF files usually have one.
    self_collision : False: bodies of one tree do not touch each other; None and True: as the file says.
    collisions : whether anything touches at all.
    fuse : bodies without a joint become part of their parents, and their names are lost.
    actuators : for files without any, one per dof of every joint that is not free: "torque" (the control is the force),
        "position" (`kp`, `kd`: N m/rad or N/m, and per rate), "servo" (`kp`: gain, 1/s, default 20; `max_speed`: rad/s or m/s).
        `max_force`, N m or N: most force; default: what the file says about each joint.
    max_contacts : most contacts of one world at a time, see `Scene`.
    hull_vertices : most vertices of the convex hull of a mesh, 4 to 64; hulls with more are reduced, with a LoadWarning.
    strict : False: go on without what cannot be represented, with a LoadWarning for each.
    search : further folders that files may be in; otherwise only those in the folder of the file are read.
    timeout : s, for MuJoCo's compiler, which runs in a process of its own.
    """
    request = Request(
        floating=floating, fuse=fuse, strict=strict, timeout=timeout, drives=_drives(actuators, kp, kd, max_force, max_speed),
        options=_options(ground, self_collision, collisions, max_contacts, hull_vertices), search=_folders(search),
    )  # fmt: skip
    model, findings = request.read(_file(path, request.search))
    findings.conclude(str(path), strict=strict, stacklevel=2)
    return model


def load_string(
    text: str | bytes,
    *,
    assets: Mapping[str, bytes] | None = None,
    name: str = "<string>",
    floating: bool | None = None,
    ground: bool | float = False,
    self_collision: bool | None = None,
    collisions: bool = True,
    fuse: bool = False,
    actuators: Kind | None = None,
    kp: float | None = None,
    kd: float | None = None,
    max_force: float | None = None,
    max_speed: float | None = None,
    max_contacts: int | None = None,
    hull_vertices: int = MAX_VERTICES,
    strict: bool = True,
    timeout: float = TIMEOUT,
) -> Model:
    """The model in the text of an MJCF or URDF file; no file is read.

    text : the file's content. assets : the files which that names (includes, meshes, heightfields), as bytes.
    name : what errors and warnings call it.
    Everything else is as in `load`.
    """
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"load_string: text must be a str or bytes, got {type(text).__name__}")
    request = Request(
        floating=floating, fuse=fuse, strict=strict, timeout=timeout, drives=_drives(actuators, kp, kd, max_force, max_speed),
        options=_options(ground, self_collision, collisions, max_contacts, hull_vertices),
    )  # fmt: skip
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    model, findings = request.read(Input(name, data, Given(dict(assets or {})), Path()))
    findings.conclude(name, strict=strict, stacklevel=2)
    return model


def examine(path: str | os.PathLike[str], **options: Any) -> tuple[Model, Findings]:
    """What `load` makes of a file, with the findings instead of warnings; options as there, but strict."""
    drives = _drives(*(options.pop(word, None) for word in ("actuators", "kp", "kd", "max_force", "max_speed")))
    search = _folders(options.pop("search", ()))
    chosen = {word: options.pop(word) for word in ("floating", "fuse", "timeout") if word in options}
    defaults = {"ground": False, "self_collision": None, "collisions": True, "max_contacts": None, "hull_vertices": MAX_VERTICES}
    unknown = [word for word in options if word not in defaults]
    if unknown:
        raise TypeError(f"examine: unknown option {unknown[0]!r}")
    request = Request(drives=drives, search=search, options=_options(**{**defaults, **options}), **chosen)
    return request.read(_file(path, search))


def mujoco_model(
    path: str | os.PathLike[str],
    *,
    floating: bool | None = None,
    fuse: bool = False,
    search: Sequence[str | os.PathLike[str]] = (),
    timeout: float = TIMEOUT,
) -> MjModel:
    """The compiled MuJoCo model that `load` starts from, repairs included; options as there."""
    request = Request(floating=floating, fuse=fuse, search=_folders(search), timeout=timeout)
    return request.compile(_file(path, request.search), Findings())


@dataclass(frozen=True)
class Input:
    """A file before it is understood: what it is called, its bytes, where its assets are."""

    name: str
    data: bytes
    files: Files
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Request:
    """How a file is to be read; see `load`."""

    floating: bool | None = None
    fuse: bool = False
    strict: bool = True
    timeout: float = TIMEOUT
    drives: Drives | None = None
    options: Options = field(default_factory=Options)
    search: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.timeout, (int, float)) or not 0 < self.timeout <= MAX_TIMEOUT:
            raise ValueError(f"load: timeout must be positive and at most {MAX_TIMEOUT:g} s, got {self.timeout!r}")
        for word, choices in (("floating", (True, False, None)), ("fuse", (True, False)), ("strict", (True, False))):
            if not any(getattr(self, word) is choice for choice in choices):
                raise TypeError(f"load: {word} must be {' or '.join(map(str, choices))}, got {getattr(self, word)!r}")

    def read(self, given: Input) -> tuple[Model, Findings]:
        """The model, and what was found."""
        findings = Findings()
        source = Source(self.compile(given, findings), findings)
        return convert(source, self.options, self.drives, given.name), findings

    def compile(self, given: Input, findings: Findings) -> MjModel:
        """MuJoCo's model; repairs go to the findings."""
        if is_urdf(given.data):
            text, assets, repairs = self._repair(given)
            findings.approximated.extend(repairs)
        else:
            root = parse(given.data, given.name)
            if root.tag == "robot":
                raise LoadError(f"{given.name}: a URDF must be a text in UTF-8, got another encoding")
            if root.tag != "mujoco":
                raise LoadError(f"{given.name}: the root element must be <mujoco> or <robot>, got <{root.tag[:100]}>")
            gathering = Gathering(given.files)
            text, assets = gathering.prepare(root, given.name), gathering.assets
        settings = Settings(fuse=True if self.fuse else None, floating=self.floating)
        compiled = compile_model(text, assets, given.name, settings=settings, timeout=self.timeout)
        for line in compiled.warnings:
            if "deprecated" not in line:  # what still works means the same
                findings.approximate(f"MuJoCo's compiler warns: {line}")
        if compiled.lost:
            findings.approximate(f"{listed('keyframe', compiled.lost)}: left out, they do not fit floating={self.floating}")
        return read_model(compiled.data)

    def _repair(self, given: Input) -> tuple[str, dict[str, bytes], list[str]]:
        """A URDF that MuJoCo accepts, its assets, and what was repaired."""
        assets = given.files.assets if isinstance(given.files, Given) else None
        folder = None if assets is not None else given.folder
        text = given.data.decode("utf-8", "replace")
        return repair(text, folder, self.search, assets=assets, floating=self.floating is True, where=given.name)


def _file(path: str | os.PathLike[str], search: tuple[Path, ...]) -> Input:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"load: path must be the path of a file, got {path!r}")
    file = Path(path)
    try:
        is_file = file.is_file()
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        kind = "is a folder" if file.is_dir() else "does not exist"
        raise LoadError(f"{path}: the file {kind}")
    return Input(str(path), read_file(file, str(path)), Folder(file.parent, search), file.parent)


def _folders(search: Sequence[str | os.PathLike[str]]) -> tuple[Path, ...]:
    if isinstance(search, (str, os.PathLike)):
        search = (search,)
    folders = tuple(Path(folder) for folder in search)
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"load: search must name folders, got {str(folder)!r}, which is none")
    return folders


def _drives(actuators: Any, kp: Any, kd: Any, max_force: Any, max_speed: Any) -> Drives | None:
    if actuators is not None:
        return Drives(actuators, kp, kd, max_force, max_speed)
    for word, value in (("kp", kp), ("kd", kd), ("max_force", max_force), ("max_speed", max_speed)):
        if value is not None:
            raise ValueError(f"load: {word} goes with actuators=..., got {word}={value!r} without")
    return None


def _options(ground: Any, self_collision: Any, collisions: Any, max_contacts: Any, hull_vertices: Any) -> Options:
    if isinstance(hull_vertices, bool) or not isinstance(hull_vertices, int) or not 4 <= hull_vertices <= MAX_VERTICES:
        raise ValueError(f"load: hull_vertices must be an int from 4 to {MAX_VERTICES}, got {hull_vertices!r}")
    if self_collision not in (None, True, False):
        raise TypeError(f"load: self_collision must be True, False or None, got {self_collision!r}")
    if not isinstance(ground, (bool, int, float)):
        raise TypeError(f"load: ground must be True, False or a height (m), got {ground!r}")
    height = None if ground is False else 0.0 if ground is True else float(ground)
    return Options(height, self_collision, collisions, max_contacts, hull_vertices)
