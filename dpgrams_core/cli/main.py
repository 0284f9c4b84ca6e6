"""The command line: ``dpgrams run four_corners dp_grams --epsilon 1 --seed 0``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from dpgrams_core import DATASETS, METHODS, audit, load_dataset, run, score
from dpgrams_core.auditing import DOORS, PAIRS, audit_text
from dpgrams_core.cli import add_shared, guarantee_lines, number_or_name, read_off, rows_text, uncertainty
from dpgrams_core.cli.app import add_app, app_command
from dpgrams_core.cli.ledger import add_ledger, ledger_command
from dpgrams_core.cli.release import add_release, kept_command, release_command
from dpgrams_core.cli.reproduce import add_reproduce, reproduce_text
from dpgrams_core.cli.sweep import add_sweep, merge_text, sweep_text
from dpgrams_core.methods.dp_grams.broken import BROKEN_METHODS
from dpgrams_core.model.errors import BudgetError, DataError, SpecError
from dpgrams_core.model.guarantee import guarantee_fields
from dpgrams_core.model.results import Release
from dpgrams_core.model.specs import Setting, settings_of
from dpgrams_core.sweeps.run import EXECUTORS


def method_settings() -> dict[str, Setting]:
    """Every setting of every method, once, as its spec declares it; candidates are a table and no word."""
    specs = [method.spec for method in reversed(METHODS.values())]  # the words are those of the first that has it
    found = {name: item for spec in specs for name, item in settings_of(spec).items()}
    return {name: found[name] for name in sorted(found) if name != "candidates"}


def add_settings(command: argparse.ArgumentParser, skip: Sequence[str] = ()) -> None:
    """A flag for every setting of the methods, with the words of its declaration."""
    for name, item in method_settings().items():
        if name not in skip:
            words = f"{item.label}. {item.words}".replace("%", "%%")
            command.add_argument("--" + name.replace("_", "-"), type=number_or_name, default=None, help=words)


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands."""
    top = argparse.ArgumentParser(prog="dpgrams", description="Private modes with honest guarantees.")
    commands = top.add_subparsers(dest="command", required=True)
    add_app(commands)
    one = commands.add_parser("run", help="run one method once and print modes, score and guarantee")
    one.add_argument("dataset", choices=list(DATASETS))
    one.add_argument("method", choices=list(METHODS))
    one.add_argument("--n", type=number_or_name, default=None)
    one.add_argument("--data-seed", type=number_or_name, default=0, help="seed of the synthetic draw")
    many = add_sweep(commands)
    add_reproduce(commands)
    attack = commands.add_parser("audit", help="try to catch a method promising too much")
    attack.add_argument("method", choices=[*(name for name, item in METHODS.items() if item.private), *BROKEN_METHODS])
    attack.add_argument("--pair", choices=list(PAIRS), help="by default the first for the method's kind of data")
    attack.add_argument("--door", choices=DOORS, default="simulation", help="release: the noise that private data get")
    attack.add_argument("--trials", type=number_or_name, help="in each world; by default 2000, at the release door 400")
    attack.add_argument("--executor", choices=EXECUTORS, default="processes")
    for command in (one, many, attack):
        first = None if command is attack else 0  # the release door takes none, and says so
        words = "seed of the privacy noise (simulation)"
        command.add_argument("--seed", type=number_or_name, default=first, help=words)
        add_shared(command, "--json")
        add_settings(command, skip=("epsilon",) if command is many else ())
    for command in (one, many):
        words = "of the data, such as 'as run': records as the paper's tables were made from"
        command.add_argument("--design", default="", help=words)
    add_settings(add_release(commands))
    add_ledger(commands)
    return top


def chosen_options(arguments: argparse.Namespace, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings that were given on the command line."""
    given = {name: getattr(arguments, name) for name in method_settings() if name not in skip}
    return {name: value for name, value in given.items() if value is not None}


def as_json(release: Release, scores: dict[str, float], dataset: str, n: int) -> str:
    """The public part of a release. Infinite values become null, since JSON has no infinity."""
    fields = {
        "dataset": dataset,
        "n": n,
        "method": release.method,
        "door": release.door,
        "seed": release.seed,
        "modes": release.modes.tolist(),
        "curve": None if release.curve is None else release.curve.tolist(),
        **uncertainty(release),
        "score": scores,
        "guarantee": guarantee_fields(release.guarantee),
        "spec": dataclasses.asdict(release.spec),
        "noise_scale": release.noise_scale,
    }
    finite = json.loads(json.dumps(fields), parse_constant=lambda _: None)
    return json.dumps(finite, indent=2, allow_nan=False)


def as_text(release: Release, scores: dict[str, float], dataset: str, n: int) -> str:
    """The same for people."""
    what, rows = read_off(METHODS[release.method].kind), release.rows
    lines = [f"{METHODS[release.method].title} on {dataset}, n = {n} (simulation, seed {release.seed})", ""]
    lines += rows_text(what, rows, release, "9.4f")
    lines += ["", "score"] + [f"  {name:18s} {value:.5g}" for name, value in scores.items()]
    return "\n".join(lines + guarantee_lines(release.guarantee))


def run_command(arguments: argparse.Namespace) -> str:
    """``run``: one release."""
    data = load_dataset(arguments.dataset, n=arguments.n, seed=arguments.data_seed, design=arguments.design)
    options = chosen_options(arguments)
    if not METHODS[arguments.method].private:  # a baseline has no budget; giving one is harmless
        options = {name: value for name, value in options.items() if name not in ("epsilon", "delta")}
    release = run(arguments.method, data, seed=arguments.seed, **options)
    show = as_json if arguments.json else as_text
    return show(release, score(release, data), arguments.dataset, data.n)


def audit_command(arguments: argparse.Namespace) -> str:
    """``audit``: a lower bound on the epsilon that a method really has."""
    result = audit(
        arguments.method,
        pair=arguments.pair,
        trials=arguments.trials,
        seed=arguments.seed,
        executor=arguments.executor,
        door=arguments.door,
        **chosen_options(arguments),
    )
    return json.dumps(dataclasses.asdict(result), indent=2) if arguments.json else audit_text(result)


COMMANDS: dict[str, Callable[[argparse.Namespace], str]] = {
    "app": app_command,
    "audit": audit_command,
    "kept": kept_command,
    "ledger": ledger_command,
    "merge": merge_text,
    "release": lambda arguments: release_command(arguments, chosen_options(arguments)),
    "reproduce": reproduce_text,
    "run": run_command,
    "sweep": lambda arguments: sweep_text(arguments, chosen_options(arguments, skip=("epsilon",))),
}


def main(words: list[str] | None = None) -> int:
    """Entry point; a wrong setting ends with one sentence and exit code 2, Ctrl-C with one word and 130.

    A reader who has had enough (``| head``) ends it without a word and with the code of SIGPIPE.  The signal itself
    stays off: it would also end a sweep when a worker dies.
    """
    try:
        try:
            return _answer(words)
        finally:
            sys.stdout.flush()  # now, also after --help: at Python's own end it would be a traceback
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still holds at its end
        return 128 + signal.SIGPIPE


def _answer(words: list[str] | None) -> int:
    """Do what the words ask for, and print it."""
    top = parser()
    arguments, unknown = top.parse_known_args(words)
    if arguments.command == "app":
        arguments.streamlit_options = unknown
    elif unknown:
        top.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        print(COMMANDS[arguments.command](arguments))
    except (SpecError, DataError, BudgetError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0
