"""``dpgrams app --workers``: several processes behind one port, with a real nginx."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import psutil
import pytest
from websockets.exceptions import InvalidStatus

from dpgrams_core.cli.app import COOKIE, MOST_WORKERS, NO_NGINX, check_free, where
from dpgrams_core.model.errors import SpecError
from pages._ui.server.app import STRANGE_HOST
from tests.places import ROOT
from tests.served import Visitor, wait_for


def words_of(*options, **environment):
    """What the command says when it refuses, with its exit code."""
    command = [sys.executable, "-m", "dpgrams_core", "app", *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("workers", ["0", "x", "2.5", str(MOST_WORKERS + 1)])
def test_a_number_that_cannot_be_is_refused_with_field_value_and_range(workers):
    code, words = words_of("--workers", workers)
    assert code == 2
    assert re.search(rf"workers = '?{workers}'? is not allowed: .* at least 1 and at most {MOST_WORKERS}", words)


def test_without_nginx_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    from dpgrams_core.cli.app import serve

    with pytest.raises(SpecError, match=re.escape(NO_NGINX)):
        serve(2, [])


def test_a_port_that_somebody_has_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SpecError, match=rf"server\.port = {port} is not allowed: a free port of 127\.0\.0\.1"):
            check_free("127.0.0.1", port)


@pytest.mark.parametrize("port", ["0", "70000", "http"])
def test_a_port_that_cannot_be_is_refused(port):
    with pytest.raises(SpecError, match=r"server\.port = .* at least 1 and at most 65535"):
        where(["--server.port", port])


def test_address_and_port_are_taken_from_the_options_and_the_rest_is_handed_on(monkeypatch):
    monkeypatch.delenv("STREAMLIT_SERVER_PORT", raising=False)
    assert where(["--server.port", "8600", "--server.maxUploadSize=9"]) == (
        "127.0.0.1",
        8600,
        ["--server.maxUploadSize=9"],
    )
    assert where(["--server.address=0.0.0.0"]) == ("0.0.0.0", 8501, [])
    monkeypatch.setenv("STREAMLIT_SERVER_PORT", "8700")
    assert where([])[1] == 8700


@contextmanager
def several(folder):
    """The address of a dashboard of two processes, and its first process."""
    assert shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), "install the Debian package 'nginx'"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--workers", "2", "--server.port", str(port), "--server.fileWatcherType", "none"]
    with (folder / "log.txt").open("w") as log:
        process = psutil.Popen(
            [sys.executable, "-m", "dpgrams_core", "app", *options],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "DPGRAMS_LEDGER": str(folder / "ledger.sqlite3")},
        )
        try:
            wait_for(process, f"http://127.0.0.1:{port}/_stcore/health")
            yield f"http://127.0.0.1:{port}", process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(timeout=120)


def answer(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as found:
        return found.headers


def given(headers):
    """The number of the worker that a visitor is given, or None where they keep theirs."""
    found = re.match(rf"{COOKIE}=(\d+); Path=/; HttpOnly; SameSite=Lax$", headers["Set-Cookie"] or "")
    return found and found[1]


def until(true, folder):
    """Wait for it: a busy machine takes its time, and the first process answers before the second."""
    end = time.monotonic() + 240
    while not true():
        assert time.monotonic() < end, (folder / "log.txt").read_text()
        time.sleep(0.3)


def servers(process):
    return [one for one in process.children() if "streamlit" in one.cmdline()]


@pytest.mark.slow
def test_two_processes_behind_one_port(tmp_path):
    with several(tmp_path) as (address, process):
        # Newcomers are spread, and stay where they are; a number that nobody has is as good as none.
        until(lambda: {given(answer(address)) for _ in range(4)} == {"0", "1"}, tmp_path)
        for number in ("0", "1"):
            until(lambda number=number: given(answer(address, Cookie=f"{COOKIE}={number}")) is None, tmp_path)
        assert given(answer(address, Cookie=f"{COOKIE}=7"))

        # The doors are those of one process.
        assert "frame-ancestors 'self'" in answer(address)["Content-Security-Policy"]
        with pytest.raises(urllib.error.HTTPError) as strange:
            answer(address, Host="elsewhere.example")
        assert strange.value.code == 421
        assert strange.value.read().decode() == STRANGE_HOST
        with pytest.raises(InvalidStatus), Visitor(address, host="elsewhere.example"):
            pass
        with Visitor(address) as visitor:
            assert "Find where people gather, and give nobody away" in visitor.text()

        # One that dies costs its visitors a reload: another one serves them meanwhile, and it comes back.
        first = servers(process)[0]
        first.kill()
        assert given(answer(address, Cookie=f"{COOKIE}=0")) == "1"
        until(lambda: given(answer(address, Cookie=f"{COOKIE}=0")) is None, tmp_path)
        assert "Process 1 ended (-9) and is started again." in (tmp_path / "log.txt").read_text()

        # All end with the first, and leave nothing behind.
        all_of_them = process.children(recursive=True)
        assert len(all_of_them) >= 4
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
        _, left = psutil.wait_procs(all_of_them, timeout=120)
        assert left == []
    assert "Traceback" not in (tmp_path / "log.txt").read_text()
    with pytest.raises(urllib.error.URLError):
        answer(address)
