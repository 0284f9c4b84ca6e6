"""Threads of tests: several that try to spend one budget at once, and one for a loop of its own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from dpgrams_core import BudgetError


def how_many_could(spend, tries):
    """How many of so many tries by ten threads were not refused by the budget."""

    def one(_):
        try:
            spend()
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(10) as pool:
        return sum(pool.map(one, range(tries)))


def run_apart(story):
    """Run a coroutine in a thread of its own: a browser test of the same worker may have left a loop running here."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, story).result()
