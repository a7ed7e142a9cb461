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
from runs_app.features.challenges.figures import Contender, contenders, entry_results
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.page import Winner, curves, winner
from runs_app.features.challenges.selectors import evaluations_of
from runs_app.features.challenges.services import finish
from runs_app.features.challenges.settle import settle_challenges
from runs_app.models import Evaluation, Submission
from tasks_app.models import AuditEntry, Task, TaskVersion
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
    assert "No challenges yet" in text(client.get("/challenges/"))
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


def test_what_counts_less_is_marked(challenge: Challenge, ada: User) -> None:
    """A contaminated task in the preview and on the page, and provisional figures everywhere."""
    Task.objects.filter(slug="scale").update(contaminated="its kernel is public")
    preview = signed_in(make.make_admin()).post("/challenges/new/", fields())
    entry = entry_of(challenge, ada)
    done = tried(entry)
    assert entry_results(challenge, [entry])[0].fast is not None
    assert all("its kernel is public" in text(page) for page in (preview, Client().get(PAGE)))
    assert "provisional" not in text(Client().get(PAGE))
    Evaluation.objects.filter(pk=done.pk).update(awaits_baselines=True)
    assert entry_results(challenge, [entry])[0].fast is None, "the speedup may still change"
    page = text(Client().get(PAGE))
    assert "1 repeat, provisional" in page
    assert re.search(r"1 repeat\s+· provisional", page)


def test_a_preview_counts_each_evaluation_and_one_ranking_for_each_task() -> None:
    make_tasks()
    for mode, seconds in (("quick", 30), ("ranked", 150)):
        evaluation = make.make_finished_evaluation(
            mode=mode, task_version=TaskVersion.objects.first()
        )
        moments = {"started_at": make.NOW, "finished_at": make.later(seconds)}
        Evaluation.objects.filter(pk=evaluation.pk).update(**moments)
    preview = signed_in(make.make_admin()).post("/challenges/new/", fields())
    assert "about 10 min" in text(preview), "2 tasks: 5 × 30 s, and once 150 s"


def test_a_form_with_an_error_says_so_beside_the_field() -> None:
    make.make_cpu()
    make_tasks()
    client = signed_in(make.make_admin())
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"tasks": []}, "at least one task"),
        ({"minutes": "0"}, "greater than or equal to 1"),
        ({"ends_at": "2026-01-02T00:00"}, "after the start"),
    )
    for changes, words in cases:
        answer = client.post("/challenges/new/", fields(**changes))
        assert (answer.status_code, words in text(answer)) == (422, True)
    several = {"name": "New", "ends_at": "2026-01-01T00:00", "direction": "backward"}
    several["minutes"] = "0"
    shown = text(client.post("/challenges/new/", fields(**several)))
    for words in ("a letter or digit", "after the start", "scale has only", "or equal to 1"):
        assert words in shown, "all that is wrong is said at once"
    assert not Challenge.objects.exists()


def test_entering_shows_the_token_once(ada: User) -> None:
    client = signed_in(ada)
    assert "Enter now" in text(client.get(PAGE))
    assert "Sign in to enter" in text(Client().get(PAGE))
    assert Client().post(PAGE, {}).status_code == 403
    answer = client.post(PAGE, {"agent": "evolver", "setting": "cold"})
    entry = Entry.objects.get()
    assert answer.headers["Location"] == entry.get_absolute_url(), "a reload enters no second time"
    assert "kbe_" in text(client.get(entry.get_absolute_url()))
    assert "kbe_" not in text(client.get(entry.get_absolute_url()))
    refused = client.post(PAGE, {"agent": "!"})
    assert refused.status_code == 422
    assert "Must start with a letter or digit" in text(refused)


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


def test_a_tasks_time_is_that_of_its_speedup(challenge: Challenge, ada: User) -> None:
    entry = entry_of(challenge, ada)
    tried(entry, 1000.0, now=timezone.now())

    def time() -> str:
        row = text(Client().get(entry.get_absolute_url())).partition('data-label="Time">')[2]
        return row.partition("</td>")[0]

    assert "1.00" in time()
    settle_challenges(now=challenge.ends_at)
    end(Evaluation.objects.get(mode="ranked"), latency_ns=1250.0)
    settle_challenges(now=challenge.ends_at)
    assert "1.25" in time()


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


def test_a_report_with_an_error(challenge: Challenge, ada: User) -> None:
    address = entry_of(challenge, ada).get_absolute_url()
    Entry.objects.update(usd=2)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"usd": "1"}, "be below 2."),
        ({"tokens": "-1"}, "greater than or equal to 0"),
        ({"transcript": SimpleUploadedFile("x", b"\xff\xfe\xfd")}, "The file"),
        ({"transcript": SimpleUploadedFile("x", b"x" * (2**21 + 1))}, "2 MiB."),
    )
    for data, words in cases:
        answer = signed_in(ada).post(address, data)
        assert (answer.status_code, words in text(answer)) == (422, True)
        assert Client().post(address, data).status_code == 403


def test_it_is_finished_on_its_page_and_the_challenge_ended_on_its_own(
    challenge: Challenge, ada: User
) -> None:
    entry = entry_of(challenge, ada)
    finish = f"{entry.get_absolute_url()}finish/"
    seen = text(Client().get(entry.get_absolute_url()))
    assert "Finish the entry" not in seen
    assert 'hx-trigger="every 20s"' in seen
    refused = signed_in(make.make_user()).post(finish, follow=True)
    assert "Nothing changed: only the entry" in text(refused)
    measured = text(signed_in(ada).post(finish, follow=True))
    assert "Ranked" in measured
    assert "every 20s" not in measured
    refused = signed_in(ada).post(f"{PAGE}end/", follow=True)
    assert "Nothing changed: only admins" in text(refused)
    assert "Measuring" in text(signed_in(make.make_admin()).post(f"{PAGE}end/", follow=True))


def test_a_curve_is_the_best_so_far_without_what_failed_by_our_fault(
    challenge: Challenge, ada: User
) -> None:
    entry = entry_of(challenge, ada)
    end(try_once(entry, now=timezone.now()), Verdict.SYSTEM_ERROR)
    tried(entry, 4000.0, now=timezone.now())
    end(try_once(entry, now=timezone.now()), Verdict.WRONG_RESULT)
    tried(entry, 1000.0, now=timezone.now())
    (result,) = entry_results(challenge, [entry])
    (curve,) = curves(result, list(evaluations_of(entry)))
    assert curve.values == (1.0, None, 4.0)
    assert (curve.first_ns, curve.best_ns, curve.best_at) == (4000.0, 1000.0, 3)
    shown = text(Client().get(entry.get_absolute_url()))
    assert "4.00 µs at first" in shown
    assert "3 of 6 used" in shown
    assert '<h2 id="h-figures">So far</h2>' in shown  # it has not ended


def test_entries_have_pages(
    challenge: Challenge, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs_app.features.challenges.views._PER_PAGE", 2)
    for _ in range(3):
        entry_of(challenge, ada)
    first, second = (text(Client().get(f"{PAGE}?page={number}")) for number in (1, 2))
    assert ("Page 1 of 2" in first, "repeat 3 ·" in first) == (True, False)
    assert "repeat 3 ·" in second
    assert "evolver" in first.split("h-entries")[0]  # all repeats stand side by side
    assert "3 repeats" in second
    assert Client().get(f"{PAGE}?sort=up").status_code == 400


def test_who_leads_comes_before_what_it_is_about_the_figures_and_the_rules(
    challenge: Challenge, ada: User
) -> None:
    challenge.description = "Who writes the best? By hand, in an hour.\n\nNo copying."
    challenge.save()
    about = text(Client().get(PAGE)).split("Nobody has entered")[1]
    assert about.index("Who writes the best?") < about.index("No copying.")
    entry_of(challenge, ada)
    page = text(Client().get(PAGE))
    words = ("hero-words", "Who writes the best?<", "h-side", "h-entries", "No copying.")
    assert sorted(words, key=page.index) == list(words)


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


def test_contenders_are_medians_over_repeats(challenge: Challenge, ada: User) -> None:
    for solved in (0, 1, 2):  # a repeat that evaluated nothing does not count
        repeat = entry_of(challenge, ada, setting="hot")
        for task in ("scale", "scale2")[:solved]:
            tried(repeat, task=task)
    entry_of(challenge, ada, setting="cold")
    found = contenders(entry_results(challenge, list(challenge.entries.all())))
    assert [each.name for each in found] == ["evolver, hot", "evolver, cold"]
    spread = found[0].spread("correct")
    assert spread is not None
    assert (spread.median, spread.low, spread.high, spread.repeats) == (0.75, 0.5, 1.0, 2)
    assert found[0].spread("unlisted_speedup") is None
