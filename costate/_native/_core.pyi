"""costate's compiled core"""

from collections.abc import Sequence


def num_threads() -> int: ...

def set_num_threads(n: int) -> None: ...

def instruction_set() -> str: ...

def set_instruction_set(name: str) -> None: ...

def first_not_finite(array: object | None) -> int: ...

class Tree:
    """The structure of a model, and every call that reaches the core"""

    def __init__(self, parent: Sequence[int], joint: Sequence[int], motor_dof: Sequence[int], massless: Sequence[int], form: int = -1, *, actuator_type: Sequence[int] = [], clip: Sequence[int] = [], bound: Sequence[int] = [], limit_body: Sequence[int] = [], limit_dof: Sequence[int] = [], dry_dof: Sequence[int] = [], shape_body: Sequence[int] = [], shape_type: Sequence[int] = [], pair_a: Sequence[int] = [], pair_b: Sequence[int] = [], friction_rule: int = 0, restitution_rule: int = 0, max_contacts: int = -1, tie_a: Sequence[int] = [], tie_b: Sequence[int] = [], tie_axis: Sequence[int] = [], tie_first: Sequence[int] = [], lock: Sequence[int] = [], coupling_dof1: Sequence[int] = [], coupling_dof2: Sequence[int] = [], motor_tie: Sequence[int] = [], hull_vertices: Sequence[int] = [], hull_faces: Sequence[int] = [], hull_loop_size: Sequence[int] = [], hull_loop: Sequence[int] = [], hull_plane: Sequence[int] = [], field_nx: Sequence[int] = [], field_ny: Sequence[int] = [], large: int = -1, planar: bool = False, shape_condim: Sequence[int] = [], one_group: int = -1) -> None: ...

    def rollout(self, worlds: int, steps: int, substeps: int, q: object, v: object, control: object | None, dt: object, external: object | None, theta: object, q_out: object, v_out: object, diverged_at: object, options: Sequence[float], status: object | None = None, contacts: object | None = None, contact_ids: object | None = None, rows: object | None = None) -> int: ...

    def rollout_adj(self, worlds: int, steps: int, substeps: int, inputs: Sequence, q: object, v: object, diverged_at: object, q_bar: object | None, v_bar: object | None, bars: Sequence, decay: float, truncate: int, options: Sequence[float], clip: float = 0.0, contacts_bar: object | None = None, costate: object | None = None) -> None: ...

    def counts(self) -> dict[str, int]:
        """Sizes of the model, by name"""

    def tables(self) -> dict[str, list[int]]:
        """Index tables of the model, by name"""

    def options(self, options: Sequence[float]) -> dict:
        """The solver's options by name"""

    def scratch(self, op: int, adjoint: bool, substeps: int, options: Sequence[float], is_double: bool) -> int:
        """Bytes that a world needs during a call; op -1: a rollout"""

    @property
    def nq(self) -> int: ...

    @property
    def nv(self) -> int: ...

    @property
    def form(self) -> int: ...

    @property
    def params_size(self) -> int: ...

    @property
    def max_contacts(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def equality_rows(self) -> int: ...

    @property
    def large(self) -> bool: ...

    @property
    def candidates(self) -> int: ...

    @property
    def candidate_pair(self) -> list[int]: ...

    def op(self, op: int, worlds: int, inputs: Sequence, outputs: Sequence, options: object | None = None) -> None: ...

    def op_adj(self, op: int, worlds: int, inputs: Sequence, output_bars: Sequence, input_bars: Sequence) -> None: ...

    def params_ok(self, theta: object, worlds: int) -> bool: ...

    def first_zero_quaternion(self, q: object) -> int: ...

class Stepper:
    """One step of one world in numpy; None where it needs a closer look"""

    def __init__(self, tree: object, theta: object, dt: object, state: object, options: Sequence[float]) -> None: ...

    def step(self, state: object, control: object | None) -> object: ...
