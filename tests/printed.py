"""What an exported script prints when a user runs it elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.places import ROOT

# The machine's own word on its processor holds for both: other instructions differ in the last digits.
PROCESSOR = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}


def printed_by(script: str, folder: Path, **environment: str) -> str:
    """The output of a script that stands elsewhere, with the engine on its path."""
    path = folder / "exported.py"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder), **PROCESSOR, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
