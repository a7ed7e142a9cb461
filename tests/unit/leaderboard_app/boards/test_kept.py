"""What is kept of boards: shown while it is made anew, and not once something was withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, get_ident
from types import SimpleNamespace

import pytest

from leaderboard_app.boards import kept as module
from leaderboard_app.boards.board import board
from leaderboard_app.boards.kept import KEPT_S, STALE_S, kept
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.selectors import board_tasks
from runs_app.integrity import quarantine
from runs_app.models import Audited, BoardAudit, Evaluation, QuarantineCase
from runs_app.work import audit_state, withdrawn
from tasks_app.curation.decisions.services import mark_contaminated
from tests import factories as make


class Answers:
    """Counts what is asked of it; the clock and the thread are the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked = 1000.0, 0
        self.waiting: list[Callable[[], object]] = []
        monkeypatch.setattr(module, "time", lambda: self.now)
        monkeypatch.setattr(module, "beside", self.waiting.append)

    def shown(self) -> int:
        return kept("answer", self._find)

    def _find(self) -> int:
        self.asked += 1
        return self.asked


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(monkeypatch)


def test_an_old_answer_is_shown_while_one_makes_it_anew(answers: Answers) -> None:
    assert [answers.shown(), answers.shown()] == [1, 1]
    answers.now += KEPT_S + 1
    assert [answers.shown() for _ in range(5)] == [1] * 5
    (work,) = answers.waiting
    work()
    assert answers.shown() == 2
    answers.now += KEPT_S + 1
    assert answers.shown() == 2
    assert len(answers.waiting) == 2


def test_it_is_dropped_some_minutes_later(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_for = []
    cache = SimpleNamespace(
        get=lambda key: None,
        set=lambda key, value, timeout: kept_for.append(timeout),
        delete=lambda key: None,
    )
    monkeypatch.setattr(module, "cache", cache)
    answers.shown()
    assert kept_for == [KEPT_S + STALE_S]


def test_what_is_made_while_something_is_withdrawn_is_not_shown(
    answers: Answers, django_capture_on_commit_callbacks: Callable[..., object], db: None
) -> None:
    answers.shown()
    answers.now += KEPT_S + 1
    answers.shown()
    with django_capture_on_commit_callbacks(execute=True):
        withdrawn.note()
    (work,) = answers.waiting
    work()  # it had read the rows as they were before
    assert answers.shown() == 3


def test_a_thread_makes_it_and_closes_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    closed, where = Event(), []
    monkeypatch.setattr(module, "connections", SimpleNamespace(close_all=closed.set))
    module.beside(lambda: where.append(get_ident()))
    assert closed.wait(60)
    assert where != [get_ident()]


def test_what_cannot_be_made_is_logged_and_the_thread_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "connections", SimpleNamespace(close_all=lambda: None))
    gone_on = Event()
    module.beside(lambda: 1 // 0)
    module.beside(gone_on.set)
    assert gone_on.wait(60)
    assert "was not made anew" in caplog.text


def _audit(evaluation: Evaluation) -> None:
    audit = BoardAudit.objects.get(submission=evaluation.submission)
    audit_state.change(audit, Audited.FAILED, "too good", now=make.NOW)


def _reject(evaluation: Evaluation) -> None:
    version = evaluation.task_version
    case = QuarantineCase.objects.create(
        digest="", task_version=version, fingerprint="", suspicions=[], created_at=make.NOW
    )
    Evaluation.objects.filter(pk=evaluation.pk).update(quarantine="cleared", quarantine_case=case)
    admin = make.make_admin()
    quarantine.decide(case=case, user=admin, state="rejected", reason="no", now=make.NOW)


def _mark(evaluation: Evaluation) -> None:
    task = evaluation.task_version.task
    mark_contaminated(task=task, user=make.make_admin(), reason="known", now=make.NOW)


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("refuse", [_audit, _reject, _mark])
def test_what_is_refused_leaves_a_kept_board_at_once(
    refuse: Callable[[Evaluation], None],
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    monkeypatch.setattr("leaderboard_app.boards.board.LONG", 1)
    monkeypatch.setattr("leaderboard_app.boards.places.LONG", 1)
    evaluation = make.make_finished_evaluation(mode="ranked", agent="one")

    def rows() -> list[int]:
        tasks = board_tasks()
        boards = [board(Query(by=by, device="cpu"), tasks) for by in (By.AGENT, By.SUBMISSION)]
        return [len(boards[0].groups), len(boards[1].entries)]

    assert rows() == [1, 1]
    with django_capture_on_commit_callbacks(execute=True):
        refuse(evaluation)
    assert rows() == [0, 0]
