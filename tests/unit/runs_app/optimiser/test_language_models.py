"""Language models: their pages, what an admin may enter, the test of one, and their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.forms import model_to_dict
from django.test import Client

from runs_app.features.challenges.services import enter
from runs_app.features.curation.decisions.services import mark_contaminated
from runs_app.models import LanguageModel, LanguageModelCall
from runs_app.optimiser.evolve.config import ModelSpec, RunConfig
from runs_app.optimiser.language_models.forms import LanguageModelForm
from runs_app.optimiser.selectors.language_models import host_of, key_is_set, usages
from runs_app.optimiser.services.calls import answer_call, try_language_model
from tasks_app.models import AuditEntry
from tests import factories as make
from tests.scripted_endpoint import Answer, ScriptedEndpoint
from tests.unit.runs_app.features.challenges.invented import new_challenge
from tests.unit.runs_app.optimiser.conftest import Start, World

pytestmark = pytest.mark.django_db


def model(**overrides: Any) -> LanguageModel:
    fields: dict[str, Any] = {
        "name": "alpha", "base_url": "https://models.example:8443/v1", "price_in_usd": 3.0,
        "key_variable": "ALPHA_KEY", "price_out_usd": 15.0, "created_at": make.NOW,
    }  # fmt: skip
    return LanguageModel.objects.create(**{**fields, **overrides})


def call(row: LanguageModel, **overrides: Any) -> LanguageModelCall:
    fields: dict[str, Any] = {
        "role": "propose", "language_model": row, "messages": [], "temperature": 0.5,
        "max_tokens": 9, "status": "ANSWERED", "tokens_in": 70, "tokens_out": 30,
        "cost_usd": 0.25, "created_at": make.NOW, "sent_at": make.NOW, "ended_at": make.later(4),
    }  # fmt: skip
    return LanguageModelCall.objects.create(**{**fields, **overrides})


def entered(**overrides: Any) -> LanguageModelForm:
    fields = {
        "name": "alpha", "base_url": "https://models.example/v1", "api_name": "",
        "key_variable": "ALPHA_API_KEY", "price_in_usd": "3", "price_out_usd": "15",
        "max_output_tokens": "8192", "token_parameter": "max_tokens",
        "supports_temperature": "on", "timeout_s": "120", "extra": "{}",
    }  # fmt: skip
    return LanguageModelForm({**fields, **overrides})


def test_the_path_of_each_call_is_left_out_of_the_base_url() -> None:
    form = entered(base_url="https://models.example/v1/chat/completions/")
    assert form.is_valid()
    assert form.cleaned_data["base_url"] == "https://models.example/v1"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("base_url", "models.example/v1", "http or https"),
        ("base_url", "https://me:secret@models.example/v1", "credentials"),
        ("base_url", "command:agent", "define"),
        ("base_url", "command:/bin/sh", "define"),
        ("key_variable", "sk-abc123", "never the key itself"),
        ("key_variable", "lower_case", "never the key itself"),
        ("key_variable", "KBENCH_SECRET_KEY", "ends in _API_KEY"),
        ("key_variable", "KBENCH_API_KEY", "start with KBENCH_"),
        ("key_variable", "DATABASE_URL", "ends in _API_KEY"),
        ("key_variable", "CLOUD_SECRET_ACCESS_KEY", "KBENCH_KEY_VARIABLES"),
        ("key_variable", "ALPHA_API_KEY_OLD", "ends in _API_KEY"),
        ("price_in_usd", "-1", "0 or more"),
        ("price_out_usd", "nan", "number"),
        ("timeout_s", "100000", "a day"),
        ("attempts", "3", "enter 0"),
        ("attempts", "51", "at most 50"),
        ("extra", "[1]", "JSON object"),
        ("extra", "nonsense", "JSON"),
        ("extra", '{"model": "b", "messages": [], "stream": false}', "messages, model, stream"),
    ],
)
def test_what_could_not_be_called_is_refused(field: str, value: str, words: str) -> None:
    form = entered(**{field: value})
    assert not form.is_valid()
    assert list(form.errors) == [field]
    assert words in str(form.errors[field])


def test_what_can_be_called_is_accepted(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    for change in (
        {}, {"base_url": "", "key_variable": ""}, {"base_url": "http://vllm:8000/v1"},
        {"base_url": "http://127.0.0.1:8000/v1"}, {"extra": '{"reasoning_effort": "low"}'},
    ):  # fmt: skip
        assert entered(**change).errors == {}
    settings.KEY_VARIABLES = ["MODELS_TOKEN"]
    assert entered(key_variable="MODELS_TOKEN").errors == {}
    assert list(entered(key_variable="OTHER_TOKEN").errors) == ["key_variable"]
    monkeypatch.setenv("KBENCH_AGENT_COMMANDS", '{"agent": ["true"]}')
    assert entered(base_url="command:agent", key_variable="").errors == {}
    assert host_of(LanguageModel(name="a", base_url="command:agent")) == "the command agent"
    monkeypatch.setenv("KBENCH_AGENT_COMMANDS", "nonsense")
    assert "is not JSON" in str(entered(base_url="command:agent").errors["base_url"])


def test_an_admin_adds_one_changes_it_and_takes_it_away(client: Client) -> None:
    client.force_login(make.make_admin())
    client.post("/language-models/new/", dict(entered().data.items()))
    row = LanguageModel.objects.get()
    address = f"/language-models/{row.pk}/edit/"
    assert row.base_url in client.get(address).content.decode()
    assert client.post(address, dict(entered(timeout_s="0").data.items())).status_code == 422
    client.post(address, dict(entered(timeout_s="77").data.items()))
    client.post(address, dict(entered(timeout_s="77").data.items()))  # nothing changes
    row.refresh_from_db()
    assert row.timeout_s == 77
    client.post(f"/language-models/{row.pk}/remove/")
    assert not LanguageModel.objects.exists()
    told = [entry.details for entry in AuditEntry.objects.filter(kind="model").order_by("pk")]
    assert [sorted(each) for each in told] == [["change"], ["timeout_s"], ["change"]]
    assert told[1]["timeout_s"].endswith("to 77")


def entered_a_challenge(row: LanguageModel) -> None:
    user = make.make_user()
    enter(challenge=new_challenge(), user=user, language_model=row.name, now=make.NOW)


def wrote_a_kernel(row: LanguageModel) -> None:
    make.make_finished_evaluation(agent="evolver", language_model=row.name)


@pytest.mark.parametrize("use", [call, entered_a_challenge, wrote_a_kernel])
def test_one_that_is_named_stays(client: Client, use: Callable[[LanguageModel], object]) -> None:
    client.force_login(make.make_admin())
    row = model()
    use(row)
    client.post(f"/language-models/{row.pk}/remove/")
    assert LanguageModel.objects.filter(pk=row.pk).exists()
    assert "Remove it" not in client.get(f"/language-models/{row.pk}/edit/").content.decode()


def test_of_an_endpoint_the_host_is_shown(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    row = model()
    assert host_of(row) == "models.example:8443"
    monkeypatch.delenv("ALPHA_KEY", raising=False)
    assert key_is_set(row) is False
    assert key_is_set(LanguageModel(name="free")) is None
    page = client.get("/language-models/").content.decode()
    assert "models.example:8443" in page
    assert "ALPHA_KEY" not in client.get(row.get_absolute_url()).content.decode()
    monkeypatch.setenv("ALPHA_KEY", "sk-very-secret")
    assert key_is_set(row) is True
    client.force_login(make.make_admin())
    for address in ("/language-models/", row.get_absolute_url()):
        assert "sk-very-secret" not in client.get(address).content.decode()


def test_usage_counts_calls_and_what_they_gained_unless_the_task_is_known() -> None:
    row = model()
    run = make.make_run()
    make.make_candidate(run, verdict="CORRECT", latency_ns=1000.0, state="measured")
    for number, latency in ((1, 500.0), (2, 2000.0), (3, None)):
        made = call(row, run=run, number=number)
        verdict = "CORRECT" if latency else "WRONG_RESULT"
        make.make_candidate(run, verdict=verdict, latency_ns=latency, call=made, state="measured")
    call(row, run=run, number=4, status="FAILED", cost_usd=0.0)
    call(row, run=run, number=5, role="verify")
    make.make_candidate(run, call=run.calls.get(number=2))  # the budget was used up
    used = usages(run.user, [row])[row.pk]
    assert (used.calls, used.failed, used.proposals, used.valid) == (5, 1, 3, 2)
    assert used.unmeasured == 1
    assert (used.improvement, used.improvements) == (pytest.approx(1.0), 2)
    assert (used.usd, used.tokens, used.latency_s) == (pytest.approx(1.0), 500, 4.0)
    assert used.roles == {"propose": 4, "verify": 1}
    admin, task = make.make_admin(), run.task_version.task
    mark_contaminated(task=task, user=admin, reason="known", now=make.NOW)
    used = usages(run.user, [row])[row.pk]
    assert (used.calls, used.usd, used.proposals, used.valid) == (5, pytest.approx(1.0), 0, 0)
    assert (used.improvement, used.improvements) == (None, 0)


def test_calls_of_private_runs_do_not_count_for_others() -> None:
    row = model()
    run = make.make_run(private=True)
    call(row, run=run, number=1)
    call(row, role="test")
    assert usages(make.make_user(), [row])[row.pk].calls == 1
    assert usages(run.user, [row])[row.pk].calls == 2


def test_tests_of_language_models_are_rationed(client: Client) -> None:
    client.force_login(make.make_admin())
    for number in range(7):
        row = model(name=f"m{number}")
        client.post(f"{row.get_absolute_url()}test/")
        assert LanguageModelCall.objects.count() == min(number + 1, 6)


def test_the_end_of_a_test_brings_the_usage_up_to_date(client: Client) -> None:
    client.force_login(make.make_admin())
    row = model()
    call(row, role="test")
    part = client.get(row.get_absolute_url(), headers={"HX-Request": "true"}).content.decode()
    assert 'hx-target="#usage"' in part
    asked = {"HX-Request": "true", "HX-Target": "usage"}
    page = client.get(row.get_absolute_url(), headers=asked).content.decode()
    assert 'id="usage"' in page
    assert 'hx-target="#usage"' not in page, "it would ask for ever"


def renamed() -> LanguageModelForm:
    """The admin's form of the only one with nothing but the name changed."""
    model = LanguageModel.objects.get()
    fields = model_to_dict(model, fields=LanguageModelForm.Meta.fields)
    return LanguageModelForm({**fields, "name": "writer-2", "extra": "{}"}, instance=model)


def test_a_name_is_free_until_something_uses_it(start: Start, world: World) -> None:
    assert renamed().errors == {}
    known = LanguageModel.objects.get()
    call = try_language_model(model=known, user=make.make_user(), now=make.NOW)
    assert list(renamed().errors) == ["name"]
    call.delete()
    assert renamed().errors == {}
    assert not start().calls.exists()
    assert "writer-1" in str(renamed().errors["name"])


def test_the_answer_of_a_renamed_model_is_stored_and_charged(start: Start, world: World) -> None:
    run = start(parameters={"asks": 1})
    world.to_first_calls(run)
    call = run.calls.get()
    with ScriptedEndpoint([Answer("a kernel")]) as endpoint:
        rows = LanguageModel.objects.filter(name="writer-1")
        rows.update(name="writer-2", base_url=endpoint.base_url)
        assert answer_call(call_id=call.pk, clock=lambda: make.NOW)
    call.refresh_from_db()
    assert (call.status, call.response) == ("ANSWERED", "a kernel")
    assert call.cost_usd > 0


@pytest.mark.parametrize(("price", "said"), [(None, "price unknown"), (0.0, "$0.00")])
def test_an_unknown_price_is_no_free_one(client: Client, price: float | None, said: str) -> None:
    prices = {"price_in_usd": price, "price_out_usd": price}
    config = RunConfig(strategy="evolve", seed=7, models=(ModelSpec(name="alpha", **prices),))
    run = make.make_run(tokens=100, usd=price, config=config)
    row = model(**prices)
    made = call(row, run=run, number=1, cost_usd=price)
    make.make_candidate(run, call=made)
    make.make_finished_evaluation(
        task_version=run.task_version, mode="ranked", language_model=row.name
    )
    board, own = "/leaderboard/?by=model&device=cpu", run.get_absolute_url()
    comparisons = (f"/runs/compare/?run={run.pk}", f"/runs/compare/?run={run.pk}&x=usd")
    pages = ("/runs/", own, f"{own}calls/1/", f"{own}candidates/1/", *comparisons, board)
    for address in (*pages, "/language-models/", row.get_absolute_url()):
        page = client.get(address).content.decode()
        assert [w for w in ("price unknown", "$0.00") if w in page] == [said], address
    assert client.get(f"/api/v1/runs/{run.pk}").json()["usd"] == price
    [named] = client.get("/api/v1/leaderboard?by=model&device=cpu").json()["rows"]
    assert named["usd"] == price


def test_a_sum_with_an_unknown_part_is_unknown(client: Client) -> None:
    row, run = model(), make.make_run()
    for number, usd in enumerate((0.25, 0.0, None), start=1):
        call(row, run=run, number=number, cost_usd=usd)
        page = client.get(row.get_absolute_url()).content.decode()
        assert ("$0.25" in page) == (usd is not None)
    assert "price unknown" in page


def test_both_prices_are_known_or_none() -> None:
    form = entered(price_in_usd="", price_out_usd="")
    assert form.is_valid()
    assert not form.instance.is_priced
    free = entered(price_in_usd="0", price_out_usd="0")
    assert free.is_valid()
    assert free.instance.is_priced
    assert "both prices" in str(entered(price_in_usd="").errors)
