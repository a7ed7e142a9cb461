"""Results go from one site to another, as they were, and stand on boards of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.template.loader import render_to_string
from django.test import Client

from gpu_runner.data.verdict import Verdict
from runs_app.core.baselines.missing import awaited_baselines
from runs_app.core.errors import EventError, SubmissionError
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.core.queue.devices import resolve_device
from runs_app.core.work.result_state import EAGER_ONLY, result_state
from runs_app.features.transfer.management.commands import import_results as shipped
from runs_app.features.transfer.models import ResultImport
from runs_app.models import Agent, Evaluation, Submission
from runs_app.submitting.services import rerun
from runs_app.submitting.shipped import SYSTEM_USER, system_user
from tasks_app import spreadsheet
from tests import factories as make
from tests.unit.runs_app.features.transfer.measured import (
    SITE,
    exported,
    exported_one,
    forget,
    imported,
    ranked,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

BOARD = f"cpu-at-{SITE.replace('.', '')}"


@pytest.mark.parametrize("name", ["boards.json", "boards.json.gz", "boards.parquet"])
def test_a_result_comes_over_as_it_was(tmp_path: Path, name: str) -> None:
    before = ranked(800.0, agent="robot", language_model="brain-1", source=make.SOURCE)
    values = (before.latency_ns, before.speedup_best, before.speedup_spread, before.score)
    call_command("export_results", str(tmp_path / name), site=SITE, note="A note")
    forget()

    assert "1 new result(s), 0 already known" in imported(tmp_path / name)
    after = Evaluation.objects.get()
    assert (after.latency_ns, after.speedup_best, after.speedup_spread, after.score) == values
    assert (after.pk, after.submission_id) == (before.pk, before.submission_id)
    assert (after.verdict, after.mode, after.status) == ("CORRECT", "ranked", "FINISHED")
    assert after.finished_at == before.finished_at
    assert after.unlisted_speedup == before.unlisted_speedup == 1.5
    assert (after.submission.source, after.submission.origin) == (make.SOURCE, "imported")
    assert after.submission.agent.name == f"robot @ {SITE}"
    assert str(after.submission.language_model) == "brain-1"
    assert after.device.slug == BOARD
    assert after.result.document["environment"]["torch"] == "2.13.0"
    assert [w["name"] for w in after.result.document["workloads"]] == ["n256", "n4096"]
    assert (ResultImport.objects.get().site, ResultImport.objects.get().note) == (SITE, "A note")
    client = Client()
    client.force_login(make.make_admin())
    page = client.get(after.submission.get_absolute_url()).content.decode()
    assert (SITE in page, "2.13.0" in page, "Run again" in page) == (True, True, False)
    answer = client.get(f"/api/v1/submissions/{after.submission_id}").json()
    assert (answer["origin"], answer["imported_from"]) == ("imported", SITE)


@pytest.mark.parametrize("name", ["boards.json", "boards.parquet"])
def test_a_kernel_of_several_files_comes_over_whole(tmp_path: Path, name: str) -> None:
    files = {"in/a.h": "int a;\n", "b.h": ""}
    before = ranked(files=files, entry="main.cpp", source=make.SOURCE).submission
    ranked(source=f"{make.SOURCE}// alone\n")
    call_command("export_results", str(tmp_path / name), site=SITE)
    forget()
    assert "2 new result(s), 0 already known" in imported(tmp_path / name)
    after = Submission.objects.exclude(files={}).get()
    assert after.solution == before.solution
    assert after.digest == before.digest
    document = exported(tmp_path / "again.json") if name.endswith("json") else {"results": []}
    assert document["results"] == []  # what was imported isn't exported again


def test_a_file_of_another_kernel_is_refused(tmp_path: Path) -> None:
    document = exported_one(tmp_path, files={"a.h": "int a;\n"})
    [record] = document["results"]
    for change, words in (
        ({"a.h": "int b;\n"}, "doesn't match the source"),
        ({"../a.h": "int a;\n"}, "must be a relative path"),
    ):
        record["files"] = change
        (tmp_path / "one.json").write_text(json.dumps(document))
        with pytest.raises(CommandError, match=words):
            imported(tmp_path / "one.json")


def test_only_what_is_public_goes_out(tmp_path: Path) -> None:
    version = make.make_task_version()
    ada = make.make_user(username="ada-private-name", first_name="Countess")
    shown = ranked(task_version=version, user=ada)
    ranked(task_version=version, private=True)
    ranked(900.0, task_version=version, user=make.make_user(username="other"))
    make.make_finished_evaluation(mode="quick", task_version=version)
    text = json.dumps(exported(tmp_path / "all.json"))
    assert make.HIDDEN_WORKLOAD not in text
    assert "1777" not in text
    assert '"seeds"' not in text
    assert "ada-private-name" not in text
    assert "Countess" in text
    assert '"blocks"' not in text
    assert text.count('"evaluation"') == 2
    assert str(shown.pk) in text


def test_a_name_that_could_be_an_address_stays_here(tmp_path: Path) -> None:
    first = ranked(user=make.make_user(username="ada@example.org"))
    ranked(user=make.make_user(username="eve@example.org"), task_version=first.task_version)
    results = exported(tmp_path / "all.json")["results"]
    assert "example.org" not in json.dumps(results)
    names = {(result["agent"], result["submitter"]) for result in results}
    assert len(names) == 2
    assert all(agent == submitter for agent, submitter in names)
    forget()
    assert "2 new result(s)" in imported(tmp_path / "all.json")


def test_importing_twice_changes_nothing_and_a_longer_file_brings_the_rest(tmp_path: Path) -> None:
    version = make.make_task_version()
    ranked(task_version=version)
    exported(tmp_path / "one.json")
    ranked(900.0, task_version=version)
    exported(tmp_path / "two.json")
    forget()
    assert "1 new" in imported(tmp_path / "one.json")
    assert "0 new result(s), 1 already known" in imported(tmp_path / "one.json")
    assert "1 new result(s), 1 already known" in imported(tmp_path / "two.json")
    assert Evaluation.objects.count() == 2
    assert [each.results for each in ResultImport.objects.all()] == [1, 1]


def test_a_site_leaves_its_own_results_alone_and_exports_none_of_others(tmp_path: Path) -> None:
    own = ranked()
    exported(tmp_path / "own.json")
    assert "0 new result(s), 1 already known" in imported(tmp_path / "own.json")
    own.refresh_from_db()
    assert own.device_id == "cpu"
    forget()
    imported(tmp_path / "own.json")
    assert exported(tmp_path / "again.json")["results"] == []


def test_other_versions_of_a_task_are_left_out_and_named(tmp_path: Path) -> None:
    document = exported_one(tmp_path)
    document["results"][0]["task_digest"] = "0" * 64
    (tmp_path / "other.json").write_text(json.dumps(document))
    said = imported(tmp_path / "other.json")
    assert "0 new" in said
    assert "left out: 1 for tasks or versions that this site lacks: scale" in said
    assert not ResultImport.objects.exists()


def test_shipped_kernels_keep_their_agent_and_people_are_nobody_here(tmp_path: Path) -> None:
    alice = make.make_user(username="alice")
    first = ranked(user=alice, source=make.SOURCE)
    Submission.objects.filter(pk=first.submission_id).update(
        author=system_user(),
        origin="shipped",
        agent=Agent.objects.create(name="kbench-good", kind="shipped", created_at=make.NOW),
    )
    ranked(900.0, user=alice, task_version=first.task_version)
    exported(tmp_path / "all.json")
    forget()
    imported(tmp_path / "all.json")
    agents = {s.agent.name: s.agent for s in Submission.objects.select_related("agent")}
    assert set(agents) == {"kbench-good", f"alice @ {SITE}"}
    assert agents[f"alice @ {SITE}"].user is None
    assert Submission.objects.filter(author=alice).count() == 0
    assert Submission.objects.filter(author__username=SYSTEM_USER).count() == 0


def test_a_name_of_another_site_is_nobodys_here(tmp_path: Path) -> None:
    Agent.objects.create(name=f"robot @ {SITE}", kind="agent", created_at=make.NOW)
    ranked(agent="robot")
    exported(tmp_path / "all.json")
    forget()
    imported(tmp_path / "all.json")
    submission = Submission.objects.get()
    assert submission.agent.name == f"robot @ {SITE} (imported)"
    with pytest.raises(SubmissionError, match="is taken by an agent on another site"):
        make.make_submission(task_version=submission.task_version, agent=submission.agent.name)


def test_nothing_runs_where_results_were_imported(tmp_path: Path) -> None:
    document = exported_one(tmp_path)
    imported(tmp_path / "one.json")
    evaluation = Evaluation.objects.get()
    with pytest.raises(SubmissionError, match="known devices: cpu"):
        resolve_device(BOARD)
    with pytest.raises(SubmissionError, match="has no device"):
        rerun(submission=evaluation.submission, user=make.make_admin(), now=make.NOW)
    with pytest.raises(EventError, match="has results from another site"):
        make.beat(device=BOARD)
    assert document["results"][0]["device"] == "cpu"


def test_it_stands_on_a_board_that_says_so_and_on_no_other(tmp_path: Path, client: Client) -> None:
    version = make.make_task_version()
    document = exported_one(tmp_path, time_ns=100.0, task_version=version, agent="robot")
    imported(tmp_path / "one.json")
    local = ranked(task_version=version)
    assert eligible_evaluations().count() == 2

    own = client.get("/leaderboard/", {"device": "cpu", "task": "scale"}).content.decode()
    assert str(local.submission_id) in own
    assert document["results"][0]["submission"] not in own
    assert f"(imported from {SITE})" in own  # the choice of devices names it

    page = client.get("/leaderboard/", {"device": BOARD, "task": "scale"}).content.decode()
    assert document["results"][0]["submission"] in page
    assert str(local.submission_id) not in page
    assert page.count(">Imported<") == 1

    models = client.get("/leaderboard/", {"device": BOARD, "by": "model"}).content.decode()
    assert "language models weren't recorded" in models
    assert "Submit a" not in models

    other = {"site": SITE, "note": "of another device", "digest": "d", "results": 0}
    ResultImport.objects.create(exported_at=make.NOW, imported_at=make.NOW, **other)
    page = client.get("/leaderboard/", {"device": BOARD, "task": "scale"}).content.decode()
    assert "of another device" not in page
    assert page.count(">Imported<") == 1

    task = client.get("/tasks/scale/").content.decode()
    assert f"CPU (imported from {SITE})" in task


def test_files_of_one_day_name_it_once() -> None:
    files = [
        ResultImport(site=SITE, note=note, exported_at=at, imported_at=make.NOW)
        for note, at in (("a", make.NOW), ("b", make.later(60)), ("c", make.later(9 * 86400)))
    ]
    said = render_to_string("transfer/parts/imports.html", {"imports": files})
    words = (str(make.NOW.year), "(a)", "(b)", "(c)")
    assert [said.count(word) for word in words] == [2, 1, 1, 1]


def test_one_that_is_wrong_or_without_all_baselines_comes_over_as_such(
    tmp_path: Path, client: Client
) -> None:
    ranked(verdict=Verdict.WRONG_RESULT, agent="robot")
    ranked(task_version=make.make_task_version())
    document = exported(tmp_path / "all.json")
    forget()
    for record in document["results"]:
        if record["verdict"] == "CORRECT":
            record["pending_baselines"] = ["compiled"]
    (tmp_path / "all.json").write_text(json.dumps(document))
    imported(tmp_path / "all.json")
    assert Evaluation.objects.filter(verdict="WRONG_RESULT").count() == 1
    evaluation = Evaluation.objects.get(verdict="CORRECT")
    assert result_state(evaluation) is EAGER_ONLY
    assert "didn't report a time" in awaited_baselines(evaluation, evaluation.result.data)
    told = EAGER_ONLY.meaning
    for address in (f"/leaderboard/?device={BOARD}", evaluation.submission.get_absolute_url()):
        page = client.get(address).content.decode()
        assert told in page
        assert "to come" not in page
    verified = client.get(f"/leaderboard/?device={BOARD}&verified=1").content.decode()
    assert "audited automatically" not in verified


def test_html_is_text(tmp_path: Path, client: Client) -> None:
    document = exported_one(tmp_path)
    hostile = "<script>alert(1)</script>"
    document["note"] = hostile
    record = document["results"][0]
    record["device_name"] = hostile
    record["environment"] = {hostile: hostile}
    record["reason"] = hostile
    (tmp_path / "one.json").write_text(json.dumps(document))
    imported(tmp_path / "one.json")
    submission = f"/submissions/{record['submission']}/"
    for address in (submission, f"/leaderboard/?device={BOARD}", "/tasks/scale/", "/"):
        page = client.get(address)
        assert page.status_code == 200
        assert hostile not in page.content.decode()


def test_a_command_names_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="specify a FILE or --shipped"):
        call_command("import_results")
    for options, reason in (
        ({"site": ""}, "--site: "),
        ({"site": "<b>"}, "site: must have"),
        ({"device": "gpu"}, "--device: there is no device 'gpu'; known devices: cpu"),
        ({"task": "nothing"}, "--task: there is no published task 'nothing'"),
    ):
        with pytest.raises(CommandError) as caught:
            exported(tmp_path / "a.json", **options)
        assert reason in str(caught.value)
    with pytest.raises(CommandError, match="cannot be written"):
        exported(tmp_path / "missing" / "a.json")
    monkeypatch.setattr(spreadsheet.importlib.util, "find_spec", lambda name: None)
    ranked()
    with pytest.raises(CommandError, match=r"pip install 'kbench\[parquet\]'"):
        call_command("export_results", str(tmp_path / "a.parquet"), site=SITE)
    assert list(tmp_path.iterdir()) == []
    assert exported(tmp_path / "a.json")["results"], "JSON needs no package"


def test_shipped_files_are_imported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in shipped.shipped_files():
        assert shipped.unseen(path) is not None
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    call_command("import_results", shipped=True)  # there are none
    assert capsys.readouterr().out == ""
    (tmp_path / "shipped").mkdir()
    exported_one(tmp_path / "shipped")
    capsys.readouterr()
    call_command("import_results", shipped=True)
    assert "1 new result(s)" in capsys.readouterr().out
    call_command("import_results", shipped=True)
    assert capsys.readouterr().out == ""
    assert Evaluation.objects.count() == 1
