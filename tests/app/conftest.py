"""What the tests of pages share."""

from __future__ import annotations

import sys
import time

import pytest

from pages._ui import tradeoff_runs


@pytest.fixture(autouse=True)
def own_main_module():
    """AppTest puts the page in the place of ``__main__``, which worker processes of later tests would import."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(autouse=True)
def no_work_left_over(monkeypatch):
    """No worker processes, which start slower than these sweeps run, and no job that goes on into the next test."""
    monkeypatch.setattr(tradeoff_runs.WarmPool, "ready", property(lambda _: False))
    monkeypatch.setattr(tradeoff_runs, "WARM_SECONDS", 0.0)
    yield
    jobs = tradeoff_runs.jobs()._jobs
    for job in list(jobs.values()):
        job.stopped = True
    end = time.monotonic() + 30
    while any(not job.error for job in list(jobs.values())) and time.monotonic() < end:
        time.sleep(0.01)
