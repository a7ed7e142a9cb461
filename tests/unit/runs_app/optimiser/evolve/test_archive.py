"""Archives keep the fastest of each cell, parents are drawn from them, and islands visit."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import events, novelty
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
from runs_app.optimiser.evolve.history import Candidate, History
from tests.unit.runs_app.optimiser.evolve.driving import World, kernel


def a_candidate(number: int, latency_ns: float | None = 100.0, **changes: Any) -> Candidate:
    fields: dict[str, Any] = {
        "digest": str(number),
        "edit": Edit.REWRITE,
        "place": Place(),
        "verdict": "CORRECT" if latency_ns else "WRONG_RESULT",
        "latency_ns": latency_ns,
    }
    return Candidate(number=number, **{**fields, **changes})


def test_the_fastest_of_a_cell_stays() -> None:
    archive = Archive()
    assert archive.add(a_candidate(1, 100.0)) is AddStatus.NEW
    assert archive.add(a_candidate(2, 120.0)) is AddStatus.REJECTED
    assert archive.add(a_candidate(3, 100.0)) is AddStatus.REJECTED
    assert archive.add(a_candidate(4, 80.0)) is AddStatus.IMPROVED
    assert archive.add(a_candidate(5, None)) is AddStatus.REJECTED
    assert archive.add(a_candidate(6, 300.0, bottleneck="compute")) is AddStatus.NEW
    assert archive.add(a_candidate(7, 200.0, techniques=("simd", "openmp"))) is AddStatus.NEW
    assert [elite.number for elite in archive] == [4, 7, 6]
    assert len(archive) == 3
    assert archive.best is not None
    assert archive.best.number == 4


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


def test_seeds_are_everywhere_and_others_at_home() -> None:
    history = a_history((0, 0, 100.0), (1, 1, 90.0), (2, 1, 110.0))
    assert best_of(populate(history, islands=3, interval=100)) == [1, 2, 1]


def test_the_best_of_each_island_visits_the_next_one_in_a_ring() -> None:
    told = [(0, 1, 100.0), (1, 1, 50.0), (2, 1, 70.0)]
    assert best_of(populate(a_history(*told), islands=3, interval=3)) == [3, 2, 2]
    assert best_of(populate(a_history(*told), islands=3, interval=4)) == [1, 2, 3]


def test_one_island_visits_nobody() -> None:
    assert best_of(populate(a_history((0, 0, 100.0), (0, 1, 90.0)), islands=1, interval=1)) == [2]


def test_headroom_is_what_is_above_the_floor() -> None:
    assert headroom(None) == 1.0
    assert headroom(a_candidate(1)) == 1.0
    assert headroom(a_candidate(1, floor_fraction=0.75)) == 0.25
    assert headroom(a_candidate(1, floor_fraction=1.2)) == 0.05


def test_parents_are_drawn_by_rank_and_headroom() -> None:
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
    assert novelty.similarity(code, "// mine\n" + code.replace("\n", "\n\n  ")) == 1.0
    assert novelty.similarity(code, "int x;") == 0.0
    changed = novelty.similarity(code, kernel("y[i] = x[i] + x[i];"))
    assert 0.3 < changed < 0.95
    assert novelty.similarity("", "") == 1.0


def test_the_nearest_is_named() -> None:
    others = [(4, kernel("y[i] = x[i] + x[i];")), (7, kernel()), (9, kernel())]
    assert novelty.nearest(kernel(), others) == (7, 1.0)
    assert novelty.nearest(kernel(), []) is None
