"""The islands' inner loop: what fails is mended with its error, and only so often."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.replay import replay
from tests.unit.runs_app.optimiser.evolve.driving import Drive, a_problem, fenced
from tests.unit.runs_app.optimiser.evolve.papers import a_run, broken, fast, prompts_of

Said = Callable[[Ask], str]


def islands(speak: Said, mend: int) -> Drive:
    """A short run whose proposals are rewrites."""
    parameters = {"islands": 1, "proposals": 3, "mend": mend, "similarity": 1.0}
    parameters |= {"diff": 0, "crossover": 0, "rewrite": 1}
    return a_run("islands", speak, parameters=parameters)


def breaking(mends_work_after: int) -> Said:
    """Every proposal is broken; so many mends are broken as well before one works."""
    counts = {"mend": 0, "kernel": 0}

    def speak(ask: Ask) -> str:
        counts["kernel"] += 1
        number = counts["kernel"]
        if ask.role is not Role.DEBUG:
            return fenced(broken(number))
        counts["mend"] += 1
        works = counts["mend"] > mends_work_after
        return fenced(fast(2000 + number) if works else broken(number))

    return speak


def test_a_kernel_that_fails_is_mended_with_its_error() -> None:
    drive = islands(breaking(mends_work_after=0), mend=1)
    mends = drive.history.find(Role.DEBUG)
    assert len(mends) == 3
    first = prompts_of(drive, Role.DEBUG)[0]
    assert "COMPILE_ERROR: as scripted" in first
    assert "broken" in first
    children = [drive.history.candidates[q.candidate or 0] for q in mends]
    assert all(child.is_correct for child in children)
    assert all(drive.history.candidates[child.parents[0]].verdict for child in children)
    assert len(drive.history.find(Role.PROPOSE)) == 3  # a mend is no proposal


@pytest.mark.parametrize(("mend", "asked"), [(0, 0), (1, 3), (2, 6)])
def test_a_chain_of_mends_ends_and_replays(mend: int, asked: int) -> None:
    drive = islands(breaking(mends_work_after=99), mend=mend)
    assert len(drive.history.find(Role.DEBUG)) == asked
    config = drive.optimizer.config
    assert replay(a_problem(), config, drive.events, drive.world).differences == ()


def test_what_works_is_not_mended() -> None:
    count = iter(range(1000))
    drive = islands(lambda _: fenced(fast(3000 - next(count))), mend=2)
    assert drive.history.find(Role.DEBUG) == []
