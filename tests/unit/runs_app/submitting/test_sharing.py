"""What others are pointed to: differences, likeness, citation, badge and card."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Language, Verdict
from runs_app.models import Evaluation, Submission
from runs_app.submitting import card
from runs_app.submitting.citation import bibtex
from runs_app.submitting.remarks import likeness
from tasks_app.models import TaskVersion
from tests import factories
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import held

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def finished(**overrides: Any) -> Evaluation:
    return factories.make_finished_evaluation(**({"mode": "ranked"} | overrides))


def of(evaluation: Evaluation, part: str = "") -> str:
    return f"/submissions/{evaluation.submission_id}/{part}"


def test_differences_to_one_s_last_and_to_the_leader(client: Client) -> None:
    version = factories.make_task_version()
    user = factories.make_user()
    finished(
        task_version=version, source=factories.SOURCE + "// leads\n", result={"latency_ns": 1.0}
    )
    finished(task_version=version, user=user, source=factories.SOURCE + "// before\n")
    own = finished(task_version=version, user=user, now=factories.later(9))
    client.force_login(user)
    text = client.get(of(own, "differences/")).content.decode()
    assert "// leads" in text
    assert "// before" in text
    assert f"submission={own.submission_id}&amp;submission=" in text
    Submission.objects.filter(source__contains="// before").update(private=True)
    assert "// before" not in Client().get(of(own, "differences/")).content.decode()


def test_a_result_is_cited_with_its_surroundings(client: Client) -> None:
    evaluation = finished()
    text = client.get(of(evaluation)).content.decode()
    address = f"http://testserver{of(evaluation)}?evaluation={evaluation.pk}"
    assert f"url = {{{address}}}" in text
    assert "before it had unlisted sizes" not in text
    assert evaluation.task_version.digest in text
    assert evaluation.submission.digest in text
    assert '<meta property="og:image" content="http://testserver/submissions/' in text
    assert "1777" not in text


def test_an_imported_result_s_citation_is_latex_and_says_what_was_measured() -> None:
    evaluation = finished(agent="a_run")
    evaluation.device.imported_from = "kernels.example"
    result = replace(evaluation.result.data, task_digest="abc")
    text = bibtex(evaluation, result, "http://host/a_b")
    assert "author = {{a\\_run}}," in text
    assert "url = {http://host/a_b}," in text
    assert ", imported; task" in text
    assert "unlisted sizes (digest abc)" in text
    assert not re.search(r"(?<!\\)[_&%#$]", text.replace("a_b", ""))


def test_a_badge_says_the_verdict(client: Client) -> None:
    right = finished()
    answer = client.get(of(right, "badge.svg"))
    assert answer["Content-Type"] == "image/svg+xml"
    assert "max-age=300" in answer["Cache-Control"]
    assert "kbench scale, CPU: 1.50×" in answer.content.decode()
    wrong = finished(verdict=Verdict.WRONG_RESULT, task_version=right.task_version)
    assert "Wrong result" in client.get(of(wrong, "badge.svg")).content.decode()
    waiting = factories.make_evaluation(task_version=right.task_version)
    assert "no-store" in client.get(of(waiting, "badge.svg"))["Cache-Control"], "it changes soon"
    assert client.get(of(right, f"badge.svg?evaluation={right.pk}")).status_code == 200
    assert client.get(of(right, "badge.svg?evaluation=17")).status_code == 404
    mine = finished(private=True, task_version=right.task_version)
    client.force_login(mine.submission.author)
    for part in ("badge.svg", "card.png", "differences/"):
        assert Client().get(of(mine, part)).status_code == 404
        answer = client.get(of(mine, part))
        assert (answer.status_code, "no-store" in answer["Cache-Control"]) == (200, True)


def test_what_is_shared_of_a_result_in_quarantine_says_so(client: Client) -> None:
    doubted = held(result={"speedups": {"best": 1.5}})
    assert "1.50×, in quarantine" in client.get(of(doubted, "badge.svg")).content.decode()
    assert "(in quarantine)" in client.get(of(doubted)).content.decode()
    fine = finished(task_version=doubted.task_version)
    factories.pass_audits()
    fine.refresh_from_db()
    assert client.get(of(doubted, "card.png")).content != client.get(of(fine, "card.png")).content
    assert (card.badge(doubted).kind, card.badge(fine).kind) == ("warn", "good")


def test_a_badge_has_the_colour_that_the_page_has(client: Client) -> None:
    evaluation = finished()
    for speedup, kind, on_page in (
        (1.5, "good", "faster"),
        (1.001, "", "neutral"),
        (None, "", "neutral"),
        (0.453, "warn", "slower"),  # right, so not red
    ):
        changes = {"score": speedup, "speedup_best": speedup, "audited": "passed"}
        Evaluation.objects.filter(pk=evaluation.pk).update(**changes)
        evaluation.refresh_from_db()
        assert card.badge(evaluation).kind == kind
        assert f'class="verdict-said {on_page}"' in client.get(of(evaluation)).content.decode()
    for state in ("open", "rejected"):  # what is doubted is never green
        evaluation.quarantine = state
        assert card.badge(evaluation).kind in ("warn", "bad")


GOOD = "".join(f"    total += input[{place}];\n" for place in range(50))


@pytest.fixture
def version() -> TaskVersion:
    kernel = ShippedKernel(path="kernels/good.cpp", agent="kbench-good", language=Language.CPP)
    files = {"reference.py": "", "kernels/good.cpp": GOOD}
    return make.make_task_version(kernels=(kernel,), files=files)


def test_a_source_is_compared_with_the_task_s_kernels(version: TaskVersion) -> None:
    for source, words in (
        (GOOD, "the same as kbench-good"),
        (GOOD.replace("[7]", "[8]"), "98 % like kbench-good"),
        (GOOD[: len(GOOD) // 4], ""),
        ("int main() {}\n", ""),
    ):
        submission = make.make_submission(task_version=version, source=source)
        assert likeness(submission) == likeness(submission) == words
