"""The command line: ``python -m dpgrams_core run four_corners dp_grams --epsilon 1 --seed 0``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from typing import Any

from dpgrams_core import DATASETS, METHODS, audit, load_dataset, run, score
from dpgrams_core.auditing import DOORS, PAIRS, audit_text
from dpgrams_core.commands_ledger import add_ledger, ledger_command
from dpgrams_core.commands_release import add_release, kept_command, release_command
from dpgrams_core.commands_reproduce import add_reproduce, reproduce_text
from dpgrams_core.commands_sweep import add_sweep_options, merge_text, sweep_text
from dpgrams_core.errors import BudgetError, DataError, SpecError
from dpgrams_core.guarantees import guarantee_fields
from dpgrams_core.methods.broken import BROKEN_METHODS
from dpgrams_core.results import Release
from dpgrams_core.sweeps import EXECUTORS


def number_or_name(text: str) -> int | float | str:
    """A whole number, a number, or the text itself; the spec says whether it is allowed."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def spec_fields() -> list[str]:
    """Every setting of every method, once."""
    names = [item.name for method in METHODS.values() for item in dataclasses.fields(method.spec)]
    return [name for name in dict.fromkeys(names) if name != "candidates"]


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands."""
    top = argparse.ArgumentParser(prog="python -m dpgrams_core", description="Private modes with honest guarantees.")
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="run one method once and print modes, score and guarantee")
    one.add_argument("dataset", choices=list(DATASETS))
    one.add_argument("method", choices=list(METHODS))
    one.add_argument("--n", type=number_or_name, default=None)
    one.add_argument("--data-seed", type=number_or_name, default=0, help="seed of the synthetic draw")
    many = commands.add_parser("sweep", help="run methods over n and epsilon and print one table")
    many.add_argument("dataset", choices=list(DATASETS))
    many.add_argument("methods", nargs="+", choices=list(METHODS))
    add_sweep_options(many, number_or_name)
    together = commands.add_parser("merge", help="put the results files of several sweeps into one")
    together.add_argument("out")
    together.add_argument("files", nargs="+")
    add_reproduce(commands, number_or_name)
    attack = commands.add_parser("audit", help="try to catch a method promising too much")
    attack.add_argument("method", choices=[*(name for name, item in METHODS.items() if item.private), *BROKEN_METHODS])
    attack.add_argument("--pair", choices=list(PAIRS), help="by default the first for the method's kind of data")
    attack.add_argument("--door", choices=DOORS, default="simulation", help="release: the noise that private data get")
    attack.add_argument("--trials", type=number_or_name, help="in each world; by default 2000, at the release door 400")
    attack.add_argument("--executor", choices=EXECUTORS, default="processes")
    for command in (one, many, attack):
        first = None if command is attack else 0  # the release door takes none, and says so
        command.add_argument(
            "--seed", type=number_or_name, default=first, help="seed of the privacy noise (simulation)"
        )
        command.add_argument("--json", action="store_true", help="machine-readable output")
        for name in spec_fields():
            if command is not many or name != "epsilon":
                command.add_argument("--" + name.replace("_", "-"), type=number_or_name, default=None)
    add_release(commands, spec_fields(), number_or_name)
    add_ledger(commands)
    return top


def chosen_options(arguments: argparse.Namespace, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings that were given on the command line."""
    given = {name: getattr(arguments, name) for name in spec_fields() if name not in skip}
    return {name: value for name, value in given.items() if value is not None}


def as_json(release: Release, scores: dict[str, float], dataset: str, n: int) -> str:
    """The public part of a release. Infinite values become null, since JSON has no infinity."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    return json.dumps(
        plain(
            {
                "dataset": dataset,
                "n": n,
                "method": release.method,
                "door": release.door,
                "seed": release.seed,
                "modes": release.modes.tolist(),
                "curve": None if release.curve is None else release.curve.tolist(),
                "score": scores,
                "guarantee": guarantee_fields(release.guarantee),
                "spec": dataclasses.asdict(release.spec),
                "noise_scale": release.noise_scale,
            }
        ),
        indent=2,
        allow_nan=False,
    )


def as_text(release: Release, scores: dict[str, float], dataset: str, n: int) -> str:
    """The same for people."""
    guarantee = release.guarantee
    what, rows = ("modes", release.modes) if release.curve is None else ("curve (x, y)", release.curve)
    lines = [f"{METHODS[release.method].title} on {dataset}, n = {n} (simulation, seed {release.seed})", "", what]
    lines += ["  " + "  ".join(f"{value:9.4f}" for value in row) for row in rows]
    lines += ["", "score"] + [f"  {name:18s} {value:.5g}" for name, value in scores.items()]
    lines += ["", f"guarantee: {guarantee.words}"]
    lines.append(f"  epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}, neighbours: {guarantee.neighbours}")
    lines += ["  " + text for text in (guarantee.statement, *guarantee.caveats)]
    return "\n".join(lines)


def run_command(arguments: argparse.Namespace) -> str:
    """``run``: one release."""
    data = load_dataset(arguments.dataset, n=arguments.n, seed=arguments.data_seed)
    options = chosen_options(arguments)
    if not METHODS[arguments.method].private:  # a baseline has no budget; giving one is harmless
        options = {name: value for name, value in options.items() if name not in ("epsilon", "delta")}
    release = run(arguments.method, data, seed=arguments.seed, **options)
    show = as_json if arguments.json else as_text
    return show(release, score(release, data), arguments.dataset, data.n)


def sweep_command(arguments: argparse.Namespace) -> str:
    """``sweep``: a table, with progress on standard error."""
    return sweep_text(arguments, chosen_options(arguments, skip=("epsilon",)))


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


COMMANDS = {
    "audit": audit_command,
    "kept": kept_command,
    "ledger": ledger_command,
    "merge": merge_text,
    "release": lambda arguments: release_command(arguments, chosen_options(arguments)),
    "reproduce": reproduce_text,
    "run": run_command,
    "sweep": sweep_command,
}


def main(words: list[str] | None = None) -> int:
    """Entry point; a wrong setting ends with one sentence and exit code 2, Ctrl-C with one word and 130."""
    arguments = parser().parse_args(words)
    try:
        print(COMMANDS[arguments.command](arguments))
    except (SpecError, DataError, BudgetError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
