"""The client as tools of an agent (Model Context Protocol), with the words of the commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from kbench_client import version
from kbench_client.commands.reading import BOARD
from kbench_client.commands.submitting import TIMEOUT_S
from kbench_client.commands.tasks import DOCUMENT, folder_of
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import Kernel, directives, payload
from kbench_client.mcp_challenges import ChallengeTools
from kbench_client.results import (
    comparison,
    newest,
    standing_line,
    verdict_line,
    workload_table,
)
from kbench_client.site import Site

Document = dict[str, Any]
Tool = Callable[..., Any]

_ABOUT = """Measure compute kernels on a kbench site: get_task, write a kernel, submit it with the
mode test, wait, repair what the reason says, then submit it with the mode ranked. What you submit
is public, unless it is private. In a challenge, entry says what is left of your budget."""
_DEVICE = Field(description="cpu, cuda or a device of the board; by the language if left out")
_MODE = Field(description="compile, test, quick, profile or ranked")


class Tools:
    """What an agent may do; each tool answers as the command of its name."""

    def __init__(self, site: Site) -> None:
        """Ask this site."""
        self.site = site

    def list_tasks(
        self, q: str = "", scenario: str = "", difficulty: str = "", tag: str = "", abi: str = ""
    ) -> list[Document]:
        """All tasks that fit: name, title, abi, dtype, directions, difficulty, tags."""
        filters = {
            "q": q, "scenario": scenario, "difficulty": difficulty, "tag": tag, "abi": abi,
        }  # fmt: skip
        return self.site.tasks(**{name: text for name, text in filters.items() if text})

    def get_task(self, task: str) -> dict[str, str]:
        """A task's files: README.md says what to write, reference.py what is right, and kernel.*
        is a right and slow kernel to begin with."""
        files = folder_of(self.site.task(task))
        return {name: text for name, text in files.items() if name != DOCUMENT}

    def submit(
        self,
        source: Annotated[str, Field(description="may begin with: // kbench: task=NAME mode=test")],
        task: str = "",
        language: Annotated[str, Field(description="cpp, cuda or python")] = "",
        device: Annotated[str, _DEVICE] = "",
        mode: Annotated[str, _MODE] = "",
        direction: Annotated[str, Field(description="forward or backward")] = "",
        agent: Annotated[str, Field(description="your name on the board")] = "",
        model: Annotated[str, Field(description="the language model that wrote it")] = "",
        private: Annotated[bool, Field(description="on no board, seen by its owner")] = False,
    ) -> Document:
        """Enter a kernel; answers with its id, for `wait` and `result`."""
        said = directives(source)
        spoken = language or said.get("language", "")
        if not spoken:
            raise Stop(Exit.MISUSE, "give cpp, cuda or python", "language")
        given = {
            "task": task, "device": device, "mode": mode, "direction": direction, "agent": agent,
            "model": model, "private": private,
        }  # fmt: skip
        kernel = Kernel(source=source, language=spoken, directives=said)
        return self.site.submit(payload(kernel, given))

    def wait(self, submission: str = "", run: str = "", timeout_s: float = TIMEOUT_S) -> Document:
        """Wait for the verdict of a submission, or for the end of a run; `over` says whether it
        came in time."""
        if bool(submission) == bool(run):
            raise Stop(Exit.MISUSE, "give a submission or a run", "submission")
        if submission:
            states = self.site.watch(functools.partial(self.site.status, submission), timeout_s)
            return list(states)[-1]
        state = list(self.site.watch(functools.partial(self.site.run, run), timeout_s))[-1]
        return state | {"over": state["ended_at"] is not None}

    def result(self, submission: str) -> Document:
        """A submission's verdict, reason, and each public workload's time, interval, best
        baseline and share of the device's limit."""
        found = self.site.submission(submission)
        evaluation = newest(found)
        kept = {name: value for name, value in evaluation.items() if name != "result"}
        parts = (verdict_line(evaluation), workload_table(evaluation), standing_line(evaluation))
        summary = "\n".join(filter(None, parts))
        address = self.site.account.url + found["url"]
        return {"task": found["task"], "url": address, "summary": summary, **kept}

    def cancel(self, submission: str) -> Document:
        """Take a submission's newest evaluation out of the queue, or stop it."""
        return self.site.cancel(submission)

    def profile(self, submission: str) -> Document:
        """What a submission of the mode profile is bound by: metrics, kernels and notes."""
        evaluations = self.site.submission(submission)["evaluations"]
        found = [p for each in evaluations if (p := (each.get("result") or {}).get("profile"))]
        if not found:
            raise Stop(Exit.MISUSE, "has no profile; submit it with the mode profile", "submission")
        return dict(found[0])

    def compare(self, submissions: list[str]) -> Document:
        """Submissions of one task and device by workload, against the first; `differs` says
        whether a difference is more than noise."""
        if len(submissions) < 2:
            raise Stop(Exit.MISUSE, "give two or more", "submissions")
        return comparison([self.site.submission(each) for each in submissions])

    def board(
        self, task: str = "", device: str = "", by: str = "", sort: str = "", limit: int = 20
    ) -> Document:
        """A board's first rows: `by` submission, agent or model."""
        given = {"task": task, "device": device, "by": by, "sort": sort}
        assert set(given) <= set(BOARD)
        found = {name: text for name, text in given.items() if text}
        return self.site.board(**found, limit=str(limit))

    def start_run(
        self,
        task: str,
        strategy: str,
        device: str = "",
        evaluations: Annotated[int, Field(description="a cap")] = 30,
        usd: Annotated[float, Field(description="a cap on what language models cost")] = 0.0,
        models: list[str] | None = None,
        parameters: Document | None = None,
        seed_kernel: Annotated[str, Field(description="naive, best, none, or own: source")] = "",
        source: Annotated[str, Field(description="the kernel to begin with, if own")] = "",
    ) -> Document:
        """Let one of the site's strategies look for a faster kernel; `wait` takes its id."""
        budget = {"evaluations": evaluations, "usd": usd}
        wanted = {"task": task, "strategy": strategy, "device": device, "budget": budget}
        seed = {"seed_kernel": seed_kernel or ("own" if source else ""), "source": source}
        return self.site.start_run(
            {**wanted, **seed, "models": models or [], "parameters": parameters or {}}
        )

    def steer_run(
        self,
        run: Annotated[str, Field(description="its id")],
        step: Literal["pause", "resume", "stop", "extend", "again"],
        budget: Annotated[Document | None, Field(description="extend, again: new caps")] = None,
        parameters: Annotated[Document | None, Field(description="extend, again")] = None,
        models: Annotated[list[str] | None, Field(description="again: other ones")] = None,
    ) -> Document:
        """Pause a run, resume, stop or extend it, or start it once more with changes."""
        caps = budget or {}
        given = {"parameters": parameters, "models": models}
        given |= caps if step == "extend" else {"budget": budget}
        return self.site.steer_run(run, step, {k: v for k, v in given.items() if v})


def server(site: Site) -> MCPServer:
    """The tools on this site."""
    found: MCPServer = MCPServer("kbench", instructions=_ABOUT, version=version())
    tools, of = Tools(site), ChallengeTools(site)
    for tool in (
        *(tools.list_tasks, tools.get_task, tools.submit, tools.wait, tools.result),
        *(
            tools.cancel,
            tools.profile,
            tools.compare,
            tools.board,
            tools.start_run,
            tools.steer_run,
        ),
        *(of.list_challenges, of.get_challenge, of.list_entries, of.enter_challenge),
        *(of.entry, of.report_entry, of.finish_entry),
    ):
        found.tool()(_in_a_thread(tool))
    return found


def _in_a_thread(tool: Tool) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The tool as the protocol wants it: it blocks nobody, and a refusal is told to the agent."""

    @functools.wraps(tool)
    async def run(**given: Any) -> Any:
        try:
            return await anyio.to_thread.run_sync(functools.partial(tool, **given))
        except Stop as error:
            raise ToolError(str(error)) from None

    return run
