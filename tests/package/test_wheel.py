"""The wheel holds all that the dashboard needs, and its command works from a folder that is not ours."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from dpgrams_core.cli.main import COMMANDS
from dpgrams_core.sweeps.fingerprint import engine_fingerprint
from tests.places import ROOT
from tests.served import Visitor, wait_for

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUN = ("run", "four_corners", "functional", "--epsilon", "1", "--n", "200", "--seed", "0", "--json")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installation: the wheel built and put there without a network, as ``make test`` has none."""
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input"]
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run([*pip, *build], check=True, timeout=200)
    wheel = next(wheels.glob("*.whl"))
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)], check=True)
    return target


@pytest.fixture
def elsewhere(tmp_path):
    """A folder with files that would be taken for ours by whoever looks for modules where it was started."""
    for name in ("app.py", "pages.py", "dpgrams_core.py"):
        (tmp_path / name).write_text("raise SystemExit('a file of somebody else was run')")
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text('[theme.light]\nprimaryColor = "#00FF00"\n')
    return tmp_path


def environment(installed, folder):
    return {**os.environ, "PYTHONPATH": str(installed), "DPGRAMS_LEDGER": str(folder / "ledger" / "ledger.sqlite3")}


def told(command, installed, folder):
    done = subprocess.run(
        command, cwd=folder, env=environment(installed, folder), capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_gives_the_same_numbers_as_a_checkout(installed, elsewhere):
    here = subprocess.run(
        [sys.executable, "-m", "dpgrams_core", *RUN], cwd=ROOT, capture_output=True, text=True, check=True
    )
    there = told([str(installed / "bin" / "dpgrams"), *RUN], installed, elsewhere)
    assert json.loads(there) == json.loads(here.stdout)


def test_an_installed_engine_is_the_same_engine_with_its_assets(installed, elsewhere):
    code = (
        "import dpgrams_core as dg\n"
        "from dpgrams_core.sweeps.fingerprint import engine_fingerprint\n"
        "from dpgrams_core.studies.paper.shipped import shipped\n"
        "print(dg.__file__, engine_fingerprint(), len(shipped('kernels').results), dg.load_dataset('mnist').n)"
    )
    place, letters, cells, images = told([sys.executable, "-P", "-c", code], installed, elsewhere).split()
    assert place.startswith(str(installed))
    assert (letters, images) == (engine_fingerprint(), "69000")
    assert int(cells) > 0


def test_the_installed_dashboard_opens_with_its_own_settings(installed, elsewhere):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(installed / "bin" / "dpgrams"), "app", "--server.port", str(port)]
    log = elsewhere / "log.txt"
    with log.open("w") as file:
        server = subprocess.Popen(
            command, cwd=elsewhere, env=environment(installed, elsewhere), stdout=file, stderr=subprocess.STDOUT
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(server, address + "/_stcore/health")
            with Visitor(address) as visitor:
                page = visitor.text()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)
    assert "somebody else" not in log.read_text()
    assert "Traceback" not in log.read_text()
    assert "#B54800" in page  # the accent of our theme
    assert "#00FF00" not in page
    assert "Find where people gather, and give nobody away" in page
    assert "What ε do I need?" in page  # the last part of the first page: all of its files came along


def test_the_command_has_what_the_readme_says():
    assert set(COMMANDS) >= {"app", "run", "sweep", "reproduce", "audit", "release", "ledger", "kept"}


def test_the_package_asks_for_what_the_lock_has():
    asked = {need.name: need for need in map(Requirement, PROJECT["dependencies"])}
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.in").read_text(), re.MULTILINE))
    assert asked.keys() == pinned.keys()
    assert [name for name, need in asked.items() if not need.specifier.contains(pinned[name])] == []
