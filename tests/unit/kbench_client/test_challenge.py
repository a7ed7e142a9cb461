"""`kbench challenge`: an agent enters with its own token, submits, reports and finishes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from runs_app.features.challenges.models import Challenge, Entry
from runs_app.models import Evaluation
from tests import factories as make
from tests.unit.kbench_client.conftest import Run as Command
from tests.unit.runs_app.features.challenges.invented import end, new_challenge

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]


@pytest.fixture
def challenge() -> Challenge:
    now = timezone.now()
    return new_challenge(starts_at=now, ends_at=now + timedelta(days=1), now=now)


@pytest.mark.usefixtures("ada", "challenge")
def test_from_entering_to_the_end(
    kbench: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kbench("challenge").out.startswith("autumn: 2 tasks on cpu, open, until ")
    entered = kbench("challenge", "autumn", "--enter", "--agent", "evolver", "--json")
    assert entered.status == 0
    assert "shown only here" in entered.err
    entry, token = entered.document["id"], entered.document["token"]
    monkeypatch.setenv("KBENCH_TOKEN", token)
    kernel = home / "mine.cpp"
    kernel.write_text(f"// kbench: task=scale device=cpu agent=evolver\n{make.SOURCE}")
    assert kbench("submit", str(kernel), "--mode", "quick").status == 0
    end(Evaluation.objects.get())
    (home / "log.txt").write_text("I tried")
    spent = ("--usd", "1.5", "--tokens", "900", "--transcript", "log.txt")
    reported = kbench("challenge", entry, *spent)
    assert "; 60 minutes, $8.50 left" in reported.out
    assert "  scale: 2 left, best 1.00 µs" in reported.out
    # Its token says which entry it is.
    assert kbench("challenge").out == kbench("challenge", entry[:8]).out == reported.out
    finished = kbench("challenge", entry, "--finish").out
    assert finished.startswith("ranking (finished): 1 of 1 kernels")
    assert "still ranking" in kbench("challenge", entry, "--wait", "--timeout", "0").err
    row = Entry.objects.get()
    assert (row.usd, row.tokens, row.transcript) == (1.5, 900, "I tried")
    end(Evaluation.objects.get(mode="ranked"))
    ranked = kbench("challenge", entry, "--wait").out
    assert ranked.startswith("ranked: finished\n")
    assert "ranked CORRECT, 1.50×" in ranked
    shown = kbench("challenge", "autumn").out
    assert "tasks: scale, scale2 (forward)\n" in shown
    assert "evolver (1 repeats): correct 0.5" in shown
    refused = kbench("submit", str(kernel), "--mode", "quick")
    assert (refused.status, "this entry has ended: finished" in refused.err) == (2, True)
