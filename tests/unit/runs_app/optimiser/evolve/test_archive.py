"""Archives keep the fastest of each cell, parents are drawn from them, and islands visit."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import cpp_text, events
from runs_app.optimiser.evolve.archive import (
    AddStatus,
    Archive,
    cell_of,
    draw_parent,
    draw_partner,
    headroom,
    populate,
)
from runs_app.optimiser.evolve.commands import Edit, Place
from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime
from runs_app.optimiser.evolve.history import Candidate, History
from runs_app.optimiser.evolve.sections import tried_text
from tests.unit.runs_app.optimiser.evolve.driving import World, kernel


def a_candidate(number: int, latency_ns: float | None = 100.0, **changes: Any) -> Candidate:
    fields: dict[str, Any] = {
        "digest": str(number), "edit": Edit.REWRITE, "place": Place(),
        "verdict": "CORRECT" if latency_ns else "WRONG_RESULT", "latency_ns": latency_ns,
    }  # fmt: skip
    return Candidate(number=number, **{**fields, **changes})


def test_the_fastest_of_a_cell_stays() -> None:
    archive = Archive()
    times = (100.0, 120.0, 100.0, 80.0, None)
    found = [archive.add(a_candidate(number, ns)) for number, ns in enumerate(times, 1)]
    lost = AddStatus.REJECTED
    assert found == [AddStatus.NEW, lost, lost, AddStatus.IMPROVED, lost]
    assert archive.add(a_candidate(6, 300.0, bottleneck="compute")) is AddStatus.NEW
    assert archive.add(a_candidate(7, 200.0, techniques=("simd", "openmp"))) is AddStatus.NEW
    assert ([elite.number for elite in archive], len(archive)) == ([4, 7, 6], 3)
    assert best_of([archive]) == [4]


def test_a_cell_is_bottleneck_and_most_telling_technique() -> None:
    assert cell_of(a_candidate(1)) == ("unknown", "plain")
    telling = a_candidate(1, bottleneck="compute", techniques=("tensor cores", "unrolling"))
    assert cell_of(telling) == ("compute", "tensor cores")


def a_history(*told: tuple[int, int, float]) -> History:
    """Candidates as island, generation, latency; measured in that order."""
    history = History(World())
    for number, (island, generation, latency) in enumerate(told, start=1):
        place = Place(island=island, generation=generation)
        drafted = events.Drafted(number=number, digest=str(number), edit=Edit.DIFF, place=place)
        measuring = events.Measuring(candidate=number, mode=Mode.QUICK)
        measured = events.Measured(
            candidate=number, mode=Mode.QUICK, verdict="CORRECT", reason="", latency_ns=latency
        )
        for event in (drafted, measuring, measured):
            history.apply(event)
    return history


def best_of(archives: list[Archive]) -> list[int | None]:
    return [archive.best.number if archive.best else None for archive in archives]


def test_seeds_are_everywhere_and_the_best_of_others_visits_the_next_island() -> None:
    history = a_history((0, 0, 100.0), (1, 1, 90.0), (2, 1, 110.0))
    assert best_of(populate(history, islands=3, interval=100)) == [1, 2, 1]
    told = [(0, 1, 100.0), (1, 1, 50.0), (2, 1, 70.0)]
    assert best_of(populate(a_history(*told), islands=3, interval=3)) == [3, 2, 2]
    assert best_of(populate(a_history(*told), islands=3, interval=4)) == [1, 2, 3]
    assert best_of(populate(a_history((0, 0, 100.0), (0, 1, 90.0)), islands=1, interval=1)) == [2]


def test_parents_are_drawn_by_rank_and_headroom() -> None:
    floors = (None, 0.75, 1.2)
    assert [headroom(a_candidate(1, floor_fraction=f)) for f in floors] == [1.0, 0.25, 0.05]
    assert headroom(None) == 1.0

    def drawn(*elites: Candidate) -> Counter[int]:
        dice = random.Random(1)
        return Counter(draw_parent(elites, dice).number for _ in range(4000))

    by_rank = drawn(a_candidate(1), a_candidate(2), a_candidate(3))
    assert by_rank[1] == pytest.approx(4000 * 6 / 11, rel=0.1)
    assert by_rank[3] == pytest.approx(4000 * 2 / 11, rel=0.1)
    far = drawn(a_candidate(1), a_candidate(2, 140.0), a_candidate(3, 160.0))
    assert set(far) == {1, 2}  # an edit of the third cannot win
    near_the_floor = drawn(a_candidate(1, floor_fraction=0.9), a_candidate(2, floor_fraction=0.2))
    assert near_the_floor[2] > 3 * near_the_floor[1]


def test_a_partner_is_another_kernel_and_from_home_where_there_is_one() -> None:
    home, abroad = Archive(), Archive()
    parent = a_candidate(1)
    home.add(parent)
    dice = random.Random(1)
    assert draw_partner(parent, 0, [home, abroad], dice) is None
    abroad.add(parent)
    assert draw_partner(parent, 0, [home, abroad], dice) is None
    stranger = a_candidate(2, bottleneck="compute")
    abroad.add(stranger)
    assert draw_partner(parent, 0, [home, abroad], dice) is stranger
    neighbour = a_candidate(3, techniques=("simd",))
    home.add(neighbour)
    assert draw_partner(parent, 0, [home, abroad], dice) is neighbour


def test_layout_and_comments_are_no_news() -> None:
    code = kernel()
    assert cpp_text.similarity(code, "// mine\n" + code.replace("\n", "\n\n  ")) == 1.0
    assert cpp_text.similarity(code, "int x;") == 0.0
    changed = cpp_text.similarity(code, kernel("y[i] = x[i] + x[i];"))
    assert 0.3 < changed < 0.95
    assert cpp_text.similarity("", "") == 1.0


def test_the_nearest_is_named() -> None:
    others = [(4, kernel("y[i] = x[i] + x[i];")), (7, kernel()), (9, kernel())]
    assert cpp_text.nearest(kernel(), others) == (7, 1.0)
    assert cpp_text.nearest(kernel(), []) is None


TIMES = {1: (50.0, 400.0), 2: (10.0, 90.0), 3: (8.0, 160.0)}
"""Of kernels on a small and a large workload, in microseconds."""


class Timed(World):
    """Its kernels have the times of `TIMES`."""

    def feedback(self, candidate: int, mode: object = None) -> Feedback:
        parts = zip(("small", "large"), TIMES[candidate], strict=True)
        workloads = tuple(
            WorkloadTime(name=n, parameters={}, time_ns=1e3 * t, low_ns=1e3 * t, high_ns=1e3 * t)
            for n, t in parts
        )
        return Feedback(verdict="CORRECT", reason="", workloads=workloads)


def test_a_line_has_the_times_by_workload_and_the_last_who_leads_where() -> None:
    history = a_history((0, 0, 141e3), (0, 1, 30e3), (0, 1, 36e3))
    history.details = Timed()
    lines = tried_text(history, besides=[1]).splitlines()
    assert lines == [
        "- #3: correct, 36.00 us, 1.20x the best one's time (8, 160 us by workload)",
        "",
        "Fastest on each workload so far: small 8 us (#3), large 90 us (#2).",
    ]
