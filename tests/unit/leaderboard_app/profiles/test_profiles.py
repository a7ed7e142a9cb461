"""Profiles: what an agent, a person or a language model achieved, and what is nobody's business."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.utils import timezone

from gpu_runner.data.verdict import Verdict
from leaderboard_app.profiles.page import NoSuchDeviceError, profile, work
from leaderboard_app.profiles.selectors import Owner, runs_of
from runs_app.models import Agent, Device, Evaluation, LanguageModel, LanguageModelCall
from tests import factories
from tests.unit.runs_app.core.integrity.suspicious import held
from tests.unit.runs_app.features.challenges.invented import new_challenge, new_entry

pytestmark = pytest.mark.django_db


def ranked(task: str, speedup: float, **overrides: Any) -> Evaluation:
    """A ranked result of the agent "robot" with the language model "alpha"."""
    verdict = overrides.pop("verdict", Verdict.CORRECT)
    scenario = overrides.pop("scenario", "algebra")
    result = {"latency_ns": 1500.0 / speedup, "speedups": {"best": speedup}}
    return factories.make_finished_evaluation(
        verdict=verdict,
        result=result if verdict is Verdict.CORRECT else {},
        mode="ranked",
        task_version=overrides.pop("task_version", None)
        or factories.make_task_version(name=task, scenario=scenario),
        **{"agent": "robot", "language_model": "alpha", **overrides},
    )


@pytest.fixture
def robot() -> Agent:
    """An agent with two solved problems of one scenario, and a failed one of another."""
    user = factories.make_user()
    first = ranked("first", 2.0, user=user)
    ranked("second", 8.0, user=user)
    ranked("third", 1.0, user=user, scenario="llm", verdict=Verdict.WRONG_RESULT)
    factories.make_task_version(name="never", scenario="sparse")
    first.finished_at -= timedelta(days=3)
    first.save()
    factories.pass_audits()
    return Agent.objects.get(name="robot")


def test_it_says_what_was_solved_and_how_fast(robot: Agent) -> None:
    found = profile(Owner(robot))
    assert found is not None
    assert (found.whole.solved, found.whole.attempted, found.whole.problems) == (2, 3, 4)
    assert found.whole.speedup is not None
    assert found.whole.speedup.value == pytest.approx(4.0)
    scenarios = [(row.name, row.solved, row.problems) for row in found.scenarios]
    assert scenarios == [("algebra", 2, 2), ("llm", 0, 1)]
    assert (found.judged, found.accepted, found.leads) == (3, 2, 2)
    assert found.trend is not None
    assert found.trend.solved == [1, None, None, 2]
    assert found.trend.speedups[-1] == pytest.approx(4.0)
    model = LanguageModel.objects.get(name="alpha")  # which has the same
    same = profile(Owner(model))
    assert same is not None
    assert same.whole.solved == 2
    partners = work(Owner(model), AnonymousUser()).partners
    assert [(each.row, each.solved) for each in partners] == [(robot, 2)]
    assert [each.row for each in work(Owner(robot), AnonymousUser()).partners] == [model]
    version = Evaluation.objects.filter(verdict="CORRECT").order_by("created_at")[0].task_version
    ranked("", 32.0, agent="rival", task_version=version)  # it takes the lead, but no place
    found = profile(Owner(robot))
    assert found is not None
    assert (found.leads, found.whole.solved) == (1, 2)


def test_what_is_provisional_is_no_record_and_has_no_color(robot: Agent, client: Client) -> None:
    ranked("fourth", 32.0, user=robot.owner)
    found = profile(Owner(robot))
    assert found is not None
    assert (found.leads, found.whole.provisional) == (2, 1), "its audit has not ended"
    assert found.whole.speedup is not None
    assert found.whole.speedup.value == pytest.approx(4.0), "without it"
    assert found.trend is not None
    assert found.trend.solved[-1] == 2
    page = " ".join(client.get(robot.get_absolute_url()).content.decode().split())
    assert "1 provisional result left out" in page
    factories.pass_audits()
    found = profile(Owner(robot))
    assert found is not None
    assert (found.leads, found.whole.provisional) == (3, 0)
    Evaluation.objects.filter(mode="ranked").update(awaits_baselines=True)
    found = profile(Owner(robot))
    assert found is not None
    assert (found.whole.speedup, found.whole.provisional) == (None, 3)


def test_an_unknown_device_is_not_found(client: Client, robot: Agent) -> None:
    with pytest.raises(NoSuchDeviceError):
        profile(Owner(robot), "abacus")
    answer = client.get(robot.get_absolute_url() + "?device=abacus")
    assert answer.status_code == 404
    assert client.get(robot.get_absolute_url() + "?device=cpu").status_code == 200
    assert client.get("/agents/999999/").status_code == 404


def test_nobody_sees_private_work_there(client: Client) -> None:
    user = factories.make_user()
    private = ranked("first", 2.0, user=user, private=True)
    agent = Agent.objects.get(name="robot")
    assert profile(Owner(agent)) is None
    factories.make_run(agent=agent)  # without one nobody may know the agent's name
    text = client.get(agent.get_absolute_url()).content.decode()
    assert str(private.submission_id) not in text
    client.force_login(user)
    assert str(private.submission_id) in client.get(agent.get_absolute_url()).content.decode()


def test_runs_are_their_agents_persons_and_models(client: Client) -> None:
    run = factories.make_run(usd=1.25, tokens=1000, evaluations=7)
    hidden = factories.make_run(private=True, usd=9.0, user=run.user)
    spend = work(Owner(run.agent), AnonymousUser()).spend
    assert (spend.runs, spend.usd, spend.tokens, spend.evaluations) == (1, 1.25, 1000, 7)
    assert work(Owner(run.agent), hidden.user).spend.usd == 10.25
    text = client.get(run.agent.get_absolute_url()).content.decode()
    assert str(run.pk) in text
    assert str(hidden.pk) not in text
    factories.make_evaluation(user=run.user)
    person = Agent.objects.get(user=run.user)
    assert list(runs_of(Owner(person), AnonymousUser())) == [run]


def test_what_waits_for_a_person_is_not_called_wrong(client: Client, robot: Agent) -> None:
    """Neither by its problem's cell, nor by the share of correct evaluations."""
    kept = held(agent="robot", task_version=factories.make_task_version(name="doubted"))
    found = profile(Owner(robot))
    assert found is not None
    assert (found.judged, found.accepted, found.held) == (3, 2, 1)
    cells = {cell.problem.task: cell for cell in found.whole.cells}
    assert (cells["doubted"].judged, cells["doubted"].held) == (0, 1)
    text = " ".join(client.get(robot.get_absolute_url()).content.decode().split())
    assert "2 of 3; 1 in quarantine" in text
    assert "! 1 in quarantine" in text
    held(agent="newcomer", task_version=kept.task_version)
    newcomer = profile(Owner(Agent.objects.get(name="newcomer")))
    assert newcomer is not None
    assert (newcomer.whole.solved, newcomer.whole.attempted, newcomer.held) == (0, 1, 1)


def test_a_name_that_was_used_in_private_alone_is_nobody_elses_business() -> None:
    """Wherever one may ask for a name, or sees those that there are."""
    author = factories.make_user()
    names = {"agent": "shy-robot", "language_model": "shy-model"}
    submission = ranked("first", 2.0, user=author, private=True, **names).submission
    agent, model = submission.agent, submission.language_model
    assert model is not None
    paths = [agent.get_absolute_url(), f"/compare/agents/?agent={agent.name}"]
    paths += [model.get_absolute_url(), f"/compare/language-models/?model={model.name}"]
    lists = ["/search/?q=shy-", "/search/suggestions/?q=shy-", "/language-models/"]

    def statuses(user: Any) -> list[int]:
        client = Client()
        if user:
            client.force_login(user)
        shown = "".join(client.get(path).content.decode() for path in lists)
        told = [name in shown for name in names.values()]
        answers = [client.get(path, follow=True) for path in paths]
        return [*(answer.status_code for answer in answers), *told]

    for stranger in (None, factories.make_user()):
        assert statuses(stranger) == [404, 400, 404, 400, False, False]
    for owner in (author, factories.make_admin()):
        assert statuses(owner) == [200, 200, 200, 200, True, True]
    submission.private = False
    submission.save()
    assert statuses(None) == [200, 200, 200, 200, True, True]


def test_what_tells_of_a_name_beside_submissions() -> None:
    """A public run, an entry to a challenge, or calls of a language model."""
    run = factories.make_run(private=True)
    model = LanguageModel.objects.create(name="local", created_at=factories.NOW)
    now = timezone.now()
    dates = {"starts_at": now, "ends_at": now + timedelta(days=1), "now": now}
    entered = {"language_model": "local", "agent": "rival"}
    pages = [run.agent.get_absolute_url(), model.get_absolute_url()]
    assert [Client().get(page).status_code for page in pages] == [404, 404]
    run.private = False
    run.save()
    entry = new_entry(new_challenge(tasks=("scale",), **dates), run.user, now=now, **entered)
    pages.append(entry.agent.get_absolute_url())
    assert [Client().get(page).status_code for page in pages] == [200, 200, 200]


def test_a_language_model_counts_the_same_everywhere(client: Client) -> None:
    submitted = ranked("first", 2.0)
    alpha = LanguageModel.objects.get(name="alpha")
    versions = [submitted.task_version, factories.make_task_version(name="second")]
    for place, version in enumerate([*versions, versions[1]]):
        run = factories.make_run(task_version=version, tokens=7)
        used = {"language_model": alpha, "tokens_in": 400, "tokens_out": 11, "cost_usd": 0.5}
        asked = {"role": "propose", "messages": [], "temperature": 0.5, "max_tokens": 9}
        ended = {"status": "ANSWERED", "created_at": factories.NOW, "ended_at": factories.NOW}
        LanguageModelCall.objects.create(run=run, number=1, **used, **asked, **ended)
        entry = submitted.submission if place == 0 else None
        factories.make_candidate(run, entry=entry, verdict="CORRECT")
    Device.objects.update(imported_from="elsewhere")
    for address in ("/language-models/", alpha.get_absolute_url()):
        text = client.get(address).content.decode()
        assert "1.23 k" in text, address
        assert "$1.50" in text, address
    for address in ("/leaderboard/?by=model&device=cpu", alpha.get_absolute_url()):
        text = client.get(address).content.decode()
        assert "3 runs on 2 tasks, 1 submitted" in text, address
