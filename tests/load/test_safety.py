"""Files that ask for too much: entity bombs, endless copies, huge fields. All end as LoadError, soon, and loading goes on."""

from __future__ import annotations

import os
import signal

import pytest

from costate.load import LoadError, compile, convert, load_string

BODY = '<body name="b"><joint/><geom size=".1" pos="0 0 1"/></body>'
FINE = f"<mujoco><worldbody>{BODY}</worldbody></mujoco>"
BOMB = "<!DOCTYPE z [<!ENTITY a 'ha'>{}]><mujoco><worldbody>&j;</worldbody></mujoco>".format(
    "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefghi", "bcdefghij"))
)

GREEDY = {
    "entity bomb": BOMB,
    "replicate": f'<mujoco><worldbody><replicate count="100000000">{BODY}</replicate></worldbody></mujoco>',
    "replicate in replicate": "<mujoco><worldbody>"
    + '<replicate count="1000" sep="a">' * 5
    + BODY
    + "</replicate>" * 5
    + "</worldbody></mujoco>",
    "heightfield": '<mujoco><asset><hfield name="h" nrow="90000" ncol="90000" size="1 1 1 1"/></asset><worldbody>'
    f'<geom type="hfield" hfield="h"/>{BODY}</worldbody></mujoco>',
    "composite": '<mujoco><worldbody><body><composite type="cable" count="9000000 1 1" curve="s" size="1"><geom size=".1"/>'
    "</composite></body></worldbody></mujoco>",
    "flexcomp": '<mujoco><worldbody><flexcomp name="f" type="grid" count="900 900 900" spacing=".1 .1 .1" mass="1"/>'
    "</worldbody></mujoco>",
    "user data": f'<mujoco><size nuser_body="100000000"/><worldbody>{BODY}</worldbody></mujoco>',
    "memory": f'<mujoco><size memory="900G"/><worldbody>{BODY}</worldbody></mujoco>',
    "numeric": f'<mujoco><custom><numeric name="n" size="2000000000" data="1"/></custom><worldbody>{BODY}</worldbody></mujoco>',
    "nkey": f'<mujoco><size nkey="2000000000"/><worldbody>{BODY}</worldbody></mujoco>',
    "deep": "<mujoco><worldbody>" + "<body>" * 500 + "</body>" * 500 + "</worldbody></mujoco>",
    "endless mesh": '<mujoco><asset><mesh name="m" builtin="sphere" params="30"/></asset><worldbody>'
    f'<geom type="mesh" mesh="m"/>{BODY}</worldbody></mujoco>',
}


@pytest.mark.parametrize("text", GREEDY.values(), ids=GREEDY.keys())
def test_greedy_files_are_refused_and_the_next_one_loads(text):
    try:
        model = load_string(text, timeout=3.0)
    except LoadError:
        pass
    else:
        assert model.nb == 1  # what MuJoCo does not mind
    assert load_string(FINE).nb == 1


def test_too_many_bodies_and_geoms(monkeypatch):
    monkeypatch.setattr(convert, "MAX_BODIES", 20)
    with pytest.raises(LoadError, match="at most 20 bodies, got 30"):
        load_string(f'<mujoco><worldbody><replicate count="30">{BODY}</replicate></worldbody></mujoco>')
    monkeypatch.setattr(convert, "MAX_TOUCHING", 10)
    with pytest.raises(LoadError, match="at most 10 geoms that may touch, got 15"):
        load_string(f'<mujoco><worldbody><replicate count="15">{BODY}</replicate></worldbody></mujoco>')


def test_textures_are_not_even_made():
    texture = '<asset><texture name="t" type="2d" builtin="flat" width="60000" height="60000"/></asset>'
    assert load_string(f"<mujoco>{texture}<worldbody>{BODY}</worldbody></mujoco>").nb == 1


def test_a_compiler_that_crashes_is_a_load_error():
    assert load_string(FINE).nb == 1
    child = compile._warm
    assert child is not None
    os.kill(child._process.pid, signal.SIGSTOP)  # it hangs
    with pytest.raises(LoadError, match=r"failed or took longer than 0.2 s: it was ended by signal 9"):
        load_string(FINE, timeout=0.2)
    assert load_string(FINE).nb == 1
    assert compile._warm is not child


def test_a_child_that_died_is_replaced():
    assert load_string(FINE).nb == 1
    first = compile._warm
    assert first is not None
    first._process.kill()
    first._process.wait()
    assert load_string(FINE).nb == 1 and compile._warm is not first


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "-1", "abc", "1 2 3 4 5 6 7 8 9"])
@pytest.mark.parametrize("attribute", ["size", "pos", "quat", "mass", "friction", "contype", "condim"])
def test_numbers_that_are_none(attribute, value):
    attributes = {"size": ".1", "pos": "0 0 1", attribute: value}
    geom = " ".join(f'{name}="{number}"' for name, number in attributes.items())
    text = f'<mujoco><worldbody><geom size=".1"/><body><joint/><geom {geom}/></body></worldbody></mujoco>'
    try:
        model = load_string(text)
    except LoadError as error:
        assert str(error).startswith("<string>: ")
    else:  # MuJoCo takes it for something
        model.params().check()


def test_the_child_needs_no_file_of_the_folder_it_runs_in(tmp_path, monkeypatch):
    """A mujoco.py or costate in the working directory is not what is imported."""
    (tmp_path / "numpy.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    if compile._warm is not None:
        compile._warm.close()
    assert load_string(FINE).nb == 1
    assert [path.name for path in tmp_path.iterdir()] == ["numpy.py"]


def test_children_are_replaced_after_many_uses(monkeypatch):
    assert load_string(FINE).nb == 1
    first = compile._warm
    monkeypatch.setattr(compile, "MOST_USES", 1)
    assert load_string(FINE).nb == 1 and compile._warm is not first


def test_a_forked_process_has_a_child_of_its_own():
    assert load_string(FINE).nb == 1
    parent = compile._warm
    assert parent is not None
    process = os.fork()
    if process == 0:  # no test machinery may run in here
        status = 1
        try:
            compile.compile_model(FINE, {}, "fork", settings=compile.Settings(), timeout=10.0)
            if compile._warm is not None and compile._warm is not parent:
                compile._warm.close()
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(process, 0)[1] == 0
    assert load_string(FINE).nb == 1 and compile._warm is parent
