"""One button leads from a correct result to its profile, which begins with the cause."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from gpu_runner.data.profile import THROUGHPUTS, Profile
from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation
from runs_app.submitting.live import live_view
from runs_app.submitting.profile_page import ProfileStep
from tasks_app.people import Viewer
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

CAUSE = "Denormals: flushed to zero, a call is 9× as fast."
SEEN = Profile(
    tool="portable", reason="no ncu here", workload="n256", causes=(CAUSE,),
    metrics=dict.fromkeys(THROUGHPUTS, 20.0),
)  # fmt: skip


def step(evaluation: Evaluation, user: Viewer | None = None) -> ProfileStep | None:
    return live_view(evaluation, user or AnonymousUser(), factories.later(60)).profile_step


def test_a_button_makes_the_profile_then_a_link_leads_to_it(client: Client) -> None:
    evaluation = factories.make_finished_evaluation(mode="ranked")
    submission = evaluation.submission
    client.force_login(submission.author)
    address = f"/submissions/{submission.pk}/"
    page = client.get(address).content.decode()
    assert "Find out what limits this kernel" in page
    client.post(f"{address}rerun/", {"mode": "profile", "device": evaluation.device_id})
    profiled = Evaluation.objects.get(mode="profile")
    found = step(evaluation)
    assert found is not None
    assert (found.words, found.address) == (
        "Its profile is being made", f"{address}?evaluation={profiled.pk}",
    )  # fmt: skip
    factories.start(profiled)
    factories.finish(profiled, profile=SEEN)
    found = step(evaluation)
    assert found is not None
    assert found.address == f"{address}?evaluation={profiled.pk}#h-profile"
    assert step(Evaluation.objects.get(pk=profiled.pk)) is None
    page = client.get(found.address).content.decode()
    assert f'href="#h-profile">{CAUSE.rstrip(".")}</a>.' in page, "the cause follows the sentence"
    panel = page.split('id="h-profile"')[1]
    assert panel.index("Cause:") < panel.index("ear neither limit") < panel.index("no ncu here")


def test_others_profile_a_copy_and_wrong_results_have_nothing_to_profile() -> None:
    evaluation = factories.make_finished_evaluation(mode="ranked")
    for user in (None, factories.make_user()):
        found = step(evaluation, user)
        assert found is not None
        assert found.address.startswith(f"/submit/?submission={evaluation.submission_id}")
        assert "mode=profile" in found.address
    factories.make_task_version(title="Scale a vector, again")
    old = Evaluation.objects.get(pk=evaluation.pk)
    assert step(old) is None, "nobody can submit to an old version"
    wrong = factories.make_finished_evaluation(Verdict.WRONG_RESULT)
    assert step(wrong) is None
