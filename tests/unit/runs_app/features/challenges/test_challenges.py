"""Challenges and entries: what may be made, what budgets refuse, and what is ranked at the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Verdict
from kbench_web.accounts.names import delete_account
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError, WrongState
from runs_app.core.hooks import place_changed
from runs_app.core.work import lifecycle
from runs_app.features.challenges.figures import entry_results, ranking_words
from runs_app.features.challenges.hooks import find_bearer
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.page import curves
from runs_app.features.challenges.selectors import evaluations_of
from runs_app.features.challenges.services import (
    MOST_ENTRIES,
    TRANSCRIPT_LIMIT_BYTES,
    end_challenge,
    finish,
    report,
)
from runs_app.features.challenges.settle import settle_challenges
from runs_app.models import Evaluation, Submission
from runs_app.submitting.services import cancel, rerun
from tasks_app.models import Task, TaskVersion
from tests import factories as make
from tests.unit.runs_app.core.test_hooks import heard
from tests.unit.runs_app.features.challenges.invented import (
    end,
    new_challenge,
    new_entry,
    tried,
    try_once,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


@pytest.fixture
def ada() -> User:
    return make.make_user(username="ada")


@pytest.fixture
def challenge() -> Challenge:
    return new_challenge()


@pytest.fixture
def entry(challenge: Challenge, ada: User) -> Entry:
    return new_entry(challenge, ada)


def ranked(entry: Entry) -> list[Evaluation]:
    return list(Evaluation.objects.filter(submission__attempt__entry=entry, mode="ranked"))


def test_a_challenge_that_cannot_be_names_the_field() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"name": "!!"}, "name"),
        ({"name": "New"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"tasks": ()}, "tasks"),
        ({"tasks": ("nothing",)}, "tasks"),
        ({"device": "tpu"}, "device"),
        ({"direction": "sideways"}, "direction"),
        ({"direction": "backward"}, "direction"),
        ({"evaluations": 0}, "evaluations"),
        ({"evaluations": 1001}, "evaluations"),
        ({"wall_time_s": 0}, "wall_time_s"),
        ({"usd": 0.0}, "usd"),
        ({"usd": float("nan")}, "usd"),
        ({"ends_at": make.NOW}, "ends_at"),
        ({"starts_at": make.later(-9), "ends_at": make.later(-5)}, "ends_at"),
    )
    for changes, field in cases:
        with pytest.raises(SubmissionError) as refused:
            new_challenge(**changes)
        assert refused.value.field == field
    assert not Challenge.objects.exists()


def test_admins_make_challenges_and_those_with_the_right(ada: User) -> None:
    with pytest.raises(NotAllowed, match="only admins"):
        new_challenge(user=ada)
    ada.user_permissions.add(Permission.objects.get(codename="add_challenge"))
    assert new_challenge(user=User.objects.get(pk=ada.pk)).made_by == ada
    with pytest.raises(SubmissionError, match="name: is already taken"):
        new_challenge(name="autumn")


def test_a_task_keeps_its_version(entry: Entry) -> None:
    before = Task.objects.get(slug="scale").current_version
    make.make_task_version(name="scale", title="Changed")
    assert Task.objects.get(slug="scale").current_version != before
    assert try_once(entry).task_version == before
    Task.objects.filter(slug="scale").update(state=Task.State.RETIRED)
    assert try_once(entry).task_version == before


def test_entering_counts_repeats_of_agent_and_setting(challenge: Challenge, ada: User) -> None:
    first, second = new_entry(challenge, ada), new_entry(challenge, ada)
    other = new_entry(challenge, ada, setting=" cold   ")
    assert (first.repeat, second.repeat, other.repeat) == (1, 2, 1)
    assert other.setting == "cold"
    assert first.deadline_at == make.later(3600)
    late = new_entry(challenge, ada, now=make.NOW + timedelta(hours=23, minutes=30))
    assert late.deadline_at == challenge.ends_at


def test_entering_is_refused_with_the_reason(challenge: Challenge, ada: User) -> None:
    other = make.make_user()
    new_entry(challenge, other)
    for changes, words in (
        ({"now": make.later(-1)}, "starts at 2026-01-02"),
        ({"now": challenge.ends_at}, "has ended"),
        ({"agent": "evolver"}, "agent: 'evolver' belongs to another user"),
        ({"agent": "ada", "setting": "x" * 101}, "setting: is longer than 100"),
        ({"agent": "ada", "language_model": "?"}, "language_model: must start"),
    ):
        with pytest.raises(SubmissionError, match=words):
            new_entry(challenge, ada, **changes)
    assert not challenge.entries.filter(user=ada).exists()


def test_nobody_enters_without_end(challenge: Challenge, ada: User) -> None:
    fields = {"challenge": challenge, "user": ada, "agent": new_entry(challenge, ada).agent}
    times = {"started_at": make.NOW, "deadline_at": make.later(9)}
    Entry.objects.bulk_create(
        Entry(**fields, **times, repeat=number, digest=str(number))
        for number in range(2, MOST_ENTRIES + 1)
    )
    with pytest.raises(QuotaExceeded, match="entered 50 times"):
        new_entry(challenge, ada)


def test_a_submission_that_does_not_fit_counts_not(entry: Entry) -> None:
    for changes, field in (
        ({"task": "other"}, "task"),
        ({"direction": "backward"}, "direction"),
        ({"device": "cuda"}, "device"),
        ({"mode": "ranked"}, "mode"),
        ({"mode": "audit"}, "mode"),
        ({"agent": "somebody"}, "agent"),
        ({"source": ""}, "source"),
        ({"language": "cuda"}, "language"),
    ):
        with pytest.raises(SubmissionError) as refused:
            try_once(entry, **changes)
        assert refused.value.field == field
    assert not Submission.objects.exists()


def test_compile_checks_cost_nothing(entry: Entry) -> None:
    for _ in range(2):
        end(try_once(entry, mode="compile"), Verdict.COMPILED)
    for _ in range(3):
        tried(entry)
    end(try_once(entry, mode="compile"), Verdict.COMPILE_ERROR)
    (result,) = entry_results(entry.challenge, [entry])
    assert result.tasks[0].used == 3
    (curve,) = curves(result, list(evaluations_of(entry)))
    assert len(curve.values) == 3


def test_what_fails_by_our_fault_does_not_count_but_a_cancelled_one_does(
    entry: Entry, ada: User
) -> None:
    lost = try_once(entry)
    lifecycle.give_up(lifecycle.lock(Evaluation, lost.pk), reason="lost", now=make.NOW)
    cancel(evaluation=try_once(entry), user=ada, now=make.NOW)
    submission = [tried(entry), tried(entry)][0].submission
    with pytest.raises(WrongState, match="has used all 3 evaluations for scale"):
        try_once(entry)
    try_once(entry, task="scale2")  # each task has its budget
    with pytest.raises(NotAllowed, match="only admins"):
        rerun(submission=submission, user=ada, now=make.NOW)
    rerun(submission=submission, user=make.make_admin(), now=make.NOW)


def test_time_and_money_end_submissions(entry: Entry) -> None:
    with pytest.raises(WrongState, match="time ran out at 2026-01-02 04:04"):
        try_once(entry, now=make.later(3600))
    report(entry=entry, usd=9.99, now=make.NOW)
    try_once(entry)
    report(entry=entry, usd=10.0, now=make.NOW)
    with pytest.raises(WrongState, match="10 of 10 USD"):
        try_once(entry)


def test_reports_are_totals(entry: Entry) -> None:
    report(entry=entry, usd=1.5, tokens=1000, transcript="hello\0", now=make.NOW)
    report(entry=entry, tokens=2000, now=make.NOW)
    entry.refresh_from_db()
    assert (entry.usd, entry.tokens, entry.transcript) == (1.5, 2000, "hello\ufffd")
    for changes, words in (
        ({"usd": 1.0}, "usd: is a total, so it can't be below 1.5"),
        ({"tokens": -1}, "tokens: must be between"),
        ({"usd": float("inf")}, "usd: must be between"),
        ({"transcript": "x" * (TRANSCRIPT_LIMIT_BYTES + 1)}, "transcript: is larger than 2 MiB"),
    ):
        with pytest.raises(SubmissionError, match=words):
            report(entry=entry, now=make.NOW, **changes)


def test_the_best_undoubted_kernel_of_each_task_is_ranked(entry: Entry, ada: User) -> None:
    honest = tried(entry, 2000.0)
    suspicion = Suspicion(check=Check.FLOOR, reason="too fast")
    end(try_once(entry), latency_ns=1.0, suspicions=(suspicion,))
    tried(entry, 500.0, mode="test")  # its time is rough
    tried(entry, 3000.0, task="scale2")
    best = tried(entry, 2500.0, task="scale2")
    end(try_once(entry, task="scale2"), Verdict.WRONG_RESULT)
    with pytest.raises(NotAllowed, match="only the entry's owner"):
        finish(entry=entry, user=make.make_user(), now=make.NOW)
    finish(entry=entry, user=ada, now=make.later(60))
    assert {final.submission for final in ranked(entry)} == {honest.submission, best.submission}
    assert {final.urgency for final in ranked(entry)} == {Urgency.RUNS}
    entry.refresh_from_db()
    assert (entry.state, entry.reason) == ("ranked", "finished")
    with pytest.raises(WrongState, match="this entry has ended: finished"):
        try_once(entry)
    with pytest.raises(WrongState, match="has ended"):
        finish(entry=entry, user=ada, now=make.later(61))


def test_whoever_has_ended_an_entry_waits_for_its_ranking(entry: Entry) -> None:
    tried(entry)
    make.make_runner()
    ended = finish(entry=entry, user=make.make_admin(), now=make.later(60))
    assert ended.reason == "an admin ended it"
    (final,) = ranked(entry)
    assert final.urgency is Urgency.RUNS
    (result,) = entry_results(entry.challenge, [Entry.objects.get(pk=entry.pk)])
    assert result.state == "ranking"
    assert ranking_words(result, make.later(60)) == "1 of 1 kernels left to rank"
    end(final)
    earlier = make.make_finished_evaluation(mode="ranked", now=make.NOW)
    assert earlier.urgency is Urgency.PEOPLE
    (result,) = entry_results(entry.challenge, [Entry.objects.get(pk=entry.pk)])
    assert (result.state, ranking_words(result, make.later(60))) == ("ranked", "")


@pytest.mark.parametrize(
    ("verdict", "result", "of"),
    [
        (Verdict.CORRECT, {"pending_baselines": ("compiled",)}, "Not all baselines of"),
        (Verdict.SYSTEM_ERROR, {}, "The runner failed on"),
    ],
)
def test_what_an_entry_lacks_after_its_end_is_named(
    entry: Entry, verdict: Verdict, result: dict[str, Any], of: str
) -> None:
    tried(entry)
    make.make_runner()
    finish(entry=entry, user=make.make_admin(), now=make.later(60))
    (final,) = ranked(entry)
    end(final, verdict, **result)
    (found,) = entry_results(entry.challenge, [Entry.objects.get(pk=entry.pk)])
    assert ranking_words(found, make.later(60)).startswith(f"{of} scale")
    assert found.waits_for == ("baselines of scale" if result else "")


def test_the_end_of_the_time_ranks_once_all_evaluations_have_ended(entry: Entry) -> None:
    tried(entry, 2000.0)
    running = try_once(entry)
    assert settle_challenges(now=make.later(3599)) == 0
    assert settle_challenges(now=make.later(3600)) == 1
    entry.refresh_from_db()
    assert (entry.state, entry.reason) == ("ended", "its time ran out")
    assert settle_challenges(now=make.later(3601)) == 0
    end(running, latency_ns=1000.0)
    assert settle_challenges(now=make.later(3602)) == 1
    (final,) = ranked(entry)
    assert final.submission == running.submission


def test_a_challenge_is_closed_when_all_is_measured(challenge: Challenge, entry: Entry) -> None:
    tried(entry, 2000.0)
    other = tried(entry, 3000.0)
    settle_challenges(now=challenge.ends_at)
    challenge.refresh_from_db()
    assert challenge.closed_at is None
    (final,) = ranked(entry)
    end(final)
    assert settle_challenges(now=challenge.ends_at) == 1
    challenge.refresh_from_db()
    assert challenge.closed_at == challenge.ends_at
    final.submission.refresh_from_db()
    other.submission.refresh_from_db()
    assert (final.submission.private, other.submission.private) == (False, True)
    audits = Evaluation.objects.filter(mode="audit")
    assert [audit.submission for audit in audits] == [final.submission]  # it leads its board
    assert settle_challenges(now=challenge.ends_at) == 0
    with pytest.raises(WrongState, match="was closed"):
        report(entry=entry, tokens=1, now=challenge.ends_at)


def test_whoever_loses_first_place_at_the_close_is_told(challenge: Challenge, entry: Entry) -> None:
    version = TaskVersion.objects.get(task__slug="scale")
    before = make.make_finished_evaluation(mode="ranked", task_version=version)
    tried(entry)
    settle_challenges(now=challenge.ends_at)
    (final,) = ranked(entry)
    end(final, latency_ns=500.0)
    with heard(place_changed) as told:
        settle_challenges(now=challenge.ends_at)
    (change,) = told
    assert (change["before"], change["after"]) == (before, final)


def test_a_challenge_is_ended_early_by_admins_and_its_maker(
    challenge: Challenge, entry: Entry, ada: User
) -> None:
    with pytest.raises(NotAllowed, match="only admins and the challenge's creator"):
        end_challenge(challenge=challenge, user=ada, now=make.later(9))
    with pytest.raises(WrongState, match="starts at"):
        end_challenge(challenge=challenge, user=make.make_admin(), now=make.NOW)
    end_challenge(challenge=challenge, user=make.make_admin(), now=make.later(9))
    entry.refresh_from_db()
    assert (entry.state, entry.reason) == ("ranked", "the challenge was ended early")
    with pytest.raises(WrongState, match="has ended"):
        new_entry(challenge, ada, now=make.later(9))
    with pytest.raises(WrongState, match="has ended"):
        end_challenge(challenge=challenge, user=make.make_admin(), now=make.later(9))


def test_figures_say_what_is_kept_on_hidden_workloads(
    challenge: Challenge, entry: Entry, ada: User
) -> None:
    tried(entry)
    tried(entry, task="scale2")
    (result,) = entry_results(challenge, [entry])
    assert (result.used, result.correct, result.speedup) == (2, 1.0, 1.5)
    assert (result.hidden_correct, result.kept_speed, result.is_final) == (None, None, False)
    finish(entry=entry, user=ada, now=make.later(1))
    right, wrong = sorted(ranked(entry), key=lambda row: row.task_version.task.slug)
    end(right)
    entry.refresh_from_db()
    assert not entry_results(challenge, [entry])[0].is_final
    end(wrong, Verdict.WRONG_RESULT)
    (result,) = entry_results(challenge, [entry])
    assert (result.is_final, result.is_sure) == (True, True)
    Evaluation.objects.filter(pk=right.pk).update(audited="waiting")
    assert not entry_results(challenge, [entry])[0].is_sure
    make.pass_audits()
    assert (result.correct, result.hidden_correct, result.kept_correct) == (1.0, 0.5, 0.5)
    assert (result.fast, result.hidden_fast) == (1.0, 0.5)
    assert result.unlisted_speedup == result.score == pytest.approx(1.5)
    assert result.kept_speed == pytest.approx(1.0)
    Evaluation.objects.filter(pk=right.pk).update(awaits_baselines=True)
    (waits,) = entry_results(challenge, [entry])
    assert (waits.fast, waits.is_sure) == (None, False)


def test_a_result_that_is_our_fault_is_missing_until_an_admin_repeats_it(
    challenge: Challenge, entry: Entry, ada: User
) -> None:
    tried(entry)
    finish(entry=entry, user=ada, now=make.later(1))
    (lost,) = ranked(entry)
    lifecycle.give_up(lifecycle.lock(Evaluation, lost.pk), reason="lost", now=make.NOW)
    entry.refresh_from_db()
    assert not entry_results(challenge, [entry])[0].is_final
    again = rerun(
        submission=lost.submission, user=make.make_admin(), mode="ranked", now=make.later(2)
    )
    assert not entry_results(challenge, [entry])[0].is_final
    end(again)
    (result,) = entry_results(challenge, [entry])
    assert (result.is_final, result.kept) == (True, 1)


def test_the_token_is_known_by_its_text_alone(challenge: Challenge, ada: User) -> None:
    assert find_bearer("kbe_nothing") is None
    entry = new_entry(challenge, ada)
    assert find_bearer(entry.digest) is None
    delete_account(user=ada, now=make.NOW)
    entry.refresh_from_db()
    assert entry.refusal == "this token's account is disabled"
