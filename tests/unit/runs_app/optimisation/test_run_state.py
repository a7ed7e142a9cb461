"""What the script of a run's page makes of its events, folded by Node where it is there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runs_app.evolve.strategies.cudamaster import REPLACED

STATE = Path(__file__).parents[4] / "static" / "js" / "run" / "state.js"
NODE = shutil.which("node") or ""
_FOLD = """
import { apply, emptyState, resultsOfModels } from "./state.mjs";
const state = emptyState({});
JSON.parse(process.argv[2]).forEach(([kind, payload], i) =>
  apply(state, { seq: i + 1, at: i, kind, payload }));
console.log(JSON.stringify({
  models: Object.fromEntries(resultsOfModels(state)), outcomes: Object.fromEntries(state.outcomes),
}));
"""

pytestmark = pytest.mark.skipif(not NODE, reason="needs node")


def folded(folder: Path, *events: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Results by model and outcomes after these events."""
    shutil.copy(STATE, folder / "state.mjs")
    (folder / "fold.mjs").write_text(_FOLD)
    command = [NODE, "fold.mjs", json.dumps(events)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def drafted(number: int, model: str) -> tuple[str, dict[str, Any]]:
    """A language model wrote a candidate."""
    return "drafted", {"number": number, "edit": "rewrite", "model": model}


def measured(candidate: int, mode: str, said: float | str) -> tuple[str, dict[str, Any]]:
    """A time or a verdict."""
    told = (
        {"verdict": said} if isinstance(said, str) else {"verdict": "CORRECT", "latency_ns": said}
    )
    return "measured", {"candidate": candidate, "mode": mode, **told}


def test_best_times_of_models_are_those_of_now(tmp_path: Path) -> None:
    found = folded(
        tmp_path,
        *(drafted(number, model) for number, model in ((1, "a"), (2, "b"), (3, "b"))),
        *(measured(number, "quick", time) for number, time in ((1, 500.0), (2, 300.0), (3, 400.0))),
        measured(2, "ranked", "WRONG_RESULT"),
        measured(3, "ranked", 390.0),
        measured(3, "audit", 420.0),
    )
    assert found["models"] == {"a": {"correct": 1, "best": 500}, "b": {"correct": 1, "best": 420}}
    assert found["outcomes"] == {"CORRECT": 2, "WRONG_RESULT": 1}


def test_a_replaced_draft_is_not_counted_as_dropped(tmp_path: Path) -> None:
    found = folded(
        tmp_path,
        drafted(1, "a"),
        drafted(2, "a"),
        ("dropped", {"candidate": 1, "reason": f"{REPLACED}: see #2"}),
        ("dropped", {"candidate": 2, "reason": "the same as #1"}),
    )
    assert found["outcomes"] == {"DROPPED": 1, "REPLACED": 1}
