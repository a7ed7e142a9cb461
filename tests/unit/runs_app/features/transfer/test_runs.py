"""A run goes from one site to another with all that its pages show, and can only be read there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from gpu_runner.data.formats import catalog_folder
from runs_app.core.errors import NotAllowed
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.features.transfer.management.commands import import_run as shipped
from runs_app.models import Agent, Evaluation, LanguageModelCall, Run, Submission
from runs_app.optimiser.services import control
from runs_app.optimiser.services.enter import enter_candidate
from runs_app.optimiser.services.reconcile_runs import reconcile_runs
from runs_app.optimiser.services.replay import replay_run
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
    """The figures of all that its pages fetch, without who started it, and the mark of the end."""
    client, address = Client(), run.get_absolute_url()
    now = client.get(f"{address}changes/").json()
    now["lines"] = [line for line in now["lines"] if not line["text"].startswith("Started")]
    changes = client.get(f"{address}replay/").json()["changes"]
    told = {"now": now, "then": changes[1:]}
    if run.device.imported_from:
        now["seq"] -= 1
        told["then"].pop()
    for number in range(1, run.candidates_made + 1):
        page = client.get(f"{address}candidates/{number}/")
        told[f"page {number}"] = words_of(page, '<div class="candidate')
        answer = client.get(f"/api/v1{address}candidates/{number}").json()
        told[f"api {number}"] = {key: answer[key] for key in answer if key != "submission"}
    page = client.get(address)
    told["figures"] = words_of(page, 'class="verdict-head', 'id="replay"')
    told["table"] = words_of(page, 'id="table"', "<aside")
    text = json.dumps(told).replace(ADDRESS, "the endpoint")
    found: dict[str, Any] = json.loads(text)
    return found


def words_of(answer: Any, begin: str, end: str = "<footer") -> list[str]:
    """What a page says between two marks."""
    assert answer.status_code == 200
    markup = answer.content.decode().split(begin, 1)[1].split(end, 1)[0]
    return re.sub(r"<[^>]*>", " ", markup).split()


def moved(start: Start, world: World, path: Path, **fields: Any) -> Run:
    """A run that was made on another site and imported here."""
    exported(finished(start, world, **fields), path)
    forget()
    imported(path)
    return Run.objects.get()


@pytest.mark.parametrize(
    ("name", "fields"), [("run.json", {}), ("run.json.gz", {"ranks_best": True})]
)
def test_a_run_comes_over_with_all_that_its_pages_show(
    start: Start, world: World, tmp_path: Path, name: str, fields: dict[str, Any]
) -> None:
    run = finished(start, world, **fields)
    entry = entered(run)
    entry.evaluations.update(audited="none")  # no audit is awaited where it is imported
    before, steps = shown(run), replay_run(run)
    assert steps.differences == ()
    exported(run, tmp_path / name, note="A note")
    forget()
    assert f"{name}: /runs/" in imported(tmp_path / name)

    after = Run.objects.get()
    assert after.pk != run.pk
    report = replay_run(after)
    assert (report.differences, report.steps) == ((), steps.steps)
    told = shown(after)
    assert before.keys() == told.keys()
    for part in before:
        assert told[part] == before[part], part
    assert [call.tokens_out for call in after.calls.order_by("number")] == [50, 50, 50]

    assert Submission.objects.get(origin="imported").pk == after.best.entry_id == entry.pk
    counts = eligible_evaluations().get()
    assert (counts.submission_id, counts.device.imported_from) == (entry.pk, SITE)
    rows = {str(each) for each in Evaluation.objects.values_list("pk", flat=True)}
    measuring = after.events.filter(kind="measuring").values_list("payload__row", flat=True)
    assert {row["evaluation"] for row in measuring} < rows
    asked = set(after.events.filter(kind="asked").values_list("payload__row__call", flat=True))
    assert asked == {str(call.pk) for call in after.calls.all()}


def test_its_pages_say_where_it_was_measured(
    start: Start, world: World, tmp_path: Path, client: Client
) -> None:
    client.force_login(make.make_admin())
    run = finished(start, world, user=make.make_user(username="ada-private", first_name="Ada"))
    exported(run, tmp_path / "run.json", note="Of an autumn day")
    forget()
    imported(tmp_path / "run.json")
    run = Run.objects.get()
    page = client.get(run.get_absolute_url()).content.decode()
    for words in (f"Measured on {SITE} and imported", "Of an autumn day", f"kbench-plain @ {SITE}"):
        assert words in page, words
    assert "Resume</button>" not in page
    measured = run.candidates.get(number=2).submission
    page = client.get(measured.get_absolute_url()).content.decode()
    assert (SITE in page, "Run again" in page) == (True, False)
    answer = client.get(f"/api/v1/submissions/{measured.pk}").json()
    assert (answer["origin"], answer["imported_from"]) == ("run", SITE)
    for address in ("/", "/runs/", f"/runs/new/?like={run.pk}", f"/runs/compare/?run={run.pk}"):
        assert client.get(address).status_code == 200, address


def test_nothing_is_done_to_an_imported_run(
    start: Start, world: World, tmp_path: Path, client: Client
) -> None:
    run = moved(start, world, tmp_path / "run.json")
    queued = len(world.jobs.enqueued), list(world.advances), len(world.calls)
    admin = make.make_admin()
    for act in (control.pause_run, control.resume_run, control.stop_run):
        with pytest.raises(NotAllowed, match=f"was made on {SITE} and imported"):
            act(run=run, user=admin, now=make.NOW)
    with pytest.raises(NotAllowed, match=f"was made on {SITE} and imported"):
        control.extend_run(run=run, user=admin, budget=control.budget_of(run), now=make.NOW)
    with pytest.raises(NotAllowed):
        enter_candidate(candidate=run.best, user=admin, now=make.NOW)
    later = make.later(172_800)
    reconcile_runs(now=later, listening_since=make.NOW)
    world.advance(run, later)
    assert (len(world.jobs.enqueued), list(world.advances), len(world.calls)) == queued
    assert not Evaluation.objects.exclude(status="FINISHED").exists()
    assert run.user.username == "kbench (imported)"
    assert not run.user.has_usable_password()
    own = Run.objects.filter(device__imported_from="")
    assert not own.exists()
    assert run.device_id not in client.get("/runs/new/").content.decode()


def test_twice_is_once_and_nobodys_own_run_is_replaced(
    start: Start, world: World, tmp_path: Path
) -> None:
    run = finished(start, world)
    entered(run)
    path = tmp_path / "run.json"
    exported(run, path)
    assert imported(path) == "run.json: already known\n"
    forget()
    imported(path)
    counts = [kind.objects.count() for kind in (Run, Submission, Evaluation, LanguageModelCall)]
    assert imported(path, path) == "run.json: already known\n" * 2
    kinds = (Run, Submission, Evaluation, LanguageModelCall)
    assert [kind.objects.count() for kind in kinds] == counts
    with pytest.raises(CommandError, match=f"run: was imported: only {SITE} can export it"):
        exported(Run.objects.get(), tmp_path / "again.json")


def test_only_what_everybody_sees_goes_out(start: Start, world: World, tmp_path: Path) -> None:
    ada = make.make_user(username="ada@example.org", email="ada@example.org")
    run = finished(start, world, user=ada, agent="robot")
    entered(run)
    secret = f"I mind {make.HIDDEN_WORKLOAD}"
    run.candidates.filter(number=2).update(title=secret)
    run.calls.filter(number=1).update(messages=[{"role": "user", "content": secret}])
    text = json.dumps(exported(run, tmp_path / "run.json"))
    left_out = (make.HIDDEN_WORKLOAD, "ada@", "1777", '"seeds"', '"blocks"', "127.0.0.1:9")
    for words in left_out:
        assert words not in text, words
    document = json.loads(text)
    assert document["run"]["submitter"] == ""
    assert "a hidden workload" in text
    assert document["run"]["calls"][2]["error"] == "I mind a hidden workload at the endpoint."
    names = {
        each["name"]
        for each in document["run"]["candidates"][0]["evaluations"][0]["result"]["workloads"]
    }
    assert names == {"n256", "n4096"}


def test_what_may_not_leave_stays(start: Start, world: World, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    run = start()
    with pytest.raises(CommandError, match="nothing was written: run: is not over"):
        exported(run, path)
    run = finished(start, world)
    run.calls.filter(number=1).update(told=False)
    with pytest.raises(CommandError, match="run: is not over"):
        exported(run, path)
    Agent.objects.filter(pk=run.agent_id).update(name="ada@example.org")
    with pytest.raises(CommandError, match="could be an e-mail address: rename that agent"):
        exported(run, path)
    Run.objects.filter(pk=run.pk).update(private=True)
    with pytest.raises(CommandError, match="run: is private"):
        exported(run, path)
    with pytest.raises(CommandError, match=r"must end in \.json or \.json\.gz"):
        exported(run, tmp_path / "run.parquet")
    Run.objects.filter(pk=run.pk).delete()
    with pytest.raises(CommandError, match="there is no run"):
        exported(run, path)
    assert not path.exists()


def test_runs_that_come_with_kbench_are_imported_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = len(list(shipped.FOLDER.glob("*.json.gz")))
    call_command("import_run", shipped=True)  # before there are tasks
    assert capsys.readouterr().out.count("left out") == count >= 6
    for task in ("prefix_sum", "swiglu"):
        call_command("load_tasks", catalog_folder() / task, verbosity=0)
    capsys.readouterr()
    call_command("import_run", shipped=True)
    assert capsys.readouterr().out.count("/runs/") == Run.objects.count() == count
    assert "the speed of the best baseline" in Client().get("/").content.decode()
    assert "price unknown" in Client().get("/runs/").content.decode()
    call_command("import_run", shipped=True)
    assert capsys.readouterr().out == ""
    with pytest.raises(CommandError, match="--shipped"):
        call_command("import_run")
