"""What the live page puts in place: rows of now, and for its replay rows of after each event."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.messaging import broadcast
from runs_app.models import Run
from runs_app.optimiser.changes import Change, change_of, replayed
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.evolve.evaluations import RUN_ENDED
from runs_app.optimiser.services.control import stop_run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World
from tests.unit.runs_app.optimiser.test_ranking import end, searched

pytestmark = pytest.mark.django_db


class Page:
    """Puts changes in place, as the page's script does."""

    def __init__(self) -> None:
        self.run: dict[str, Any] = {}
        self.candidates: dict[int, dict[str, Any]] = {}
        self.calls: dict[int, dict[str, Any]] = {}
        self.lines: list[dict[str, Any]] = []

    def put(self, change: Change) -> None:
        change = json.loads(json.dumps(change))
        self.run |= change["run"]
        for kind in ("candidates", "calls"):
            rows = getattr(self, kind)
            for row in change[kind]:
                rows[row["number"]] = {**rows.get(row["number"], {}), **row}
        self.lines += change["lines"]


def now_of(run: Run, since: int = 0) -> Page:
    """The page after one question for everything."""
    page = Page()
    run.refresh_from_db()
    page.put(change_of(run, run.events.filter(seq__gt=since).order_by("seq"), make.NOW))
    return page


def replay_of(run: Run) -> Page:
    """The page at the end of its replay."""
    page = Page()
    for change in replayed(run, 0):
        page.put(change)
    return page


def assert_the_same(run: Run) -> None:
    """Whoever watched a replay knows what whoever loads the page knows."""
    now, past = now_of(run), replay_of(run)
    for name in ("candidates", "calls", "lines"):
        assert getattr(now, name) == getattr(past, name)
    names = now.run.keys() - {"reason", "active_s"}  # a row says more of why it goes on
    assert {name: past.run[name] for name in names} == {name: now.run[name] for name in names}


def test_a_replay_ends_at_what_is_shown_now(start: Start, world: World) -> None:
    run = searched(start, world)
    assert_the_same(run)
    end(run, 4, Mode.RANKED, Verdict.WRONG_RESULT)
    world.advance(run)
    end(run, 3, Mode.RANKED, Verdict.UNSTABLE)
    world.advance(run)
    assert_the_same(run)
    found = now_of(run).candidates
    assert (found[4]["verdict"], found[4]["latency_ns"]) == ("WRONG_RESULT", None)
    assert (found[3]["verdict"], found[3]["noisy"]) == ("CORRECT", True)


def test_a_list_and_the_reason_tell_one_ranked_time(start: Start, world: World) -> None:
    run = searched(start, world)
    for mode, latency_ns in ((Mode.RANKED, 690.0), (Mode.AUDIT, 695.0)):
        end(run, 4, mode, latency_ns)
        world.advance(run)
        best = now_of(run).candidates[4]
        assert (best["ranked_ns"], best["search_ns"]) == (latency_ns, 700.0)
        assert_the_same(run)


def test_what_a_stop_cancels_is_not_lost(start: Start, world: World) -> None:
    run = start()
    world.advance(run)
    stop_run(run=run, user=run.user, now=make.NOW)
    world.advance(run)
    assert_the_same(run)
    page = now_of(run)
    assert (page.candidates[1]["state"], page.candidates[1]["begun"]) == ("drafted", True)
    words = [(line["text"], line["bad"]) for line in page.lines]
    assert ("Stopped by its owner", False) in words
    assert (f"The evaluation of candidate 1 was canceled: {RUN_ENDED}", False) in words


def test_each_message_brings_the_rows_that_its_event_changed(
    start: Start, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[dict[str, Any]] = []
    monkeypatch.setattr(broadcast, "_send", lambda _, message: heard.append(message))
    run = start()
    world.to_first_calls(run)
    page = Page()
    told = [message["rows"] for message in heard if message.get("rows")]
    for rows in told:
        page.put(rows)
    whole = now_of(run)
    assert [rows["seq"] for rows in told] == list(range(1, run.events_stored + 1))
    assert (page.candidates, page.calls) == (whole.candidates, whole.calls)
    assert page.run["status"] == "RUNNING"


def test_neither_pauses_nor_ranking_are_running_time() -> None:
    run = make.make_run()
    searched = events.Searched(reason="a cap", by_budget=True)
    extended = events.Extended(budget=Budget(usd=1.0))
    finished = events.Finished(reason="a cap", by_budget=True)
    happened: list[tuple[int, str | events.Event, float]] = [
        (10, "started", 0), (11, "paused", 1), (15, "resumed", 1), (16, searched, 2),
        (17, "paused", 2), (18, "resumed", 2), (20, extended, 2), (21, searched, 3),
        (22, finished, 3), (30, extended, 3), (31, "stopped", 4),
    ]  # fmt: skip
    for second, event, _ in happened:
        make.make_run_event(run, event, now=make.NOW + timedelta(seconds=second))
    page = Page()
    for change, (_, _, active_s) in zip(replayed(run, 0), happened, strict=True):
        page.put(change)
        assert page.run["active_s"] == active_s
    assert page.run["status"] == "STOPPED"
    assert page.run["budget"]["usd"] == 1.0


def test_a_watcher_asks_for_what_it_missed(client: Client) -> None:
    run = make.make_run()
    for number in range(5):
        make.make_run_event(run, "note", {"text": f"hello {number}"})
    address = f"{run.get_absolute_url()}changes/"
    missed = client.get(f"{address}?since=2").json()
    assert missed["seq"] == 5
    assert [line["text"] for line in missed["lines"]] == ["hello 2", "hello 3", "hello 4"]
    assert missed["run"]["status"] == "RUNNING"
    assert client.get(f"{address}?since=5").json()["seq"] == 0
    for odd in ("-1", "x", "²"):
        assert client.get(f"{address}?since={odd}").json()["seq"] == 5
    changes = client.get(f"{run.get_absolute_url()}replay/?since=3").json()["changes"]
    assert [change["seq"] for change in changes] == [4, 5]


def test_hidden_workloads_stay_hidden() -> None:
    run = make.make_run()
    make.make_run_event(run, "note", {"text": f"wrong on {make.HIDDEN_WORKLOAD}"})
    for page in (now_of(run), replay_of(run)):
        assert page.lines[0]["text"] == "wrong on a hidden workload"
