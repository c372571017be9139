"""What may touch what: MuJoCo's contact filters as groups, masks and excluded pairs of a scene.

contype and conaffinity mean the same as group and mask. A geom in an explicit <pair> gets a bit that no geom has yet. Bodies with
several joints are stacks in the scene, so that "a body and its parent do not touch" must be said.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from costate.load.findings import listed
from costate.load.source import Source
from costate.scene.builder import Scene
from costate.scene.contacts import BITS, Side

WHOLE = 2**BITS - 1


def contact_bits(source: Source, *, ground: bool) -> dict[int, tuple[int, int]]:
    """Group and mask of every geom that may touch some other geom, or the ground if one is added."""
    m = source.m
    group = np.array(m.geom_contype, dtype=np.int64) & WHOLE
    mask = np.array(m.geom_conaffinity, dtype=np.int64) & WHOLE
    _add_pairs(source, group, mask)
    used = sorted({(int(g), int(a)) for g, a in zip(group, mask)})
    others = [*used, (1, WHOLE)] if ground else used
    touched = {(g, a) for g, a in used if any(g & other_mask or other_group & a for other_group, other_mask in others)}
    return {i: (int(g), int(a)) for i, (g, a) in enumerate(zip(group, mask)) if (int(g), int(a)) in touched}


def add_filters(source: Source, scene: Scene) -> None:
    """Exclude the pairs of bodies that MuJoCo excludes and the scene by itself does not."""
    m = source.m
    bodies = {name: i for i, name in enumerate(scene._parts.index)}
    for signature in m.exclude_signature:
        _exclude(scene, bodies, source, int(signature) >> 16, int(signature) & 0xFFFF)
    if source.off("FILTERPARENT"):
        source.findings.refuse("<option><flag filterparent='disable'>: contact between a body and its parent")
        return
    welded: dict[int, list[int]] = {}
    for body in range(m.nbody):
        welded.setdefault(int(m.body_weldid[body]), []).append(body)
    for head, members in welded.items():
        above = int(m.body_weldid[m.body_parentid[head]])
        if head != 0 and above != 0 and m.body_jntnum[head] > 1:
            for a in members:
                for b in welded[above]:
                    _exclude(scene, bodies, source, a, b)


def _exclude(scene: Scene, bodies: dict[str, int], source: Source, a: int, b: int) -> None:
    """Two bodies by MuJoCo's index. Not by `scene.exclude`, because a geom may have the name of a body."""
    sides = [Side(body=-1 if name is None else bodies[name]) for name in (source.body_names[a], source.body_names[b])]
    scene._parts.excluded.append((sides[0], sides[1]))


def _add_pairs(source: Source, group: np.ndarray, mask: np.ndarray) -> None:
    """Give the geoms of explicit pairs bits in common, one for each first geom."""
    m, findings = source.m, source.findings
    wanted: dict[int, list[int]] = {}
    for pair in range(m.npair):
        a, b = int(m.pair_geom1[pair]), int(m.pair_geom2[pair])
        if not (group[a] & mask[b] or group[b] & mask[a]):
            wanted.setdefault(a, []).append(b)
        _check_pair(source, pair, a, b)
    taken = int(np.bitwise_or.reduce(np.concatenate((group, mask, [0]))))
    free = (bit for bit in range(BITS) if not taken >> bit & 1)
    lost = []
    for a, others in wanted.items():
        bit = next(free, None)
        if bit is None:
            lost.append(source.geoms[a])
            continue
        group[a] |= 1 << bit
        mask[others] |= 1 << bit
    if lost:
        findings.refuse(f"{listed('geom', lost)}: explicit contact pairs, more than there are bits for")


def _check_pair(source: Source, pair: int, a: int, b: int) -> None:
    """A pair has numbers of its own in MuJoCo, in costate those of its geoms."""
    m = source.m
    name = m.pair(pair).name or f"{source.geoms[a]} {source.geoms[b]}"
    weld = m.body_weldid[m.geom_bodyid[[a, b]]]
    above = m.body_weldid[m.body_parentid[weld]]
    if weld[0] == weld[1] or (weld.all() and (weld[0] == above[1] or weld[1] == above[0])):
        source.findings.refuse(f"pair {name!r}: contact between bodies that are fixed to each other, or parent and child")
    friction = np.maximum(m.geom_friction[a], m.geom_friction[b])
    if not np.allclose(m.pair_friction[pair, [0, 2, 3]], friction) or m.pair_dim[pair] != max(m.geom_condim[[a, b]]):
        source.findings.approximate(f"pair {name!r}: friction and condim of its own; those of its geoms are taken")


def check_priorities(source: Source, touching: Iterable[int]) -> None:
    """MuJoCo takes the surface of the geom with the higher priority, costate the larger friction."""
    m = source.m
    kinds = {(int(m.geom_priority[g]), tuple(m.geom_friction[g]), int(m.geom_condim[g])) for g in touching}
    if len({priority for priority, _, _ in kinds}) < 2 or len({kind[1:] for kind in kinds}) < 2:
        return
    names = [source.geoms[g] for g in touching if m.geom_priority[g] != 0]
    source.findings.approximate(f"{listed('geom', names)}: priority; of two geoms the larger friction counts")
