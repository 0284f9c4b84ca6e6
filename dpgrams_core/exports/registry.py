"""Everything that a page can give away, one entry for each file; adding an export is adding an entry."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from dpgrams_core.exports.csv import table_csv
from dpgrams_core.exports.report import stakeholder_report
from dpgrams_core.exports.script import calls_script, command_script, release_script, simulation_script
from dpgrams_core.exports.settings import EngineCall, spec_json
from dpgrams_core.figures.style import Chart
from dpgrams_core.model.results import Guarantee
from dpgrams_core.model.run import Run
from dpgrams_core.own_data.record import ReleaseRecord


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a page shows, for its exports; charts and guarantees are made when a file is asked for.

    Its numbers come from ``runs``, from ``calls`` of the engine, from a ``command`` with the ``facts`` of what it made,
    or from the ``record`` of a release; where there is none of them only a report can be had.  ``page`` and ``link``
    go into the settings, so that these can be opened again.  For private data the charts show released numbers only.
    """

    question: str
    answer: str
    charts: Callable[[], Sequence[Chart]]
    guarantees: Callable[[], Sequence[tuple[str, Guarantee]]]
    origin: str
    notes: Sequence[str] = ()
    ledger: str | None = None
    runs: Sequence[Run] = ()
    calls: Sequence[EngineCall] = ()
    command: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    record: ReleaseRecord | None = None
    page: str = ""
    link: str = ""


@dataclass(frozen=True)
class File:
    """A file to be made when someone asks for it."""

    label: str
    name: str
    mime: str
    build: Callable[..., str | bytes]


@dataclass(frozen=True)
class Export(File):
    """One kind of file; ``of`` says what it is built from, which is nothing where a page does not have it."""

    of: Callable[[Shown], Any]


def _report(shown: Shown) -> str:
    names = ("question", "answer", "origin", "ledger", "notes")
    said = {name: getattr(shown, name) for name in names}
    return stakeholder_report(**said, charts=shown.charts(), guarantees=shown.guarantees())


def _settings(shown: Shown) -> str:
    return spec_json(shown.runs or shown.calls, shown.page, shown.link)


def _released(record: ReleaseRecord) -> bytes:
    return table_csv(pd.DataFrame(record.rows, columns=list(record.columns)))


_PYTHON, _JSON = "text/x-python", "application/json"
EXPORTS = (
    Export("Report, one page (HTML)", "report.html", "text/html", _report, lambda shown: shown),
    Export("Python script", "simulation.py", _PYTHON, simulation_script, lambda shown: shown.runs),
    Export("Python script", "simulation.py", _PYTHON, calls_script, lambda shown: shown.calls),
    Export("Python script", "simulation.py", _PYTHON, command_script, lambda shown: shown.command),
    Export("Python script", "release.py", _PYTHON, release_script, lambda shown: shown.record),
    Export(
        "Settings (JSON)", "settings.json", _JSON, _settings, lambda shown: shown if shown.runs or shown.calls else None
    ),
    Export("Settings (JSON)", "settings.json", _JSON, partial(json.dumps, indent=2), lambda shown: shown.facts),
    Export("Settings and result (JSON)", "release.json", _JSON, spec_json, lambda shown: shown.record),
    Export("Released {what} (CSV)", "released.csv", "text/csv", _released, lambda shown: shown.record),
)


def files_of(shown: Shown) -> list[File]:
    """The files that a page can give away, in the order of its buttons."""
    sources = [(export, source) for export in EXPORTS if (source := export.of(shown))]
    return [
        File(item.label.format(what=getattr(source, "what", "")), item.name, item.mime, partial(item.build, source))
        for item, source in sources
    ]
