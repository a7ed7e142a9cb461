"""What `kbench show` and `compare` tell of results, and how the client asks a site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from gpu_runner.data.evaluation import Mismatch
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.profile import THROUGHPUTS, Profile
from gpu_runner.data.symptom import Finding, Symptom
from gpu_runner.data.verdict import Verdict
from kbench_client.commands.tasks import folder_of
from kbench_client.comparison import comparison
from kbench_client.config import Account, address
from kbench_client.exits import Exit, Stop
from kbench_client.site import Site
from tests import factories as make
from tests.unit.kbench_client.conftest import Run as Command

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]


def test_results_are_shown_and_compared(kbench: Command, ada: Any) -> None:
    first = make.make_finished_evaluation(user=ada)
    second = make.make_finished_evaluation(user=ada, source=make.SOURCE + "\n// faster")
    shown = kbench("show", str(first.submission_id))
    assert shown.status == 0
    assert "CORRECT, 1.00 µs, score 1.50×" in shown.out
    assert "n256" in shown.out
    assert make.HIDDEN_WORKLOAD not in shown.out
    ids = (str(first.submission_id), str(second.submission_id))
    assert kbench("compare", *ids).status == 0
    found = kbench("compare", *ids, "--json").document
    assert (found["faster"], found["differs"]) == ([1.0, 1.0], [False, False])
    assert [each["name"] for each in found["workloads"]] == ["n256"]
    listed = kbench("show", "--json").document
    assert {each["id"] for each in listed} == set(ids)
    assert kbench("compare", ids[0]).status == 2
    assert kbench("show", "nonsense").status == 2
    wrong = make.make_finished_evaluation(Verdict.WRONG_RESULT, user=ada)
    assert kbench("show", str(wrong.submission_id)).status == 1


def test_what_was_built_from_the_same_source_never_differs() -> None:
    def evaluated(digest: str, time_ns: float) -> dict[str, Any]:
        times = {"time_ns": time_ns, "low_ns": time_ns, "high_ns": time_ns}
        workload = {"name": "n", "hidden": False, "measurement": times}
        result = {"build": {"digest": digest}, "workloads": [workload]}
        known = dict.fromkeys(("verdict", "state", "score", "speedup"))
        evaluation = {"mode": "quick", "device": "cpu", "result": result, **known}
        fields = {"id": digest, "agent": "ada", "task": "scale", "direction": "forward"}
        return {**fields, "evaluations": [evaluation]}

    for other, differs in (("a", False), ("b", True)):
        found = comparison([evaluated("a", 1.0), evaluated(other, 9.0)])
        assert found["differs"] == [False, differs]
        assert [each["differs"] for each in found["workloads"][0]["times"]] == [False, differs]


def test_repeating_a_source_is_no_difference(kbench: Command, ada: Any) -> None:
    rows = [make.make_finished_evaluation(user=ada)]
    for times in (1.1, 1.5):
        measurement = make.make_measurement(1000.0 * times)
        workloads = (make.make_workload_result(measurement=measurement),)
        result = {"latency_ns": 1000.0 * times, "workloads": workloads}
        source = f"{make.SOURCE}// {times}"
        rows.append(make.make_finished_evaluation(user=ada, source=source, result=result))
    ids = [str(each.submission_id) for each in rows]
    found = kbench("compare", *ids, "--json").document
    assert found["differs"] == [False, False, True]
    (workload,) = found["workloads"]
    assert [time["differs"] for time in workload["times"]] == [False, False, True]
    words = kbench("compare", *ids).out
    assert "(0.909× =)" in words
    assert "up to 22 %" in words


def test_a_result_tells_what_its_author_needs(kbench: Command, ada: Any) -> None:
    mismatch = Mismatch(
        workload="n256", output="out", reason="off", index=(3, 1), expected=2.0, actual=1.5,
        bound=1e-6, wrong_elements=7, elements=256,
        findings=(Finding(symptom=Symptom.TAIL, text="only the last 7 elements"),),
    )  # fmt: skip
    profile = Profile(
        tool="portable", reason="ncu is for CUDA devices", workload="n256",
        metrics=dict.fromkeys(THROUGHPUTS, 1.23456), notes=("times grow",), causes=("denormals",),
    )  # fmt: skip
    doubt = Suspicion(check=Check.SOURCE, reason="holds U+202E", line=3)
    version = make.make_task_version()
    told: tuple[tuple[Verdict, str, dict[str, Any], tuple[str, ...]], ...] = (
        (Verdict.WRONG_RESULT, "quick", {"mismatch": mismatch},
         ("first wrong: out[3, 1] of n256: expected 2, got 1.5",
          "wrong elements: 7 of 256\nit looks like: only the last 7 elements")),
        (Verdict.CORRECT, "profile", {"profile": profile},
         ("profile of n256: near neither limit", "  cause: denormals\n", "  times grow")),
        (Verdict.CORRECT, "quick", {"suspicions": (doubt,)},
         ("quarantine: open", "suspicion: source: holds U+202E (line 3)")),
    )  # fmt: skip
    brief = []
    for verdict, mode, result, words in told:
        found = make.make_finished_evaluation(
            verdict, result, user=ada, mode=mode, task_version=version
        )
        shown = kbench("show", str(found.submission_id)).out
        assert all(each in shown for each in words), shown
        document = kbench("show", str(found.submission_id), "--json").document
        brief.append(document["evaluations"][0]["result"])
    assert (brief[0]["mismatch"]["elements"], "profile" in brief[0]) == (256, False)
    assert brief[1]["profile"]["causes"] == ["denormals"]


RUNNING = {"status": "RUNNING", "over": False}


def site(answer: Callable[[httpx2.Request], httpx2.Response]) -> Site:
    def told(request: httpx2.Request) -> httpx2.Response:
        response = answer(request)
        response.headers.setdefault("Kbench-Version", "")
        return response

    account = Account(url="http://kbench.example/sub", token="kb_secret")
    return Site(account, transport=httpx2.MockTransport(told))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbench_client.site.time.sleep", lambda _: None)


def test_a_site_that_is_not_there_is_named() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    with pytest.raises(Stop, match=r"http://kbench.example/sub cannot be reached") as stop:
        site(refuse).tasks()
    assert stop.value.status is Exit.UNREACHABLE


def test_what_is_sent_again_has_the_same_key() -> None:
    keys: list[str] = []

    def break_off(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) < 3:
            raise httpx2.ReadError("broken off")
        return httpx2.Response(201, json={"id": "1"})

    assert site(break_off).submit({"task": "x"}) == {"id": "1"}
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_every_answer_has_its_end() -> None:
    for status, content, ended in (
        (500, b"<h1>sorry</h1>", Exit.UNREACHABLE),
        (502, b"", Exit.UNREACHABLE),
        (302, b"", Exit.UNREACHABLE),
        (200, b"<html>", Exit.UNREACHABLE),
        (404, b'{"field": "", "reason": "no"}', Exit.MISUSE),
        (429, b'{"field": "", "reason": "slowly"}', Exit.MISUSE),
        (401, b'{"field": "Authorization", "reason": "no"}', Exit.NO_TOKEN),
        (403, b'{"field": "", "reason": "no"}', Exit.NO_TOKEN),
    ):
        answer = httpx2.Response(status, content=content)
        with pytest.raises(Stop) as stop:
            site(lambda request, answer=answer: answer).about()
        assert stop.value.status is ended
        assert "kb_secret" not in str(stop.value)
    several = {"field": "task", "reason": "no task", "also": [{"field": "mode", "reason": "none"}]}
    with pytest.raises(Stop, match=r"^task: no task\nmode: none$") as stop:
        site(lambda request: httpx2.Response(422, json=several)).about()
    assert stop.value.also == [("mode", "none")]
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json={"object": "list"}))
    elsewhere = Site(Account(url="http://models.example"), transport=transport)
    with pytest.raises(Stop, match="isn't a kbench site"):
        elsewhere.tasks()
    refusal = {"field": "", "reason": "more than 600 requests a minute"}
    with pytest.raises(Stop, match="600 requests"):  # a watch hears nothing
        list(site(lambda request: httpx2.Response(429, json=refusal)).watch_run("1", 0))


def test_what_cannot_be_sent_is_refused() -> None:
    said = site(lambda request: httpx2.Response(200, json={}))
    values: tuple[tuple[Any, str], ...] = (
        (float("nan"), "not finite"), ("\udcff", "not text"), ([1e999], "finite")
    )  # fmt: skip
    for value, words in values:
        with pytest.raises(Stop, match=words) as stop:
            said.submit({"task": value})
        assert stop.value.status is Exit.MISUSE
    with pytest.raises(Stop, match="not text"):
        said.tasks(q="\udcff")


def test_a_watch_asks_when_the_site_says_and_tells_only_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paused: list[float] = []
    monkeypatch.setattr("kbench_client.site.time.sleep", paused.append)
    asked: list[str] = []
    answers = iter([
        httpx2.Response(200, json=RUNNING, headers={"ETag": '"1"', "Retry-After": "2"}),
        httpx2.Response(304, headers={"Retry-After": "3"}),
        httpx2.Response(429, json={"field": "", "reason": ""}, headers={"Retry-After": "40"}),
        httpx2.Response(200, json={**RUNNING, "over": True}, headers={"ETag": '"2"'}),
    ])  # fmt: skip

    def told(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers.get("If-None-Match", ""))
        return next(answers)

    states = list(site(told).watch_submission("1", 100))
    assert [state["over"] for state in states] == [False, True]
    assert paused == [2, 3, 40]
    assert asked == ["", '"1"', '"1"', '"1"']


def test_all_pages_are_read() -> None:
    def pages(request: httpx2.Request) -> httpx2.Response:
        if "after" in str(request.url):
            return httpx2.Response(200, json=[{"name": "b"}])
        link = '</api/v1/tasks?after=a>; rel="next"'
        return httpx2.Response(200, json=[{"name": "a"}], headers={"Link": link})

    assert [task["name"] for task in site(pages).tasks()] == ["a", "b"]


def test_an_id_stays_one_part_of_the_path() -> None:
    seen: list[Any] = []

    def note(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.raw_path.decode())
        return httpx2.Response(200, json={})

    site(note).submission("../../admin?x=1#y")
    assert seen == ["/sub/api/v1/submissions/%2E%2E%2F%2E%2E%2Fadmin%3Fx%3D1%23y"]


def test_a_site_cannot_write_outside_the_folder() -> None:
    task = {"name": "t", "title": "T", "abi": "c", "dtype": "float32", "directions": ["forward"]}
    for name in ("../x", "/etc/passwd", "a/../../x", "c:\\x"):
        with pytest.raises(Stop, match="outside the folder"):
            folder_of({**task, "document": {"workloads": [], "files": {name: "x"}}})


def test_what_is_no_address_is_refused() -> None:
    for text in ("ftp://x", "http://", "http://user@host", "file:///etc/passwd", "http://[::1"):
        with pytest.raises(Stop):
            address(text)
    assert address("kbench.example:8000/") == "http://kbench.example:8000"
    assert address("https://kbench.example/lab/") == "https://kbench.example/lab"
