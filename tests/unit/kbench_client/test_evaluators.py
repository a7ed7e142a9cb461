"""Evaluators for other searches: the site in this process judges what they hand in."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.wsgi import get_wsgi_application

from gpu_runner.data.verdict import Verdict
from kbench_client.config import account
from kbench_client.evaluators import judge as judging
from kbench_client.evaluators import openevolve, shinka
from kbench_client.evaluators.judge import Judge, Judged, Wanted
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import write_files
from kbench_client.site import Site
from runs_app.models import Evaluation, Status, Submission
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("ada")]


class Faulty(httpx2.BaseTransport):
    """The site in this process; `faults` come before what it answers, or after it has."""

    def __init__(self) -> None:
        self.site = httpx2.WSGITransport(get_wsgi_application())
        self.before: list[httpx2.Response | Exception] = []
        self.after: list[httpx2.Response | Exception] = []
        self.keys: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Fail, or answer."""
        self.keys += filter(None, [request.headers.get("Idempotency-Key")])
        if self.before:
            return self._fault(self.before)
        answer = self.site.handle_request(request)
        return self._fault(self.after) if self.after else answer

    def _fault(self, faults: list[httpx2.Response | Exception]) -> httpx2.Response:
        fault = faults.pop(0)
        if isinstance(fault, Exception):
            raise fault
        return fault


@pytest.fixture
def transport() -> Faulty:
    return Faulty()


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Results of the next evaluations; while somebody waits, all that is queued ends."""
    results: list[dict[str, Any]] = []
    clock = itertools.count()

    def sleep(seconds: float) -> None:
        for row in Evaluation.objects.filter(status=Status.QUEUED).order_by("created_at", "pk"):
            make.finish(row, **(results.pop(0) if results else {}))

    monkeypatch.setattr(judging.time, "sleep", sleep)
    monkeypatch.setattr(judging.time, "monotonic", lambda: float(next(clock)))
    return results


class Driven(Judge):
    """Whoever waits does the thread's work, in the transaction of the test."""

    def _start(self) -> threading.Thread:
        return threading.current_thread()

    def judge(self, sources: Iterable[str], language: str = "", **beside: Any) -> list[Judged]:
        answers = [self.begin(source, language, **beside) for source in sources]
        self._work()
        return [each.result() for each in answers]


@pytest.fixture
def judge(finished: Any, transport: Faulty, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """For the task `scale`, also for the adapters."""
    make.make_task_version()
    make.make_runner()
    made = Driven(Site(account(), transport=transport), Wanted(task="scale"), limit_s=200)
    monkeypatch.setattr(judging, "_shared", lambda wanted, limit_s, process: made)
    return made


def sources(count: int) -> list[str]:
    return [f"{make.SOURCE}// {number}\n" for number in range(count)]


def test_many_kernels_go_into_few_requests(judge: Judge, transport: Faulty, settings: Any) -> None:
    settings.MAX_WAITING_PER_USER = settings.MAX_SUBMISSIONS_PER_DAY = 100
    settings.NEW_ACCOUNT_DAYS = 0
    judged = judge.judge([*sources(66), ""], "cpp")
    assert [each.reward for each in judged] == [pytest.approx(1.5)] * 66 + [0]
    assert judged[-1].reason.startswith("source: ")
    assert judged[0].url.startswith("http://localhost/submissions/")
    assert (len(transport.keys), Submission.objects.count()) == (2, 66)
    assert all(Submission.objects.values_list("private", flat=True))


def test_a_full_queue_delays_kernels_and_loses_none(judge: Judge, settings: Any) -> None:
    settings.MAX_WAITING_PER_USER, settings.NEW_ACCOUNT_DAYS = 3, 0
    judged = judge.judge(sources(8), "cpp")
    assert [each.reward for each in judged] == [pytest.approx(1.5)] * 8
    assert len({each.id for each in judged}) == 8


def test_a_site_that_restarts_judges_each_kernel_once(judge: Judge, transport: Faulty) -> None:
    away = httpx2.ConnectError("refused")
    transport.before = [away, httpx2.Response(502)]
    transport.after = [httpx2.Response(503, json={"field": "", "reason": "starting"})]
    judged = judge.judge(sources(3), "cpp")
    assert [each.verdict for each in judged] == ["CORRECT"] * 3
    assert Submission.objects.count() == 3
    assert len(transport.keys) == 4
    assert len(set(transport.keys)) == 1


def test_it_gives_up_and_says_why(judge: Judge, transport: Faulty) -> None:
    transport.before = [httpx2.Response(502)] * 1000
    with pytest.raises(Stop, match="no reward after 200 s: it was not submitted; the site") as stop:
        judge.judge(sources(1), "cpp")
    assert stop.value.status is Exit.TIME_OVER
    transport.before = []
    with pytest.raises(Stop, match="task: there is no task 'gone'"):
        Driven(judge.site, Wanted(task="gone")).judge(sources(1), "cpp")


def test_our_faults_are_no_rewards(
    judge: Judge, finished: list[dict[str, Any]], tmp_path: Path
) -> None:
    finished += [{"verdict": Verdict.SYSTEM_ERROR, "reason": "the host is broken"}] * 2
    [judged] = judge.judge(sources(1), "cpp")
    assert judged.reward is None
    with pytest.raises(Stop, match=r"may be correct: the host is broken"):
        judged.value()
    kernel = tmp_path / "kernel.cpp"
    kernel.write_text(make.SOURCE)
    told = shinka_of(kernel, tmp_path / "results")
    assert told == (Exit.UNREACHABLE, False, 0)


def shinka_of(kernel: Path, results: Path, *more: str) -> tuple[int, bool, float]:
    words = ["--program_path", str(kernel), "--results_dir", str(results), "--task", "scale"]
    status = shinka.main([*words, *more])
    correct = json.loads((results / "correct.json").read_text())
    metrics = json.loads((results / "metrics.json").read_text())
    assert (correct["error"] is None) == correct["correct"]
    assert metrics["text_feedback"]
    return status, correct["correct"], metrics["combined_score"]


def test_shinka_reads_two_files(
    judge: Judge, finished: list[dict[str, Any]], tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.cpp"
    kernel.write_text(make.SOURCE)
    assert shinka_of(kernel, tmp_path / "right") == (0, True, pytest.approx(1.5))
    finished.append({"verdict": Verdict.WRONG_RESULT, "reason": "element 3 is wrong"})
    assert shinka_of(kernel, tmp_path / "wrong") == (0, False, 0)
    assert "element 3" in (tmp_path / "wrong" / "metrics.json").read_text()
    assert shinka_of(tmp_path / "none.cpp", tmp_path / "none")[0] == Exit.MISUSE


def test_programs_take_the_place_of_a_folders_entry(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, folder = tmp_path / "gen_7.cpp", tmp_path / "mine"
    program.write_text(make.SOURCE)
    write_files(folder, {"main.cpp": "old", "in/sum.h": "int a;", "other.cpp": ""})
    monkeypatch.setattr(openevolve, "_result_type", lambda: dict)
    given = {"folder": str(folder), "entry": "main.cpp"}
    evaluated = openevolve.evaluator("scale", **given)(str(program))
    assert evaluated["metrics"]["correct"] == 1.0, evaluated
    words = ("--folder", str(folder), "--entry", "main.cpp")
    assert shinka_of(program, tmp_path / "right", *words)[0] == 0
    assert shinka_of(program, tmp_path / "wrong", *words[:2])[0] == Exit.MISUSE
    assert [each.solution.texts for each in Submission.objects.all()] == [
        {"main.cpp": make.SOURCE, "in/sum.h": "int a;", "other.cpp": ""}
    ] * 2
