"""What a program asks often: where a submission stands, and what it has entered itself."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.utils import timezone

from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation, Run, Submission
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def get(path: str, token: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client().get(path if path[0] == "/" else f"/api/v1/{path}", headers=headers)


def next_of(answer: Any) -> str:
    """Address of the next page; empty on the last one."""
    found = re.fullmatch(r'<(.+)>; rel="next"', answer.get("Link", ""))
    return found.group(1) if found else ""


def test_the_status_is_small_and_says_all_that_matters() -> None:
    evaluation = make.make_finished_evaluation(Verdict.WRONG_RESULT)
    answer = get(f"submissions/{evaluation.submission_id}/status")
    assert answer.status_code == 200
    assert len(answer.content) < 1024
    status = answer.json()
    assert (status["status"], status["over"]) == ("FINISHED", True)
    assert status["verdict"] == "WRONG_RESULT"
    assert status["evaluation"] == str(evaluation.pk)
    assert status["quarantine"] == "none"
    assert status["events"] == evaluation.events.count()
    path = f"submissions/{evaluation.submission_id}/status"
    Evaluation.objects.update(reason="x" * 5000)
    assert len(get(path).json()["reason"]) == 280
    for query in ("wait=1", "evaluation=7"):
        answer = get(f"{path}?{query}")
        assert (answer.status_code, answer.json()["field"]) == (422, query.split("=")[0])
    assert get(f"{path}?evaluation={uuid4()}").status_code == 404
    assert get("submissions/nonsense/status").status_code == 404


def test_an_audit_is_not_what_an_author_waits_for() -> None:
    first = make.make_finished_evaluation(mode="ranked")
    path = f"submissions/{first.submission_id}/status"
    status = get(path).json()
    assert (status["score"], status["state"]) == (pytest.approx(1.5), "provisional")
    make.pass_audits()
    assert get(path).json()["state"] == "verified"
    audit = Evaluation.objects.create(
        submission=first.submission, task_version=first.task_version, direction=first.direction,
        device=first.device, mode="audit", queue_place=Urgency.AUDITS.place,
        created_at=make.later(9), queued_at=make.later(9),
    )  # fmt: skip
    assert get(path).json()["evaluation"] == str(first.pk)
    assert get(f"{path}?evaluation={audit.pk}").json()["evaluation"] == str(audit.pk)


def test_an_answer_without_news_is_short_and_says_when_to_ask_again() -> None:
    evaluation = make.make_evaluation()
    for end, goes_on in (("/status", make.start), ("", make.finish)):
        path = f"/api/v1/submissions/{evaluation.submission_id}{end}"
        first = Client().get(path)
        known = {"If-None-Match": first["ETag"]}
        second = Client().get(path, headers=known)
        assert (second.status_code, second.content) == (304, b"")
        assert second["ETag"] == first["ETag"]
        assert second["Kbench-Version"]
        goes_on(evaluation)
        assert Client().get(path, headers=known).status_code == 200


def test_what_takes_long_is_asked_for_less_often() -> None:
    evaluation = make.make_evaluation()
    run = make.make_run(task_version=evaluation.task_version)
    path = f"submissions/{evaluation.submission_id}/status"
    for age_s, pause in ((0, "1"), (35, "3"), (9000, "10")):
        begun = timezone.now() - timedelta(seconds=age_s)
        Evaluation.objects.update(created_at=begun)
        Run.objects.update(created_at=begun)
        assert get(path)["Retry-After"] == get(f"runs/{run.pk}")["Retry-After"] == pause
    make.finish(evaluation)
    assert "Retry-After" not in get(path)


def test_the_beginning_that_pages_show_is_enough() -> None:
    ada, eve = make.make_user(), make.make_user(username="eve")
    key = make.make_evaluation(user=ada, private=True).submission_id
    for path in (f"submissions/{key}/status", f"submissions/{str(key)[:8]}/status"):
        assert get(path, make.make_token(ada)).json()["submission"] == str(key)
    answer = get(f"submissions/{str(key)[:8]}", make.make_token(eve))
    assert (answer.status_code, "begins" in answer.json()["reason"]) == (404, True)
    assert get(f"submissions/{str(key)[:7]}", make.make_token(ada)).status_code == 404
    same = UUID(int=key.int ^ 1)
    copy = Submission.objects.get(pk=key)
    copy.pk = same
    copy.save(force_insert=True)
    answer = get(f"submissions/{str(key)[:8]}", make.make_token(ada))
    assert (answer.status_code, "several" in answer.json()["reason"]) == (404, True)
    assert get(f"submissions/{same}", make.make_token(ada)).status_code == 200


def test_ones_own_submissions_come_a_page_at_a_time(django_assert_max_num_queries: Any) -> None:
    ada = make.make_user(username="ada")
    token = make.make_token(ada)
    mine = [str(make.make_finished_evaluation(user=ada).submission_id) for _ in range(5)]
    other = make.make_finished_evaluation(user=make.make_user(username="eve"))
    make.give_to_run(make.make_submission(user=ada))
    seen: list[str] = []
    address = "/api/v1/submissions?limit=2&task=scale"
    while address:
        answer = get(address, token)
        assert answer.status_code == 200, answer.content
        assert all(row["latest"]["verdict"] == "CORRECT" for row in answer.json())
        seen += [row["id"] for row in answer.json()]
        address = next_of(answer)
    assert sorted(seen) == sorted(mine)
    with django_assert_max_num_queries(7):
        assert len(get("submissions", token).json()) == 5
    for query in ("task=nothing", "after=7", f"after={other.submission_id}"):
        refused = get(f"submissions?{query}", token)
        assert (refused.status_code, refused.json()["field"]) == (422, query.split("=")[0])
    answer = get("submissions")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")


def test_runs_tasks_versions_and_boards_have_pages() -> None:
    for name in ("alpha", "beta_b"):
        make.make_task_version(name=name, signature=f"void {name}(float* out, int N)")
    ada = make.make_user(username="ada")
    version = make.make_task_version()
    for _ in range(3):
        make.make_run(task_version=version, user=ada)
    for path, key in (("runs?limit=1", "id"), ("tasks?limit=1", "name")):
        whole = get(path.split("?")[0]).json()
        assert len(whole) == 3
        seen, address = [], f"/api/v1/{path}"
        while address:
            answer = get(address)
            seen += [row[key] for row in answer.json()]
            address = next_of(answer)
        assert seen == [row[key] for row in whole]
    assert next_of(get("tasks/scale/versions?limit=1")) == ""
    assert get("runs?after=7").json()["field"] == "after"


def test_head_is_get_without_its_body() -> None:
    make.make_task_version()
    for path in ("tasks", "tasks/scale", "openapi.json", "queue"):
        head = Client().head(f"/api/v1/{path}", headers={"Accept-Encoding": "identity"})
        body = get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head["Content-Length"] == str(len(body.content))
    assert Client().head("/api/v1/tasks/nothing").status_code == 404
    assert Client().head("/api/v1/runs/1/pause").status_code == 405


def cancel(path: str, token: str, **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = f"/api/v1/submissions/{path}/cancel"
    return Client().post(address, body, content_type="application/json", headers=headers)


def test_an_evaluation_is_cancelled_by_its_owner_alone() -> None:
    evaluation = make.make_evaluation()
    path = str(evaluation.submission_id)
    assert cancel(path, "").status_code == 401
    stranger = make.make_token(make.make_user(username="bob"))
    assert cancel(path, stranger).status_code == 403
    token = make.make_token(evaluation.submission.author)
    reading = make.make_token(evaluation.submission.author, scopes=["read"])
    assert cancel(path, reading).status_code == 401
    evaluation.refresh_from_db()
    assert evaluation.status == "QUEUED"
    assert cancel(str(uuid4()), token).status_code == 404
    assert cancel(path, token, evaluation=str(uuid4())).status_code == 404
    assert cancel(path, token, evaluatoin="x").json()["field"] == "evaluatoin"
    told = cancel(path, token)
    assert (told.status_code, told.json()["status"]) == (200, "CANCELLED")
    assert cancel(path, token).status_code == 409
    headers = {"Authorization": f"Bearer {token}"}
    for body, kind in (("", ""), ("", "application/json"), ("{}", "")):  # it takes none
        Evaluation.objects.update(status="QUEUED", finished_at=None)
        address = f"/api/v1/submissions/{path}/cancel"
        told = Client().generic("POST", address, body, content_type=kind, headers=headers)
        assert (told.status_code, told.json()["status"]) == (200, "CANCELLED")
