"""The part of Scene that adds actuators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costate.scene.actuators import Actuator, actuator_numbers, check_general, check_position
from costate.scene.checks import NONZERO, require
from costate.scene.codes import GENERAL, MOTOR, NO_AXIS, POSITION, SERVO, VELOCITY
from costate.scene.joints import check_dof
from costate.scene.names import find, new_name
from costate.scene.values import Numbers

if TYPE_CHECKING:
    from costate.scene.assemble import Parts


class AddActuators:
    """Actuators of a scene, on joints and on hinge and slide constraints."""

    _parts: Parts

    def add_motor(
        self,
        joint: str | int,
        *,
        dof: int = 0,
        gear: Numbers = 1.0,
        control_limits: Numbers | None = None,
        force_limits: Numbers | None = None,
        name: str | None = None,
    ) -> str:
        """Add a motor on one `dof` of a joint (named by joint or body) and return its name: joint force = gear * control.

        joint : may also name a hinge or slide constraint (dof 0). Then the force acts along or about its axis, on b against a.
        control_limits, force_limits : (lower, upper), or one positive number for plus and minus; what the control is
            clipped to, and what the actuator's force (N or N m, before the gear) is kept in. None: no limits.
        """
        limits = {"control_limits": control_limits, "force_limits": force_limits}
        return self._add_actuator("add_motor", MOTOR, joint, dof, name, gear=gear, **limits)

    def add_position(
        self,
        joint: str | int,
        *,
        kp: Numbers,
        kd: Numbers = 0.0,
        dof: int = 0,
        gear: Numbers = 1.0,
        control_limits: Numbers | None = None,
        force_limits: Numbers | None = None,
        name: str | None = None,
    ) -> str:
        """Add a spring and damper on one dof: joint force = gear * (kp (control - gear q) - kd gear v); otherwise as `add_motor`.

        kp, kd : N or N m per unit of gear q, and of its rate; integrated implicitly, so that stiff gains stay stable.
        On a constraint q is its angle (rad) or displacement (m), zero where its frames coincide. Angles are known up to full
        turns; the one nearest to control / gear counts.
        """
        limits = {"control_limits": control_limits, "force_limits": force_limits}
        return self._add_actuator("add_position", POSITION, joint, dof, name, gear=gear, kp=kp, kd=kd, **limits)

    def add_velocity(
        self,
        joint: str | int,
        *,
        kd: Numbers,
        dof: int = 0,
        gear: Numbers = 1.0,
        control_limits: Numbers | None = None,
        force_limits: Numbers | None = None,
        name: str | None = None,
    ) -> str:
        """Add a damper towards a rate of one dof: joint force = gear * kd (control - gear v); otherwise as `add_position`."""
        limits = {"control_limits": control_limits, "force_limits": force_limits}
        return self._add_actuator("add_velocity", VELOCITY, joint, dof, name, gear=gear, kd=kd, **limits)

    def add_general(
        self,
        joint: str | int,
        *,
        gain: Numbers = 1.0,
        bias: Numbers = 0.0,
        kp: Numbers = 0.0,
        kd: Numbers = 0.0,
        dof: int = 0,
        gear: Numbers = 1.0,
        control_limits: Numbers | None = None,
        force_limits: Numbers | None = None,
        name: str | None = None,
    ) -> str:
        """Add an affine actuator: joint force = gear * (gain control + bias - kp gear q - kd gear v); else as `add_position`.

        gain, bias : N or N m per unit of control, and without control. kp, kd : 0 or more; with force limits, and on a
        constraint, not both 0 (without spring and damper `add_motor` takes limits).
        """
        options = {"gain": gain, "bias": bias, "kp": kp, "kd": kd, "control_limits": control_limits, "force_limits": force_limits}
        return self._add_actuator("add_general", GENERAL, joint, dof, name, gear=gear, **options)

    def add_servo(
        self,
        joint: str | int,
        *,
        gain: Numbers,
        max_force: Numbers,
        max_speed: Numbers,
        dof: int = 0,
        gear: Numbers = 1.0,
        control_limits: Numbers | None = None,
        name: str | None = None,
    ) -> str:
        """Add a servo that moves one dof to where the control says, and return its name; otherwise as `add_position`.

        In every step it wishes gear v = gain (control - gear q), at most `max_speed`, and reaches exactly that within its force.

        gain : 1/s. max_force : N or N m, before the gear. max_speed : m/s or rad/s, of gear q.
        """
        options = {"gain": gain, "max_force": max_force, "max_speed": max_speed, "control_limits": control_limits}
        return self._add_actuator("add_servo", SERVO, joint, dof, name, gear=gear, **options)

    def add_motors(self, gear: Numbers = 1.0) -> tuple[str, ...]:
        """Add one motor per dof of every joint that is neither free nor fixed, in the order of dofs; return their names.

        Free, in a planar scene, are bodies that a planar joint joins to the world.
        """
        moving = [(i, body.joint) for i, body in enumerate(self._parts.bodies) if not body.free]
        return tuple(self.add_motor(i, dof=dof, gear=gear) for i, joint in moving for dof in range(joint.nv))

    def _add_actuator(self, call: str, code: int, joint: str | int, dof: int, name: str | None, **numbers: Any) -> str:
        where = f"{call}({joint!r}): "
        if isinstance(joint, str) and (joint in self._parts.ties or joint in self._parts.couplings):
            index, tie, default = self._on_tie(where, joint, dof)
        else:
            index, tie, default = self._on_joint(where, code, joint, dof)
        name = new_name(where, "motor", name, default, self._parts.motors)
        rows = actuator_numbers(where, code, **numbers)
        if code == GENERAL:
            check_general(where, rows, self._parts.bodies[index].joint if tie < 0 else None, dof)
        if tie >= 0:
            require(f"{where}gear", rows["gear"], NONZERO)
        self._parts.motors[name] = Actuator(index, dof, tie, code, rows)
        return name

    def _on_joint(self, where: str, code: int, joint: str | int, dof: int) -> tuple[int, int, str]:
        """The joint, no tie, and the default name of an actuator on a dof of a joint."""
        also = tuple(name for name, tie in self._parts.ties.items() if tie.axis != NO_AXIS)
        index = find(f"{where}unknown joint", joint, {**self._parts.index, **self._parts.joints}, also=also)
        body = self._parts.bodies[index]
        check_dof(f"{where}dof", body.joint, dof)
        if code in (POSITION, SERVO):
            check_position(where, body.joint, dof)
        return index, -1, body.joint_name if body.joint.nv == 1 else f"{body.joint_name}_{dof}"

    def _on_tie(self, where: str, name: str, dof: int) -> tuple[int, int, str]:
        """No joint, the tie, and the default name of an actuator on a constraint."""
        if name not in self._parts.ties or self._parts.ties[name].axis == NO_AXIS:
            kind = self._parts.ties[name].kind if name in self._parts.ties else "coupling"
            raise ValueError(f"{where}joint must be a joint, a hinge or a slide, got {name!r}, which is a {kind} constraint")
        if dof != 0:
            raise ValueError(f"{where}dof must be 0 for a constraint, got {dof!r}")
        return -1, list(self._parts.ties).index(name), name
