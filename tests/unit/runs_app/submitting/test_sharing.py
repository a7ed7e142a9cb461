"""What others are pointed to: differences, citation, badge and card."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation
from runs_app.submitting import card
from runs_app.submitting.citation import bibtex
from tests import factories
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
    assert "your last" in text
    assert "the leader" in text
    assert f"submission={own.submission_id}&amp;submission=" in text


def test_the_last_of_others_that_is_private_is_not_shown(client: Client) -> None:
    version = factories.make_task_version()
    user = factories.make_user()
    finished(task_version=version, user=user, source=factories.SOURCE + "// secret\n", private=True)
    own = finished(task_version=version, user=user, now=factories.later(9))
    assert "secret" not in client.get(of(own, "differences/")).content.decode()


def test_a_result_is_cited_with_its_surroundings(client: Client) -> None:
    evaluation = finished()
    text = client.get(of(evaluation)).content.decode()
    address = f"http://testserver{of(evaluation)}?evaluation={evaluation.pk}"
    assert f"url = {{{address}}}" in text
    assert f"{evaluation.task_version.digest}, measured as digest" not in text
    assert evaluation.task_version.digest in text
    assert evaluation.submission.digest in text
    assert '<meta property="og:image" content="http://testserver/submissions/' in text
    assert "1777" not in text


def test_an_imported_result_s_citation_is_latex_and_says_what_was_measured() -> None:
    evaluation = finished(agent="a_run")
    evaluation.submission.origin = "imported"
    result = replace(evaluation.result.data, task_digest="abc")
    text = bibtex(evaluation, result, "http://host/a_b")
    assert "author = {{a\\_run}}," in text
    assert "url = {http://host/a_b}," in text
    assert ", imported; task" in text
    assert "measured as digest abc" in text
    assert not re.search(r"(?<!\\)[_&%#$]", text.replace("a_b", ""))


def test_a_badge_says_the_verdict(client: Client) -> None:
    right = finished()
    answer = client.get(of(right, "badge.svg"))
    assert answer["Content-Type"] == "image/svg+xml"
    assert "max-age=300" in answer["Cache-Control"]
    assert "kbench scale, CPU: 1.50×" in answer.content.decode()
    wrong = finished(verdict=Verdict.WRONG_RESULT, task_version=right.task_version)
    assert "Wrong result" in client.get(of(wrong, "badge.svg")).content.decode()


def test_what_is_shared_of_a_result_in_quarantine_says_so(client: Client) -> None:
    doubted = held(result={"speedups": {"best": 1.5}})
    assert "1.50×, in quarantine" in client.get(of(doubted, "badge.svg")).content.decode()
    text = client.get(of(doubted)).content.decode()
    assert "1.50× the best baseline on CPU (in quarantine)" in text
    fine = finished(task_version=doubted.task_version)
    factories.pass_audits()
    fine.refresh_from_db()
    assert client.get(of(doubted, "card.png")).content != client.get(of(fine, "card.png")).content
    assert (card.badge(doubted).kind, card.badge(fine).kind) == ("warn", "good")


@pytest.mark.parametrize(
    ("speedup", "kind"), [(1.5, "good"), (0.474, "bad"), (1.001, ""), (None, "")]
)
def test_a_number_has_the_colour_that_it_has_on_the_page(
    client: Client, speedup: float | None, kind: str
) -> None:
    evaluation = finished()
    changes = {"score": speedup, "speedup_best": speedup, "audited": "passed"}
    Evaluation.objects.filter(pk=evaluation.pk).update(**changes)
    evaluation.refresh_from_db()
    assert card.badge(evaluation).kind == kind
    on_page = {"good": "faster", "bad": "slower", "": "neutral"}[kind]
    assert f'class="verdict-said {on_page}"' in client.get(of(evaluation)).content.decode()


@pytest.mark.parametrize("state", ["open", "rejected"])
def test_a_fast_result_that_is_doubted_is_never_green(state: str) -> None:
    evaluation = finished()
    evaluation.quarantine = state
    assert card.badge(evaluation).kind in ("warn", "bad")


@pytest.mark.parametrize(
    ("verdict", "kind"), [("", ""), ("COMPILED", "good"), ("TOO_SLOW", "bad"), ("UNSTABLE", "warn")]
)
def test_a_verdict_has_the_colour_of_the_page(verdict: str, kind: str) -> None:
    evaluation = finished()
    evaluation.verdict = verdict
    assert card.badge(evaluation).kind == kind


@pytest.mark.parametrize("title", ["Scale", "ß ∑ " * 40, "x" * 300])
def test_a_card_is_a_picture_of_the_usual_size(client: Client, title: str) -> None:
    evaluation = finished(task_version=factories.make_task_version(title=title[:200]))
    answer = client.get(of(evaluation, "card.png"))
    assert answer["Content-Type"] == "image/png"
    assert answer.content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", answer.content[16:24]) == (1200, 630)


def test_the_card_s_font_has_what_numbers_need() -> None:
    missing = card._font(40).getmask("∑").getbbox()
    assert all(card._font(40).getmask(sign).getbbox() != missing for sign in "×µ…–")
    assert card.printable("1.34× in 5 µs, ∑ of ß…") == "1.34× in 5 µs, ? of ß…"


@pytest.mark.parametrize("part", ["badge.svg", "card.png", "differences/"])
def test_what_is_private_is_its_author_s(client: Client, part: str) -> None:
    user = factories.make_user()
    evaluation = finished(user=user, private=True)
    assert client.get(of(evaluation, part)).status_code == 404
    client.force_login(user)
    answer = client.get(of(evaluation, part))
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]


def test_another_evaluation_is_shown_by_its_number(client: Client) -> None:
    evaluation = finished()
    assert client.get(of(evaluation, f"badge.svg?evaluation={evaluation.pk}")).status_code == 200
    assert client.get(of(evaluation, "badge.svg?evaluation=17")).status_code == 404
