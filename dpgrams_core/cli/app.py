"""``dpgrams app``: the dashboard in one process, or in several behind one port.

Several share one port through nginx, which sends a visitor always to the same process (by a cookie with its number):
a session of Streamlit lives in one.  A new visitor gets the process with the fewest connections.  Everybody passes the
doors of the dashboard as if it were alone; nginx hands host and origin on, and keeps nothing on the disk.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from dpgrams_core.cli import number_or_name
from dpgrams_core.model.checks import whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.places import APP, ASSETS

MOST_WORKERS = 64
COOKIE = "dpgrams_worker"
LOOK_SECONDS = 0.3  # between two looks at whether all are there
AGAIN_SECONDS = 3.0  # between two starts of the same process
START_SECONDS = 120.0
END_SECONDS = 15.0  # that a process has to end in
NO_NGINX = "nginx, and it is not here: install the Debian package 'nginx' (apt-get install nginx)"
STARTING = "This part of the server is being started: reload the page in a moment."


def add_app(commands: Any) -> None:
    """The arguments of ``app``."""
    command = commands.add_parser(
        "app",
        help="start the dashboard; options of `streamlit run` are handed on, such as --server.port 8600",
        description="Start the dashboard on http://localhost:8501, or where --server.port says.",
    )
    words = "so many processes behind the one port, for many visitors; more than one needs nginx"
    command.add_argument("--workers", type=number_or_name, default=1, help=words)


def app_command(arguments: argparse.Namespace) -> str:
    """``app``: become the server.  Streamlit reads the settings beside app.py before those of the folder we are in."""
    workers = whole("workers", arguments.workers, 1, MOST_WORKERS)
    if workers == 1:
        os.execv(sys.executable, _server(arguments.streamlit_options))
    return serve(workers, arguments.streamlit_options)


def _server(options: Sequence[str]) -> list[str]:
    """-P: a file in the folder where it is started must not take the place of a module."""
    return [sys.executable, "-P", "-m", "streamlit", "run", str(APP), *options]


def serve(workers: int, options: Sequence[str]) -> str:
    """Several processes of the dashboard behind nginx, until Ctrl-C or a signal ends them all."""
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if nginx is None:
        raise SpecError("workers", workers, f"more than one needs {NO_NGINX}")
    address, port, rest = where(options)
    check_free(address, port)
    signal.signal(signal.SIGTERM, _stop)
    with tempfile.TemporaryDirectory(prefix="dpgrams-") as folder:
        ports = free_ports(workers)
        file = Path(folder, "nginx.conf")
        file.write_text(configuration(Path(folder), f"{address}:{port}", ports), encoding="utf-8")
        family = Family(ports, rest, [nginx, "-p", folder, "-c", str(file), "-e", "stderr"])
        try:
            family.start()
            print(f"The dashboard is at http://{address}:{port}, in {workers} processes. Ctrl-C ends it.", flush=True)
            family.watch()
        except KeyboardInterrupt:
            return "The dashboard has ended."
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one word is enough; what follows has to come to its end
            family.end()


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


class Family:
    """The processes of the dashboard, and nginx before them."""

    def __init__(self, ports: Sequence[int], options: Sequence[str], nginx: Sequence[str]) -> None:
        self._commands = {
            f"Process {number}": _server([*options, "--server.address", "127.0.0.1", "--server.port", str(port)])
            for number, port in enumerate(ports, start=1)
        }
        self._nginx, self._ports = list(nginx), list(ports)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: dict[str, float] = {}

    def start(self) -> None:
        """All of them; it comes back once every one answers, and fails where one of them does not begin."""
        for name, command in self._commands.items():
            self._begin(name, command)
        until = time.monotonic() + START_SECONDS
        while not all(map(_answers, self._ports)):
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise DataError(f"{name} of the dashboard ended before it began; its words stand above.")
            if time.monotonic() > until:
                raise DataError(f"The dashboard did not begin within {START_SECONDS:g} seconds.")
            time.sleep(LOOK_SECONDS)
        self._begin("nginx", self._nginx)

    def watch(self) -> NoReturn:
        """Begin anew what ends by itself."""
        while True:
            time.sleep(LOOK_SECONDS)
            for name, process in list(self._running.items()):
                code = process.poll()
                if code is not None and time.monotonic() - self._begun[name] > AGAIN_SECONDS:
                    print(f"{name} ended ({code}) and is started again.", file=sys.stderr, flush=True)
                    _kill(process)  # and what it had started
                    self._begin(name, self._nginx if name == "nginx" else self._commands[name])

    def end(self) -> None:
        """All of them, nginx first, so that nobody comes any more."""
        running = list(reversed(self._running.values()))
        for process in running:
            process.terminate()
        until = time.monotonic() + END_SECONDS
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            _kill(process)

    def _begin(self, name: str, command: Sequence[str]) -> None:
        # In a group of its own: Ctrl-C is for this process alone, and what a process starts can be ended with it.  They
        # share the cores, and each has as many processes for long work as is its part.
        # Pages run in ever new threads, and with an arena for each the C library kept what thirty visitors had needed.
        environment = {"MALLOC_ARENA_MAX": "2", **os.environ, "DPGRAMS_SHARERS": str(len(self._ports))}
        how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "env": environment}
        self._begun[name] = time.monotonic()
        self._running[name] = subprocess.Popen(command, start_new_session=True, **how)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def where(options: Sequence[str]) -> tuple[str, int, list[str]]:
    """The address and the port of the dashboard, as Streamlit would read them, and the options without them."""
    given, rest = {}, []
    waiting = iter(options)
    for option in waiting:
        name, has_value, value = option.partition("=")
        if name in ("--server.address", "--server.port"):
            given[name[len("--server.") :]] = value if has_value else next(waiting, "")
        else:
            rest.append(option)
    file = APP.parent / ".streamlit" / "config.toml"
    settings = tomllib.loads(file.read_text(encoding="utf-8")).get("server", {}) if file.is_file() else {}
    usual = {"address": "localhost", "port": 8501, **settings}
    found = {
        name: given.get(name) or os.environ.get(f"STREAMLIT_SERVER_{name.upper()}") or usual[name]
        for name in ("address", "port")
    }
    port = whole("server.port", number_or_name(str(found["port"])), 1, 65_535)
    address = str(found["address"]).replace("localhost", "127.0.0.1")
    if not re.fullmatch(r"[0-9A-Za-z.-]+", address):
        raise SpecError("server.address", address, "give a name or an IPv4 address of this machine")
    return address, port, rest


def check_free(address: str, port: int) -> None:
    """Refuse a port that somebody else has."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError as error:
        reason = f"a free port of {address}, 1 to 65535 ({error.strerror or error})"
        raise SpecError("server.port", port, reason) from None


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody has now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def configuration(folder: Path, listen: str, ports: Sequence[int]) -> str:
    """The settings of nginx, with all that it writes in one folder."""
    import pwd  # not on Windows, where the rest of this file can be imported

    from jinja2 import Template

    text = (ASSETS / "templates" / "nginx.conf").read_text(encoding="utf-8")
    user = pwd.getpwuid(0).pw_name if os.getuid() == 0 else ""
    facts = {"user": user, "folder": folder, "listen": listen, "ports": ports, "cookie": COOKIE, "starting": STARTING}
    return Template(text, trim_blocks=True, lstrip_blocks=True).render(facts)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
