"""What is installed is pinned by its hash, and the locks say the same as what they were made from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile

import pytest

from tests.places import ROOT

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


AUDIT = ROOT / ".ci" / "audit_pins.py"


def advisory(name, package, *, versions=(), events=(), ecosystem="PyPI", **more):
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    affected = {"package": {"name": package, "ecosystem": ecosystem}, "versions": list(versions), "ranges": ranges}
    return {"id": name, "summary": "a fault", "affected": [affected], **more}


def audited(tmp_path, *found):
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for item in found:
            file.writestr(f"{item['id']}.json", json.dumps(item))
    done = subprocess.run([sys.executable, str(AUDIT), str(archive)], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_pin_with_a_known_fault_is_found_without_a_network(tmp_path):
    tornado, numpy = pins("requirements.txt")["tornado"], pins("requirements.txt")["numpy"]
    code, words = audited(
        tmp_path,
        advisory("listed", "Tornado", versions=["1.0", tornado], aliases=["CVE-1"]),
        advisory("open", "numpy", events=[{"introduced": "0"}]),
        advisory("up_to_ours", "numpy", events=[{"introduced": "1.0"}, {"last_affected": numpy}]),
        advisory("mended", "numpy", events=[{"introduced": "0"}, {"fixed": numpy}]),
        advisory("older", "numpy", events=[{"introduced": "0"}, {"last_affected": "1.0"}]),
        advisory("later", "numpy", events=[{"introduced": "999"}]),
        advisory("elsewhere", "numpy", versions=[numpy], ecosystem="npm"),
        advisory("withdrawn", "numpy", versions=[numpy], withdrawn="2026-01-01T00:00:00Z"),
    )
    assert code == 1
    assert words.splitlines() == [
        f"numpy {numpy}: open  a fault",
        f"numpy {numpy}: up_to_ours  a fault",
        f"tornado {tornado}: listed CVE-1 a fault",
    ]


def test_pins_without_a_known_fault_and_a_file_of_nothing(tmp_path):
    assert audited(tmp_path, advisory("older", "numpy", versions=["0.1"]))[0] == 0
    code, words = audited(tmp_path)
    assert code == 1
    assert "nothing was audited" in words
