"""The fuzzer: loads cases in a process of its own, steps what loads, and tells what became of each.

python -m tests.load.fuzzing FIRST LAST RESULTS.jsonl     goes on where an earlier run ended, and says at last what it found
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HANG = 90.0  # s, after which a case counts as one that hangs; the bounds below tell sooner, but not on a machine that is busy
MOST_SECONDS = 10.0  # of a processor, for a case: without the compiler, which has a limit of its own
MOST_MEMORY = 2 * 2**30  # bytes, resident, of this process or the compiler's
MOST_ADDRESSES = 12 * 2**30  # bytes; beyond it a case fails, and not the machine
BUGS = ("crash", "hang", "other error", "slow", "memory", "not finite", "no file named", "warning")


@dataclass
class Outcome:
    """What became of a case: loaded, LoadError, UnsupportedFeature, or one of BUGS; with seconds of this
    process and of the clock, and peaks of memory (bytes)."""

    index: int
    kind: str
    detail: str = ""
    seconds: float = 0.0
    wall: float = 0.0
    memory: int = 0
    compiler_memory: int = 0
    name: str = ""

    @property
    def bug(self) -> bool:
        return self.kind in BUGS


# ---- in the process that loads ---------------------------------------------------------------------------------------
def attempt(index: int, folder: Path) -> Outcome:
    """Load one case that is written into an empty folder, and step what loads."""
    import costate as cs
    from tests.load.mutations import case

    made = case(index)
    for name, data in made.files.items():
        (folder / name).write_bytes(data)
    path = folder / made.main
    started, clock = time.process_time(), time.perf_counter()
    outcome = Outcome(index, "loaded", name=made.name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = cs.load(path, search=[made.folder] if made.folder else [], **made.options)
        except cs.LoadError as error:
            outcome.kind, outcome.detail = type(error).__name__, str(error)
            if not str(error).startswith(str(folder)):  # the file, or one that it includes
                outcome.kind = "no file named"
        except BaseException:
            outcome.kind, outcome.detail = "other error", traceback.format_exc(limit=-8)
        else:
            odd = [str(w.message) for w in caught if not issubclass(w.category, cs.LoadWarning)]
            outcome.kind, outcome.detail = ("warning", odd[0]) if odd else stepped(model)
    outcome.seconds, outcome.wall = time.process_time() - started, time.perf_counter() - clock
    if outcome.seconds > MOST_SECONDS and not outcome.bug:
        outcome.kind = "slow"
    return outcome


def stepped(model: Any) -> tuple[str, str]:
    """What one step of a model comes to, from where it starts and from its first keyframe."""
    import torch

    import costate as cs

    try:
        model.params().check()
        model.summary()
        sim = cs.Simulator(model, dt=model.timestep)
        starts = [sim.initial_state()]
        starts += [cs.State(torch.tensor(key.q), torch.tensor(key.v)) for key in list(model.keyframes.values())[:1]]
        states = [cs.State(start.q.requires_grad_(), start.v.requires_grad_()) for start in starts]
        after = [sim.step(state, torch.ones(model.nu, dtype=torch.float64)) for state in states]
        for state in after:
            (state.q.sum() + state.v.sum()).backward()
    except BaseException:
        return "other error", traceback.format_exc(limit=-8)
    finite = all(bool(torch.isfinite(state.q).all() and torch.isfinite(state.v).all()) for state in after)
    return ("loaded", "") if finite else ("not finite", f"{after}")


def _peak(pid: int | str) -> int:
    """Most memory (bytes) that was resident since `_forget_peak`; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def _forget_peak(pid: int | str) -> None:
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def serve() -> None:
    """Answer numbers of cases on the standard input with outcomes on the standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    from costate.load import compile

    torch.set_num_threads(1)
    faulthandler.enable()
    for line in sys.stdin:
        _forget_peak("self")
        before = compile._warm._process.pid if compile._warm is not None else 0
        _forget_peak(before)
        dead = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        with tempfile.TemporaryDirectory(prefix="costate-fuzz-") as folder:
            faulthandler.dump_traceback_later(0.8 * HANG)
            outcome = attempt(int(line), Path(folder))
            faulthandler.cancel_dump_traceback_later()
        outcome.memory = _peak("self")
        outcome.compiler_memory = _peak(compile._warm._process.pid) if compile._warm is not None else 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        outcome.compiler_memory = max(outcome.compiler_memory, 1024 * after if after > dead else 0)
        if max(outcome.memory, outcome.compiler_memory) > MOST_MEMORY and not outcome.bug:
            outcome.kind = "memory"
        answers.write(json.dumps(asdict(outcome)) + "\n")
        answers.flush()


# ---- in the process that watches -------------------------------------------------------------------------------------
class Worker:
    """A process that loads cases, and is replaced when it crashes or hangs."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.load.fuzzing"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=self._said, start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def ask(self, index: int) -> Outcome:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died; the answer will be empty
            self._process.stdin.write(f"{index}\n")
            self._process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            before = self._computed()
            if not selector.select(HANG):
                outcome = Outcome(
                    index, "hang", f"no answer in {HANG} s; {self._computed() - before:.1f} s computed; {self._tail()}"
                )
                self.close()
                return outcome
        line = self._process.stdout.readline()
        if not line:
            return Outcome(index, "crash", f"status {self._process.wait()}; {self._tail()}")
        return Outcome(**json.loads(line))

    def _computed(self) -> float:
        """Seconds of a processor that it has used: few in a hang are those of one that waits, or of a busy machine."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _tail(self) -> str:
        """The end of what it wrote to its standard error: where it hung or crashed."""
        self._said.seek(0)
        return self._said.read().decode("utf-8", "replace")[-3000:]

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it and the compiler that it started."""
        if self.alive():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def run(indices: Iterable[int]) -> Iterator[Outcome]:
    """The outcomes of cases, one after the other."""
    worker = Worker()
    try:
        for index in indices:
            if not worker.alive():
                worker.close()
                worker = Worker()
            yield worker.ask(index)
    finally:
        worker.close()


def report(outcomes: list[Outcome]) -> str:
    """Counts, and the worst."""
    counts = collections.Counter(outcome.kind for outcome in outcomes)
    worst = {word: max(outcomes, key=lambda o: getattr(o, word)) for word in ("seconds", "wall", "memory", "compiler_memory")}
    lines = [f"{len(outcomes)} cases: " + ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))]
    lines += [f"most {word}: {getattr(o, word):,.6g} ({o.name})" for word, o in worst.items()]
    lines += [f"{o.kind}: {o.name or o.index}: {o.detail[-600:]}" for o in outcomes if o.bug]
    return "\n".join(lines)


def main(first: int, last: int, results: Path) -> None:
    """Run the cases from `first` up to `last` that are not among the results yet."""
    known = [Outcome(**json.loads(line)) for line in results.read_text().splitlines()] if results.exists() else []
    done = {outcome.index for outcome in known}
    with results.open("a") as file:
        for outcome in run(index for index in range(first, last) if index not in done):
            known.append(outcome)
            file.write(json.dumps(asdict(outcome)) + "\n")
            file.flush()
    print(report(known))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve()
    else:
        main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
