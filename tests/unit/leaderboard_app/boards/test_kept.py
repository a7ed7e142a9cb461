"""What is kept of boards: shown until it is made again, and not once something was withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from leaderboard_app.boards import kept as module
from leaderboard_app.boards.ahead import QUIET_S
from leaderboard_app.boards.board import board
from leaderboard_app.boards.kept import KEPT_S, kept, made_again
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.selectors import board_tasks
from runs_app.integrity import quarantine
from runs_app.models import Audited, BoardAudit, Evaluation, QuarantineCase
from runs_app.work import audit_state, withdrawn
from tasks_app.curation.decisions.services import mark_contaminated
from tests import factories as make


class Answers:
    """Counts what is asked of it."""

    asked = 0

    def shown(self) -> int:
        return kept("answer", self._find)

    def _find(self) -> int:
        self.asked += 1
        return self.asked


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_an_answer_is_kept_until_it_is_made_again(answers: Answers) -> None:
    assert [answers.shown(), answers.shown()] == [1, 1]
    with made_again():
        assert answers.shown() == 2
    assert answers.shown() == 2


def test_it_is_kept_for_longer_than_making_it_again_waits(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_for = []
    cache = SimpleNamespace(
        get=lambda key: None, set=lambda key, value, timeout: kept_for.append(timeout)
    )
    monkeypatch.setattr(module, "cache", cache)
    answers.shown()
    assert kept_for == [KEPT_S]
    assert KEPT_S > QUIET_S


def test_what_is_made_while_something_is_withdrawn_is_not_shown(
    answers: Answers, django_capture_on_commit_callbacks: Callable[..., object], db: None
) -> None:
    def slow() -> int:
        """It reads the rows as they are before."""
        with django_capture_on_commit_callbacks(execute=True):
            withdrawn.note()
        return -1

    assert kept("answer", slow) == -1
    assert answers.shown() == 1


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
