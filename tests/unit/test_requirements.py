"""What is installed is pinned by its hash, and the locks say the same as what they were made from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / name).read_text()))


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_every_package_of_a_lock_has_its_version_and_its_hashes(lock):
    text = "\n".join(line for line in (ROOT / lock).read_text().splitlines() if not line.lstrip().startswith("#"))
    packages = [part for part in re.split(r"\n(?=\S)", text.strip()) if part]
    assert len(packages) > 15
    for package in packages:
        assert re.fullmatch(r"[a-z0-9-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\s*", package), package[:80]


def test_the_locks_hold_what_they_were_made_from():
    assert pins("requirements.in").items() <= pins("requirements.txt").items()
    assert pins("requirements-dev.in").items() <= pins("requirements-dev.txt").items()
    both = pins("requirements.txt").keys() & pins("requirements-dev.txt").keys()
    assert all(pins("requirements.txt")[name] == pins("requirements-dev.txt")[name] for name in both)


def test_no_file_is_installed_that_has_another_hash():
    text = (ROOT / "Makefile").read_text()
    steps = re.findall(r"^\t(.*requirements.*)$", text, re.MULTILINE)
    assert len(steps) == 2
    assert all(step.startswith("$(INSTALL) ") for step in steps)
    assert re.search(r"^INSTALL := .*--require-hashes --only-binary :all:$", text, re.MULTILINE)
