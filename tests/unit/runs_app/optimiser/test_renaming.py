"""A language model keeps its name once it is used, and no answer is lost if it does not."""

from __future__ import annotations

import pytest
from django.forms import model_to_dict

from runs_app.models import LanguageModel
from runs_app.optimiser.language_models.forms import LanguageModelForm
from runs_app.optimiser.services.calls import answer_call, try_language_model
from tests import factories as make
from tests.scripted_endpoint import Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.conftest import MODEL, Start, World

pytestmark = pytest.mark.django_db


def renamed(model: LanguageModel) -> LanguageModelForm:
    """The admin's form with nothing but the name changed."""
    fields = model_to_dict(model, fields=LanguageModelForm.Meta.fields)
    return LanguageModelForm({**fields, "name": "writer-2", "extra": "{}"}, instance=model)


def test_a_name_is_free_until_it_is_used(model: LanguageModel) -> None:
    assert renamed(model).errors == {}


def test_a_run_that_has_asked_nothing_yet_holds_the_name(
    start: Start, model: LanguageModel
) -> None:
    run = start()
    assert not run.calls.exists()
    assert "refer to it as writer-1" in str(renamed(model).errors["name"])


def test_a_call_without_a_run_holds_the_name(world: World, model: LanguageModel) -> None:
    LanguageModel.objects.filter(pk=model.pk).update(base_url="http://127.0.0.1:1/v1")
    model.refresh_from_db()
    try_language_model(model=model, user=make.make_user(), now=make.NOW)
    assert list(renamed(model).errors) == ["name"]


def test_the_answer_of_a_model_that_was_renamed_is_stored_and_charged(
    start: Start, world: World, model: LanguageModel
) -> None:
    run = start(parameters={"asks": 1})
    world.to_first_calls(run)
    call = run.calls.get()
    with ScriptedEndpoint([Answer("a kernel")]) as endpoint:
        rows = LanguageModel.objects.filter(name=MODEL)
        rows.update(name="writer-2", base_url=endpoint.base_url)
        assert answer_call(call_id=call.pk, clock=lambda: make.NOW)
    call.refresh_from_db()
    assert (call.status, call.response) == ("ANSWERED", "a kernel")
    assert call.cost_usd > 0
