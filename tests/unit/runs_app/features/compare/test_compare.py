"""Submissions, agents and language models side by side."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.http import QueryDict
from django.test import Client

from runs_app.models import Agent, Evaluation
from tests import factories
from tests.unit.conftest import as_shown
from tests.unit.runs_app.core.integrity.suspicious import held

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def finished(**overrides: Any) -> Evaluation:
    return factories.make_finished_evaluation(**({"mode": "ranked"} | overrides))


def faster(time_ns: float) -> dict[str, Any]:
    """A result whose one listed workload takes so long."""
    speedups = {"best": 1500.0 / time_ns, "eager": 2000.0 / time_ns}
    row = factories.make_workload_result(
        measurement=factories.make_measurement(time_ns), speedups=speedups
    )
    hidden = factories.make_workload_result(
        name=factories.HIDDEN_WORKLOAD, parameters={"N": 1777}, hidden=True
    )
    return {"workloads": (row, hidden), "latency_ns": time_ns, "speedups": speedups}


def address(*evaluations: Evaluation, **more: str) -> str:
    parts = [f"submission={each.submission_id}" for each in evaluations]
    return "/compare/submissions/?" + "&".join([*parts, *(f"{k}={v}" for k, v in more.items())])


def page(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path, follow=True)
    assert answer.status_code == status
    return as_shown(answer.content.decode())


def test_two_submissions_against_the_pinned_one(client: Client) -> None:
    version = factories.make_task_version()
    slow = finished(task_version=version, agent="snail", result=faster(1000.0))
    fast = finished(
        task_version=version, agent="hare", source=factories.SOURCE + "// fast\n",
        result=faster(500.0),
    )  # fmt: skip
    text = page(client, address(slow, fast))
    assert "+100 %" in text
    assert "−50 %" in text
    assert ">2.00×</span>" in text
    assert "1777" not in text, "a hidden workload is shown"
    assert "// fast" in text
    assert "hare" in text
    assert "Direction" not in text, "what is alike is left out"
    assert "Direction" in page(client, address(slow, fast, all="1"))
    records = client.get(address(slow, fast, format="json")).json()["comparison"]
    told = [(r["agent"], r["workload"], r["time_ns"]) for r in records]
    assert told == [("snail", "n256", 1000.0), ("hare", "n256", 500.0)]
    table = client.get(address(slow, fast, format="csv")).content.decode()
    assert "1777" not in table, "a hidden workload is told"
    assert len(table.splitlines()) == 3
    turned = page(client, address(slow, fast, pin=str(fast.submission_id)))
    assert "+100 %" in turned
    assert ">0.500×</span>" in turned


def test_a_submission_and_a_board_lead_to_comparisons(client: Client) -> None:
    version = factories.make_task_version()
    leads = finished(task_version=version, result=faster(400.0))
    alone = page(client, leads.submission.get_absolute_url())
    assert "compare with" not in alone, "there is nothing to compare it with"
    user = factories.make_user()
    last = finished(task_version=version, user=user, result=faster(900.0))
    own = finished(
        task_version=version, user=user, now=factories.later(9), result=faster(1000.0),
    )  # fmt: skip
    text = client.get(own.submission.get_absolute_url()).content.decode()
    link = text.partition('href="/compare/submissions/')[2].partition('"')[0]
    assert "compare with its author" in page(client, own.submission.get_absolute_url())
    told = [str(each.submission_id) for each in (own, last, leads)]
    asked = QueryDict(link.replace("&amp;", "&").removeprefix("?"))
    assert (asked.getlist("submission"), asked["device"]) == (told, "cpu")
    board = client.get("/leaderboard/?task=scale&device=cpu").content.decode()
    assert board.count('form="compare"') == board.count('<form id="compare"') + 1 == 2
    assert f'value="{leads.submission_id}"' in board
    for other in ("by=agent&task=scale", "by=submission"):
        assert 'form="compare"' not in client.get(f"/leaderboard/?{other}").content.decode()


def test_what_is_in_quarantine_is_told_beside_its_verdict(client: Client) -> None:
    doubted = held()
    fine = finished(task_version=doubted.task_version)
    text = page(client, address(fine, doubted))
    assert text.count("In quarantine") == 1
    assert "&lt;span" not in text
    assert "In quarantine" not in page(client, address(fine))


def test_what_cannot_be_compared_is_named(client: Client) -> None:
    version = factories.make_task_version()
    six = [finished(task_version=version) for _ in range(6)]
    submissions, agents = "/compare/submissions/?submission=", "/compare/agents/?"
    for path, words in (
        (f"{submissions}17", "not a submission number"),
        (f"{submissions}{UUID(int=0)}", "or it is private"),
        (f"{submissions}{{{UUID(int=0)}}}", "not a submission number"),
        (address(*six), "at most 5"),
        (f"{agents}agent=nobody", "there is no 'nobody'"),
        ("/compare/language-models/?model=nobody", "there is no 'nobody'"),
        (f"{agents}device=abacus", "there is no result on 'abacus'"),
        (f"{agents}agent={'x' * 200}", "too long for a name"),
    ):
        assert words in page(client, path, 400).replace("&#x27;", "'"), path
    other = finished(task_version=factories.make_task_version(name="twice", title="Twice"))
    assert "Workload by workload" not in page(client, address(six[0], other))


def test_a_private_submission_is_compared_by_its_author_alone(client: Client) -> None:
    user = factories.make_user()
    mine = finished(user=user, private=True, source="// secret\n" + factories.SOURCE)
    other = finished(task_version=mine.task_version)
    assert "secret" not in page(client, address(mine, other), 400)
    client.force_login(user)
    assert "secret" in page(client, address(mine, other))


def test_agents_over_what_they_have_in_common(client: Client) -> None:
    shared = factories.make_task_version()
    alone = factories.make_task_version(name="twice", title="Twice")
    for agent, time_ns in (("snail", 1000.0), ("hare", 500.0)):
        model = {"language_model": f"model-{agent}"}
        finished(task_version=shared, agent=agent, result=faster(time_ns), **model)
    finished(task_version=alone, agent="hare", result=faster(100.0))
    text = page(client, "/compare/agents/?agent=snail&agent=hare")
    assert "no task that all of them" in text, "no audit has ended"
    factories.pass_audits()
    text = page(client, "/compare/agents/?agent=snail&agent=hare")
    assert "&lt;span" not in text
    assert "2.00×" in text
    assert "1.50×" in text
    assert "3.00×" in text
    records = client.get("/compare/agents/?agent=snail&agent=hare&device=cpu&format=json").json()
    told = [(r["agent"], r["latency_ns"]) for r in records["comparison"]]
    assert told == [("snail", 1000.0), ("hare", 500.0)]
    models = page(client, "/compare/language-models/?model=model-snail&model=model-hare")
    assert "model-hare" in models
    assert "Based on 1 task" in models
    assert ">2.00× (1 task)<" in page(client, "/compare/agents/?agent=snail&agent=hare")
    assert 'href="/compare/agents/?device=cpu"' in page(client, "/leaderboard/?device=cpu")
    profile = Agent.objects.get(name="hare").get_absolute_url()
    assert 'href="/compare/agents/?agent=hare"' in page(client, profile)


def test_who_is_first_is_told_by_the_score_once_it_is_sure(client: Client) -> None:
    version = factories.make_task_version()
    for agent, time_ns, unlisted in (("tuned", 500.0, 0.2), ("general", 1000.0, 1.5)):
        result = faster(time_ns) | {"unlisted_speedups": {"best": unlisted}}
        finished(task_version=version, agent=agent, result=result)
    path = "/compare/agents/?agent=tuned&agent=general&all=1"
    for wins in (["–", "–"], ["0", "1"]):
        assert "0.77" in page(client, path)
        results = client.get(path, follow=True).context["results"]
        assert [cell.text for cell in results.rows[-1].cells] == wins
        factories.pass_audits()


def test_a_provisional_result_is_marked_and_never_beside_a_final_one(client: Client) -> None:
    version = factories.make_task_version()
    for agent, time_ns in (("snail", 1000.0), ("hare", 500.0)):
        finished(task_version=version, agent=agent, result=faster(time_ns))
    factories.pass_audits()
    late = finished(task_version=version, agent="late", result=faster(900.0))
    Evaluation.objects.filter(pk=late.pk).update(awaits_baselines=True)
    both = client.get("/compare/agents/?agent=hare&agent=late&all=1", follow=True).context
    assert both["picture"] is None, "a final result beside a provisional one"
    assert [cell.text for cell in both["results"].rows[-1].cells] == ["–", "–"]
    assert [("Provisional" in cell.note) for cell in both["scores"].rows[0].cells] == [False, True]
    three = client.get("/compare/agents/?agent=hare&agent=late&agent=snail", follow=True).context
    assert [mark.kind for mark in three["picture"].rows[0].marks] == ["author-0", "author-2"]
    assert [cell.text for cell in three["results"].rows[-1].cells] == ["1", "0", "0"]
    text = page(client, address(Evaluation.objects.exclude(pk=late.pk)[0], late))
    assert "over the baselines known so far" in text


def test_agents_without_a_task_in_common(client: Client) -> None:
    for agent, task in (("snail", "scale"), ("hare", "twice")):
        version = factories.make_task_version(name=task, title=task)
        finished(task_version=version, agent=agent, result=faster(500.0))
    factories.pass_audits()
    answer = client.get("/compare/agents/?agent=snail&agent=hare", follow=True)
    assert [[cell.text for cell in row.cells] for row in answer.context["results"].rows] == [
        ["1", "1"], *[["–", "–"]] * 4,
    ]  # fmt: skip
    assert b"no task in common" in answer.content
    assert b"Show" not in answer.content.partition(b"no task in common")[2]
