"""A task that a wrong kernel passes, or a filter flags, is not published without a reason."""

from __future__ import annotations

import functools
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from gpu_runner.data.formats import catalog_folder, load_task
from runs_app.core.errors import SubmissionError
from runs_app.features.curation.decisions.services import make_public
from tasks_app import selectors
from tasks_app.formats import loader
from tasks_app.models import AuditEntry, Override, Soundness, Task, TaskVersion
from tasks_app.publishing.services import admit, admit_all, publish, record_report
from tests import factories as make
from tests.unit.tasks_app.publishing.test_publish import write_task

pytestmark = pytest.mark.django_db

MUTANT = {"name": "zeros", "direction": "forward", "state": "failed", "workload": "n256"}
FILTER = {
    "name": "input impact: x", "direction": "forward", "workload": "n256", "value": 1.0,
    "limit": "1", "passed": True, "text": "another x, and nothing else, makes the result wrong",
}  # fmt: skip
RIGHT = {"name": "reference", "direction": "forward", "workload": "n256", "scaled": 0.25}
OFF = {"name": "reference", "direction": "forward", "workload": "n256", "scaled": 1.25}


def report(folder: Path, digest: str, name: str = "double", **changes: Any) -> Path:
    """A report as the command writes it."""
    folder.mkdir(exist_ok=True)
    document = {
        "task": name, "digest": digest, "device": "cpu", "passed": True, "survivors": [],
        "mutants": [MUTANT], "honest": [RIGHT], "filters": [FILTER],
    }  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(document | changes))
    return folder


def load(*arguments: object) -> str:
    out = io.StringIO()
    call_command("load_tasks", *map(str, arguments), stdout=out)
    return out.getvalue()


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of a task."""
    return write_task(tmp_path / "tasks" / "double")


@pytest.fixture
def digest(task: Path) -> str:
    """The digest of that task."""
    return load_task(task, "auto").digest()


def test_with_a_passing_report_of_its_digest_it_is_published(task: Path, digest: str) -> None:
    assert "loaded  double v1  in review\n1 in review" in load(task)
    assert Task.objects.get().state == Task.State.REVIEW
    assert selectors.find_task("double") is None
    assert selectors.find_task("double", make.make_admin()) is not None
    folder = report(task.parents[1] / "reports", digest)
    path = folder / "double.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))  # a mark
    assert "double v1  published\n1 read" in load(task, "--soundness", folder)
    assert selectors.find_task("double") is not None
    found = Soundness.objects.get()
    assert (found.passed, found.mutants, found.device) == (True, 1, "cpu")
    assert "double v1  unchanged\n" in load(task, "--soundness", path)
    assert Soundness.objects.count() == 1
    with pytest.raises(IntegrityError), transaction.atomic():  # a pass with survivors
        Soundness.objects.update(survivors=["forward: zeros"])
    document = json.loads(path.read_text("utf-8-sig"))
    del document["filters"]  # an older report sends it back to review
    path.write_text(json.dumps(document))
    assert "cover filters" in load(task, "--soundness", folder)
    assert selectors.find_task("double") is None
    assert Soundness.objects.get().passed is False


def test_a_report_that_proves_nothing_keeps_it_in_review(task: Path, digest: str) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"survivors": ["forward: half the reduction"], "passed": False}, "half the reduction"),
        ({"survivors": ["forward: zeros"]}, "1 of 1 wrong kernels pass it"),
        ({"mutants": []}, "covers no wrong kernels"),
        ({"passed": False}, "didn't pass"),
        ({"filters": []}, "cover filters"),
        ({"filters": [FILTER, FILTER | {"passed": False}]}, "1 of 2 filters flag it: forward: in"),
        ({"passed": False, "honest": [OFF]}, "reference fails (forward: 1.25 times"),
        # What a report says of itself is not believed against its own lists.
        ({"honest": [OFF]}, "reference fails (forward: 1.25 times"),
        ({"honest": []}, "didn't pass"),
        ({"mutants": [MUTANT | {"state": "survived"}]}, "1 of 1 wrong kernels pass it"),
        ({"mutants": [MUTANT | {"state": "equivalent"}]}, "didn't pass"),
    )
    for changes, words in cases:
        folder = report(task.parents[1] / "reports", digest, **changes)
        assert words in load(task, "--soundness", folder)
        assert selectors.find_task("double") is None


def test_a_report_of_another_version_or_task_proves_nothing_and_is_named(
    task: Path, digest: str
) -> None:
    folder = report(task.parents[1] / "reports", "0" * 64)
    report(folder, "1" * 64, name="triple")
    written = folder.with_name("written.json")
    said = load(task, "--soundness", folder, "--report", written).splitlines()
    assert said[0] == "loaded  double v1  in review"
    assert (digest[:12] in said[2], "no task named triple" in said[3]) == (True, True)
    unused = json.loads(written.read_text())["unused_reports"]
    told = [(each["task"], each["digest"]) for each in unused]
    assert told == [("double", "0" * 64), ("triple", "1" * 64)]
    report(folder, digest)
    (folder / "triple.json").unlink()
    assert "unused" not in load(task, "--soundness", folder)
    report(task.parent, digest)  # between tasks it is ignored and named
    said = load(task.parent, "--soundness", task.parent / "double.json").splitlines()
    assert said[1].endswith(": double.json")
    (task.parent / "odd.json").write_text('{"digest": ""}')
    with pytest.raises(CommandError, match="1 refused"):
        load(task.parent)


def test_an_empty_reason_is_an_error(task: Path) -> None:
    for reason in ("", "  "):
        with pytest.raises(CommandError, match="--publish-unproven: is empty"):
            load(task, "--publish-unproven", reason)
    assert not Task.objects.exists()


def test_a_reason_publishes_anyway_and_is_kept(task: Path, client: Client) -> None:
    assert "double v1  published\n" in load(task, "--publish-unproven", "<b>legacy</b>")
    assert "double v1  unchanged\n" in load(task)
    assert Override.objects.get().reason == "<b>legacy</b>"
    text = client.get("/tasks/double/").content.decode()
    assert "published anyway: &lt;b&gt;legacy" in text
    assert client.get("/api/v1/tasks/double").json()["override"] == "<b>legacy</b>"


def test_a_flagged_filter_is_named_and_needs_an_admins_reason(
    task: Path, digest: str, client: Client
) -> None:
    folder = report(
        task.parents[1] / "reports", digest, filters=[FILTER | {"passed": False}], passed=False
    )
    load(task, "--soundness", folder)
    row = Task.objects.get()
    client.force_login(make.make_admin(username="judge"))
    seen = Task.objects.get().versions.get().evidence
    form = {"action": "make-public", "version": "1", "reason": "x is a mask", "reports": seen}
    answer = client.post("/tasks/double/curate/", form)
    assert answer.status_code == 422
    assert "1 of 1 filters flag it" in answer.content.decode()
    row.refresh_from_db()
    assert row.state == Task.State.REVIEW
    client.post("/tasks/double/curate/", form | {"override": "1"})
    row.refresh_from_db()
    assert row.state == Task.State.PUBLISHED
    page = Client().get("/tasks/double/soundness/").content.decode()
    assert "published anyway by judge: x is a mask" in page
    load(task, "--soundness", folder)
    assert Task.objects.get().state == Task.State.PUBLISHED


def test_a_report_that_is_loaded_in_place_of_another_is_noted(task: Path, digest: str) -> None:
    folder = report(task.parents[1] / "reports", digest)
    load(task, "--soundness", folder)
    report(folder, digest, filters=[FILTER, FILTER])
    for _ in range(2):  # the second time nothing changes
        load(task, "--soundness", folder)
        entries = AuditEntry.objects.filter(kind=AuditEntry.Kind.LOADED)
        assert [entry.details for entry in entries] == [{"reports": ["cpu"]}] * 2


def test_an_unproven_change_leaves_the_public_version() -> None:
    first = publish(data=make.make_task(), now=make.NOW).version
    refused = admit(data=make.make_task(title="Other"), now=make.NOW)
    assert refused.refusal
    task = Task.objects.get()
    assert (task.current_version, task.state) == (first, "published")
    assert task.versions.count() == 2


def test_loading_does_not_undo_what_an_admin_made_public() -> None:
    old, new = make.make_task(), make.make_task(title="Better")
    load = functools.partial(admit_all, reports=(), override="known", now=make.NOW)
    for data in (old, new, old):
        assert load(tasks=[data])[0].made_public  # a command may go back to what one loaded
    task = Task.objects.get()
    second = task.versions.get(number=2)
    make_public(
        task=task, version=second, user=make.make_admin(), reason="mended", now=make.later(1)
    )
    [again] = load(tasks=[old])
    assert (again.made_public, again.refusal) == (False, "")
    task.refresh_from_db()
    assert task.current_version == second
    [changed] = load(tasks=[make.make_task(title="Best")])
    assert changed.made_public


def test_loading_keeps_what_a_runner_of_the_site_has_found() -> None:
    folder = catalog_folder() / "vector_add"
    load(folder)
    version = TaskVersion.objects.get(task__slug="vector_add")
    shipped = version.reports.get().document
    found = {**shipped, "passed": False, "survivors": ["forward: zeros"]}
    record_report(version, loader.report_of(found), make.later(1), made_here=True)
    for options, kept, state in (
        ((), found, Task.State.PUBLISHED),  # a person decides: see the task's page
        (("--soundness", loader.BUILT_IN_REPORTS), shipped, Task.State.PUBLISHED),
    ):
        load(folder, *options)
        assert Soundness.objects.get(version=version).document == kept
        assert Task.objects.get(slug="vector_add").state == state
        page = Client().get("/tasks/vector_add/").content.decode()
        assert ("A check has failed since this was published" in page) is (kept is found)


def test_what_was_public_before_stays_until_a_report_fails() -> None:
    version = publish(data=make.make_task(), now=make.NOW).version
    assert admit(data=make.make_task(), now=make.NOW).refusal == ""
    failing = loader.Report(
        task="scale", digest=version.digest, passed=False, survivors=("forward: zeros",),
        mutants=3, device="cpu", document={},
    )  # fmt: skip
    assert "1 of 3" in admit(data=make.make_task(), reports=[failing], now=make.NOW).refusal
    assert Task.objects.get().state == Task.State.REVIEW


def test_a_broken_report_is_named(task: Path) -> None:
    file = task.parents[1] / "broken.json"
    unnamed = '{"task": "", "digest": "", "passed": true, "survivors": [], "mutants": [{}]}'
    for text, words in (
        ("{", "not readable as JSON"),
        ("[]", "not a JSON object"),
        ('{"task": 1}', "task: is not"),
        ("{}", "task: is missing"),
        (unnamed, r"mutants\[0\].name: is missing"),
    ):
        file.write_text(text)
        with pytest.raises(CommandError, match=words):
            load(task, "--soundness", file)
    with pytest.raises(CommandError, match=r"there is no .*\nno tasks were loaded"):
        load(task, "--soundness", file.with_name("nothing"))
    assert not Task.objects.exists()


def test_admins_evaluate_what_is_in_review_and_nobody_else(client: Client) -> None:
    admit(data=make.make_task(), now=make.NOW)
    version = Task.objects.get().current_version
    assert version is not None
    with pytest.raises(SubmissionError, match="accept submissions"):
        make.make_submission(task_version=version)
    assert client.get("/tasks/scale/").status_code == 404
    admin = make.make_admin()
    evaluation = make.make_finished_evaluation(task_version=version, user=admin, mode="ranked")
    assert evaluation.audited == "none"
    client.force_login(admin)
    assert "nobody has shown" in client.get("/tasks/scale/").content.decode()
    listed = client.get("/tasks/").content.decode()
    assert "/tasks/scale/" not in listed
    assert 'href="/curate/?state=review"' in listed
    assert 'value="scale"' in client.get("/submit/").content.decode()


def test_an_override_does_not_answer_a_later_report(client: Client, tmp_path: Path) -> None:
    version = admit(data=make.make_task(), override="no report yet", now=make.NOW).version
    assert version.unproven == ""
    folder = report(tmp_path / "r", version.digest, "scale", passed=False, survivors=["zeros"])
    found = loader.report_of(json.loads((folder / "scale.json").read_text()))
    record_report(version, found, make.later(5), made_here=True)
    assert "1 of 1 wrong kernels pass it" in version.unproven
    text = client.get("/tasks/scale/").content.decode()
    assert "A check has failed since this was published" in text
    assert "no report yet" not in text
    Override.objects.create(version=version, reason="looked at it", created_at=make.later(6))
    assert version.unproven == ""


def test_a_pass_on_one_device_does_not_answer_what_another_found(client: Client) -> None:
    load(catalog_folder() / "vector_add")
    version = TaskVersion.objects.get(task__slug="vector_add")
    sound = dict(version.reports.get().document)
    on_gpu, on_other = {**sound, "device": "gpu"}, {**sound, "device": "gpu-2"}
    failed = {**on_gpu, "passed": False, "survivors": ["forward: zeros"]}
    for document, kept in ((failed, failed), (on_other, failed), (sound, failed)):
        record_report(version, loader.report_of(document), make.later(1), made_here=True)
        assert version.reports.get(kind="cuda").document == kept
        assert version.reports.get(kind="cpu").document == sound
    assert version.unproven.startswith("on gpu, 1 of ")
    for query, is_sound in (("", False), ("?device=cpu", True)):
        page = client.get(f"/tasks/vector_add/soundness/{query}").content.decode()
        assert ("Sound.</strong>" in page) is is_sound
    address = "/api/v1/tasks/vector_add/soundness"
    kinds = [client.get(address + end).json()["kind"] for end in ("", "?kind=cpu")]
    assert kinds == ["cuda", "cpu"]
    assert client.get(address + "?kind=tpu").status_code == 422
    load(catalog_folder() / "vector_add")  # as each start does: a person decides what was found
    assert Task.objects.get(slug="vector_add").state == Task.State.PUBLISHED
    record_report(version, loader.report_of(on_gpu), make.later(2), made_here=True)
    assert (version.unproven, version.unseen) == ("", ())
    shown = client.get("/tasks/vector_add/").content.decode()
    assert "(on gpu, cpu)" in shown or "(on cpu, gpu)" in shown


COUNTS = {"failed": {"n256": 3, "n4096": 1}, "passed": 2, "right": 1}


def test_a_brief_report_counts_and_proves_no_less(task: Path, digest: str) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"unlisted": {}}, "covers no wrong kernels"),
        ({"unlisted": {"forward": COUNTS | {"failed": {}}}}, "covers no wrong kernels"),
        ({"unlisted": {"forward": COUNTS | {"passed": 0}}}, "cover filters"),
        ({"mutants": [MUTANT | {"state": "survived"}]}, "1 of 5 wrong kernels pass it"),
        ({"honest": []}, "didn't pass"),
        ({}, ""),
    )
    short: dict[str, Any] = {"mutants": [], "filters": [], "unlisted": {"forward": COUNTS}}
    for changes, words in cases:
        folder = report(task.parents[1] / "reports", digest, **(short | changes))
        assert words in load(task, "--soundness", folder)
        assert (selectors.find_task("double") is None) == bool(words)
    found = Soundness.objects.get()
    assert (found.mutants, found.filters, found.untried) == (4, 2, 0)


def test_counts_that_count_nothing_are_refused(task: Path, digest: str) -> None:
    for unlisted in (
        [], {"sideways": COUNTS}, {"forward": COUNTS | {"passed": -1}},
        {"forward": COUNTS | {"right": 10**12}}, {"forward": {"failed": {"n256": "3"}}},
    ):  # fmt: skip
        folder = report(task.parents[1] / "reports", digest, unlisted=unlisted)
        with pytest.raises(CommandError, match="unlisted"):
            load(task, "--soundness", folder)
