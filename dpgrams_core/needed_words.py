"""The words of a search for a budget: never a bare number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgrams_core.guarantees import bare_status

if TYPE_CHECKING:
    from dpgrams_core.needed_search import NeededBudget, Question

MARGIN = 0.3  # a value that misses the target this much less often than allowed should be recognised


def answer_words(found: NeededBudget) -> str:
    """What is shown, with the ends of the bracket."""
    asked = found.question
    top = f"For {asked.wish}, {asked.setting}"
    if found.status == "not reachable":
        (last,) = (item for item in found.tried if item.value == asked.high)
        reached = f"{last.successes} of {last.runs} runs reached it"
        return f"{top}: not reachable up to {asked.show(asked.high)}, where {reached} (shown to miss)."
    if found.status == "already":
        return f"{top} needs no more than {asked.show(asked.low)}, the lowest value tried, which is shown to reach it."
    if found.misses_at is not None and found.reaches_at is not None:
        near = "" if found.estimate is None else f"; the shares cross near {_rounded(asked, found.estimate)}"
        return (
            f"{top} needs more than {asked.show(found.misses_at)} (shown to miss) and no more than "
            f"{asked.show(found.reaches_at)} (shown to reach it){near}."
        )
    if found.reaches_at is not None:
        shown = f"needs no more than {asked.show(found.reaches_at)} (shown to reach it)"
        return f"{top} {shown}; no lower value is shown to miss."
    if found.misses_at is not None:
        return f"{top} needs more than {asked.show(found.misses_at)} (shown to miss); no value is shown to reach it."
    return f"{top}: nothing is shown yet."


def caution_words(found: NeededBudget) -> str:
    """How sure that is, how easily it is seen, and what is not shown."""
    asked = found.question
    text = (
        f"All that is called shown holds together with {100 * asked.confidence:.10g} % confidence, shared among at "
        f"most {asked.most_values} values of {asked.runs} runs each on fresh draws ({len(found.tried)} tried"
        + ("). " if found.finished else " so far). ")
    )
    text += _power_words(asked)
    if found.turns:
        text += "A lower value was shown to reach it and a higher one to miss, so more is not always better here."
    else:
        text += "Between and beyond the tried values nothing is shown: the share need not grow with every step."
    failures = sum(item.failures for item in found.tried)
    if failures:
        reason = next(item.reason for item in found.tried if item.failures)
        runs = "1 run" if failures == 1 else f"{failures} runs"
        text += f" {runs} could not be made and count as misses ({reason.rstrip('.')})."
    if bare_status(found.guarantee) in ("nominal", "as published"):
        text += f" The ε of this method is {found.guarantee}, not proven."
    elif bare_status(found.guarantee) != found.guarantee:
        text += f" The ε of this method is {found.guarantee}."
    return text


def _rounded(question: Question, value: float) -> str:
    return question.show(float(f"{value:.2g}"))


def _power_words(asked: Question) -> str:
    """How often so many runs recognise a value that is better than the wish, so that an open one is understood."""
    share = 1 - MARGIN * (1 - asked.probability)
    often = asked.power(share)
    percent = "over 99" if often > 0.99 else "under 1" if often < 0.01 else f"{100 * often:.0f}"
    return f"With {asked.runs} runs, a true share of {100 * share:.4g} % is recognised in {percent} % of tries. "
