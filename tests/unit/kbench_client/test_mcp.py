"""An agent's tools, and challenges: entered with a token of their own, reported, finished."""

from __future__ import annotations

import functools
import inspect
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.wsgi import get_wsgi_application
from django.utils import timezone
from mcp import Client

from gpu_runner.data.verdict import Verdict
from kbench_client.commands.submitting import MODES
from kbench_client.config import Account
from kbench_client.exits import Stop
from kbench_client.kernels import language_of
from kbench_client.mcp_server.challenges import ChallengeTools
from kbench_client.mcp_server.serving import server
from kbench_client.mcp_server.tools import Tools
from kbench_client.site import Site
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.services import enter
from runs_app.models import Evaluation, Run, Submission
from tests import factories as make
from tests.unit.kbench_client.conftest import Run as Command
from tests.unit.runs_app.features.challenges.invented import end, new_challenge, new_entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]

NAMES = {
    *("list_tasks", "get_task", "submit", "wait", "result", "cancel", "profile"),
    *("source", "quota", "compare", "board"),
    *("start_run", "steer_run", "list_challenges", "get_challenge", "list_entries"),
    *("enter_challenge", "entry", "report_entry", "finish_entry"),
}


def connected(user: Any = None) -> Site:
    token = make.make_token(user) if user else ""
    account = Account(url="http://localhost", token=token)
    return Site(account, transport=httpx2.WSGITransport(get_wsgi_application()))


@async_to_sync
async def called(
    site: Site, name: str, monkeypatch: pytest.MonkeyPatch, heard: Any = None, **given: Any
) -> Any:
    """What a tool answers over the protocol; requests run in the test's own thread."""

    async def here(tool: Any) -> Any:
        return await sync_to_async(tool, thread_sensitive=True)()

    monkeypatch.setattr("kbench_client.mcp_server.serving.anyio.to_thread.run_sync", here)
    async with Client(server(site)) as agent:
        return await agent.call_tool(name, given, progress_callback=heard)


async def test_the_tools_say_what_they_take() -> None:
    site = Site(Account(url="http://localhost"))
    async with Client(server(site)) as agent:
        tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
    assert set(tools) == NAMES
    assert all(tool.description for tool in tools.values())
    assert set(tools["submit"].input_schema["required"]) == {"source"}
    assert tools["submit"].input_schema["properties"]["mode"]["enum"] == list(MODES)


def test_refusals_speak_of_tools_and_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    make.make_task_version()
    call = functools.partial(called, connected(make.make_user()), monkeypatch=monkeypatch)
    everybodys = functools.partial(called, connected(), monkeypatch=monkeypatch)
    for answer, words in (
        (call("submit"), "submit was not called: source is missing. Its arguments: source, task"),
        (call("board", limit=0), "board was not called: limit can't be 0"),
        (call("submit", source="int x;"), "task: set task, or write `// kbench: task=NAME`"),
        (
            call("submit", source="int x;", task="no"),
            "no task 'no'; known: scale; list_tasks lists them all",
        ),
        (call("submit", source=make.SOURCE, task="scale", mode="fast"), "mode"),
        (everybodys("quota"), "token: set KBENCH_TOKEN in the environment of `kbench mcp`"),
    ):
        said = answer.content[0].text
        assert (answer.is_error, words in said) == (True, True), said
        assert not [word for word in ("http", "/api/", "--", "Error executing") if word in said]
    assert call("list_challenges").content[0].text == "There are none."
    assert server(connected()).settings.log_level == "WARNING"  # else it logs each request


def test_answers_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    version = make.make_task_version()
    for number in range(14):
        row = make.make_finished_evaluation(
            mode="ranked", agent=f"agent-{number}", task_version=version
        )
    call = functools.partial(called, connected(), monkeypatch=monkeypatch)
    board = call("board", task="scale")
    found = board.structured_content
    assert (len(found["rows"]), found["total"]) == (12, 14)
    assert call("board", task="scale", after=12).structured_content["rows"][1]["agent"]
    assert json.loads(board.content[0].text) == found
    assert len(board.content[0].text) + len(json.dumps(found)) < 8000
    wrong = make.make_finished_evaluation(
        Verdict.WRONG_RESULT, {"reason": "it is off"}, task_version=version
    )
    for each in (row, wrong):
        result = call("result", submission=str(each.submission_id)).structured_content
        assert not [name for name, value in result.items() if value in (None, "", [], {})]
        assert "reason" not in result
    assert str(result).count("it is off") == 1


def test_an_agent_reads_a_task_and_submits(monkeypatch: pytest.MonkeyPatch) -> None:
    make.make_task_version()
    ada = make.make_user(username="ada")
    site = connected(ada)
    call = functools.partial(called, site, monkeypatch=monkeypatch)
    files = call("get_task", task="scale").structured_content
    assert "void scale" in str(files)
    assert "reference.py" in files
    assert not [name for name in files if name.endswith(".cu")]
    assert "left_out" not in files
    monkeypatch.setattr("kbench_client.details.FILES_BYTES", 400)
    brief = call("get_task", task="scale").structured_content
    assert brief["left_out"].endswith("to keep the answer short; raw=true includes all")
    assert brief.keys() - {"left_out"} < files.keys()
    assert call("get_task", task="scale", raw=True).structured_content == files
    source = f"// kbench: task=scale mode=test\n{make.SOURCE}"
    answer = call("submit", source=source, agent="robot")
    assert not answer.is_error, answer.content
    submission = Submission.objects.get()
    assert (submission.author, submission.agent.name) == (ada, "robot")
    assert answer.structured_content["submission"] == str(submission.pk)
    assert "id" not in answer.structured_content
    assert submission.language == "cpp"  # as the source says
    waited = call("wait", submission=str(submission.pk), timeout_s=0)
    assert waited.structured_content["over"] is False
    called_wrong = call("submit", source=source, tasks="scale", watch=True)
    assert called_wrong.is_error
    assert "doesn't accept 'tasks', 'watch'" in called_wrong.content[0].text
    assert Submission.objects.count() == 1
    answer = call("get_task", task="nothing")
    assert (answer.is_error, "no task 'nothing'" in answer.content[0].text) == (True, True)


def test_wait_tells_its_progress_and_to_call_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = make.make_user(username="ada")
    evaluation = make.make_evaluation(user=ada)
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    monkeypatch.setattr("kbench_client.mcp_server.serving._BEAT_S", 0.01)
    given = {"submission": str(evaluation.submission_id), "timeout_s": 1.0}
    waited = called(connected(ada), "wait", monkeypatch, hear, **given).structured_content
    assert (waited["over"], waited["status"]) == (False, "QUEUED")
    assert waited["next"] == f"still waiting: {waited['waiting_reason']}. Call wait again."
    assert heard[-1] == waited["waiting_reason"]
    make.finish(evaluation)
    assert "next" not in Tools(connected(ada)).wait(submission=given["submission"])
    assert inspect.signature(Tools.wait).parameters["timeout_s"].default < 60


def test_a_language_is_told_from_the_name_or_else_the_source() -> None:
    module = 'import torch\n\nSOURCE = """__global__ void f() {}"""\n'
    for source, name, language in (
        (make.SOURCE, "", "cpp"),
        ("__global__ void f() {}", "", "cuda"),
        (module, "", "python"),
        ("def forward(x):\n    return (", "", "python"),
        (make.SOURCE, "mine.cu", "cuda"),
        (module, "mine.txt", "python"),
    ):
        assert language_of(source, name) == language, (source, name)


def test_results_boards_and_runs() -> None:
    ada = make.make_user(username="ada")
    tools = Tools(connected(ada))
    first = make.make_finished_evaluation(user=ada, mode="ranked", agent="robot")
    second = make.make_finished_evaluation(user=ada, source=make.SOURCE + "\n//", agent="robot")
    identity = str(first.submission_id)
    result = tools.result(identity)
    assert (result["verdict"], "n256" in result["summary"]) == ("CORRECT", True)
    assert make.HIDDEN_WORKLOAD not in str(result)
    assert tools.wait(submission=identity)["over"]
    assert len(tools.compare([identity, str(second.submission_id)])["submissions"]) == 2
    assert tools.board(task="scale")["rows"][0]["agent"] == "robot"
    assert tools.list_tasks(q="scale") == ["scale: c float32 forward"]
    assert tools.source(identity) == {"kernel.cpp": first.submission.source}
    assert tools.quota()["left"] == tools.quota()["per_day"]
    with pytest.raises(Stop, match="KBENCH_TOKEN"):
        Tools(connected()).quota()
    with pytest.raises(Stop, match="no profile"):
        tools.profile(identity)
    with pytest.raises(Stop, match="one of submission, run or entry"):
        tools.wait()
    with pytest.raises(Stop, match="strategy"):
        tools.start_run("scale", "magic")
    with pytest.raises(Stop, match="entry") as refused:
        tools.start_run("scale", "autotune", source=make.SOURCE, entry="a.cu", files={"a.h": ""})
    assert refused.value.field == "entry"
    assert not Run.objects.exists()
    with pytest.raises(Stop, match="no run"):
        tools.steer_run("00000000-0000-4000-8000-000000000000", "extend", {"evaluations": 9})


@pytest.fixture
def challenge() -> Challenge:
    now = timezone.now()
    return new_challenge(starts_at=now, ends_at=now + timedelta(days=1), now=now)


def test_an_entrys_token_knows_its_entry_and_no_other_one(challenge: Challenge) -> None:
    ada = make.make_user(username="ada")
    entry, token = enter(challenge=challenge, user=ada, now=timezone.now())
    other = new_entry(challenge, ada, now=timezone.now())
    site = connected()
    site.use(token)
    tools = ChallengeTools(site)
    assert tools.entry()["id"] == str(entry.pk)
    for refused, reason in (
        (lambda: tools.enter_challenge("autumn"), "an entry's token can only"),
        (lambda: tools.finish_entry(str(other.pk)), "an entry's token can only"),
        (lambda: tools.report_entry(usd=-1), "usd"),
        (tools.report_entry, "pass usd, tokens or transcript"),
        (lambda: tools.entry("5"), "no entry '5'"),
        (lambda: ChallengeTools(connected()).entry(), "you haven't entered a challenge here"),
    ):
        with pytest.raises(Stop, match=reason):
            refused()


@pytest.mark.usefixtures("ada", "challenge")
def test_from_entering_to_the_end(
    kbench: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kbench("challenge").out.startswith("autumn: 2 tasks on cpu, open, until ")
    entered = kbench("challenge", "autumn", "--enter", "--agent", "evolver", "--json")
    assert entered.status == 0
    assert "shown only here" in entered.err
    entry = entered.document["id"]
    monkeypatch.setenv("KBENCH_TOKEN", entered.document["token"])
    kernel = home / "mine.cpp"
    kernel.write_text(f"// kbench: task=scale device=cpu agent=evolver\n{make.SOURCE}")
    assert kbench("submit", str(kernel), "--mode", "quick").status == 0
    end(Evaluation.objects.get())
    (home / "log.txt").write_text("I tried")
    spent = ("--usd", "1.5", "--tokens", "900", "--transcript", "log.txt")
    reported = kbench("challenge", entry, *spent)
    assert "; 60 minutes, $8.50 left" in reported.out
    assert "  scale: 2 left, best 1.00 µs" in reported.out
    # Its token says which entry it is.
    assert kbench("challenge").out == kbench("challenge", entry[:8]).out == reported.out
    assert "ranking (finished): 1 of 1 kernels" in kbench("challenge", entry, "--finish").out
    assert "has ended" in kbench("challenge", entry, "--finish").err
    for words in (("--wait",), ("--finish", "--wait")):
        assert "still ranking" in kbench("challenge", entry, *words, "--timeout", "0").err
    row = Entry.objects.get()
    assert (row.usd, row.tokens, row.transcript) == (1.5, 900, "I tried")
    end(Evaluation.objects.get(mode="ranked"))
    ranked = kbench("challenge", entry, "--wait").out
    assert ranked.startswith("ranked: finished\n")
    assert "ranked CORRECT, 1.50×" in ranked
    shown = kbench("challenge", "autumn").out
    assert "tasks: scale, scale2 (forward)\n" in shown
    assert "evolver (1 repeat): correct 0.5" in shown
    refused = kbench("submit", str(kernel), "--mode", "quick")
    assert (refused.status, "this entry has ended: finished" in refused.err) == (2, True)
