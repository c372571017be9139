"""Mutated URDFs: each is repaired, or refused with a LoadError."""

import numpy as np
import pytest

from costate.load import LoadError
from costate.load.urdf import repair
from tests.load.urdf_text import LIMIT, collision, dae, inertial, joint, link, obj, robot, stl

COUNT = 1500
ASSETS = {"a.obj": obj(), "b.stl": stl(), "c.dae": dae()}
WORDS = [
    "nan", "inf", "-1", "0", "1e308", "-1e308", "1e-320", "99999999999999999999", "", " ", ",", "1 2 3", "../../x.obj", "world",
    "arm", "base", "fixed", "floating", "planar", "${x}", "\u00e9", "x" * 1000, "<", "&", "&amp;", "<!--", "-->", "<!DOCTYPE a>",
    "]]>", "</link>", "<link/>", "<joint/>", "<robot>", "\0",
]  # fmt: skip
SOURCE = robot(
    link("world"),
    link("base", inertial(), collision('<mesh filename="a.obj" scale="1 1 1"/>'), collision('<mesh filename="b.stl"/>')),
    link("arm", inertial(1.0, 1.0, 2.0, 5.0, 0.1), collision('<box size="1 2 3"/>'), collision('<mesh filename="c.dae"/>')),
    link("finger", inertial(1.0, 0, 0, 0), collision('<capsule radius="1" length="2"/>')),
    joint("anchor", "world", "base", "fixed", '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'),
    joint("hinge", "base", "arm", more=LIMIT + '<dynamics damping="1" friction="2"/>'),
    joint("slide", "arm", "finger", "prismatic", LIMIT + '<mimic joint="hinge" multiplier="2" offset="1"/>'),
)


def mutated(text: str, rng: np.random.Generator) -> str:
    """The text with up to five attributes replaced by a word, or sometimes pieces cut, doubled, moved, or replaced."""
    for _ in range(rng.integers(1, 6)):
        word = WORDS[rng.integers(len(WORDS))]
        if rng.random() < 0.9:
            quotes = [i for i, letter in enumerate(text) if letter == '"']
            i = 2 * int(rng.integers(len(quotes) // 2))
            text = text[: quotes[i] + 1] + word.replace("<", "").replace("&", "") + text[quotes[i + 1] :]
            continue
        a = int(rng.integers(len(text)))
        b = min(a + int(rng.integers(1, 60)), len(text))
        choices = [
            text[:a] + text[b:],
            text[:b] + text[a:],
            text[:a] + word + text[b:],
            text[:a] + text[b:] + text[a:b],
            text[:a] + '""',
        ]
        text = choices[rng.integers(len(choices))]
    return text


@pytest.mark.filterwarnings("error")
def test_mutated_files_are_repaired_or_refused(rng):
    repaired = 0
    for _ in range(COUNT):
        text = mutated(SOURCE, rng)
        try:
            result, _, notes = repair(text, None, assets=ASSETS, floating=bool(rng.integers(2)))
        except LoadError:
            continue
        repaired += 1
        assert result.startswith("<robot") and all(isinstance(note, str) for note in notes)
    assert 100 < repaired < COUNT


@pytest.mark.filterwarnings("error")
def test_mutated_meshes_are_left_out_or_taken(rng):
    taken = 0
    for _ in range(600):
        name = ("a.obj", "b.stl", "c.dae")[rng.integers(3)]
        data = bytearray(ASSETS[name])
        for _ in range(rng.integers(1, 20)):
            data[rng.integers(len(data))] = rng.integers(256)
        data = bytes(data[: rng.integers(len(data))]) if rng.random() < 0.2 else bytes(data)
        _, assets, notes = repair(SOURCE, None, assets={**ASSETS, name: data})
        taken += len(assets) == 3
        assert len(assets) >= 2 and notes
    assert 50 < taken < 600
