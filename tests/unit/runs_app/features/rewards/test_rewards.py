"""Rewards: one number for each of many kernels, and never for what isn't the kernel's fault."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data.integrity import AuditState
from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation, Status, Submission
from runs_app.submitting.services import cancel
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, end_audit, held, ranked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

GOOD = {"source": make.SOURCE, "language": "cpp"}


@pytest.fixture
def ada() -> User:
    make.make_task_version()
    make.make_cpu()
    return make.make_user(username="ada")


@pytest.fixture
def token(ada: User) -> str:
    return make.make_token(ada)


def post(token: str, *kernels: dict[str, Any], **more: Any) -> Any:
    body = {"task": "scale", "device": "cpu", "kernels": kernels, **more}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client().post(
        "/api/v1/rewards", json.dumps(body), content_type="application/json", headers=headers
    )


def get(token: str, *ids: object, **headers: str) -> Any:
    query = "&".join(f"ids={each}" for each in ids)
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    return Client().get(f"/api/v1/rewards?{query}", headers=headers)


def ended(user: User, *given: Any, **more: Any) -> Evaluation:
    return make.make_finished_evaluation(*given, user=user, private=True, **more)


def test_a_wrong_kernel_does_not_refuse_the_others(token: str) -> None:
    answer = post(token, GOOD, {"source": "", "language": "cpp"}, GOOD, {**GOOD, "language": "c"})
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert told["taken"] == 2
    assert [each["field"] for each in told["kernels"]] == ["", "source", "", "language"]
    assert all(bool(each["id"]) != bool(each["reason"]) for each in told["kernels"])
    rows = Submission.objects.all()
    assert {(row.private, row.origin, row.author.username) for row in rows} == {
        (True, Submission.Origin.API, "ada")
    }
    assert set(Evaluation.objects.values_list("mode", flat=True)) == {"quick"}
    ids = [told["kernels"][n]["id"] for n in (0, 2)]
    headers = {"Authorization": f"Bearer {token}"}
    asked = Client().get("/api/v1/rewards", {"ids": ids}, headers=headers)
    assert [each["id"] for each in asked.json()] == ids


@pytest.mark.parametrize(
    ("bad", "field", "words"),
    [
        ({"source": "int a;\n\0"}, "source", "a NUL character in line 2, column 1: remove it"),
        ({"source": "int a; \ud800"}, "source", "half a character"),
        ({"language": "\0"}, "language", "is not one of"),
        ({"entry": "\0", "files": {"a.h": ""}}, "entry", "must end with .cpp"),
        ({"files": {"a.h": "\0"}}, "files", "'a.h' contains a NUL character"),
        ({"files": {"a\ud800.h": ""}}, "files", "a\\ud800.h"),
    ],
)
def test_a_character_that_nobody_can_store_refuses_one_kernel(
    token: str, bad: dict[str, Any], field: str, words: str
) -> None:
    for device in ("cpu", ""):
        answer = post(token, GOOD, {**GOOD, **bad}, GOOD, device=device)
        assert answer.status_code == 201, answer.content
        told = answer.json()
        assert (told["taken"], told["kernels"][1]["field"]) == (2, field)
        assert words in told["kernels"][1]["reason"]


def test_what_is_wrong_with_a_request_for_rewards_is_in_our_words(token: str) -> None:
    wrong = get(token, "foo").json()
    assert (wrong["field"], wrong["reason"][:17]) == ("ids", "must be a full id")
    assert post(token, *[GOOD] * 65).json() == {
        "field": "kernels",
        "reason": "must have at most 64 items: split them over several requests",
    }


def test_what_is_wrong_with_all_stores_nothing(token: str) -> None:
    for more, field, status in (
        ({"task": "nothing"}, "task", 422),
        ({"device": "h100"}, "device", 422),
        ({"mode": "test"}, "mode", 422),
        ({"mode": "audit"}, "mode", 422),
        ({"direction": "up"}, "direction", 422),
        ({"agent": "kbench-naive"}, "agent", 422),
    ):
        answer = post(token, GOOD, **more)
        assert (answer.status_code, answer.json()["field"]) == (status, field), more
    assert post(token).status_code == 422
    assert post(token, *[GOOD] * 65).status_code == 422
    assert post("", GOOD).status_code == 401
    assert not Submission.objects.exists()


def test_the_quota_ends_a_batch_and_says_how_many_were_taken(token: str, settings: Any) -> None:
    settings.MAX_WAITING_PER_USER, settings.NEW_ACCOUNT_DAYS = 2, 0
    told = post(token, GOOD, {**GOOD, "language": "c"}, GOOD, GOOD, GOOD).json()
    assert told["taken"] == 2
    assert [each["later"] for each in told["kernels"]] == [False, False, False, True, True]
    assert "2 of 5 kernels were accepted" in told["kernels"][3]["reason"]
    refused = post(token, GOOD)
    assert (refused.status_code, refused.json()["field"]) == (429, "")


def test_the_reward_is_the_score_or_nothing(ada: User, token: str) -> None:
    right = ended(ada)
    wrong = ended(ada, Verdict.WRONG_RESULT)
    ours = ended(ada, Verdict.SYSTEM_ERROR)
    doubted = held(user=ada, private=True)
    counted = ended(ada, mode="ranked")
    waiting = make.make_evaluation(user=ada)
    stopped = make.make_evaluation(user=ada)
    cancel(evaluation=stopped, user=ada, now=make.NOW)
    alone = ended(ada)
    Evaluation.objects.filter(pk=alone.pk).update(speedup_best=None, score=None)
    rows = [right, wrong, ours, doubted, counted, waiting, stopped, alone]
    answer = get(token, *(row.submission_id for row in rows))
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert [each["id"] for each in told] == [str(row.submission_id) for row in rows]
    rewards = [each["reward"] for each in told]
    assert rewards == [pytest.approx(1.5), 0, None, 0, pytest.approx(1.5), None, None, None]
    assert [each["over"] for each in told] == [True, True, True, True, True, False, True, True]
    assert "quarantine" in told[3]["reason"]
    assert told[6]["verdict"] == ""
    assert [each["compared_with"] for each in told[4:6]] == ["best", ""]
    assert "no baseline" in told[7]["reason"]
    assert told[0]["seconds"] >= 0
    assert (told[5]["seconds"], told[0]["url"]) == (None, right.submission.get_absolute_url())
    assert "Retry-After" in answer
    again = get(token, *(row.submission_id for row in rows), **{"If-None-Match": answer["ETag"]})
    assert (again.status_code, "Retry-After" in again) == (304, True)
    assert "Retry-After" not in get(token, right.submission_id)


def test_what_an_audit_has_refused_earns_nothing_in_any_mode(ada: User, token: str) -> None:
    led = ranked(user=make.make_user(), source=make.SOURCE)
    end_audit(led, replace(MEMCHECK, state=AuditState.FAILED, reason="reads too far"))
    quick, other = (
        ended(ada, source=source, task_version=led.task_version)
        for source in (make.SOURCE, f"{make.SOURCE}// other")
    )
    told = get(token, quick.submission_id, other.submission_id).json()
    assert [each["reward"] for each in told] == [0, pytest.approx(1.5)]
    assert "audit" in told[0]["reason"]


def test_nobody_reads_the_rewards_of_others(ada: User, token: str) -> None:
    public = make.make_finished_evaluation(user=ada)
    own = ended(make.make_user(username="bob"))
    admin = make.make_token(make.make_admin())
    bob = make.make_token(own.submission.author)
    for asker, key in ((bob, public.submission_id), (admin, own.submission_id), (token, uuid4())):
        answer = get(asker, key)
        assert (answer.status_code, str(key) in answer.json()["reason"]) == (404, True)
    assert get(bob, own.submission_id, public.submission_id).status_code == 404
    assert get(token).json() == []
    assert get(token, *[own.submission_id] * 65).status_code == 422
    assert get("", public.submission_id).status_code == 401
    assert Evaluation.objects.filter(status=Status.FINISHED).count() == 2
