"""costate load: findings, summaries, saving, exit codes."""

import os
import re
import subprocess
import sys

import pytest

import costate as cs
from tests.cli.models import MJCF, call, robot


def test_a_saved_model(capsys, saved):
    ran = call(capsys, "load", saved)
    assert ran.code == 0 and "3 bodies" in ran.out and "8 degrees of freedom (1 free, 2 revolute)" in ran.out
    assert robot().summary() in call(capsys, "load", saved, "--summary").out
    found = call(capsys, "load", saved, "--json").json
    assert found["loaded"] and found["model"]["nv"] == 8 and found["model"]["joints"]["front"] == "revolute"


def test_mjcf(capsys, mjcf, tmp_path):
    ran = call(capsys, "load", mjcf, "--save", tmp_path / "out.npz")
    assert ran.code == 0 and "honoured" in ran.out and "refused" not in ran.out and "1 keyframes" in ran.out
    model = cs.Model.load(tmp_path / "out.npz")
    assert model.body_names == ("trunk", "leg") and list(model.keyframes) == ["crouch"] and model.timestep == 0.004
    found = call(capsys, "load", mjcf, "--json").json
    assert found["model"]["actuators"] == ["hip motor"] and found["model"]["keyframes"] == ["crouch"] and not found["refused"]


def test_names_cannot_steer_a_terminal(capsys, tmp_path):
    scene = cs.Scene(collisions=False)
    scene.add_body("\x1b[31mred\r\u202e größer [bold]", joint=cs.Free(), shapes=cs.Sphere(0.1))
    scene.build().save(tmp_path / "a.npz")
    out = call(capsys, "load", tmp_path / "a.npz", "--summary").out
    assert "\\x1b[31mred\\r\\u202e größer [bold]" in out and "\x1b" not in out
    assert "\x1b" not in call(capsys, "load", "\x1b[31m.xml").complaint
    command = [sys.executable, "-m", "costate", "load", tmp_path / "a.npz", "--summary"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0 and "gr\\xf6" in ran.stdout


def test_refused(capsys, fluid):
    ran = call(capsys, "load", fluid)
    assert ran.code == 1 and "refused" in ran.out and "density" in ran.out and "--lenient" in ran.out
    found = call(capsys, "load", fluid, "--json").json
    assert not found["loaded"] and found["model"] is None and len(found["refused"]) == 1
    ran = call(capsys, "load", fluid, "--lenient")
    assert ran.code == 0 and "refused" in ran.out and "2 bodies" in ran.out


def test_options_reach_the_loader(capsys, mjcf):
    mjcf.write_text(re.sub("<keyframe>.*</keyframe>", "", MJCF))  # of a robot that floats
    found = call(capsys, "load", mjcf, "--no-floating", "--ground", "-1", "--no-collisions", "--json").json
    assert found["model"]["nv"] == 1 and found["model"]["pairs"] == 0
    assert "without actuators" in call(capsys, "load", mjcf, "--actuators", "torque").complaint
    assert "kp" in call(capsys, "load", mjcf, "--kp", "3").complaint
    assert "nowhere" in call(capsys, "load", mjcf, "--search", "nowhere").complaint


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.xml", "", "a.xml: "),
        ("a.xml", "no xml at all", "not well-formed"),
        ("a.xml", MJCF[:300], "a.xml: "),
        ("a.xml", "<other/>", "must be <mujoco> or <robot>"),
        ("a.xml", MJCF.replace('joint="hip"', 'joint="hop"'), "hop"),
        ("a.npz", "no zip", "not a file that costate wrote"),
        ("a.xml", '<!DOCTYPE x [<!ENTITY a "b">]><mujoco/>', "a.xml: "),
    ],
)
def test_broken_files(capsys, tmp_path, name, text, wanted):
    (tmp_path / name).write_text(text)
    for command in ("load", "simulate"):
        ran = call(capsys, command, tmp_path / name)
        assert ran.code == 2 and wanted in ran.complaint


def test_missing_files(capsys, mjcf, tmp_path):
    assert f"did you mean '{mjcf}'?" in call(capsys, "load", tmp_path / "hoper.xml").complaint
    assert "is a folder" in call(capsys, "load", tmp_path).complaint
    assert "there is no folder" in call(capsys, "load", tmp_path / "nowhere" / "a.xml").complaint
    assert call(capsys, "load", "a\0b").code == 2
    assert "no such file" in call(capsys, "load", "").complaint or "folder" in call(capsys, "load", "").complaint
    assert call(capsys, "load", "x" * 5000 + ".xml").code == 2


@pytest.mark.skipif(not os.path.exists(os.devnull) or os.name == "nt", reason="needs a device file")
def test_devices_are_no_files(capsys):
    assert "no regular file" in call(capsys, "load", "/dev/zero").complaint


def test_bad_options_for_saved_models(capsys, saved, tmp_path):
    assert "--ground is for files that are loaded" in call(capsys, "load", saved, "--ground").complaint
    assert "must end in .npz" in call(capsys, "load", saved, "--save", tmp_path / "a.xml").complaint
    assert "No such file" in call(capsys, "load", saved, "--save", tmp_path / "no" / "a.npz").complaint
