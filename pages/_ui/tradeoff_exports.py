"""What the Tradeoff page gives away: a report, and the settings and the script that repeat its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dpgrams_core import Guarantee, load_dataset, run
from dpgrams_core.calls import Call, calls_json, calls_script, sweep_calls
from dpgrams_core.cells import Cell
from dpgrams_core.datasets.released_twins import TwinName
from dpgrams_core.figures import Chart, middle
from dpgrams_core.figures.tradeoff_scores import cell_title
from dpgrams_core.reports import stakeholder_report
from pages._ui import exports

QUESTION = "What does privacy cost me?"


def sweep_files(
    cells: Sequence[Cell], answer: str, charts: Callable[[], Sequence[Chart]], *, repeatable: bool = True
) -> None:
    """The files of a sweep; a results file of someone's has a report only, since it may hold any cells."""
    runs = sorted({cell.runs for cell in cells})
    words = " to ".join(map(str, dict.fromkeys((runs[0], runs[-1]))))
    origin = _origin(cells[0].dataset, f"{words} runs a point, seed {cells[0].seed}")
    calls = sweep_calls(cells) if repeatable and not isinstance(cells[0].dataset, TwinName) else ()
    _files(calls, answer, charts, lambda: _guarantees(cells), origin)


def result_files(function: str, cell: Cell, how: dict[str, Any], answer: str, chart: Chart) -> None:
    """The files of a ladder of errors or of a search; ``cell`` is one that stands for its method."""
    calls: tuple[Call, ...] = ()
    if not isinstance(cell.dataset, TwinName):
        given = {"method": cell.method, "dataset": str(cell.dataset), **how}
        calls = (Call(function=function, arguments=tuple(given.items())),)
    _files(calls, answer, lambda: [chart], lambda: _guarantees([cell]), _origin(cell.dataset, f"seed {cell.seed}"))


def _origin(dataset: str, words: str) -> str:
    if isinstance(dataset, TwinName):
        return f"Simulations ({words}) on the synthetic twin of a paid release: no record is behind these numbers."
    return f"Simulations ({words}) on synthetic or public data: nobody’s private data are behind these numbers."


def _files(
    calls: Sequence[Call],
    answer: str,
    charts: Callable[[], Sequence[Chart]],
    guarantees: Callable[[], list[tuple[str, Guarantee]]],
    origin: str,
) -> None:
    def report() -> str:
        return stakeholder_report(
            question=QUESTION,
            answer=exports.plain_text(answer),
            charts=charts(),
            guarantees=guarantees(),
            origin=origin,
        )

    files = [exports.File("Report, one page (HTML)", "report.html", "text/html", report)]
    if calls:
        script = exports.File("Python script", "simulation.py", "text/x-python", lambda: calls_script(calls))
        settings = exports.File("Settings (JSON)", "settings.json", "application/json", lambda: calls_json(calls))
        files += [script, settings]
    words = "The script and the settings repeat these numbers, seeds included."
    exports.page_files(files, words if calls else "No script repeats these numbers: the data are yours alone.")


def _guarantees(cells: Sequence[Cell]) -> list[tuple[str, Guarantee]]:
    """The guarantee of every private method at the middle ε, from a run at the smallest n: it is the same at all n."""
    private = [cell for cell in cells if math.isfinite(cell.epsilon)]
    found: dict[str, Guarantee] = {}
    for title in dict.fromkeys(map(cell_title, private)):
        mine = [cell for cell in private if cell_title(cell) == title]
        epsilon = middle([cell.epsilon for cell in mine], 1.0)
        cell = min((cell for cell in mine if cell.epsilon == epsilon), key=lambda cell: cell.n)
        data = load_dataset(cell.dataset, n=cell.n, seed=cell.seed)
        release = run(cell.method, data, seed=cell.seed, **{**dict(cell.options), "epsilon": epsilon})
        found[f"{title}, at ε = {epsilon:g}"] = release.guarantee
    return list(found.items())
