"""Whether the integers of a Model fit together: those of scenes do, those read from a file may say anything.

The engine follows them as indices. Everything here raises ValueError, "<field> must ..., got ...", before it is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from costate.scene import codes
from costate.scene.faces import MAX_VERTICES
from costate.scene.joints import JOINTS, Ball, Free, Prismatic, Revolute
from costate.scene.names import WORLD
from costate.scene.planar_shapes import MAX_CORNERS, PlanarShape

if TYPE_CHECKING:
    from costate.scene.model import Model

ACTUATORS = (codes.MOTOR, codes.POSITION, codes.VELOCITY, codes.SERVO, codes.GENERAL)
MOST_INT = 2**31 - 1
MOST_HEIGHTS = 2**28  # of one heightfield, as in drivers/bind.cc
MOST_LOCKS = 6
STATIC = (codes.PLANE, codes.FIELD)
PLANAR_SHAPES = (codes.PLANE, codes.SPHERE, codes.RECTANGLE, codes.POLYGON)
SPATIAL_SHAPES = (codes.PLANE, codes.SPHERE, codes.CAPSULE, codes.BOX, codes.CYLINDER, codes.HULL, codes.FIELD)

# Fields of Model with one entry per body, per actuator, ...; the first of each is the one that counts
ALIKE = (
    ("parent", "joint_type", "massless", "body_names", "joint_names", "shapes"),
    ("motor_names", "motor_dof", "motor_tie", "actuator_type", "clip", "bound"),
    ("limit_body", "limit_dof"),
    ("shape_names", "shape_body", "shape_type", "shape_condim"),
    ("hull_vertices", "hull_faces"),
    ("field_nx", "field_ny"),
    ("tie_names", "tie_a", "tie_b", "tie_axis", "tie_locks"),
    ("coupling_names", "coupling_dof1", "coupling_dof2"),
    ("site_names", "site_body"),
)


def check_structure(model: Model) -> None:
    """Raise ValueError unless every index of the model leads somewhere, and its parts fit together."""
    for fields in ALIKE:
        counts = {name: len(getattr(model, name)) for name in fields}
        if len(set(counts.values())) > 1:
            raise ValueError(f"fields must have equal lengths, got {', '.join(f'{n} {name}' for name, n in counts.items())}")
    for name in ("body_names", "joint_names", "site_names", "motor_names", "shape_names", "tie_names", "coupling_names"):
        _check_names(name, getattr(model, name))
    _check_tree(model)
    _check_motors(model)
    _check_joint_rows(model)
    _check_shapes(model)
    _check_solids(model)
    _check_constraints(model)
    _within("site_body", model.site_body, range(model.nb))


def _check_names(field: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in ("", WORLD) or name in seen:
            raise ValueError(f"{field} must be different from each other, not empty and not {WORLD!r}, got {name!r}")
        seen.add(name)


def _check_tree(model: Model) -> None:
    """Bodies and joints, and what moves has mass."""
    if not model.parent:
        raise ValueError("parent must be that of at least one body, got none")
    _within("joint_type", model.joint_type, range(len(JOINTS)))
    carries = [not massless for massless in model.massless]
    for i, (parent, code) in enumerate(zip(model.parent, model.joint_type, strict=True)):
        if not -1 <= parent < i:
            raise ValueError(f"parent must be -1 or come before its body, got {parent} for body {i}")
        if code == Free.code and parent >= 0:
            raise ValueError(f"parent of a free joint must be the world, got {parent} for body {i}")
        if model.planar and code in (Free.code, Ball.code):
            raise ValueError(f"joint_type must stay in the plane, got {code} for body {i}")
    for i in reversed(range(len(carries))):
        if model.parent[i] >= 0:
            carries[model.parent[i]] |= carries[i]
        if JOINTS[model.joint_type[i]].nv > 0 and not carries[i]:
            raise ValueError(f"massless must not be true of all that a joint moves, got body {i}")


def _check_motors(model: Model) -> None:
    """What every actuator drives, and its places in the limits."""
    _within("actuator_type", model.actuator_type, ACTUATORS)
    _within("motor_dof", model.motor_dof, range(-1, model.nv))
    _within("motor_tie", model.motor_tie, range(-1, len(model.tie_a)))
    _within("tie_axis", model.tie_axis, (codes.NO_AXIS, codes.HINGE_AXIS, codes.SLIDE_AXIS))
    for field, places in (("clip", model.clip), ("bound", model.bound)):
        used = [place for place in places if place != -1]
        if used != list(range(len(used))):
            raise ValueError(f"{field} must be -1 or count 0, 1, ..., got {_shown(places)}")
    for k, (dof, tie, code) in enumerate(zip(model.motor_dof, model.motor_tie, model.actuator_type, strict=True)):
        if (dof < 0) == (tie < 0):
            raise ValueError(f"motor_dof or motor_tie must be -1, and the other not, got {dof} and {tie} for motor {k}")
        if tie >= 0 and model.tie_axis[tie] == codes.NO_AXIS:
            raise ValueError(f"motor_tie must be a hinge or a slide, got {tie} for motor {k}")
        if code in (codes.POSITION, codes.SERVO) and dof >= 0 and not _has_coordinate(model, dof):
            raise ValueError(f"motor_dof must have a coordinate that can be held, got {dof} for motor {k}")
        if code == codes.SERVO and model.bound[k] < 0:
            raise ValueError(f"bound of a servo must not be -1, got -1 for motor {k}")


def _check_joint_rows(model: Model) -> None:
    """Limits and dry friction of joints."""
    _within("limit_body", model.limit_body, range(model.nb))
    _ascending("limit_body", model.limit_body)
    for body, dof in zip(model.limit_body, model.limit_dof, strict=True):
        if model.joint_type[body] not in (Revolute.code, Prismatic.code, Ball.code):
            raise ValueError(f"limit_body must have a revolute, prismatic or ball joint, got {body}")
        if dof != model.v_address[body]:
            raise ValueError(f"limit_dof must be the first of its joint, {model.v_address[body]}, got {dof}")
    _within("dry_dof", model.dry_dof, range(model.nv))
    _ascending("dry_dof", model.dry_dof)


def _check_shapes(model: Model) -> None:
    """Shapes that may touch, and their pairs."""
    _within("shape_body", model.shape_body, range(-1, model.nb))
    _within("shape_type", model.shape_type, PLANAR_SHAPES if model.planar else SPATIAL_SHAPES)
    _within("shape_condim", model.shape_condim, codes.CONDIMS)
    fixed: list[bool] = []
    for parent, code in zip(model.parent, model.joint_type, strict=True):
        fixed.append(JOINTS[code].nv == 0 and (parent < 0 or fixed[parent]))
    for body, code in zip(model.shape_body, model.shape_type, strict=True):
        if code in STATIC and body >= 0 and not fixed[body]:
            raise ValueError(f"shape_body of a plane or heightfield must stand still, got body {body}")
    if any(isinstance(shape, PlanarShape) != model.planar for shape in chain(model.world_shapes, *model.shapes)):
        raise ValueError(f"shapes must be those of {'the plane' if model.planar else 'space'}, got others")
    for field in ("friction_rule", "restitution_rule"):
        _within(field, (getattr(model, field),), codes.PAIR_RULES.values())
    if model.max_contacts != -1 and not 1 <= model.max_contacts <= MOST_INT:
        raise ValueError(f"max_contacts must be positive or -1, got {model.max_contacts}")
    pairs = model.pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"pairs must have shape [n, 2], got {list(pairs.shape)}")
    if len(pairs) == 0:
        return
    if pairs.min() < 0 or pairs.max() >= len(model.shape_body) or (pairs[:, 0] >= pairs[:, 1]).any():
        raise ValueError(f"pairs must be two of {len(model.shape_body)} shapes, the lower first, got others")
    if len(np.unique(pairs, axis=0)) != len(pairs):
        raise ValueError("pairs must be different from each other, got one twice")
    body, static = np.array(model.shape_body)[pairs], np.isin(model.shape_type, STATIC)[pairs]
    if (body[:, 0] == body[:, 1]).any() or static.all(1).any():
        raise ValueError("pairs must be of shapes on two bodies, one of them no plane and no heightfield, got others")


def _check_solids(model: Model) -> None:
    """Corners and faces of hulls and polygons, sizes of heightfields."""
    solids = [code for code in model.shape_type if code in codes.WITH_VERTICES]
    if len(model.hull_vertices) != len(solids):
        raise ValueError(f"hull_vertices must be those of {len(solids)} hulls and polygons, got {len(model.hull_vertices)}")
    if len(model.field_nx) != model.shape_type.count(codes.FIELD):
        fields = model.shape_type.count(codes.FIELD)
        raise ValueError(f"field_nx must be those of {fields} heightfields, got {len(model.field_nx)}")
    for nx, ny in zip(model.field_nx, model.field_ny, strict=True):
        if min(nx, ny) < 2 or nx * ny >= MOST_HEIGHTS:
            raise ValueError(f"field_nx and field_ny must be at least 2, and not too large, got {nx} and {ny}")
    sizes, loop, plane = iter(model.hull_loop_size), iter(model.hull_loop), iter(model.hull_plane)
    for code, vertices, faces in zip(solids, model.hull_vertices, model.hull_faces, strict=True):
        least, most = (3, MAX_CORNERS) if code == codes.POLYGON else (4, MAX_VERTICES)
        if not least <= vertices <= most or (faces != 0 if code == codes.POLYGON else not 4 <= faces <= 2 * vertices):
            raise ValueError(f"hull_vertices and hull_faces must be those of a hull or polygon, got {vertices} and {faces}")
        loops: list[tuple[int, ...]] = []
        for _ in range(faces):
            (size,) = _next("hull_loop_size", sizes, 1)
            _within("hull_loop_size", (size,), range(3, vertices + 1))
            loops.append(_next("hull_loop", loop, size))
            for field, corners in (("hull_loop", loops[-1]), ("hull_plane", _next("hull_plane", plane, 3))):
                _within(field, corners, range(vertices))
                if len(set(corners)) < len(corners):
                    raise ValueError(f"{field} must be different corners of a face, got {_shown(corners)}")
        _check_closed(vertices, loops)
    for field, rest in (("hull_loop_size", sizes), ("hull_loop", loop), ("hull_plane", plane)):
        if next(rest, None) is not None:
            raise ValueError(f"{field} must belong to the faces of hulls, got more")


def _check_closed(vertices: int, loops: Sequence[tuple[int, ...]]) -> None:
    """Every edge of a hull has a face on either side, and Euler's formula holds."""
    edges = [edge for loop in loops for edge in zip(loop, (*loop[1:], loop[0]), strict=True)]
    sides = set(edges)
    closed = len(sides) == len(edges) and all((b, a) in sides for a, b in edges)
    if loops and (not closed or vertices - len(edges) // 2 + len(loops) != 2):
        raise ValueError(f"hull_loop must go round the faces of a closed hull, got others, of {vertices} corners")


def _check_constraints(model: Model) -> None:
    """Ties and couplings."""
    for field in ("tie_a", "tie_b"):
        _within(field, getattr(model, field), range(-1, model.nb))
    for k, (a, b, locks) in enumerate(zip(model.tie_a, model.tie_b, model.tie_locks, strict=True)):
        _within("tie_locks", locks, range(len(codes.LOCK_LABELS)))
        if a == b or not 1 <= len(locks) <= MOST_LOCKS or len(set(locks)) < len(locks):
            raise ValueError(f"tie {k} must hold two bodies in one to six directions, got bodies {a}, {b} and {_shown(locks)}")
        labels = codes.PLANAR_SLIDE_LABELS if model.tie_axis[k] == codes.SLIDE_AXIS else codes.PLANAR_LABELS
        if model.planar:
            _within("tie_locks", locks, labels)
    _within("coupling_dof1", model.coupling_dof1, range(model.nv))
    _within("coupling_dof2", model.coupling_dof2, range(-1, model.nv))
    for first, second in zip(model.coupling_dof1, model.coupling_dof2, strict=True):
        if first == second or not all(_has_coordinate(model, dof) for dof in (first, second) if dof >= 0):
            raise ValueError(f"coupling must be of two dofs that have a coordinate, got {first} and {second}")


def _has_coordinate(model: Model, dof: int) -> bool:
    body = model.dof_body[dof]
    return JOINTS[model.joint_type[body]].has_coordinate(dof - model.v_address[body])


def _within(field: str, values: Iterable[int], allowed: Collection[int]) -> None:
    for value in values:
        if value not in allowed:
            raise ValueError(f"{field} must be {_range(allowed)}, got {value}")


def _ascending(field: str, values: Sequence[int]) -> None:
    if any(a >= b for a, b in pairwise(values)):
        raise ValueError(f"{field} must be in ascending order, got {_shown(values)}")


def _next(field: str, values: Iterator[int], count: int) -> tuple[int, ...]:
    taken = tuple(islice(values, count))
    if len(taken) < count:
        raise ValueError(f"{field} must have an entry for every face of every hull, got too few")
    return taken


def _range(allowed: Collection[int]) -> str:
    if isinstance(allowed, range):
        return f"from {allowed.start} to {allowed.stop - 1}" if len(allowed) else "empty"
    return f"one of {', '.join(map(str, allowed))}"


def _shown(values: Sequence[int]) -> str:
    return ", ".join(map(str, values[:8])) + (", ..." if len(values) > 8 else "")
