"""A run that wrote no kernel says so, and its seed is no result of it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils.html import escape

from runs_app.core.errors import NotAllowed
from runs_app.features.compare.runs import runs_of
from runs_app.models import Run, Submission
from runs_app.optimiser.changes import change_of
from runs_app.optimiser.selectors.confirmation import confirmation_of
from runs_app.optimiser.services.enter import enter_candidate
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World

pytestmark = pytest.mark.django_db

REFUSAL = "I'm sorry, but I can't help with that."


def refused(start: Start, world: World, *, failed: int = 0) -> Run:
    """A run to whose calls a language model answers without a kernel, or not at all."""
    run = start(strategy="plain", enters_best=True)
    world.to_first_calls(run)
    lost = run.calls.filter(status="WAITING").order_by("number").values("pk")[:failed]
    failure = {"status": "FAILED", "error": "HTTP 500", "sent_at": make.NOW, "ended_at": make.NOW}
    run.calls.filter(pk__in=list(lost.values_list("pk", flat=True))).update(**failure)
    world.answer(run, REFUSAL)
    world.advance(run)
    assert (run.status, run.best.number if run.best else None) == ("FINISHED", 1)
    return run


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (0, "No answer contained a kernel: 3 answers came without one. The seed kernel is still"),
        (
            1,
            "No answer contained a kernel: 2 answers came without one, and 1 call failed. The seed",
        ),
    ],
)
def test_the_headline_says_that_no_answer_had_a_kernel(
    start: Start, world: World, client: Client, failed: int, words: str
) -> None:
    run = refused(start, world, failed=failed)
    assert words in confirmation_of(run).words
    client.force_login(run.user)
    page = client.get(run.get_absolute_url()).content.decode()
    assert words in page
    assert "Submit the best" not in page
    assert "1.00×" not in page
    assert 'class="badge good' not in client.get(f"{run.get_absolute_url()}head/").content.decode()


def test_the_seed_is_not_submitted_as_the_best(start: Start, world: World, client: Client) -> None:
    run = refused(start, world)
    assert not Submission.objects.filter(origin="ENTERED").exists()  # though it was to enter it
    with pytest.raises(NotAllowed, match="only submits kernels that it wrote"):
        enter_candidate(candidate=run.candidates.get(number=1), user=run.user, now=make.NOW)
    client.force_login(run.user)
    address = f"{run.get_absolute_url()}candidates/1/"
    assert "Submit it" not in client.get(address).content.decode()
    answer = client.post(f"{address}enter/", follow=True)
    assert "To have the seed ranked, submit it yourself" in answer.content.decode()
    assert not Submission.objects.filter(origin="ENTERED").exists()


def test_neither_calls_nor_an_ablation_count_the_seed_as_correct(
    start: Start, world: World
) -> None:
    run = refused(start, world)
    change = change_of(run, run.events.order_by("seq"), make.NOW)
    assert [call["unusable"] for call in change["calls"]] == [True, True, True]
    problem = (run.task_version.task.slug, run.device_id, run.direction)
    (found,) = runs_of(run.user, problem, "seed", make.NOW)
    assert (found.measured, found.correct, found.improved) == (0, 0, False)
    assert found.tried  # it counts among the runs without success


def test_a_line_about_a_failed_call_leads_to_its_prompt_and_answer(
    start: Start, world: World, client: Client
) -> None:
    run = refused(start, world, failed=1)
    change = change_of(run, run.events.order_by("seq"), make.NOW)
    assert sorted(line["call"] for line in change["lines"] if line["bad"]) == [1, 2, 3]
    client.force_login(run.user)
    page = client.get(f"{run.get_absolute_url()}calls/2/").content.decode()
    for words in ("Make it faster, try 1.", escape(REFUSAL), "calls/1/", "calls/3/"):
        assert words in page
    assert "HTTP 500" in client.get(f"{run.get_absolute_url()}calls/1/").content.decode()
    assert client.get(f"{run.get_absolute_url()}calls/9/").status_code == 404
    Run.objects.filter(pk=run.pk).update(private=True)
    client.force_login(make.make_user())
    assert client.get(f"{run.get_absolute_url()}calls/2/").status_code == 404
