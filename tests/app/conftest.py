"""What the tests of pages share."""

from __future__ import annotations

import sys
import time

import pytest

from pages._ui import charts, exports, handle
from pages._ui import jobs as page_jobs
from tests.shown import checked, new_page


@pytest.fixture(autouse=True)
def own_main_module():
    """AppTest puts the page in the place of ``__main__``, which worker processes of later tests would import."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(autouse=True)
def work_ends_first(request, monkeypatch):
    """A page waits for its work before it is drawn, so that one run shows all; not where the work itself is tested."""
    if request.path.name.startswith(("test_tradeoff", "test_audit")):
        return

    def wait(_, job):
        end = time.monotonic() + 100
        while job.running and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(page_jobs, "wait_for_something", wait)


@pytest.fixture(autouse=True)
def all_is_looked_at(request, monkeypatch):
    """Nobody scrolls or unfolds here, so that what waits for that is drawn at once."""
    if request.path.name != "test_parts.py":
        monkeypatch.setattr(charts, "scrolled_to", lambda *_: True)
        monkeypatch.setattr(charts, "unfolded", lambda *_: True)


@pytest.fixture(autouse=True)
def few_frames(monkeypatch):
    """The picture has frames at two ε: all nineteen are looked at in a browser (tests/browser/test_handle.py)."""
    monkeypatch.setattr(handle, "epsilon_stops", lambda _: (0.5, 1.0))


@pytest.fixture(autouse=True)
def no_work_left_over(monkeypatch):
    """No worker processes, which start slower than these sweeps run, and no job that goes on into the next test."""
    monkeypatch.setattr(page_jobs.WarmPool, "ready", property(lambda _: False))
    monkeypatch.setattr(page_jobs, "WARM_SECONDS", 0.0)
    yield
    jobs = page_jobs.jobs()._jobs
    for job in list(jobs.values()):
        job.stopped = True
    end = time.monotonic() + 30
    while any(not job.error for job in list(jobs.values())) and time.monotonic() < end:
        time.sleep(0.01)


@pytest.fixture
def opened_with_files(monkeypatch):
    """``opened_with_files(page, query)``: the page, and its files by the key of their button."""
    files: dict[str, exports.File] = {}
    button = exports.download

    def listening(file, key, *more):
        files[key] = file
        button(file, key, *more)

    monkeypatch.setattr(exports, "download", listening)

    def opening(page, query):
        files.clear()
        return checked(new_page(page, **query)), files

    return opening
