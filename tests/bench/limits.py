"""What all runs of a bench may spend together, said before they spend it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from runs_app.evolve.config import Budget
from runs_app.evolve.history import History

_MONEY = "the budget of $"  # how the reason of a run begins that could not pay for a call


class Spent(Exception):
    """A limit of the bench is reached; says which, and what was done until then."""


@dataclass
class Purse:
    """Limits of all `runs` together, each of at most `evaluations`; None is no limit."""

    runs: int
    evaluations: int
    most_evaluations: int | None = None
    minutes: float | None = None
    usd: float | None = None
    say: Callable[[str], None] = print
    clock: Callable[[], float] = time.monotonic
    done: int = field(default=0, init=False)
    used: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)
    paid_usd: float = field(default=0.0, init=False)
    began: float = field(init=False)

    def __post_init__(self) -> None:
        """Time runs from now."""
        self.began = self.clock()

    def plan(self) -> str:
        """What will be spent at most."""
        most = self.runs * self.evaluations
        if self.most_evaluations is not None:
            most = min(most, self.most_evaluations)
        limits = [f"{most} evaluations"]
        limits += ["no limit of time" if self.minutes is None else f"{self.minutes:g} minutes"]
        limits += ["no limit of money" if self.usd is None else f"{self.usd:g} USD"]
        words = f"{self.runs} runs of at most {self.evaluations} evaluations each"
        return f"{words}; together at most {', '.join(limits)}"

    def budget(self) -> Budget:
        """What the next run may spend; raises `Spent` where it could not come to its end."""
        if self.most_evaluations is not None:
            left = self.most_evaluations - self.used
            if left < self.evaluations:
                raise self._spent(f"{self.most_evaluations} evaluations leave no run of that size")
        left_s = None if self.minutes is None else int(self.minutes * 60 - self._elapsed_s())
        if left_s is not None and left_s <= 0:
            raise self._spent(f"{self.minutes:g} minutes are over")
        left_usd = None if self.usd is None else max(self.usd - self.paid_usd, 0.0)
        return Budget(evaluations=self.evaluations, wall_time_s=left_s, usd=left_usd)

    def pay(self, history: History, *, is_cut: bool = False) -> None:
        """Count a run; raises `Spent` where a limit ended it, as it compares with no other."""
        self.used += history.evaluations()
        self.tokens += history.paid_tokens
        self.paid_usd += history.paid_usd
        if is_cut:
            raise self._spent(f"{self.minutes:g} minutes are over")
        if history.finished is not None and history.finished.reason.startswith(_MONEY):
            raise self._spent(f"{self.usd:g} USD pay for no further call")
        self.done += 1
        if self.done == 1:
            now_s = self._elapsed_s()
            one, every = self._words(1, now_s), self._words(self.runs, now_s)
            self.say(f"after one run: {one}; at this rate all: {every}")

    def _spent(self, reason: str) -> Spent:
        done = f"{self.done} of {self.runs} runs came to their end"
        return Spent(f"stopped, as {reason}; {done}: {self._words(1, self._elapsed_s())}")

    def _words(self, times: int, elapsed_s: float) -> str:
        tokens, minutes = self.tokens * times / 1e3, elapsed_s * times / 60
        money = f"{self.paid_usd * times:.2f} USD"
        return f"{self.used * times} evaluations, {tokens:.0f}k tokens, {money}, {minutes:.1f} min"

    def _elapsed_s(self) -> float:
        return self.clock() - self.began


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Options for limits and prices."""
    parser.add_argument("--most-evaluations", type=int, help="of all runs together")
    parser.add_argument("--minutes", type=float, help="of all runs together")
    parser.add_argument("--usd", type=float, help="of all runs together; needs the prices")
    parser.add_argument("--price-in", type=float, default=0.0, help="USD a million tokens read")
    parser.add_argument("--price-out", type=float, default=0.0, help="USD a million tokens written")
    parser.add_argument("--yes", action="store_true", help="spend it: without, it is only said")


def check_limits(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse limits that limit nothing, naming the option."""
    for name in ("evaluations", "repeats", "most_evaluations", "minutes", "usd"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            parser.error(f"--{name.replace('_', '-')}: must be above 0")
    check_prices(parser, options)


def check_prices(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse prices by which no money would be counted, naming the option."""
    for name in ("price_in", "price_out"):
        if not getattr(options, name) >= 0:
            parser.error(f"--{name.replace('_', '-')}: must be 0 or more")
    if options.usd is not None and not options.price_in + options.price_out > 0:
        parser.error("--usd: say --price-in and --price-out, or nothing counts against it")
