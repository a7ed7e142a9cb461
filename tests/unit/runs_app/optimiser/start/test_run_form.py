"""The form that starts a run, and the estimate beside it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from runs_app.core.messaging import queues
from runs_app.models import LanguageModel, Run
from runs_app.optimiser.start.forms import RunForm
from runs_app.optimiser.start.parameters import field_name
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks RQ, which is not there, for the next step."""
    monkeypatch.setattr(queues, "enqueue_advance", lambda run_id: None)


TUNABLE = {"seed_kernel": "own", "source": "const int A = 1;  // knob: 1 2\n" + make.SOURCE}


@pytest.fixture
def signed_in(client: Client) -> Client:
    """A browser of a person with an account, on a site with one task and one language model."""
    make.make_task_version()
    make.make_cpu()
    LanguageModel.objects.create(
        name="writer", base_url="http://127.0.0.1:9/v1", price_in_usd=1, price_out_usd=2,
        created_at=make.NOW,
    )  # fmt: skip
    LanguageModel.objects.create(name="only-a-name", created_at=make.NOW)
    client.force_login(make.make_user(username="ada"))
    return client


def fields(**overrides: Any) -> dict[str, Any]:
    """What the form sends for a run of `autotune`, all its defaults with it."""
    form = RunForm()
    sent = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in sent.items() if value not in (None, False)}
    return sent | {"task": "scale", "device": "cpu", "strategy": "autotune"} | overrides


def test_limits_on_money_are_said(signed_in: Client, client: Client, settings: Any) -> None:
    settings.MAX_RUN_USD, settings.MAX_USD_PER_USER_DAY = 1.5, 4.0
    assert "$4.00 left of" in signed_in.get("/runs/new/").content.decode()
    assert RunForm()["usd"].value() == 1.5
    wanted = fields(strategy="evolve", models=["writer"], usd="1.6")
    answer = signed_in.post("/runs/new/", wanted)
    assert answer.status_code == 422
    assert "Must be at most 1.5" in answer.content.decode()
    assert signed_in.post("/runs/new/", wanted | {"usd": ""}).status_code == 302
    assert "$2.50 left of" in signed_in.get("/runs/new/").content.decode()
    address = Run.objects.get().get_absolute_url()
    assert "$1.50, this site" in signed_in.get(address).content.decode()
    refused = signed_in.post(f"{address}extend/", {"usd": "2"})
    assert "Must be at most 1.5" in refused.content.decode()
    client.force_login(make.make_admin())
    assert "$4.00" not in client.get("/runs/new/").content.decode()


def test_a_run_is_started(signed_in: Client) -> None:
    wanted = fields(name="first", evaluations="12", minutes="1.5", **TUNABLE)
    answer = signed_in.post("/runs/new/", wanted)
    run = Run.objects.get()
    assert answer.status_code == 302
    assert answer.headers["Location"] == run.get_absolute_url()
    assert (run.name, run.strategy, run.device_id) == ("first", "autotune", "cpu")
    budget = run.config["budget"]
    assert (budget["evaluations"], budget["wall_time_s"]) == (12, 90)
    assert run.config["models"] == []
    assert run.agent.name == "kbench-autotune"


def test_parameters_and_verifiers_reach_the_run(signed_in: Client) -> None:
    sent = fields(
        strategy="evolve", models=["writer"], verifier_use="hard", verifiers=["compile", "memory"],
        threshold="0.6", temperatures="0.2; 0.9", profile="full",
    )  # fmt: skip
    sent[field_name("evolve", "generations")] = "3"
    assert signed_in.post("/runs/new/", sent).status_code == 302
    config = Run.objects.get().config
    assert config["parameters"]["generations"] == 3
    assert config["temperatures"] == [0.2, 0.9]
    assert config["verifiers"]["names"] == ["compile", "memory"]
    assert (config["verifiers"]["soft"], config["verifiers"]["threshold"]) == (False, 0.6)
    assert (config["profile"], config["models"][0]["name"]) == ("full", "writer")


def offered(page: str) -> tuple[list[str], list[str], str]:
    """Strategies that are checked, those that can't be chosen, and the words beside them all."""
    part = page.split('id="strategies"')[1].split("</div>", maxsplit=1)[0]
    found = re.findall(r'value="(\w+)"([^>]*)>', part)
    checked = [name for name, more in found if "checked" in more]
    return checked, [name for name, more in found if "disabled" in more], part


def test_only_strategies_that_can_run_are_offered_and_one_of_them_is_chosen(
    signed_in: Client,
) -> None:
    """On this site, and with this seed: the page asks again when the form changes."""
    submission = make.make_evaluation().submission
    own = f"/runs/new/?submission={submission.pk}&device=cpu"
    for address in (own, "/runs/new/?task=scale"):
        checked, blocked, words = offered(signed_in.get(address).content.decode())
        assert (checked, blocked) == (["evolve"], ["autotune"])
        assert "declares no knobs" in words
    for seed, shown in ((TUNABLE, []), ({"seed_kernel": "none"}, ["autotune"])):
        asked = fields(strategy="evolve", **seed)
        assert offered(signed_in.post("/runs/new/estimate/", asked).content.decode())[1] == shown
    LanguageModel.objects.all().delete()
    checked, blocked, words = offered(signed_in.get(own).content.decode())
    assert checked == []
    assert len(blocked) == 6
    assert words.count("Needs a language model; none can be called") == 5
    assert offered(signed_in.get("/runs/new/").content.decode())[0] == ["autotune"]
    refused = signed_in.post("/runs/new/", fields(strategy="evolve")).content.decode()
    assert "Evolution needs a language model: none can be called" in refused


@pytest.mark.parametrize(("strategy", "begins"), [("translate", ""), ("evolve", make.SOURCE)])
def test_the_usual_seed_is_the_strategys(signed_in: Client, strategy: str, begins: str) -> None:
    page = signed_in.get("/runs/new/").content.decode()
    assert re.search(r'name="seed_kernel"\s+value=""\s+checked', page)
    sent = fields(strategy=strategy, models=["writer"], seed_kernel="")
    sent.pop(field_name("translate", "summarise"))
    assert signed_in.post("/runs/new/", sent).status_code == 302
    run = Run.objects.get()
    assert run.problem["seed_source"] == begins
    assert run.config["parameters"].get("summarise", False) is False  # a box that is not ticked


CAPS = ("usd", "tokens", "evaluations", "minutes")
CHOICES = ("task", "device", "direction", "strategy", "verifier_use", "profile", "seed_kernel")


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        *[({field: "naive"}, field, "Select a valid choice") for field in CHOICES],
        ({"task": ""}, "task", "Choose a task"),
        ({"direction": "backward"}, "direction", "has only: forward"),
        ({"strategy": "evolve"}, "models", "needs a language model"),
        ({"temperatures": "hot"}, "temperatures", "Enter numbers"),
        ({"usd": "-1"}, "usd", "Must be 0 or more"),
        ({"minutes": "1e308"}, "minutes", "Must be at most 527040"),
        (dict.fromkeys(CAPS, ""), "evaluations", "at least one cap"),
        ({"verifier_use": "soft", "verifiers": []}, "verifiers", "Choose at least one"),
        ({"seed_kernel": "own", "source": " "}, "source", "Paste the seed kernel"),
        ({"seed_kernel": "own", "source": "x" * (2**20 + 1)}, "source", "1 MiB"),
        ({"seed_kernel": "none"}, "seed_kernel", "needs a seed kernel"),
        ({"agent": "<b>", **TUNABLE}, "agent", "Must start with a letter"),
        ({"autotune-explore": "2"}, "autotune-explore", "must be 1 or less"),
    ],
)
def test_a_refusal_is_said_beside_its_field(
    signed_in: Client, change: dict[str, Any], field: str, words: str
) -> None:
    answer = signed_in.post("/runs/new/", fields(**{"name": "kept as it was"} | change))
    form = answer.context["form"]
    assert answer.status_code == 422
    assert words.lower() in " ".join(form.errors.get(field, [])).lower(), form.errors
    assert Run.objects.count() == 0
    if "name" not in change:
        assert 'value="kept as it was"' in answer.content.decode()


def test_the_estimate_follows_the_form(signed_in: Client) -> None:
    sent = fields(strategy="evolve", models=["writer"], **{"evolve-generations": "2"})
    page = signed_in.post("/runs/new/estimate/", sent).content.decode()
    assert "Money" in page
    assert "/api/v1/runs" in page
    assert "&quot;generations&quot;: 2" in page
    assert Run.objects.count() == 0
    assert "<dt>Calls</dt>" in page
    tuned = signed_in.post("/runs/new/estimate/", fields(**TUNABLE)).content.decode()
    assert "<dt>Evaluations</dt>" in tuned
    assert ("<dt>Calls</dt>" in tuned, "<dt>Tokens</dt>" in tuned) == (False, False)
    form = signed_in.get("/runs/new/").content.decode()
    assert "input from:#run-form" in form  # it follows what is typed or pasted
    assert (form.count(">Evaluations<"), ">Maximum combinations<" in form) == (1, True)
