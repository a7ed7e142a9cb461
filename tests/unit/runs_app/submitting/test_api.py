"""The API as programs meet it: addresses, tokens, errors, and the short status."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode, Verdict
from kbench_web.models import ApiToken
from runs_app.core.work import lifecycle
from runs_app.models import Evaluation, Submission
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

URL = "/api/v1/submissions"


def body(**changes: Any) -> dict[str, Any]:
    return {"task": "scale", "source": make.SOURCE, "language": "cpp", **changes}


def post(token: str, data: Any, client: Client | None = None) -> Any:
    return (client or Client()).post(
        URL,
        data if isinstance(data, str) else json.dumps(data),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )


@pytest.fixture
def token() -> str:
    make.make_task_version()
    return make.make_token(make.make_user(username="ada"))


@pytest.mark.django_db
def test_tasks_whose_names_fit_best_come_first_on_every_page() -> None:
    for name, title in (("attention", "Softmax attention"), ("max_softmax", ""), ("softmax", "")):
        make.make_task_version(name=name, title=title or name)
    first = Client().get("/api/v1/tasks?q=softmax&limit=2")
    assert first.json()[0]["name"] == "softmax"
    onward = first["Link"].partition("<")[2].partition(">")[0]
    names = [each["name"] for each in first.json() + Client().get(onward).json()]
    assert sorted(names) == ["attention", "max_softmax", "softmax"]


def test_a_submission_is_created_and_can_be_read(token: str) -> None:
    created = post(token, body(agent="evolver", model="gpt-9", mode="test"))
    assert created.status_code == 201
    answer = created.json()
    assert answer["url"] == f"/submissions/{answer['id']}/"
    assert created["Location"] == f"/api/v1{answer['url'].rstrip('/')}"
    assert "no runner for CPU has ever reported" in answer["waiting_reason"]
    assert created["X-Quota-Remaining"] == "499"
    assert created["RateLimit-Limit"] == "600"
    assert int(created["RateLimit-Remaining"]) < 600

    shown = get(f"submissions/{answer['id']}").json()
    assert (shown["author"], shown["agent"], shown["model"]) == ("ada", "evolver", "gpt-9")
    assert (shown["task"], shown["language"]) == ("scale", "cpp")
    assert (shown["origin"], shown["private"]) == ("api", False)
    (evaluation,) = shown["evaluations"]
    assert evaluation["id"] == answer["evaluation"]
    assert (evaluation["status"], evaluation["verdict"]) == ("QUEUED", "")
    assert evaluation["result"] is None


def test_a_finished_evaluation_shows_its_result() -> None:
    evaluation = make.make_finished_evaluation()
    path = f"submissions/{evaluation.submission_id}"
    (shown,) = get(path).json()["evaluations"]
    assert (shown["verdict"], shown["latency_ns"], shown["speedup"]) == ("CORRECT", 1000.0, 1.5)
    assert shown["noise"] == pytest.approx(0.157, abs=0.001), "1 %, and that between evaluations"
    assert [w["name"] for w in shown["result"]["workloads"]] == ["n256"]
    short, whole = (get(f"{path}{more}").json() for more in ("", "?raw=true"))
    assert ("environment" in short["left_out"], whole["left_out"]) == (True, [])
    for told, has_all in ((short, False), (whole, True)):
        result = told["evaluations"][0]["result"]
        assert ("environment" in result, "processes" in result["workloads"][0]) == (
            has_all,
            has_all,
        )
    (shown,) = get(path, make.make_token(make.make_admin())).json()["evaluations"]
    assert [w["name"] for w in shown["result"]["workloads"]] == ["n256", make.HIDDEN_WORKLOAD]


def test_a_result_has_each_error_once_and_in_all_below_8_kb() -> None:
    error = "kernel.cu(7): error: no instance of function"
    log = "nvcc\n" * 99 + "\n" + "\n\n".join(f"{error}\n  T = {n} {'x' * 600}" for n in range(52))
    command = {"cached": False, "duration_s": 1.0, "command": "nvcc", "compiler": "nvcc 13"}
    build = BuildReport(ok=False, log=log, digest="", **command)
    found = make.make_finished_evaluation(
        Verdict.COMPILE_ERROR, {"build": build, "output": "y" * 9000}
    )
    path = f"submissions/{found.submission_id}"
    short, whole = (get(f"{path}{more}") for more in ("", "?raw=true"))
    result = short.json()["evaluations"][0]["result"]
    assert (result["build"]["log"].count(error), len(result["output"])) == (1, 1200)
    assert {"build.log", "output"} < set(short.json()["left_out"])
    assert len(short.content) < 8000
    result = whole.json()["evaluations"][0]["result"]
    assert (result["build"]["log"], len(result["output"])) == (log, 9000)


def test_bad_input_names_field_and_reason(token: str) -> None:
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("task", {"task": "nothing"}),
        ("language", {"language": ""}),
        ("abi", {"abi": "torch"}),
        ("source", {"source": 7}),
        ("source", {"source": "// flags: -lcuda\nint x;"}),
        ("model", {"model": "<b>"}),
        ("langauge", {"langauge": "cpp"}),
        ("private", {"private": "perhaps"}),
    )
    for field, changes in cases:
        response = post(token, body(**changes))
        assert response.status_code == 422, response.content
        assert response.json()["field"] == field
        assert response.json()["reason"]
    told = post(token, {"tsk": "scale", "source": 5}).json()
    assert told["field"] == "tsk"
    also = [each["field"] for each in told["also"]]
    assert also == ["task", "source", "language"], "one refusal names all that is wrong"
    wrong = body(task="nothing", device="tpu", mode="fast", source="", agent="<b>", model="<b>")
    told = post(token, wrong).json()
    named = [told["field"], *(each["field"] for each in told["also"])]
    assert named == ["task", "device", "source", "mode", "agent", "model"]
    assert all(each["reason"] for each in told["also"])
    assert not Submission.objects.exists()
    for text in ("{", "", "[1,", "null", "[]", '"text"', "\ufeff{}", "[" * 100_000):
        response = post(token, text)
        assert response.status_code in (400, 422)
        assert response.json()["reason"]
    assert not Submission.objects.exists()


def test_who_may_not_submit_is_told_why(token: str) -> None:
    response = post("", body())
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    assert "create_token" in response.json()["reason"]
    client = Client()
    client.force_login(make.make_admin())
    assert post("", body(), client).status_code == 401, "a session is no token"
    past = {"lifetime": timedelta(seconds=-1)}
    weak: tuple[tuple[dict[str, Any], int, str], ...] = (
        (past, 401, "expired"),
        ({"scopes": ["read"], **past}, 401, "expired"),
        ({"scopes": ["read"]}, 403, "lacks the scope 'submit'"),
    )
    for changes, status, words in weak:
        response = post(make.make_token(make.make_user(), **changes), body())
        assert (response.status_code, words in response.json()["reason"]) == (status, True)
        assert ("WWW-Authenticate" in response) == (status == 401)
    assert post(token, body(source="x" * (9 << 20))).status_code == 413
    assert not Submission.objects.exists()


def test_a_token_can_be_unknown_revoked_or_orphaned(token: str) -> None:
    for text in ("kb_wrong", "", "\u00e4", token[:-1]):
        headers = {"Authorization": f"Bearer {text}"}
        response = Client().get("/api/v1/tasks", headers=headers)
        assert response.status_code == 401, text
    ApiToken.objects.update(revoked_at=datetime.now(UTC))
    assert "revoked" in post(token, body()).json()["reason"]
    ApiToken.objects.update(revoked_at=None)
    ApiToken.objects.get().user.__class__.objects.update(is_active=False)
    assert "disabled" in post(token, body()).json()["reason"]


def test_a_full_quota_is_a_429(token: str, settings: Any) -> None:
    settings.MAX_WAITING_PER_USER = 1
    assert post(token, body()).status_code == 201
    response = post(token, body())
    assert response.status_code == 429
    assert "1 evaluations" in response.json()["reason"]
    assert (response.json()["limit"], 0 < int(response["Retry-After"]) < 60) == ("waiting", True)
    settings.MAX_WAITING_PER_USER, settings.MAX_SUBMISSIONS_PER_DAY = 9, 1
    response = post(token, body())
    assert response.json()["limit"] == "per_day"
    assert 86_000 < int(response["Retry-After"]) <= 86_400, "until the first stops counting"


def test_unknown_addresses_and_methods_are_refused_in_the_form_of_errors() -> None:
    for path in ("/api/v1/nothing", "/api/v2/tasks", "/api/nothing"):
        answer = Client().get(path)
        assert answer.status_code == 404
        assert (answer.json()["field"], bool(answer.json()["reason"])) == ("", True)
    answer = Client().delete("/api/v1/tasks")
    assert answer.status_code == 405
    assert (answer["Allow"], "DELETE" in answer.json()["reason"]) == ("GET", True)


def test_many_evaluations_of_a_submission_take_no_more_queries(
    django_assert_max_num_queries: Any,
) -> None:
    first = make.make_finished_evaluation(mode="ranked")
    path = f"submissions/{first.submission_id}"
    get(path)
    for minutes in range(1, 7):
        again = lifecycle.evaluate(
            submission=first.submission,
            device=first.device,
            mode=Mode.RANKED,
            now=make.later(minutes),
        )
        make.finish(again)
    with django_assert_max_num_queries(10):
        shown = get(f"{path}?raw=true").json()["evaluations"]
    ranked = [each for each in shown if each["mode"] == "ranked"]
    assert len(ranked) == 7
    assert all(each["result"] for each in ranked)
    brief = get(path).json()
    assert "results of earlier evaluations in the same mode" in brief["left_out"]
    have = [each["id"] for each in brief["evaluations"] if each["result"]]
    assert have == [shown[0]["id"]], "the newest in a mode stands for the earlier ones"


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
    assert get(path).json()["reason"] == "x" * 499 + "…"
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


def test_the_beginning_that_pages_show_is_enough() -> None:
    ada, eve = make.make_user(), make.make_user(username="eve")
    key = make.make_evaluation(user=ada, private=True).submission_id
    for path in (f"submissions/{key}/status", f"submissions/{str(key)[:8]}/status"):
        assert get(path, make.make_token(ada)).json()["submission"] == str(key)
    answer = get(f"submissions/{str(key)[:8]}", make.make_token(eve))
    assert (answer.status_code, "begins" in answer.json()["reason"]) == (404, True)
    assert get(f"submissions/{str(key)[:7]}", make.make_token(ada)).status_code == 404
    run = make.make_run(user=ada, task_version=make.make_task_version(name="other"), private=True)
    assert get(f"runs/{str(run.pk)[:8]}", make.make_token(ada)).json()["id"] == str(run.pk)
    assert get(f"runs/{str(run.pk)[:8]}", make.make_token(eve)).status_code == 404
    pages = {f"/submissions/{str(key)[:8]}/": f"/submissions/{key}/"}
    pages[f"/runs/{str(run.pk)[:8]}/"] = f"/runs/{run.pk}/"
    for user, statuses in ((ada, {302}), (eve, {404})):
        client = Client()
        client.force_login(user)
        answers = {short: client.get(short) for short in pages}
        assert {each.status_code for each in answers.values()} == statuses
        if user == ada:
            assert {short: each.url for short, each in answers.items()} == pages
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
    brief, whole = (get(f"submissions{more}", token) for more in ("", "?fields=all"))
    assert len(brief.content) < 5 * 500
    assert ("url" in brief.json()[0], "url" in whole.json()[0]) == (False, True)
    assert "reason" in whole.json()[0]["latest"]
    for query in ("task=nothing", "after=7", f"after={other.submission_id}"):
        refused = get(f"submissions?{query}", token)
        assert (refused.status_code, refused.json()["field"]) == (422, query.split("=")[0])
    answer = get("submissions")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")


def test_the_queue_lists_the_first_that_wait_and_counts_the_others() -> None:
    for _ in range(3):
        make.make_submission()
    (queue,) = get("queue?limit=1").json()
    assert (len(queue["waiting"]), queue["depth"], queue["left_out"]) == (1, 3, 2)
    assert get("queue?limit=0").status_code == 422


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
    assert cancel(path, reading).status_code == 403
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
