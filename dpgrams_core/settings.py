"""What the owner of an installation sets, by environment variables, each checked with one sentence.

DPGRAMS_LEDGER          where the budget ledger is; default ~/.dpgrams/ledger.sqlite3
DPGRAMS_LEDGER_MARK     the folder of its high-water mark, outside the ledger's own, so that a backup that is put back
                        does not bring an older mark along; default ~/.local/state/dpgrams (privacy/ledger_mark.py)
DPGRAMS_UPLOADS         on or off (a public demonstration); default on
DPGRAMS_CURATOR         on or off: whether the page may show records to whoever brought them; default on. Files of
                        DPGRAMS_DATA are open to every visitor, so their records are shown only where on is written.
DPGRAMS_KEEP            on or off: whether what is released is kept beside its charge, so that whoever opens the same
                        file again sees it for free; default on. Off keeps nothing new and still shows what was kept.
DPGRAMS_MAX_UPLOAD_MB   the largest upload; default 200. More is refused until Streamlit takes more, too: start it with
                        --server.maxUploadSize.
DPGRAMS_DATA            a folder whose files may be opened on the server, of any size; default none. Only the columns
                        that are picked must fit into memory.
DPGRAMS_CAP_EPSILON     the most ε that is spent on one data set; default 3. A lowered one counts at once, a raised one
                        for data sets that are opened from then on: each keeps the cap that it was opened with.
DPGRAMS_CAP_DELTA       the most δ; default 1e-4
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpgrams_core.checks import between, positive
from dpgrams_core.errors import DataError, SpecError

DEFAULT_CAP_EPSILON = 3.0
DEFAULT_CAP_DELTA = 1e-4


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an installation."""

    ledger: Path
    uploads: bool = True
    curator: bool = True
    curator_of_folder: bool = False
    keep: bool = True
    max_upload_bytes: int = 200_000_000
    data_folder: Path | None = None
    cap_epsilon: float = DEFAULT_CAP_EPSILON
    cap_delta: float = DEFAULT_CAP_DELTA


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in the environment, or in a mapping.

    >>> read_settings({"DPGRAMS_UPLOADS": "off", "DPGRAMS_LEDGER": "/tmp/ledger"}).uploads
    False
    """
    given = os.environ if environment is None else environment
    folder = given.get("DPGRAMS_DATA", "").strip()
    if folder and not Path(folder).expanduser().is_dir():
        raise SpecError("DPGRAMS_DATA", folder, "there is no such folder")
    return Settings(
        ledger=Path(given.get("DPGRAMS_LEDGER", "").strip() or "~/.dpgrams/ledger.sqlite3").expanduser(),
        uploads=_on(given, "DPGRAMS_UPLOADS"),
        curator=_on(given, "DPGRAMS_CURATOR"),
        curator_of_folder=_on(given, "DPGRAMS_CURATOR", default="off"),
        keep=_on(given, "DPGRAMS_KEEP"),
        max_upload_bytes=int(positive("DPGRAMS_MAX_UPLOAD_MB", _number(given, "DPGRAMS_MAX_UPLOAD_MB", 200)) * 1e6),
        data_folder=Path(folder).expanduser().resolve() if folder else None,
        cap_epsilon=positive("DPGRAMS_CAP_EPSILON", _number(given, "DPGRAMS_CAP_EPSILON", DEFAULT_CAP_EPSILON)),
        cap_delta=between("DPGRAMS_CAP_DELTA", _number(given, "DPGRAMS_CAP_DELTA", DEFAULT_CAP_DELTA), 0, 1),
    )


def _on(given: Mapping[str, str], name: str, default: str = "on") -> bool:
    wish = given.get(name, "").strip().lower() or default
    if wish not in ("on", "off"):
        raise SpecError(name, wish, "it must be on or off")
    return wish == "on"


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    text = given.get(name, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise SpecError(name, text, "it must be a number") from None


def local_file(settings: Settings, name: str) -> Path:
    """A file of the owner's folder by its name; nothing outside that folder can be named."""
    if settings.data_folder is None:
        raise DataError("No folder of local files is set up here. Its owner sets DPGRAMS_DATA and starts again.")
    path = (settings.data_folder / name).resolve()
    if not path.is_relative_to(settings.data_folder) or not path.is_file():
        raise DataError("There is no such file in the folder of local files.")
    return path
