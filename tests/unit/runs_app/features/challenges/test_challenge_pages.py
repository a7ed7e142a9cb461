"""Pages of challenges and entries: who sees what, forms that name their errors, who wins."""

from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from gpu_runner.data.verdict import Verdict
from runs_app.features.challenges.figures import Contender
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.page import Winner, winner
from runs_app.features.challenges.services import finish
from runs_app.features.challenges.settle import settle_challenges
from runs_app.models import Evaluation, Submission
from tasks_app.models import AuditEntry
from tests import factories as make
from tests.unit.runs_app.features.challenges.invented import (
    end,
    make_tasks,
    new_challenge,
    new_entry,
    tried,
    try_once,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

PAGE = "/challenges/autumn/"


@pytest.fixture
def challenge() -> Challenge:
    now = timezone.now()
    return new_challenge(starts_at=now, ends_at=now + timedelta(days=1), now=now)


@pytest.fixture
def ada(challenge: Challenge) -> User:
    return make.make_user(username="ada")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(response: Any) -> str:
    return str(response.content.decode())


def entry_of(challenge: Challenge, user: User, **overrides: Any) -> Entry:
    return new_entry(challenge, user, now=timezone.now(), **overrides)


def fields(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Winter",
        "tasks": ["scale", "scale2"],
        "direction": "forward",
        "device": "cpu",
        "evaluations": "5",
        "minutes": "60",
        "starts_at": "2026-01-02T00:00",
        "ends_at": "2999-01-02T00:00",
        **changes,
    }


def test_an_admin_makes_a_challenge() -> None:
    make.make_cpu()
    make_tasks()
    client = signed_in(make.make_admin())
    assert "No challenge yet" in text(client.get("/challenges/"))
    assert client.get("/challenges/new/").status_code == 200
    preview = client.post("/challenges/new/", fields(usd="2.5"))
    assert "$2.50 as" in text(preview)
    assert not Challenge.objects.exists()
    changed = client.post("/challenges/new/", fields(usd="2.5", step="change"))
    assert re.search(r'value="scale2"[^>]* checked', text(changed))
    made = client.post("/challenges/new/", fields(usd="2.5", step="make"))
    assert made["Location"] == "/challenges/winter/"
    challenge = Challenge.objects.get()
    assert (challenge.wall_time_s, challenge.usd) == (3600, 2.5)
    assert AuditEntry.objects.get(kind="challenge").name == "Winter"
    listed = text(Client().get("/challenges/"))
    assert ("Winter" in listed, "Create a challenge" in listed) == (True, False)
    assert "$2.50 as" in text(Client().get(made["Location"]))


def test_entering_shows_the_token_once(ada: User) -> None:
    client = signed_in(ada)
    assert "Enter now" in text(client.get(PAGE))
    assert Client().post(PAGE, {}).status_code == 403
    answer = client.post(PAGE, {"agent": "evolver", "setting": "cold"})
    entry = Entry.objects.get()
    assert answer.headers["Location"] == entry.get_absolute_url(), "a reload enters no second time"
    assert "kbe_" in text(client.get(entry.get_absolute_url()))
    assert "kbe_" not in text(client.get(entry.get_absolute_url()))
    refused = client.post(PAGE, {"agent": "!"})
    assert refused.status_code == 422


def test_its_owner_writes_for_it_in_the_workbench(challenge: Challenge, ada: User) -> None:
    entry = entry_of(challenge, ada)
    client, eve = signed_in(ada), signed_in(make.make_user())
    address = re.search(r'href="(/submit/[?][^"]*)"', text(client.get(entry.get_absolute_url())))
    assert address is not None
    page = address[1].replace("&amp;", "&")
    assert f'value="{entry.pk}"' in text(client.get(page))
    assert eve.get(page).status_code == 404
    kernel = {"task": "scale", "device": "cpu", "source": make.SOURCE, "bearer": str(entry.pk)}
    kernel |= {"written_by": "person"}
    refused = text(client.post("/submit/", {**kernel, "mode": "ranked"}))
    assert "; use quick" in refused
    assert eve.post("/submit/", {**kernel, "mode": "quick"}).status_code == 422
    assert not Submission.objects.exists()
    assert client.post("/submit/", {**kernel, "mode": "quick"}).status_code == 302
    submission = Submission.objects.get(attempt__entry=entry)
    assert (submission.budgeted, submission.private) == (True, True)
    finish(entry=entry, user=ada, now=timezone.now())
    assert "bearer=" not in text(client.get(entry.get_absolute_url()))
    assert client.post("/submit/", {**kernel, "mode": "quick"}).status_code == 422


def test_sources_are_the_owners_and_the_admins_until_it_is_closed(
    challenge: Challenge, ada: User
) -> None:
    entry = entry_of(challenge, ada)
    best = tried(entry, now=timezone.now())
    end(try_once(entry, now=timezone.now()), Verdict.WRONG_RESULT)
    page, link = entry.get_absolute_url(), best.submission.get_absolute_url()
    for client in (signed_in(ada), signed_in(make.make_admin())):
        assert link in text(client.get(page))
    seen = text(Client().get(page))
    assert link not in seen
    assert "Wrong result" in seen
    assert Client().get(link).status_code == 404
    settle_challenges(now=challenge.ends_at)
    end(Evaluation.objects.get(mode="ranked"))
    settle_challenges(now=challenge.ends_at)
    assert link in text(Client().get(page))
    assert page in text(Client().get(link))
    assert Client().get(link).status_code == 200


def test_a_transcript_is_public_when_the_challenge_is_closed(
    challenge: Challenge, ada: User
) -> None:
    entry = entry_of(challenge, ada)
    page = entry.get_absolute_url()
    upload = SimpleUploadedFile("log.txt", b"I tried <b>")
    reported = signed_in(ada).post(page, {"usd": "2", "tokens": "", "transcript": upload})
    assert reported.status_code == 302
    assert "$2.00 of $10.00, as reported" in text(Client().get(page))
    assert Client().get(f"{page}transcript/").status_code == 404
    own = signed_in(ada).get(f"{page}transcript/")
    assert (own.content, own["Content-Type"]) == (b"I tried <b>", "text/plain; charset=utf-8")
    settle_challenges(now=challenge.ends_at)
    settle_challenges(now=challenge.ends_at)
    assert Client().get(f"{page}transcript/").status_code == 200


def contender(name: str, *, hidden: float | None, score: float | None, solved: float) -> Contender:
    result: Any = SimpleNamespace(hidden_correct=hidden, score=score, correct=solved)
    return Contender(agent=name, setting="", results=(result,))


def answer(*contenders: Contender, closed: bool = True) -> Winner:
    found = winner(Challenge(closed_at=make.NOW if closed else None), contenders)
    assert found is not None
    return found


def test_the_score_decides_between_those_that_are_as_often_right() -> None:
    first = contender("quill", hidden=1.0, score=1.72, solved=1.0)
    second = contender("ink", hidden=1.0, score=1.2, solved=1.0)
    found = answer(first, second)
    assert "quill" in found.headline
    assert found.kind == "good"
    assert all(words in found.sentence for words in ("1.72×", "1.20×", "ink"))


def test_being_right_on_hidden_workloads_goes_first() -> None:
    first = contender("quill", hidden=1.0, score=0.9, solved=1.0)
    second = contender("ink", hidden=0.5, score=3.0, solved=1.0)
    assert "50.0 %" in answer(first, second).sentence


def test_equal_ones_tie_and_until_it_is_closed_nobody_has_won() -> None:
    both = [contender(name, hidden=1.0, score=1.5, solved=1.0) for name in ("ink", "quill")]
    assert all(each.agent in answer(*both).sentence for each in both)
    assert "wins" not in answer(*both).headline
    assert winner(Challenge(), []) is None
    first = contender("quill", hidden=None, score=None, solved=0.5)
    idle = contender("ink", hidden=None, score=None, solved=0.0)
    assert "ink" not in answer(idle, closed=False).headline
    found = answer(first, idle, closed=False)
    assert ("wins" in found.headline, found.kind) == (False, "")
    assert "50.0 %" in found.sentence
