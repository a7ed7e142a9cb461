"""The API as programs meet it: addresses, tokens, errors."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.verdict import Mode
from kbench_web.models import ApiToken
from runs_app.core.work import lifecycle
from runs_app.models import Submission
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


def get(path: str, token: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client().get(f"/api/v1/{path}", headers=headers)


@pytest.fixture
def token() -> str:
    make.make_task_version()
    return make.make_token(make.make_user(username="ada"))


def test_a_submission_is_created_and_can_be_read(token: str) -> None:
    created = post(token, body(agent="evolver", model="gpt-9", mode="test"))
    assert created.status_code == 201
    answer = created.json()
    assert answer["url"] == f"/submissions/{answer['id']}/"
    assert created["Location"] == f"/api/v1{answer['url'].rstrip('/')}"
    assert "no runner for cpu has ever reported" in answer["waiting_reason"]
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


def test_a_module_that_only_calls_libraries_is_told_so_at_once(token: str) -> None:
    source = "import torch\ndef forward(x, N):\n    return x * 2\n"
    answer = post(token, body(source=source, language="python")).json()
    assert "it only calls libraries" in answer["remark"]
    assert get(f"submissions/{answer['id']}").json()["language"] == "python"
    own = "import triton\n@triton.jit\ndef own(): pass\ndef forward(x, N):\n    return x\n"
    on_cpu = body(source=own, language="python", device="cpu")  # by itself it would go to a GPU
    assert post(token, on_cpu).json()["remark"] == ""
    assert post(token, body()).json()["remark"] == ""


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
    weak: tuple[tuple[dict[str, Any], str], ...] = (
        ({"lifetime": timedelta(seconds=-1)}, "expired"),
        ({"scopes": ["read"]}, "lacks the scope 'submit'"),
    )
    for changes, words in weak:
        response = post(make.make_token(make.make_user(), **changes), body())
        assert (response.status_code, words in response.json()["reason"]) == (401, True)
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


def test_the_rate_limit_holds_and_is_shown(token: str, settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 2
    answers = [get("tasks", token) for _ in range(5)]  # a minute may end in between
    [last, *_] = [answer for answer in answers if answer.status_code == 429]
    assert last["RateLimit-Remaining"] == "0"


def test_tasks_are_listed_and_shown_without_hidden_workloads(token: str) -> None:
    assert [task["name"] for task in get("tasks").json()] == ["scale"]
    response = get("tasks/scale", token)
    document = response.json()["document"]
    assert [w["name"] for w in document["workloads"]] == ["n256", "n4096"]
    assert "reference.py" in document["files"]
    assert "1777" not in response.content.decode()
    assert make.HIDDEN_WORKLOAD not in response.content.decode()
    admin = get("tasks/scale", make.make_token(make.make_admin())).json()["document"]
    assert len(admin["workloads"]) == 3
    assert get("tasks/nothing").status_code == 404


def test_the_documentation_needs_no_inline_script() -> None:
    response = Client().get("/api/v1/docs")
    assert response.status_code == 200
    page = response.content.decode()
    assert "cdn" not in page
    for attributes in re.findall(r"<script([^>]*)>", page):
        assert "src=" in attributes or "application/json" in attributes
    assert "script-src 'self'" in response["Content-Security-Policy"]


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
    for _ in range(6):
        again = lifecycle.evaluate(
            submission=first.submission, device=first.device, mode=Mode.RANKED, now=make.NOW
        )
        make.finish(again)
    with django_assert_max_num_queries(10):
        shown = get(path).json()["evaluations"]
    ranked = [each for each in shown if each["mode"] == "ranked"]
    assert len(ranked) == 7
    assert all(each["result"] for each in ranked)
