"""The command ``ledger``: verify the budget ledger, back it up, and put it back; none of it raises what is left."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dpgrams_core.cli import add_shared
from dpgrams_core.model.environment import read_settings
from dpgrams_core.model.errors import BudgetError, SpecError
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.file import read_key
from dpgrams_core.privacy.ledger.restore import restore_ledger, verify_ledger


def add_ledger(commands: Any) -> None:
    """Add the command and its three parts to the command line."""
    top = commands.add_parser("ledger", help="verify, back up or restore the budget ledger")
    parts = top.add_subparsers(dest="part", required=True)
    look = parts.add_parser("verify", help="read all of the ledger and its high-water mark, and say what is wrong")
    copy = parts.add_parser("backup", help="copy the ledger and its key to another place")
    copy.add_argument("file", help="where there is no file yet; the key goes beside it")
    back = parts.add_parser("restore", help="build the ledger again: what was spent since the backup is added")
    back.add_argument("file", nargs="?", help="a backup; without one it is built from its high-water mark alone")
    for part in (look, copy, back):
        add_shared(part, "--ledger")


def ledger_command(arguments: argparse.Namespace) -> str:
    """``ledger``: one of its parts, as text."""
    for name in ("ledger", "file"):
        given = getattr(arguments, name, None)
        if given is not None and (not given.strip() or "\0" in given):
            raise SpecError(name, given, "the place of a file, or leave it out for the default")
    try:
        path = Path(arguments.ledger or read_settings().ledger).expanduser()
        return {"verify": _verify, "backup": _backup, "restore": _restore}[arguments.part](path, arguments)
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        raise BudgetError(
            "A file could not be read or written. Check the places of the ledger (DPGRAMS_LEDGER), of its high-water "
            "mark (DPGRAMS_LEDGER_MARK) and of the backup, and the room on their disks."
        ) from None


def _verify(path: Path, _: argparse.Namespace) -> str:
    report = verify_ledger(path)
    if report.problems:
        raise BudgetError(" ".join((*report.problems, *report.sound)))
    return "\n".join(("The ledger is sound.", *report.sound))


def _backup(path: Path, arguments: argparse.Namespace) -> str:
    read_key(path)  # nothing is made where no ledger is
    number = Ledger(path).back_up(arguments.file)
    return (
        f"The backup holds {number} entries; its key is beside it. Whoever has both can see for which data sets "
        "budget was spent, so keep them as you keep the ledger. It is put back by ledger restore, which adds what is "
        "spent from now on."
    )


def _restore(path: Path, arguments: argparse.Namespace) -> str:
    done = restore_ledger(path, Path(arguments.file).expanduser() if arguments.file else None)
    lines = [f"The ledger is restored and holds {done.entries} entries."]
    if done.added:
        lines.append(f"{done.added} of them were made after the backup and come from the high-water mark.")
    if done.lost:
        lines.append(f"{done.lost} releases that were kept were found in no file; what was paid for them stays spent.")
    if done.closed:
        lines.append(
            "It is closed: its high-water mark was lost or held what no file has, so what was spent is not known. No "
            "data set has any budget left here; what was kept is still shown."
        )
    if done.aside is not None:
        lines.append(f"The file that was there before is {done.aside}.")
    return "\n".join(lines)
