"""Names and the tree of a URDF: every name once, every joint between two links, no link with two parents, no loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from costate.load.errors import LoadError
from costate.load.urdf_parts import Joint, Link, Robot
from costate.load.urdf_read import same

WORLD = "world"  # MuJoCo takes a link of this name for the world itself


def untangle(robot: Robot, notes: list[str]) -> None:
    """Make names unique and check that links and joints are trees; changes the robot."""
    _unique_links(robot, notes)
    _unique_joints(robot, notes)
    _unique_shapes(robot)
    _check(robot)
    _rename_inner_world(robot, notes)
    roots = robot.roots()
    if len(roots) > 1:
        names = ", ".join(repr(link.name) for link in roots[:6]) + (" and more" if len(roots) > 6 else "")
        notes.append(f"{len(roots)} links hang on no joint ({names}): each is fixed to the world")


class _Names:
    """Names that are taken, and new ones."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._last: Counter[str] = Counter()

    def new(self, name: str) -> str:
        """The name with the first number behind it that makes it a new one."""
        self._last[name] = max(self._last[name], 1)
        while True:
            self._last[name] += 1
            found = f"{name}_{self._last[name]}"
            if found not in self._taken:
                self._taken.add(found)
                return found


def _unique_links(robot: Robot, notes: list[str]) -> None:
    """Copies of a link go; another link of the same name gets a new one, and the next joint to that name leads to it."""
    names = _Names(link.name for link in robot.links)
    leading: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        leading.setdefault(joint.child, []).append(joint)
    first: dict[str, Link] = {}
    count: Counter[str] = Counter()
    kept = []
    for link in robot.links:
        name, joints = link.name, leading.get(link.name, [])
        count[name] += 1
        if name not in first:
            first[name] = link
        elif len(joints) < 2 and same(link, first[name]):
            notes.append(f"link {name!r} is there twice, with the same content: the copy (line {link.line}) is left out")
            continue
        else:
            link.name = names.new(name)
            line = f"a second link {name!r} (line {link.line}) is called {link.name!r}"
            if len(joints) >= count[name]:
                joint = joints[count[name] - 1]
                joint.child = link.name
                line += f", and joint {joint.name!r} leads to it"
            notes.append(line)
        kept.append(link)
    robot.links = kept


def _unique_joints(robot: Robot, notes: list[str]) -> None:
    names, seen = _Names(joint.name for joint in robot.joints), set()
    for joint in robot.joints:
        if joint.name in seen:
            name = names.new(joint.name)
            notes.append(f"a second joint {joint.name!r} (line {joint.line}) is called {name!r}")
            joint.name = name
        seen.add(joint.name)


def _unique_shapes(robot: Robot) -> None:
    """Names of collision shapes are optional and nobody refers to them: a second one of the same name has none."""
    counts: Counter[str] = Counter()
    for link in robot.links:
        for shape in link.shapes:
            counts[shape.name] += 1
            if counts[shape.name] > 1:
                shape.name = ""


def _check(robot: Robot) -> None:
    names = {link.name for link in robot.links}
    above: dict[str, str] = {}
    for joint in robot.joints:
        for end, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in names:
                raise LoadError(f"joint {joint.name!r}: <{end} link> must name a link, got {name!r}")
        if joint.child in above:
            both = f"joints {above[joint.child]!r} and {joint.name!r}"
            raise LoadError(f"link {joint.child!r} must have one parent, got {both}; URDF knows trees, no loops")
        above[joint.child] = joint.name
    reached = {link.name for link, _ in robot.downwards()}
    if len(reached) < len(names):
        lost = sorted(names - reached)[:6]
        raise LoadError(f"links must hang on a root, got a ring of joints with {', '.join(map(repr, lost))}")


def _rename_inner_world(robot: Robot, notes: list[str]) -> None:
    joint = robot.joint_above().get(WORLD)
    if joint is None:
        return
    name = _Names(link.name for link in robot.links).new(WORLD)
    notes.append(f"link {WORLD!r} hangs on joint {joint.name!r}, so it is not the world: called {name!r}")
    for link in robot.links:
        link.name = name if link.name == WORLD else link.name
    for each in robot.joints:
        each.parent = name if each.parent == WORLD else each.parent
        each.child = name if each.child == WORLD else each.child
