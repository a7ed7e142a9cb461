"""What the script of a run's page makes of its events, without the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from runs_app.evolve.strategies.cudamaster import REPLACED

STATE = Path(__file__).parents[2] / "static" / "js" / "run" / "state.js"
_FOLD = """async ([source, events, now]) => {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { activeMs, apply, emptyState, resultsOfModels } = await import(address);
  const state = emptyState({});
  events.forEach(([at, kind, payload], i) => apply(state, { seq: i + 1, at, kind, payload }));
  return {
    models: Object.fromEntries(resultsOfModels(state)),
    outcomes: Object.fromEntries(state.outcomes),
    times: state.candidates.map((row) => row.latency),
    noisy: state.candidates.filter((row) => row.isNoisy).map((row) => row.number),
    active: activeMs(state, now),
  };
}"""
Told = tuple[int, str, dict[str, Any]]


def folded(page: Page, *events: Told, now: int = 0) -> dict[str, Any]:
    """What is known after events, each with its time, kind and payload."""
    found: dict[str, Any] = page.evaluate(_FOLD, [STATE.read_text(), events, now])
    return found


def drafted(number: int, model: str) -> Told:
    """A language model wrote a candidate."""
    return 1, "drafted", {"number": number, "edit": "rewrite", "model": model}


def measured(candidate: int, mode: str, said: float | str) -> Told:
    """A time or a verdict."""
    told = (
        {"verdict": said} if isinstance(said, str) else {"verdict": "CORRECT", "latency_ns": said}
    )
    return 2, "measured", {"candidate": candidate, "mode": mode, **told}


def test_best_times_of_models_are_those_of_now(page: Page) -> None:
    found = folded(
        page,
        *(drafted(number, model) for number, model in ((1, "a"), (2, "b"), (3, "b"))),
        *(measured(number, "quick", time) for number, time in ((1, 500.0), (2, 300.0), (3, 400.0))),
        measured(2, "ranked", "WRONG_RESULT"),
        measured(3, "ranked", 390.0),
        measured(3, "audit", 420.0),
    )
    assert found["models"] == {"a": {"correct": 1, "best": 500}, "b": {"correct": 1, "best": 420}}
    assert found["outcomes"] == {"CORRECT": 2, "WRONG_RESULT": 1}


def test_of_ranking_and_audit_the_longer_time_is_claimed(page: Page) -> None:
    found = folded(
        page,
        *(drafted(number, "a") for number in (1, 2, 3)),
        *(measured(number, "quick", 300.0) for number in (1, 2, 3)),
        *(measured(1, mode, time) for mode, time in (("ranked", 310.0), ("audit", 330.0))),
        *(measured(2, mode, time) for mode, time in (("ranked", 320.0), ("audit", 305.0))),
        measured(3, "ranked", "UNSTABLE"),
    )
    assert found["times"] == [330, 320, 300]
    assert found["noisy"] == [3]


def test_neither_pauses_nor_ranking_are_running_time(page: Page) -> None:
    search: list[Told] = [
        (1000, "started", {}), (1100, "paused", {}), (1500, "resumed", {}),
        (1600, "searched", {"reason": "a cap", "by_budget": True}),
    ]  # fmt: skip
    assert folded(page, *search, now=9000)["active"] == 200
    paused = [*search, (1700, "paused", {}), (1800, "resumed", {})]
    assert folded(page, *paused, now=9000)["active"] == 200
    extended = [*search, (2000, "extended", {"budget": {"usd": 1}})]
    assert folded(page, *extended, now=2050)["active"] == 250
    over = [*search, (1900, "finished", {"reason": "a cap", "by_budget": True})]
    assert folded(page, *over, now=9000)["active"] == 200
    goes_on = [*over, (3000, "extended", {"budget": {"usd": 1}})]
    assert folded(page, *goes_on, now=3050)["active"] == 250


def test_a_replaced_draft_is_not_counted_as_dropped(page: Page) -> None:
    found = folded(
        page,
        drafted(1, "a"),
        drafted(2, "a"),
        (2, "dropped", {"candidate": 1, "reason": f"{REPLACED}: see #2"}),
        (2, "dropped", {"candidate": 2, "reason": "the same as #1"}),
    )
    assert found["outcomes"] == {"DROPPED": 1, "REPLACED": 1}
