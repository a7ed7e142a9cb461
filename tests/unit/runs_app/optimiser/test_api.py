"""Runs over the API: started, watched, controlled; refusals name the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from runs_app.models import LanguageModel, Run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import MODEL, Start, World

pytestmark = pytest.mark.django_db


class Api:
    """The API as one user's program meets it."""

    def __init__(self, token: str = "") -> None:
        self._client = Client(headers={"Authorization": f"Bearer {token}"} if token else {})

    def post(self, path: str, document: Any = None) -> Any:
        body = json.dumps(document) if document is not None else ""
        return self._client.post(f"/api/v1/{path}", body, content_type="application/json")

    def get(self, path: str) -> Any:
        return self._client.get(f"/api/v1/{path}")


def api_of(user: Any) -> Api:
    return Api(make.make_token(user))


def wanted(**changes: Any) -> dict[str, Any]:
    budget = {"evaluations": 50}
    names = {"task": "scale", "device": "cpu", "strategy": "plain", "models": [MODEL]}
    return {**names, "budget": budget, "seed": 7, **changes}


@pytest.fixture
def ada(world: World, model: Any) -> Any:
    make.make_cpu()
    make.make_task_version()
    return make.make_user(username="ada")


def test_a_run_is_started_and_watched(ada: Any, world: World) -> None:
    api = api_of(ada)
    created = api.post("runs", wanted(name="First", private=True))
    assert created.status_code == 201, created.content
    answer = created.json()
    assert answer["url"] == f"/runs/{answer['id']}/"
    assert created["Location"] == f"/api/v1/runs/{answer['id']}"
    assert (answer["status"], answer["agent"], answer["user"]) == ("RUNNING", "kbench-plain", "ada")
    assert answer["budget"]["evaluations"] == 50
    run = Run.objects.get(pk=answer["id"])
    world.to_first_calls(run)
    shown = api.get(f"runs/{run.pk}").json()
    assert (shown["evaluations"], shown["candidates"], shown["best"]) == (1, 1, 1)
    assert shown["usd"] == run.usd > 0
    events = api.get(f"runs/{run.pk}/events?since=1&limit=2").json()
    assert [event["kind"] for event in events["events"]] == ["drafted", "measuring"]
    assert events["newest"] == run.events_stored
    assert events["left_out"] == run.events_stored - 3
    candidate = api.get(f"runs/{run.pk}/candidates/1").json()
    assert (candidate["verdict"], candidate["source"]) == ("CORRECT", make.SOURCE)
    assert make.HIDDEN_WORKLOAD not in json.dumps(candidate)
    assert [row["id"] for row in api.get("runs?task=scale&status=RUNNING").json()] == [str(run.pk)]
    assert api.get("runs?strategy=fsr").json() == []


def test_a_run_is_controlled(ada: Any) -> None:
    api = api_of(ada)
    path = f"runs/{api.post('runs', wanted()).json()['id']}"
    paused = api.post(f"{path}/pause").json()
    assert (paused["status"], paused["reason"]) == ("PAUSED", "paused by its owner")
    refused = api.post(f"{path}/pause")
    assert (refused.status_code, refused.json()["field"]) == (409, "status")
    assert api.post(f"{path}/resume").json()["status"] == "RUNNING"
    extended = api.post(f"{path}/extend", {"usd": 3.5}).json()
    caps = {"usd": 3.5, "tokens": None, "evaluations": 50, "wall_time_s": None}
    assert extended["budget"] == caps
    changed = api.post(f"{path}/extend", {"evaluations": None, "wall_time_s": 60}).json()
    assert changed["budget"] == {**caps, "evaluations": None, "wall_time_s": 60}
    assert api.post(f"{path}/stop").json()["status"] == "STOPPED"
    refused = api.post(f"{path}/resume")
    assert (refused.status_code, refused.json()["field"]) == (409, "status")
    assert "stopped" in refused.json()["reason"]


def test_strangers_and_nobody_control_nothing(ada: Any, start: Start, settings: Any) -> None:
    run = start()
    for action in ("pause", "resume", "stop"):
        assert api_of(ada).post(f"runs/{run.pk}/{action}").status_code == 403
        assert Api().post(f"runs/{run.pk}/{action}").status_code == 401
    assert api_of(ada).post(f"runs/{run.pk}/extend", {"usd": 1}).status_code == 403
    assert Api().post("runs", wanted()).status_code == 401
    settings.MAX_RUNNING_RUNS_PER_USER = 1
    assert [api_of(ada).post("runs", wanted()).status_code for _ in range(2)] == [201, 429]


BAD = {
    "task": ["nothing"], "device": ["abacus"], "strategy": ["luck"], "profile": ["much"],
    "direction": ["sideways", "backward"], "models": [["nobody"], []], "surprise": [1],
    "budget": [{}], "budget.usd": [-1.0, "much", 1e308], "budget.dollars": [1],
    "budget.tokens": [10**23], "budget.evaluations": [10**23], "budget.wall_time_s": [1.5, 10**12],
    "temperatures": [[], [9.0]], "max_tokens": [0, 255, 10**12], "concurrent_asks": [1000],
    "seed": [-1, 10**30], "seed_kernel": ["lucky", "best", "none"], "agent": ["<b>", "a\ud800b"],
    "name": ["x" * 200, "a\0b"], "verifiers": [{"names": ["luck"]}],
    "verifiers.prompts": [{"memory": "x"}], "verifiers.survivors": [10**12],
}  # fmt: skip


@pytest.mark.parametrize(("field", "value"), [(f, value) for f in BAD for value in BAD[f]])
def test_bad_requests_name_the_field(ada: Any, field: str, value: Any) -> None:
    name, _, inner = field.partition(".")
    refused = api_of(ada).post("runs", wanted(**{name: {inner: value} if inner else value}))
    assert (refused.status_code, refused.json()["field"]) == (422, field), refused.content
    assert refused.json()["reason"]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("body", []), ("budget", None), ("budget", {"evaluations": None, "usd": None}),
        *(("evaluations", {"evaluations": value}) for value in (-1, "many", 10**23)),
        ("usd", {"usd": 1e308}), ("dollars", {"dollars": 1}),
    ],
)  # fmt: skip
def test_bad_extensions_name_the_field(ada: Any, field: str, body: Any) -> None:
    api = api_of(ada)
    run = Run.objects.get(pk=api.post("runs", wanted()).json()["id"])
    refused = api.post(f"runs/{run.pk}/extend", body)
    assert (refused.status_code, refused.json()["field"]) == (422, field), refused.content
    assert not run.events.filter(kind="extended").exists()


def test_a_cap_that_is_used_up_lets_no_run_go_on(ada: Any, world: World) -> None:
    api = api_of(ada)
    budget = {"evaluations": 2, "wall_time_s": 60}
    body = wanted(budget=budget, ranks_best=False)
    run = Run.objects.get(pk=api.post("runs", body).json()["id"])
    world.to_the_end(run)
    assert (run.status, run.by_budget) == ("FINISHED", True)
    path = f"runs/{run.pk}/extend"
    for field, caps in (("evaluations", {"usd": 1}), ("tokens", {"tokens": 9, "evaluations": 3})):
        Run.objects.filter(pk=run.pk).update(tokens=10)
        refused = api.post(path, caps)
        assert (refused.status_code, refused.json()["field"]) == (422, field)
        assert "already" in refused.json()["reason"]
    assert api.post(path, {"evaluations": 3}).json()["status"] == "RUNNING"


@pytest.mark.parametrize("field", ["models", "verifiers.model"])
def test_a_missing_key_is_refused(ada: Any, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    keyed = {"base_url": "http://127.0.0.1:9/v1", "key_variable": "KEYED_API_KEY"}
    free = {"price_in_usd": 0, "price_out_usd": 0}
    LanguageModel.objects.create(name="keyed", created_at=make.NOW, **keyed, **free)
    judge = {"verifiers": {"names": ["memory"], "model": "keyed"}}
    changes = {"models": ["keyed"]} if field == "models" else judge
    monkeypatch.delenv("KEYED_API_KEY", raising=False)
    refused = api_of(ada).post("runs", wanted(**changes))
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert "KEYED_API_KEY" in refused.json()["reason"]
    monkeypatch.setenv("KEYED_API_KEY", "k")
    assert api_of(ada).post("runs", wanted(**changes)).status_code == 201
