"""The line that a run draws."""

from __future__ import annotations

import pytest

from leaderboard_app.home.page import best_so_far
from tests import factories

pytestmark = pytest.mark.django_db


def test_the_line_rises_where_a_candidate_is_faster_than_all_before() -> None:
    run = factories.make_run(seed_latency_ns=800.0)
    for latency_ns in (1000.0, 400.0, 600.0, None, 200.0):
        verdict = "CORRECT" if latency_ns else "WRONG_RESULT"
        factories.make_candidate(run, verdict=verdict, state="measured", latency_ns=latency_ns)
    factories.make_candidate(run)
    assert best_so_far(run) == [1.0, None, 2.0, None, None, 4.0, 4.0]


def test_without_a_seed_there_is_no_line() -> None:
    assert best_so_far(factories.make_run()) == []
    assert best_so_far(factories.make_run(seed_latency_ns=800.0)) == [1.0]
