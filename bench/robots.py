"""The robots that are timed, as plain numbers: one description for costate, MuJoCo and Pinocchio.

Masses and sizes are those of real machines, rounded; a link's inertia is that of a box of its size. These have no shapes:
those that stand on the ground are in walkers.py.
"""

from __future__ import annotations

from dataclasses import dataclass

Triple = tuple[float, float, float]
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Geom:
    """A surface that touches the ground: a sphere at `start`, or a capsule from `start` to `end`. m, in the link's frame."""

    radius: float
    start: Triple
    end: Triple | None = None


@dataclass(frozen=True)
class Link:
    """A body and the joint it hangs on: "free", or a hinge about `axis`. m, kg, rad; inertia (xx yy zz, or also xy xz yz)
    about `com`."""

    name: str
    parent: int
    joint: str
    axis: Triple
    pos: Triple
    mass: float
    com: Triple
    inertia: tuple[float, ...]
    geoms: tuple[Geom, ...] = ()
    limits: tuple[float, float] | None = None
    armature: float = 0.0
    damping: float = 0.0


@dataclass(frozen=True)
class Robot:
    """A tree of links, parents first. Every hinge has a motor with `gear`, or a servo where `kp` is given (N m/rad, N m s/rad).
    Where a link has geoms there is a ground at z = 0. `stance`: angles of all hinges (rad) in which it stands, with the
    bases where their links say."""

    name: str
    links: tuple[Link, ...]
    kp: float = 0.0
    kd: float = 0.0
    gear: float = 1.0
    friction: float = 1.0
    margin: float = 0.0  # m, within which MuJoCo has a contact
    stance: tuple[float, ...] = ()

    @property
    def floating(self) -> bool:
        """Whether it starts with a free base."""
        return self.links[0].joint == "free"

    @property
    def bases(self) -> int:
        """How many free bases it has: more than one if it is several robots."""
        return sum(link.joint == "free" for link in self.links)

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return len(self.links) + 5 * self.bases

    @property
    def nu(self) -> int:
        """Motors or servos."""
        return len(self.links) - self.bases

    @property
    def grounded(self) -> bool:
        """Whether there is anything to stand on."""
        return any(link.geoms for link in self.links)


def box_link(
    name: str, parent: int, axis: Triple, pos: Triple, mass: float, com: Triple, size: Triple, *, joint: str = "hinge"
) -> Link:
    """A link whose inertia is that of a box with edges `size` (m)."""
    a, b, c = (edge * edge for edge in size)
    inertia = (mass * (b + c) / 12, mass * (a + c) / 12, mass * (a + b) / 12)
    return Link(name, parent, joint, axis, pos, mass, com, inertia)


def quadruped() -> Robot:
    """Like Laikago: 25.4 kg, a free base and four legs of three hinges: 18 dof."""
    links = [box_link("base", -1, Z, (0, 0, 0.45), 13.7, (0.01, 0.0, 0.01), (0.56, 0.17, 0.19), joint="free")]
    for i, (x, y) in enumerate(((0.22, -0.09), (0.22, 0.09), (-0.22, -0.09), (-0.22, 0.09))):
        side, hip = (1.0 if y > 0 else -1.0), len(links)
        links += [
            box_link(f"hip{i}", 0, X, (x, y, 0.0), 1.1, (0.0, 0.01 * side, 0.0), (0.1, 0.09, 0.1)),
            box_link(f"thigh{i}", hip, Y, (0.0, 0.037 * side, 0.0), 1.53, (-0.005, -0.02 * side, -0.03), (0.05, 0.08, 0.25)),
            box_link(f"shank{i}", hip + 1, Y, (0.0, 0.0, -0.25), 0.3, (0.0, 0.0, -0.13), (0.03, 0.03, 0.26)),
        ]
    return Robot("quadruped", tuple(links))


def arm() -> Robot:
    """Like a seven-joint lightweight arm on a table: 23 kg, 7 dof."""
    axes = (Z, Y, Z, Y, Z, Y, Z)
    reach = (0.1575, 0.2025, 0.2045, 0.2155, 0.1845, 0.2155, 0.081)
    masses = (5.8, 6.4, 3.5, 3.5, 3.5, 1.8, 0.3)
    links = [
        box_link(f"link{i}", i - 1, axes[i], (0.0, 0.0, reach[i]), masses[i], (0.0, 0.03 * (-1) ** i, 0.1), (0.12, 0.12, 0.2))
        for i in range(7)
    ]
    return Robot("arm", tuple(links))


def humanoid() -> Robot:
    """A full-size humanoid: 62 kg, free base, two legs of 6 hinges, waist 3, two arms of 7, neck 1: 36 dof."""
    links = [box_link("pelvis", -1, Z, (0, 0, 1.0), 9.0, (0.0, 0.0, 0.03), (0.2, 0.25, 0.18), joint="free")]

    def limb(parent: int, start: Triple, name: str, parts: tuple[tuple[Triple, float, float], ...]) -> int:
        """A row of hinges (axis, mass, length downwards); returns the last link."""
        pos = start
        for k, (axis, mass, length) in enumerate(parts):
            size = (0.08, 0.08, max(abs(length), 0.08))
            links.append(box_link(f"{name}{k}", parent, axis, pos, mass, (0.01, 0.0, -length / 2), size))
            parent, pos = len(links) - 1, (0.0, 0.0, -length)
        return parent

    leg = ((Z, 1.3, 0.05), (X, 1.5, 0.04), (Y, 5.5, 0.4), (Y, 3.0, 0.4), (Y, 0.6, 0.03), (X, 1.2, 0.06))
    reach = ((Y, 0.9, 0.03), (X, 0.9, 0.1), (Z, 1.1, 0.16), (Y, 0.8, 0.1), (Z, 0.8, 0.14), (Y, 0.4, 0.03), (X, 0.4, 0.08))
    for side, name in ((1.0, "left"), (-1.0, "right")):
        limb(0, (0.0, 0.1 * side, -0.05), f"{name}_leg", leg)
    chest = limb(0, (0.0, 0.0, 0.12), "waist", ((Z, 1.0, -0.05), (X, 1.0, -0.05), (Y, 12.0, -0.3)))
    for side, name in ((1.0, "left"), (-1.0, "right")):
        limb(chest, (0.0, 0.2 * side, 0.28), f"{name}_arm", reach)
    limb(chest, (0.0, 0.0, 0.32), "neck", ((Z, 3.5, -0.15),))
    return Robot("humanoid", tuple(links))


def chain(count: int) -> Robot:
    """`count` equal links of 0.1 m and 0.1 kg on hinges about x and y in turn, hanging from the world."""
    links = [
        box_link(f"link{i}", i - 1, (X, Y)[i % 2], (0.0, 0.0, 0.0 if i == 0 else -0.1), 0.1, (0.0, 0.0, -0.05), (0.02, 0.02, 0.1))
        for i in range(count)
    ]
    return Robot(f"chain of {count}", tuple(links))


def three() -> tuple[Robot, ...]:
    """The robots of most tables."""
    return quadruped(), arm(), humanoid()
