"""A run goes from one site to another with all that its pages show, and can only be read there."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.test import Client

from runs_app.core.errors import NotAllowed
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.models import Agent, Evaluation, LanguageModelCall, Run, Submission
from runs_app.optimiser.services import control
from runs_app.optimiser.services.enter import enter_candidate
from runs_app.optimiser.services.reconcile_runs import reconcile_runs
from runs_app.optimiser.services.replay import replay_run
from runs_app.optimiser.services.start import start_demo_run
from tests import factories as make
from tests.unit.runs_app.features.transfer.made_runs import (
    ADDRESS,
    entered,
    exported,
    finished,
    forget,
    imported,
)
from tests.unit.runs_app.features.transfer.measured import SITE
from tests.unit.runs_app.optimiser.conftest import Start, World

pytestmark = pytest.mark.django_db


def shown(run: Run) -> dict[str, Any]:
    """The figures of all that its pages fetch, without ids and names of places."""
    client, address = Client(), run.get_absolute_url()
    pages = {name: client.get(f"{address}{name}") for name in ("changes/", "replay/")}
    changes = [change for change in pages["replay/"].json()["changes"] if change["seq"] > 1]
    told: dict[str, Any] = {"now": pages["changes/"].json(), "then": changes}
    told["now"]["lines"] = [line for line in told["now"]["lines"] if "Started" not in line["text"]]
    told["now"].pop("seq")
    for number in range(1, run.candidates_made + 1):
        page = client.get(f"{address}candidates/{number}/").content.decode()
        told[f"candidate {number}"] = words_of(page.split('<div class="candidate', 1)[1])
        told[f"api {number}"] = client.get(f"/api/v1{address}candidates/{number}").json()
        told[f"api {number}"].pop("submission", None)
    page = client.get(address).content.decode()
    told["figures"] = words_of(page.split('class="verdict-head', 1)[1].split('id="replay"', 1)[0])
    told["table"] = words_of(page.split('id="table"', 1)[1].split("<aside", 1)[0])
    return told


def words_of(markup: str) -> list[str]:
    return re.sub(r"<[^>]*>", " ", markup.split("<footer", 1)[0]).split()


def test_a_run_comes_over_with_all_that_its_pages_show(
    start: Start, world: World, tmp_path: Path
) -> None:
    run = finished(start, world)
    entry = entered(run)
    before, steps = shown(run), replay_run(run)
    assert steps.differences == ()
    exported(run, tmp_path / "run.json.gz" if False else tmp_path / "run.json", note="A note")
    forget()
    assert "run.json: /runs/" in imported(tmp_path / "run.json")

    after = Run.objects.get()
    assert after.pk != run.pk
    report = replay_run(after)
    assert (report.differences, report.steps) == ((), steps.steps)
    told = shown(after)
    for name, value in before.items():
        if name == "then":
            assert told[name][:-1] == value
        else:
            assert told[name] == value, name
    assert Submission.objects.get(origin="imported").pk == entry.pk == after.best.entry_id
    counted = eligible_evaluations().get()
    assert (counted.submission_id, counted.device.imported_from) == (entry.pk, SITE)
