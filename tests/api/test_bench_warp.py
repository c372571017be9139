"""MuJoCo Warp beside costate: measured where it is installed, quoted where it is not, and the tables say which."""

import pytest

from bench import cuda, warp
from bench.humanoid import APART

SMALL = cuda.Plan("cpu", worlds=(4,), steps=3, seconds=0.0, quick=True)
SEEN = warp.Seen(3.5, 14.0, 2.5, most_contacts=20, most_rows=18, most_iterations=6, lost=0, diverged=0)


def crowd(name: str, steps: int = SMALL.steps):
    return cuda.CASES[name].crowd(cuda.Plan("cpu", steps=steps), 4)


def peers(table) -> set[str]:
    return {row[table.columns.index("MuJoCo Warp, forward")] for row in table.rows}


@pytest.fixture
def pretended(monkeypatch):
    """As if it were installed, at 2 M steps/s."""
    monkeypatch.setattr(warp, "missing", lambda: "")
    monkeypatch.setattr(warp, "measure", lambda crowd, **options: warp.Measured(2e6, SEEN, (6.0, 32), "Its options."))


# ---- which number -------------------------------------------------------------------------------------------------------
def test_quoted_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(warp, "missing", lambda: "No module named 'mujoco_warp'")
    monkeypatch.setattr(cuda, "WARP", {4: 10.7e6})
    table = cuda.quadruped(SMALL)
    assert peers(table) == {"10.7"}
    assert "Quoted" in table.notes and "No module named 'mujoco_warp'" in table.notes and "in this run" not in table.notes


def test_a_missing_package_is_found_missing(monkeypatch):
    monkeypatch.setitem(warp.sys.modules, "mujoco_warp", None)
    assert "mujoco_warp" in warp.missing()


@pytest.mark.parametrize("name", ["quadruped", "policy", "ant", "humanoid"])
def test_measured_where_it_is_installed(pretended, name):
    table = cuda.MAKERS[name](SMALL)
    assert peers(table) == {"2"} and "Quoted" not in table.notes
    for words in ("in this run", "To compare: MuJoCo Warp", "Its options.", "4 worlds of MuJoCo Warp: 2 M steps/s"):
        assert table.notes.count(words) == 1
    targets = [what for what, _ in table.targets]
    assert len(targets) == (name in ("ant", "humanoid"))
    assert all("1.5 times 2 M of MuJoCo Warp in this run: at least 3 M" in what for what in targets)


def test_what_fails_is_told_and_is_no_peer(pretended, monkeypatch):
    def fail(crowd, **options):
        raise RuntimeError("4 worlds had more contacts\nmore words")

    monkeypatch.setattr(warp, "measure", fail)
    table = cuda.other(SMALL, "ant")
    assert peers(table) == {""} and not table.targets
    assert table.notes.endswith("4 worlds of MuJoCo Warp failed: 4 worlds had more contacts")


# ---- the models ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["quadruped", "ant", "humanoid"])
def test_the_same_may_touch_in_both(name):
    pytest.importorskip("mujoco", reason="the models are MuJoCo's")
    case = cuda.CASES[name]
    mj, model = warp.mujoco_model(case.robot(), case.dt, case.apart), case.model()
    body, parent, kind, affinity = mj.geom_bodyid, mj.body_parentid, mj.geom_contype, mj.geom_conaffinity
    names = ["ground" if i == 0 else mj.body(i).name for i in body]
    pairs = [(a, b) for a in range(mj.ngeom) for b in range(a) if kind[a] & affinity[b] or kind[b] & affinity[a]]
    # MuJoCo leaves out geoms of one body, and of a parent that is not the ground
    pairs = [(a, b) for a, b in pairs if body[a] != body[b] and (not body[b] or parent[body[a]] != body[b])]
    theirs = [sorted((names[a], names[b])) for a, b in pairs]
    ours = [sorted(model.shape_names[i].split("/")[0] for i in pair) for pair in model.pairs.tolist()]
    assert sorted(theirs) == sorted(ours) and mj.opt.timestep == case.dt
    assert mj.body_mass.sum() == pytest.approx(model.defaults["mass"].sum().item())


# ---- where it is installed ----------------------------------------------------------------------------------------------
@pytest.fixture
def installed():
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed")
    if why := warp.missing():
        pytest.skip(why)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadruped", "ant", "humanoid"])
def test_worlds_step_as_in_mujoco(installed, name):
    mujoco, case, worlds = pytest.importorskip("mujoco"), cuda.CASES[name], crowd(name, steps=4)
    model = warp.mujoco_model(worlds.robot, worlds.dt, case.apart)
    peer = warp.Peer(worlds, model, contacts=256, rows=256)
    for _ in range(2):  # from the start again
        peer.run()
    for w in range(4):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = worlds.start.q[w], worlds.start.v[w]
        for controls in worlds.controls[:, w]:
            data.ctrl[:] = controls
            mujoco.mj_step(model, data)
        # float32, and a solver that stops sooner
        assert abs(peer.data.qpos.numpy()[w] - data.qpos).max() < 0.02
        assert peer.data.nefc.numpy()[w] == pytest.approx(data.nefc, abs=8)
    assert (peer.lost(), peer.diverged()) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadruped", "ant", "humanoid"])
def test_measure(installed, name):
    found = warp.measure(crowd(name, steps=5), apart=cuda.CASES[name].apart, seconds=0.0)
    assert found.speed > 0 and "newton" in found.options
    assert 0 < found.seen.contacts * 4 <= found.seen.most_contacts and 0 < found.seen.rows <= found.seen.most_rows
    assert 1 <= found.seen.iterations <= found.seen.most_iterations and found.seen.diverged == 0


@pytest.mark.slow
def test_lost_contacts_are_an_error(installed, monkeypatch):
    monkeypatch.setattr(warp, "ROOM", 1)
    with pytest.raises(RuntimeError, match="more contacts than there was room"):
        warp.measure(crowd("humanoid"), apart=APART, seconds=0.0)
