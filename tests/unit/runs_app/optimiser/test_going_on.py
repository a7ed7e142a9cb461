"""A finished run gets more to do, and the same run is started again with something changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs_app.core.errors import SubmissionError, WrongState
from runs_app.models import Run
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.services.control import extend_run, stop_run
from runs_app.optimiser.services.history import budget_of, config_now
from runs_app.optimiser.services.replay import replay_run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World
from tests.unit.runs_app.optimiser.test_api import api_of
from tests.unit.runs_app.optimiser.test_steps import assert_rows_tell_what_the_log_tells

pytestmark = pytest.mark.django_db


def finished(start: Start, world: World, **overrides: Any) -> Run:
    """A run whose strategy asked once, and came to its end."""
    run = start(parameters={"asks": 1}, **overrides)
    world.to_the_end(run)
    assert (run.status, run.by_budget) == ("FINISHED", False)
    return run


def extend(run: Run, **parameters: Any) -> Run:
    """Its owner extends it."""
    return extend_run(
        run=run, user=run.user, budget=budget_of(run), parameters=parameters, now=make.later(60)
    )


def test_a_finished_run_goes_on_with_more_to_do(start: Start, world: World) -> None:
    run = finished(start, world)
    run = extend(run, asks=3)
    assert (run.status, run.ended_at) == ("RUNNING", None)
    world.advance(run, make.later(61))
    assert run.calls.count() == 3
    assert config_now(run).parameters["asks"] == 3
    assert_rows_tell_what_the_log_tells(run)
    world.answer(run)
    world.advance(run, make.later(62))
    world.measure(run, 800.0, now=make.later(63))
    world.advance(run, make.later(64))
    assert (run.status, run.candidates_made) == ("FINISHED", 4)
    assert replay_run(run).differences == ()
    with pytest.raises(WrongState, match="raise its asks, or start another run"):
        extend_run(run=run, user=run.user, budget=Budget(usd=9), now=make.NOW)
    assert extend(run, asks=4).status == "RUNNING"
    stop_run(run=run, user=run.user, now=make.NOW)
    with pytest.raises(WrongState, match="start another run"):
        extend(run, asks=9)


@pytest.mark.parametrize(
    ("parameters", "field", "words"),
    [
        ({"asks": 1}, "parameters.asks", "above 1"),
        ({"asks": True}, "parameters.asks", "whole number"),
        ({"tile": 4}, "parameters.tile", "these can: asks"),
    ],
)
def test_what_cannot_grow_is_refused_by_its_name(
    start: Start, world: World, parameters: dict[str, Any], field: str, words: str
) -> None:
    run = finished(start, world)
    with pytest.raises(SubmissionError, match=words) as refused:
        extend(run, **parameters)
    assert refused.value.field == field
    assert not run.events.filter(kind="extended").exists()


def test_the_page_and_the_api_extend(start: Start, world: World) -> None:
    run = finished(start, world)
    browser = Client()
    browser.force_login(run.user)
    assert 'name="more-asks"' in browser.get(run.get_absolute_url()).content.decode()
    refused = browser.post(f"/runs/{run.pk}/extend/", {"more-asks": "x"})
    assert (refused.status_code, "whole number above 1" in refused.content.decode()) == (422, True)
    assert browser.post(f"/runs/{run.pk}/extend/", {"more-asks": "2"}).status_code == 302
    run.refresh_from_db()
    assert run.status == "RUNNING"
    api = api_of(run.user)
    told = api.post(f"runs/{run.pk}/extend", {"parameters": {"asks": 1}})
    assert (told.status_code, told.json()["field"]) == (422, "parameters.asks")
    assert api.post(f"runs/{run.pk}/extend", {"parameters": {"asks": 5}}).status_code == 200
    assert config_now(run).parameters["asks"] == 5


def test_the_same_run_again_with_another_model(start: Start, world: World, model: Any) -> None:
    run = finished(start, world, temperatures=[0.25], name="First")
    other = type(model).objects.create(
        name="writer-2", base_url="http://127.0.0.1:9/v1", price_in_usd=0, price_out_usd=0,
        created_at=make.NOW,
    )  # fmt: skip
    answer = api_of(run.user).post(f"runs/{run.pk}/again", {"models": [other.name]})
    assert answer.status_code == 201, answer.content
    new = Run.objects.get(pk=answer.json()["id"])
    assert answer["Location"] == f"/api/v1/runs/{new.pk}"
    assert [each["name"] for each in new.config["models"]] == ["writer-2"]
    assert new.problem["seed_source"] == run.problem["seed_source"]
    assert (new.name, new.config["temperatures"]) == ("First", [0.25])
    assert new.seed != run.seed == 7
    same = api_of(run.user).post(f"runs/{run.pk}/again", {"seed": 7})
    assert Run.objects.get(pk=same.json()["id"]).seed == 7
    form = Client().get(f"/runs/new/?like={run.pk}").context["form"]
    assert form["seed"].value() is None
    assert new.config["budget"] == run.config["budget"]
    bad = api_of(run.user).post(f"runs/{run.pk}/again", {"models": ["nobody"]})
    assert (bad.status_code, bad.json()["field"]) == (422, "models")
    Run.objects.filter(pk=run.pk).update(private=True)
    assert api_of(make.make_user()).post(f"runs/{run.pk}/again", {}).status_code == 404
