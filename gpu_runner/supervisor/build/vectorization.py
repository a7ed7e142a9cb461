"""Asks g++ which loops of a submission it vectorised, in a compilation made for that alone."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from gpu_runner.supervisor.build.build import build_jail
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.process import ChildProcess

_REPORT = "vectorization.txt"
_MISSED_SHOWN = 5  # chosen: of a report for a person
_LINE = re.compile(r"^(?P<at>\d+:\d+): (?P<kind>optimized|missed): +(?P<text>.+)$", re.MULTILINE)
_WIDTH = re.compile(r"loop vectorized using (\d+) byte vectors")
_BY_HAND = re.compile(
    r"\b_mm\d*_(?!prefetch|malloc|free|pause|[lms]fence|[gs]etcsr)\w|\bvector_size\b"
    r"|\b(?:v|sv)(?:ld|st)\d\w*\("
)
_OUTER = ("multiple nested loops", "loop nest containing")
_REASON = re.compile(r"not vectorized: (.+)")


@dataclass(frozen=True)
class Vectorization:
    """Loops by their places (line:column) in the source; reasons by place, where g++ gives one."""

    vectorized: dict[str, int]  # place -> widest vector in bytes
    missed: tuple[str, ...]
    reasons: dict[str, str]

    def metrics(self) -> dict[str, float]:
        """Counts, and the widest vector."""
        return {
            "loops_vectorized_count": float(len(self.vectorized)),
            "loops_not_vectorized_count": float(len(self.missed)),
            "widest_vector_bytes": float(max(self.vectorized.values(), default=0)),
        }

    def notes(self) -> list[str]:
        """The first loops that were not vectorised, and why."""
        return [
            f"the loop at line {place.split(':')[0]} is not vectorized"
            + (f": {self.reasons[place]}" if place in self.reasons else "")
            for place in self.missed[:_MISSED_SHOWN]
        ]


def is_by_hand(source: str) -> bool:
    """Whether it holds vectors of its own, so that g++'s report says little of its loops."""
    return bool(_BY_HAND.search(source))


def look(recipe: Recipe, config: SupervisorConfig) -> Vectorization | None:
    """Compile once more, for the report; None if g++ gives none."""
    options = [f"-fopt-info-vec-optimized-missed={_REPORT}"]
    command = shlex.join([*recipe.command(), *options])
    # Lines of the submission only, without their file name, and what counts of them.
    script = (
        f"{command} >/dev/null 2>&1 || exit 1\n"
        f"sed -n 's/^{re.escape(recipe.source)}:\\([0-9]*:[0-9]*: [a-z]*: \\)/\\1/p' {_REPORT}"
        " | grep -E ': optimized: +loop vectorized using"
        "|: missed: +(couldn.t vectorize loop|not vectorized: )' | sort -u -V"
    )
    with ChildProcess(
        build_jail(recipe, config), ["/bin/bash", "-c", script], jailed=not config.allow_unjailed
    ) as child:
        status = child.wait(config.build_timeout_s)
        return parse(child.output) if status in (0, 1) and child.output else None


def parse(report: str) -> Vectorization:
    """Read lines such as `6:18: optimized: loop vectorized using 64 byte vectors`.

    A loop that was vectorised in one copy of a function counts as vectorised; one that only holds
    other loops does not count at all.
    """
    vectorized: dict[str, int] = {}
    missed: dict[str, None] = {}
    reasons: dict[str, str] = {}
    for match in _LINE.finditer(report):
        place, text = match["at"], match["text"]
        if width := _WIDTH.search(text):
            vectorized[place] = max(vectorized.get(place, 0), int(width[1]))
        elif text.startswith("couldn't vectorize loop"):
            missed[place] = None
        elif reason := _REASON.search(text):
            reasons.setdefault(place, reason[1].rstrip(":. "))
    left = tuple(
        place
        for place in missed
        if place not in vectorized and not reasons.get(place, "").startswith(_OUTER)
    )
    return Vectorization(vectorized, left, reasons)
