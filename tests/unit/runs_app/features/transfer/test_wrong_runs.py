"""A file of a run with anything wrong is refused by its field, and nothing of it is stored."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from runs_app.features.transfer.models import ResultImport
from runs_app.models import Agent, Device, LanguageModel, Run, Submission
from tests import factories as make
from tests.unit.runs_app.features.transfer.made_runs import (
    entered,
    exported,
    finished,
    forget,
    imported,
)
from tests.unit.runs_app.features.transfer.measured import exported_one
from tests.unit.runs_app.optimiser.conftest import Start, World

pytestmark = pytest.mark.django_db

WRONG: list[tuple[str, Any, str]] = [
    ("format", "kbench-results", "format: must be 'kbench-run'"),
    ("version", 9, "version: is 9"),
    ("colour", "red", "colour: is not a known field"),
    ("site", "<b>", "site: must have 1 to 40"),
    ("run", None, "run: must be an object, not null"),
    ("run.id", "7", "run.id: '7' is not a UUID"),
    ("run.colour", "red", "run.colour: is not a known field"),
    ("run.name", 7, "run.name: must be str, not int"),
    ("run.name", "x" * 151, "run.name: Ensure this value has at most 150"),
    ("run.name", "\0", "run.name: contains a NUL character in line 1"),
    ("run.status", "RUNNING", "run.status: must be FINISHED or STOPPED"),
    ("run.ended_at", None, "run: has no end"),
    ("run.ended_at", "2999-01-02T03:04:05+00:00", "run.ended_at: 2999"),
    ("run.created_at", "yesterday", "run.created_at: 'yesterday' is not an ISO 8601 time"),
    ("run.direction", "sideways", "run.direction: 'sideways' is not one of"),
    ("run.device_kind", "tpu", "run.device_kind: 'tpu' is not one of"),
    ("run.device", "../cpu", "run.device: '../cpu' is not a valid device name"),
    ("run.agent", "<b>", "run.agent: '<b>' is not a valid name"),
    ("run.usd", "inf", "run.usd: must be a finite number"),
    ("run.seed", 2**70, "run.seed: Ensure this value is less than"),
    ("run.tokens", -(2**70), "run.tokens: Ensure this value is greater than"),
    ("run.config", {}, "run.config.strategy: is missing"),
    ("run.problem.direction", "up", "run.problem.direction: 'up' is not one of"),
    ("run.best", 99, "run.best: there is no candidate 99"),
    ("run.best_latency_ns", 1.0, "run.best_latency_ns: doesn't match the best"),
    ("run.seed_latency_ns", 1e9, "run.seed_latency_ns: is 1000000000.0, which matches no"),
    ("run.candidates_made", 7, "run.candidates_made: is not 3"),
    ("run.task", "another", "run.task: on this site, the digest belongs to scale"),
    ("run.calls.2.number", 2, "run: contradicts itself"),
    ("run.calls.0.status", "SENT", "run.calls[0].status: must be ANSWERED or FAILED"),
    ("run.calls.0.language_model", "a\nb", "run.calls[0].language_model: is not a valid name"),
    ("run.calls.0.messages", "hello", "run.calls[0].messages: must be a list"),
    ("run.calls.0.tokens_in", -1, "run.calls[0].tokens_in: Ensure this value is greater"),
    ("run.calls.0.response", "\ud800", "run.calls[0].response: contains half a character"),
    ("run.candidates.1.number", 7, "run.candidates: must be numbered from 1"),
    ("run.candidates.1.call", 7, "run.candidates[1].call: there is no call 7"),
    ("run.candidates.1.submission", "", "run.candidates[1].submission: is empty"),
    ("run.candidates.1.entry", "7", "run.candidates[1].entry: is no submission of this candidate"),
    ("run.candidates.2.entry", "", "results: contains a submission that didn't come from"),
    (
        "run.candidates.2.source",
        "int a;",
        "run.candidates[2].entry: is no submission of this candidate",
    ),
    ("run.candidates.1.source", "", "run.candidates[1].source: is empty"),
    ("run.candidates.1.latency_ns", 1.0, "run.candidates[1].latency_ns: is 1.0, which matches no"),
    ("run.candidates.1.feedback", {"verdict": 1}, "run.candidates[1].feedback"),
    ("run.candidates.1.feedback.speedups", {"eager": 1e6}, "speedups.eager: is 1000000.0, which"),
    ("run.candidates.1.speedup", 1e6, "run.candidates[1].speedup: is 1000000.0, which matches no"),
    (
        "run.candidates.1.floor_fraction",
        9.0,
        "run.candidates[1].floor_fraction: is 9.0, which matches no",
    ),
    ("run.calls.0.cost_usd", -1.0, "run.calls[0].cost_usd: must be 0 or more"),
    ("run.events.1.kind", "imported", "run.events[1].kind: can only be written by an import"),
    (
        "run.events.3.payload.score",
        1e6,
        "run.events[3].payload.score: is 1000000.0, which matches no",
    ),
    ("run.candidates.1.votes", {"luck": True}, "run.events: don't add up to a run"),
    ("run.candidates.1.edit", "luck", "run.events: don't add up to a run"),
    ("run.candidates.1.state", "lost", "run.candidates[1].state: Value 'lost' is not a valid"),
    ("run.events", [], "run.events: is empty"),
    ("run.events.2.seq", 9, "run.events: must be numbered from 1"),
    ("run.events.1.payload", {}, "run.events[1].payload.number: is missing"),
    ("run.events.1.payload.number", 9, "run.events: don't add up to a run"),
    (
        "run.events.3.payload.latency_ns",
        1.0,
        "run.events[3].payload.latency_ns: is 1.0, which matches no",
    ),
]
"""Where, what is put there, and the reason."""

RESULT: list[tuple[str, Any, str]] = [
    ("latency_ns", 1.0, "result.latency_ns: is 1.0, but"),
    ("speedups.best", 9.0, "result.speedups.best: is 9.0, but"),
    ("floor_fraction", 9.0, "result.floor_fraction: is 9.0, but"),
    (
        "unlisted_speedups",
        {"best": -1.0},
        "unlisted_speedups.best: must be a finite number",
    ),
    ("mode", "ranked", "result.mode: is not quick"),
    ("verdict", "WRONG_RESULT", "latency_ns: must be set if and only if"),
    ("workloads.0.name", make.HIDDEN_WORKLOAD, "is not a listed workload of scale"),
    (
        "workloads.0.weight",
        0.0,
        "result.workloads[0].weight: must be a finite number greater than 0",
    ),
    ("environment", {"a": "x" * 20_001}, "result.environment: has 20"),
]
"""The same of the seed's result."""

ENTRY: list[tuple[str, Any, str]] = [
    ("latency_ns", 1.0, "results[0].latency_ns: is 1.0, but"),
    ("speedup_best", 1e9, "results[0].speedup_best: is 1000000000.0, but"),
    ("source_digest", "0" * 64, "results[0].source_digest: doesn't match the source"),
    ("mode", "quick", "results[0].mode: only ranked"),
]
"""The same of the result with which its best stands on a board."""


def put(document: dict[str, Any], path: str, value: object) -> None:
    *folders, name = path.split(".")
    place: Any = document
    for each in folders:
        place = place[int(each)] if each.isdigit() else place[each]
    place[int(name) if name.isdigit() else name] = value


def refused(folder: Path, document: dict[str, Any], reason: str) -> None:
    (folder / "wrong.json").write_text(json.dumps(document))
    with pytest.raises(CommandError) as caught:
        imported(folder / "wrong.json")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    kinds = (Run, Submission, ResultImport, LanguageModel)
    assert [kind.objects.count() for kind in kinds] == [0] * 4, reason
    assert not Device.objects.exclude(imported_from="").exists()
    assert not Agent.objects.exclude(imported_from="").exists()


def test_a_wrong_file_is_refused_by_its_field_and_nothing_is_stored(
    start: Start, world: World, tmp_path: Path
) -> None:
    run = finished(start, world)
    entered(run)
    document = exported(run, tmp_path / "run.json")
    forget()
    seed = "run.candidates.0.evaluations.0.result."
    every = [*WRONG, *((f"{seed}{path}", value, reason) for path, value, reason in RESULT)]
    every += [(f"results.0.{path}", value, reason) for path, value, reason in ENTRY]
    for path, value, reason in every:
        changed = copy.deepcopy(document)
        put(changed, path, value)
        refused(tmp_path, changed, reason)
    deep: Any = {}
    for _ in range(700):
        deep = {"a": deep}
    put(document, "run.events.0.payload", deep)
    refused(tmp_path, document, "run: is nested too deeply")


def test_a_task_that_is_not_here_is_named(start: Start, world: World, tmp_path: Path) -> None:
    document = exported(finished(start, world), tmp_path / "run.json")
    forget()
    document["run"]["task_digest"] = "0" * 64
    reason = "run.task_digest: this site has scale, but no version with the digest '0000"
    refused(tmp_path, document, reason)
    document["run"]["task"] = "unknown"
    refused(tmp_path, document, "run.task: this site has no task 'unknown'")


def test_a_file_of_results_is_no_run(tmp_path: Path, world: World) -> None:
    document = exported_one(tmp_path)
    refused(tmp_path, document, "format: must be 'kbench-run', not 'kbench-results'")
    (tmp_path / "wrong.json").write_text("[")
    with pytest.raises(CommandError, match="is not JSON"):
        imported(tmp_path / "wrong.json")
    with pytest.raises(CommandError, match="cannot be read"):
        imported(tmp_path / "missing.json")
