"""What the owner of an installation sets, by environment variables (docs/reference/environment.md), each checked."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from dpgrams_core.model.checks import between, positive
from dpgrams_core.model.errors import DataError, SpecError

DEFAULT_CAP_EPSILON, DEFAULT_CAP_DELTA = 3.0, 1e-4
SELF, NOBODY = "'self'", "'none'"
# A source of the Content-Security-Policy: https, or http on this machine; a name or *.name, perhaps with a port.
_ANCESTOR = re.compile(
    r"https://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:\d{1,5})?|http://(localhost|127\.0\.0\.1)(:\d{1,5})?"
)


@dataclass(frozen=True, kw_only=True)
class DaskSettings:
    """How a Dask cluster is reached."""

    address: str | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    plain: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an installation."""

    ledger: Path
    uploads: bool = True
    curator: bool = True
    curator_of_folder: bool = False
    keep: bool = True
    max_upload_bytes: int = 200_000_000
    upload_bytes_per_visitor: int = 400_000_000
    upload_bytes_in_all: int = 2_000_000_000
    data_folder: Path | None = None
    cap_epsilon: float = DEFAULT_CAP_EPSILON
    cap_delta: float = DEFAULT_CAP_DELTA
    dask: DaskSettings = field(default_factory=DaskSettings)
    frame_ancestors: str = SELF


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in the environment, or in a mapping."""
    given = os.environ if environment is None else environment
    folder = given.get("DPGRAMS_DATA", "").strip()
    if folder and not Path(folder).expanduser().is_dir():
        raise SpecError("DPGRAMS_DATA", folder, "there is no such folder")
    largest = positive("DPGRAMS_MAX_UPLOAD_MB", _number(given, "DPGRAMS_MAX_UPLOAD_MB", 200))
    each = _at_least(given, "DPGRAMS_UPLOADS_MB_PER_VISITOR", 2 * largest, largest, "DPGRAMS_MAX_UPLOAD_MB")
    in_all = _at_least(given, "DPGRAMS_UPLOADS_MB_IN_ALL", 5 * each, each, "DPGRAMS_UPLOADS_MB_PER_VISITOR")
    return Settings(
        ledger=Path(given.get("DPGRAMS_LEDGER", "").strip() or "~/.dpgrams/ledger.sqlite3").expanduser(),
        uploads=_on(given, "DPGRAMS_UPLOADS"),
        curator=_on(given, "DPGRAMS_CURATOR"),
        curator_of_folder=_on(given, "DPGRAMS_CURATOR", default="off"),
        keep=_on(given, "DPGRAMS_KEEP"),
        max_upload_bytes=int(largest * 1e6),
        upload_bytes_per_visitor=int(each * 1e6),
        upload_bytes_in_all=int(in_all * 1e6),
        data_folder=Path(folder).expanduser().resolve() if folder else None,
        cap_epsilon=positive("DPGRAMS_CAP_EPSILON", _number(given, "DPGRAMS_CAP_EPSILON", DEFAULT_CAP_EPSILON)),
        cap_delta=between("DPGRAMS_CAP_DELTA", _number(given, "DPGRAMS_CAP_DELTA", DEFAULT_CAP_DELTA), 0, 1),
        dask=read_dask(given),
        frame_ancestors=_ancestors(given),
    )


def read_dask(environment: Mapping[str, str] | None = None) -> DaskSettings:
    """How a Dask cluster is reached, from the environment or a mapping; the address is checked where there is one."""
    given = os.environ if environment is None else environment
    names = ("DPGRAMS_DASK_TLS_CA", "DPGRAMS_DASK_TLS_CERT", "DPGRAMS_DASK_TLS_KEY")
    files = [_file(given, name) for name in names]
    missing = [name for name, file in zip(names, files, strict=True) if file is None]
    if 0 < len(missing) < len(names):
        raise SpecError(missing[0], "", f"{', '.join(names)} belong together: set all three or none")
    ca, cert, key = files
    address = given.get("DPGRAMS_DASK", "").strip() or None
    plain = _on(given, "DPGRAMS_DASK_PLAIN", default="off")
    settings = DaskSettings(address=address, tls_ca=ca, tls_cert=cert, tls_key=key, plain=plain)
    if address is not None:
        check_scheduler(settings, address, "DPGRAMS_DASK")
    return settings


def check_scheduler(settings: DaskSettings, address: str, name: str = "scheduler") -> None:
    """Refuse an address at which somebody else could answer: what answers sends pickles, which are code.

    With TLS both sides show a certificate of the cluster's own authority.  Without it only this machine is near enough,
    unless the owner writes that the way to another one is closed.
    """
    scheme, _, rest = address.partition("://")
    if scheme not in ("tcp", "tls") or not rest:
        raise SpecError(name, address, "give an address such as tcp://127.0.0.1:8786 or tls://host:8786")
    if scheme == "tls" and settings.tls_ca is None:
        raise SpecError(name, address, "for TLS set DPGRAMS_DASK_TLS_CA, _TLS_CERT and _TLS_KEY, three files")
    if scheme == "tcp" and settings.tls_ca is not None:
        raise SpecError(name, address, "DPGRAMS_DASK_TLS_CA is set, so it must begin with tls://")
    if scheme == "tcp" and not settings.plain and not _is_this_machine(address):
        closed = "write DPGRAMS_DASK_PLAIN=on where the network is closed to others"
        tls = "whoever answers there could run code here, so use tls:// with DPGRAMS_DASK_TLS_CA and its companions"
        raise SpecError(name, address, f"{tls}, or {closed}")


def _is_this_machine(address: str) -> bool:
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which could lead anywhere
        return False


def _file(given: Mapping[str, str], name: str) -> Path | None:
    text = given.get(name, "").strip()
    if text and not Path(text).expanduser().is_file():
        raise SpecError(name, text, "there is no such file")
    return Path(text).expanduser() if text else None


def _ancestors(given: Mapping[str, str]) -> str:
    name = "DPGRAMS_FRAME_ANCESTORS"
    words = given.get(name, "").split() or [SELF]
    for word in words:
        if word not in (SELF, NOBODY) and not _ANCESTOR.fullmatch(word):
            raise SpecError(name, word, "give 'self', 'none' or addresses such as https://school.example")
    if NOBODY in words and len(words) > 1:
        raise SpecError(name, " ".join(words), "'none' stands alone")
    return " ".join(words)


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


def _at_least(given: Mapping[str, str], name: str, default: float, least: float, other: str) -> float:
    """A number that is not less than another setting, so that what one allows the other does not refuse."""
    value = positive(name, _number(given, name, default))
    if value < least:
        raise SpecError(name, value, f"it must be at least {other}, which is {least:g}")
    return value


def local_file(settings: Settings, name: str) -> Path:
    """A file of the owner's folder by its name; nothing outside that folder can be named."""
    if settings.data_folder is None:
        raise DataError("No folder of local files is set up here. Its owner sets DPGRAMS_DATA and starts again.")
    path = (settings.data_folder / name).resolve()
    if not path.is_relative_to(settings.data_folder) or not path.is_file():
        raise DataError("There is no such file in the folder of local files.")
    return path
