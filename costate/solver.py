"""How contacts are solved and kept apart: options of a Simulator, and the numbers the engine takes for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch

Gradient = Literal["implicit", "exact"]
Impacts = Literal["toi"]
Options = tuple[float, ...]  # as the engine takes them: 15 numbers, in the order of drivers/options.h

_GRADIENTS = {"implicit": 0, "exact": 1}
_ROUNDS, _INTERIOR = 0, 1  # Method of core/data/options.h
_MOST_IMPACTS = {None: 0, "toi": 32}  # within one step
_FORMS = {None: -1, "dense": 0, "half-solved": 1, "alternating": 2}
_CONES = {"disc": 0.0, "square": 4.5}
_MOST_PROJECTIONS = 100
_MARGIN, _KICK = 0.01, 1.0  # m; m/s, by which other contacts may change the speed of an approach within a step
_MAX_CORNERS = 32  # kMaxSides of core/data/options.h

# What depends on the precision: tolerance (m/s), and softness of every row that keeps redundant rows harmless, relative to
# its own and absolute (1/kg). Smaller relative ones were singular on a stack of boxes.
_PRECISION = {torch.float64: (1e-10, 1e-9, 1e-10), torch.float32: (1e-5, 1e-5, 1e-7)}


@dataclass(frozen=True)
class PGS:
    """Projected Gauss-Seidel with a direct solve of the rows off their bounds at the end (polish).

    Attributes
    ----------
    iterations : most sweeps over all rows; fewer where the tolerance is reached before.
    polish : most direct solves after every five sweeps; shortened or damped where they do not help. 0: plain sweeps.
    tolerance : natural residual that counts as solved, m/s; None: 1e-10 in float64, 1e-5 in float32.
    cone : bounds of friction. "disc": |f| <= mu n, the same in all directions. "square": each of two directions alone.
        An int n, 3 to 32: the regular polygon with n corners on the disc.
    form : what a round starts with: sweeps that take velocities from the matrix of all rows ("dense") or from the factor of
        the mass matrix ("half-solved"), or "alternating": all rows together and each alone, in turn, which takes many
        contacts of one robot that hold each other better. Such a round counts as three sweeps of `iterations`, in float32 as
        ten. None: by the number of rows; heaps, and rounds without polish, are swept.
    """

    iterations: int = 20
    polish: int = 12
    tolerance: float | None = None
    cone: Literal["disc", "square"] | int = "disc"
    form: Literal["dense", "half-solved", "alternating"] | None = None

    def __post_init__(self) -> None:
        _check_int("PGS: iterations", self.iterations, least=1)
        _check_int("PGS: polish", self.polish, least=0)
        _check_tolerance("PGS", self.tolerance)
        polygon = isinstance(self.cone, int) and not isinstance(self.cone, bool) and 3 <= self.cone <= _MAX_CORNERS
        if not (polygon or (isinstance(self.cone, str) and self.cone in _CONES)):
            wanted = f"'disc', 'square' or an int from 3 to {_MAX_CORNERS} (corners of a polygon)"
            raise ValueError(f"PGS: cone must be {wanted}, got {self.cone!r}")
        if not (self.form is None or (isinstance(self.form, str) and self.form in _FORMS)):
            raise ValueError(f"PGS: form must be None, 'dense', 'half-solved' or 'alternating', got {self.form!r}")


@dataclass(frozen=True)
class InteriorPoint:
    """The primal-dual interior point method of "End-to-End Differentiable Physics" (paper A), with its friction pyramid.

    Few steps, each a direct solve of all rows, whatever their number. Its gradient is that of the conditions it solves.

    Attributes
    ----------
    iterations : most steps; fewer where the tolerance is reached before. A world that needs more is flagged as unsolved.
    tolerance : natural residual that counts as solved, m/s; None: 1e-10 in float64, 1e-5 in float32.
    cone : directions of the friction pyramid, 3 to 32: corners of a polygon on the disc of radius mu n. In planar scenes
        friction has one direction, and this does not count.
    """

    iterations: int = 100
    tolerance: float | None = None
    cone: int = 4

    def __post_init__(self) -> None:
        _check_int("InteriorPoint: iterations", self.iterations, least=1)
        _check_tolerance("InteriorPoint", self.tolerance)
        if not isinstance(self.cone, int) or isinstance(self.cone, bool) or not 3 <= self.cone <= _MAX_CORNERS:
            raise ValueError(f"InteriorPoint: cone must be an int from 3 to {_MAX_CORNERS} (directions), got {self.cone!r}")


Solver = PGS | InteriorPoint


@dataclass(frozen=True)
class Contact:
    """What keeps shapes and joint limits apart.

    Attributes
    ----------
    margin : a contact or limit is considered once its gap, less the approach within the step, is below this, m; None: what
        a speed of 1 m/s makes of the simulator's dt, at most 0.01.
    recovery : part of a penetration, or of the error of a constraint, that is undone in one step, in (0, 1].
    push_speed : most speed that undoing it may take, m/s.
    bounce_speed : restitution acts on impacts faster than this, m/s.
    """

    margin: float | None = None
    recovery: float = 0.2
    push_speed: float = 0.5
    bounce_speed: float = 0.1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name == "margin" and value is None:
                continue
            if not (_is_number(value) and value >= 0):
                raise ValueError(f"Contact: {name} must be a finite number, 0 or more, got {value!r}")
        if not 0 < self.recovery <= 1:
            raise ValueError(f"Contact: recovery must be above 0 and at most 1, got {self.recovery!r}")


def engine_options(
    solver: Any, contact: Any, gradient: Any, dtype: torch.dtype, project: Any, impacts: Any, dt: float
) -> Options:  # fmt: skip
    """The engine's 15 numbers; TypeError and ValueError name what is wrong."""
    if not isinstance(solver, (PGS, InteriorPoint)):
        raise TypeError(f"solver must be a costate.PGS or a costate.InteriorPoint, got {type(solver).__name__}")
    if not isinstance(contact, Contact):
        raise TypeError(f"contact must be a costate.Contact, got {type(contact).__name__}")
    if not (isinstance(gradient, str) and gradient in _GRADIENTS):
        raise ValueError(f"gradient must be 'implicit' or 'exact', got {gradient!r}")
    if not isinstance(project, int) or isinstance(project, bool) or not 0 <= project <= _MOST_PROJECTIONS:
        raise ValueError(f"project must be an int from 0 to {_MOST_PROJECTIONS}, got {project!r}")
    if not (impacts is None or (isinstance(impacts, str) and impacts in _MOST_IMPACTS)):
        raise ValueError(f"impacts must be None or 'toi', got {impacts!r}")
    if isinstance(solver, InteriorPoint):
        if gradient == "exact":
            raise ValueError("gradient='exact' differentiates sweeps; an InteriorPoint has none: it needs gradient='implicit'")
        polish, form, method = 0, None, _INTERIOR
    else:
        polish, form, method = solver.polish, solver.form, _ROUNDS
    margin = min(_MARGIN, _KICK * dt) if contact.margin is None else contact.margin
    tolerance, relative, absolute = _PRECISION[dtype]
    tolerance = tolerance if solver.tolerance is None else solver.tolerance
    cone = _CONES[solver.cone] if isinstance(solver.cone, str) else solver.cone
    numbers = (
        solver.iterations, polish, tolerance, margin, contact.recovery, contact.push_speed, contact.bounce_speed,
        cone, _GRADIENTS[gradient], relative, absolute, _FORMS[form], project, method, _MOST_IMPACTS[impacts],
    )  # fmt: skip
    return tuple(float(x) for x in numbers)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)


def _check_tolerance(name: str, value: Any) -> None:
    if value is not None and not (_is_number(value) and value > 0):
        raise ValueError(f"{name}: tolerance must be a positive finite number or None, got {value!r}")


def _check_int(name: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an int of at least {least}, got {value!r}")
