"""Which of our pinned packages have known faults, by a file of advisories: for a machine without a network.

Usage: .venv/bin/python .ci/audit_pins.py all.zip

The file is the export of the OSV database for PyPI (PyPI/all.zip of osv-vulnerabilities), one JSON file for each
advisory, fetched where there is a network.  With a network, pip-audit does the same and more (CONTRIBUTING.md).
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.txt", "requirements-dev.txt")


def pins() -> dict[str, str]:
    """Every pinned package and its version."""
    text = "\n".join((ROOT / lock).read_text() for lock in LOCKS)
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def advisories(archive: Path) -> Iterator[dict[str, Any]]:
    """All advisories of an export that were not withdrawn."""
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            if name.endswith(".json") and not (found := json.loads(file.read(name))).get("withdrawn"):
                yield found


def is_affected(affected: dict[str, Any], version: str) -> bool:
    """Whether an advisory's list of versions, or one of its ranges, holds a version."""
    ranges = [found for found in affected.get("ranges", []) if found["type"] == "ECOSYSTEM"]
    return version in affected.get("versions", []) or any(
        _is_within(found["events"], Version(version)) for found in ranges
    )


def _is_within(events: list[dict[str, str]], version: Version) -> bool:
    """Events in their order: each that is reached opens or closes the range."""
    inside = False
    for kind, text in sorted((item for event in events for item in event.items()), key=lambda item: _number(item[1])):
        if kind == "introduced" and version >= _number(text):
            inside = True
        elif (kind == "fixed" and version >= _number(text)) or (kind == "last_affected" and version > _number(text)):
            inside = False
    return inside


def _number(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:  # then nobody knows how far it goes: it counts from the beginning
        return Version("0")


def found_in(archive: Path) -> list[str]:
    """A line for each advisory that one of our pins is subject to."""
    ours, lines, seen = pins(), [], 0
    for advisory in advisories(archive):
        for affected in advisory.get("affected", []):
            package = affected["package"]
            seen += package["ecosystem"] == "PyPI"
            name = canonicalize_name(package["name"])
            if package["ecosystem"] == "PyPI" and name in ours and is_affected(affected, ours[name]):
                also = ", ".join(advisory.get("aliases", []))
                lines.append(f"{name} {ours[name]}: {advisory['id']} {also} {advisory.get('summary', '')}".strip())
    if not seen:
        raise SystemExit(f"{archive.name} holds no advisory for PyPI, so nothing was audited.")
    return sorted(set(lines))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    lines = found_in(Path(sys.argv[1]))
    print("\n".join(lines) or f"None of the {len(pins())} pins is in an advisory of that file.")
    raise SystemExit(1 if lines else 0)
