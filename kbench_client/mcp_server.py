"""The client as tools of an agent (Model Context Protocol), with the words of the commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import anyio.to_thread
from mcp import types
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from kbench_client import version
from kbench_client.commands.reading import BOARD
from kbench_client.commands.submitting import TIMEOUT_S
from kbench_client.commands.tasks import DOCUMENT, folder_of, task_line
from kbench_client.comparison import comparison
from kbench_client.details import brief_files, details, summary
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import LANGUAGES, Kernel, directives, language_of, payload
from kbench_client.results import newest
from kbench_client.site import Site

Document = dict[str, Any]
Tool = Callable[..., object]

_ENTRY = Field(description="an entry's id; your own if left out")


class ChallengeTools:
    """What an agent may do in challenges; words and limits are those of the API."""

    def __init__(self, site: Site) -> None:
        """Ask this site; its token is the entry's from `enter_challenge` to `finish_entry`."""
        self._site = site
        self._token = site.account.token
        self._entry = ""

    def list_challenges(self) -> list[Document]:
        """All challenges: name, tasks, device, whether one can enter, and each entry's budget."""
        return self._site.challenges()

    def get_challenge(self, challenge: str) -> Document:
        """A challenge, and what came of each agent and setting, the best first."""
        return self._site.challenge(challenge)

    def list_entries(self, challenge: str) -> list[Document]:
        """A challenge's entries, newest first, each as `entry` tells it."""
        return self._site.entries(challenge)

    def enter_challenge(
        self,
        challenge: str,
        agent: Annotated[str, Field(description="your name on pages")] = "",
        setting: Annotated[str, Field(description="distinguishes an agent's settings")] = "",
        model: Annotated[str, Field(description="your language model")] = "",
    ) -> Document:
        """Begin an entry: its time runs from now. Until finish_entry each submit is one
        of its submissions, and uses its budget. Its token is told only here; keep it to go on
        after a restart."""
        given = {"agent": agent, "setting": setting, "model": model}
        entry = self._site.enter(challenge, given)
        self._entry = entry["id"]
        self._site.use(entry["token"])
        return entry

    def entry(self, entry: Annotated[str, _ENTRY] = "") -> Document:
        """What an entry has left (evaluations on each task, seconds, US dollars), and its best
        so far; after its end how its kernels were ranked."""
        return self._site.entry(entry or self._own())

    def report_entry(
        self,
        usd: Annotated[float | None, Field(description="US dollars in total so far")] = None,
        tokens: Annotated[int | None, Field(description="tokens in total so far")] = None,
        transcript: Annotated[str | None, Field(description="what you did, at most 2 MiB")] = None,
        entry: Annotated[str, _ENTRY] = "",
    ) -> Document:
        """Report what your entry has spent. Totals cannot fall; what is left out stays."""
        given = {"usd": usd, "tokens": tokens, "transcript": transcript}
        spent = {name: value for name, value in given.items() if value is not None}
        if not spent:
            raise Stop(Exit.MISUSE, "give usd, tokens or transcript", "usd")
        return self._site.report(entry or self._own(), spent)

    def finish_entry(self, entry: Annotated[str, _ENTRY] = "") -> Document:
        """End your entry: it takes no more submissions, and its best correct kernels are ranked."""
        ended = self._site.finish(entry or self._own())
        if ended["id"] == self._entry:
            self._site.use(self._token)
        return ended

    def _own(self) -> str:
        found = self._entry or str(self._site.about().get("entry") or "")
        if not found:
            raise Stop(
                Exit.MISUSE, "you haven't entered a challenge here; give an entry's id", "entry"
            )
        return found


_ABOUT = """Measure compute kernels on a kbench site: call get_task, write a kernel, submit it in
mode test, wait, fix what the reason points out, then submit it in mode ranked. Submissions are
public unless you make them private. In a challenge, entry says what is left of your
budget."""
_DEVICE = Field(description="cpu, cuda or a device of the board; if left out, the language decides")
_LANGUAGE = "cpp, cuda or python; if left out, inferred from entry or the source"
_MODE = Field(description="compile, test, quick, profile or ranked")


class Tools:
    """What an agent may do; each tool answers as the command of its name."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def list_tasks(
        self, q: str = "", scenario: str = "", difficulty: str = "", tag: str = "", abi: str = ""
    ) -> list[str]:
        """All tasks that fit, a line each: its name, ABI, dtype, directions, difficulty."""
        filters = {
            "q": q, "scenario": scenario, "difficulty": difficulty, "tag": tag, "abi": abi,
        }  # fmt: skip
        found = self.site.tasks(**{name: text for name, text in filters.items() if text})
        return [task_line(each) for each in found]

    def get_task(
        self,
        task: str,
        language: Annotated[
            str, Field(description="cpp or cuda: only kernels in this language")
        ] = "cpp",
        others: Annotated[
            bool, Field(description="also include the naive kernels of all directions")
        ] = False,
        raw: Annotated[bool, Field(description="every file in full, however long")] = False,
    ) -> dict[str, str]:
        """A task's files: README.md says what to write, reference.py what is right, and kernel.*
        is a correct but slow kernel to start from."""
        files = folder_of(self.site.task(task))
        foreign = [each for each, known in LANGUAGES.items() if known not in (language, "python")]
        found = {
            name: text
            for name, text in files.items()
            if name != DOCUMENT
            and PurePosixPath(name).suffix not in foreign
            and (others or not name.startswith("kernels/"))
        }
        return found if raw else brief_files(found)

    def submit(
        self,
        source: Annotated[str, Field(description="may begin with: // kbench: task=NAME mode=test")],
        task: str = "",
        language: Annotated[str, Field(description=_LANGUAGE)] = "",
        device: Annotated[str, _DEVICE] = "",
        mode: Annotated[str, _MODE] = "",
        direction: Annotated[str, Field(description="forward or backward")] = "",
        agent: Annotated[str, Field(description="your name on the board")] = "",
        model: Annotated[str, Field(description="the language model that wrote it")] = "",
        private: Annotated[
            bool, Field(description="not on any board, visible only to its owner")
        ] = False,
        entry: Annotated[str, Field(description="the source's name, if it has files")] = "",
        files: Annotated[
            dict[str, str] | None, Field(description="texts beside the source, by name: headers")
        ] = None,
    ) -> Document:
        """Enter a kernel; answers with its id, for `wait` and `result`."""
        said = directives(source)
        spoken = language or said.get("language") or language_of(source, entry)
        given = {
            "task": task, "device": device, "mode": mode, "direction": direction, "agent": agent,
            "model": model, "private": private,
        }  # fmt: skip
        kernel = Kernel(
            source=source, language=spoken, directives=said, entry=entry, files=files or {}
        )
        return self.site.submit(payload(kernel, given))

    def wait(
        self, submission: str = "", run: str = "", entry: str = "", timeout_s: float = TIMEOUT_S
    ) -> Document:
        """Wait for the verdict of a submission, for the end of a run, or until an entry that has
        ended is ranked; `over` says whether it came in time."""
        if sum(map(bool, (submission, run, entry))) != 1:
            raise Stop(Exit.MISUSE, "give a submission, a run or an entry", "submission")
        if submission:
            return list(self.site.watch_submission(submission, timeout_s))[-1]
        if entry:
            return list(self.site.watch_entry(entry, timeout_s))[-1]
        state = list(self.site.watch_run(run, timeout_s))[-1]
        return state | {"over": state["ended_at"] is not None}

    def result(self, submission: str) -> Document:
        """A submission's verdict and reason, each public workload's time, interval, best baseline
        and share of the device's limit; the compiler's log, what is wrong about an output, and
        a profile, if there are any."""
        found = self.site.submission(submission)
        evaluation = newest(found)
        kept = {name: value for name, value in evaluation.items() if name != "result"}
        address = self.site.account.url + found["url"]
        return {"task": found["task"], "url": address, "summary": summary(evaluation), **kept}

    def cancel(self, submission: str) -> Document:
        """Take a submission's newest evaluation out of the queue, or stop it."""
        return self.site.cancel(submission)

    def profile(self, submission: str) -> Document:
        """What a submission of the mode profile is bound by: causes with what to do about them,
        notes, metrics and kernels."""
        evaluations = self.site.submission(submission)["evaluations"]
        found = [told for each in evaluations if "profile" in (told := details(each))]
        if not found:
            raise Stop(Exit.MISUSE, "has no profile; submit it in mode profile", "submission")
        return {"bottleneck": found[0].get("bottleneck", ""), **found[0]["profile"]}

    def compare(self, submissions: list[str]) -> Document:
        """Submissions of one task and device by workload, against the first; `differs` says
        whether a difference is more than noise."""
        if len(submissions) < 2:
            raise Stop(Exit.MISUSE, "give two or more", "submissions")
        return comparison([self.site.submission(each) for each in submissions])

    def board(
        self,
        task: str = "",
        device: str = "",
        by: str = "",
        sort: str = "",
        limit: int = 20,
        raw: Annotated[bool, Field(description="all columns of each row")] = False,
    ) -> Document:
        """A board's first rows: `by` submission, agent or model."""
        given = {"task": task, "device": device, "by": by, "sort": sort}
        assert set(given) <= set(BOARD)
        found = {name: text for name, text in given.items() if text}
        return self.site.board(**found, limit=str(limit), fields="all" if raw else "")

    def start_run(
        self,
        task: str,
        strategy: str,
        device: str = "",
        evaluations: Annotated[int, Field(description="a cap")] = 30,
        usd: Annotated[float, Field(description="a cap on what language models cost")] = 0.0,
        models: list[str] | None = None,
        parameters: Document | None = None,
        seed_kernel: Annotated[str, Field(description="naive, best, none or own (in source)")] = "",
        source: Annotated[str, Field(description="the seed kernel, if own")] = "",
        entry: Annotated[str, Field(description="the source's name, if it has files")] = "",
        files: Annotated[
            dict[str, str] | None, Field(description="texts beside the source, left unchanged")
        ] = None,
    ) -> Document:
        """Let one of the site's strategies look for a faster kernel; `wait` takes its id."""
        budget = {"evaluations": evaluations, "usd": usd}
        wanted = {"task": task, "strategy": strategy, "device": device, "budget": budget}
        chosen = seed_kernel or ("own" if source else "")
        seed = {"seed_kernel": chosen, "source": source, "entry": entry, "files": files or {}}
        return self.site.start_run(
            {**wanted, **seed, "models": models or [], "parameters": parameters or {}}
        )

    def steer_run(
        self,
        run: Annotated[str, Field(description="its id")],
        step: Literal["pause", "resume", "stop", "extend", "again"],
        budget: Annotated[Document | None, Field(description="for extend, again: new caps")] = None,
        parameters: Annotated[Document | None, Field(description="for extend, again")] = None,
        models: Annotated[list[str] | None, Field(description="for again: other models")] = None,
    ) -> Document:
        """Pause a run, resume, stop or extend it, or start it once more with changes."""
        caps = budget or {}
        given = {"parameters": parameters, "models": models}
        given |= caps if step == "extend" else {"budget": budget}
        return self.site.steer_run(run, step, {k: v for k, v in given.items() if v})


class _Server(MCPServer):
    """Refuses arguments that a tool doesn't have; otherwise they would be left out."""

    async def list_tools(self) -> list[types.Tool]:
        """All tools; each says that it takes no other arguments."""
        found = await super().list_tools()
        for tool in found:
            tool.input_schema = {**tool.input_schema, "additionalProperties": False}
        return found

    async def call_tool(self, name: str, arguments: Document, context: Any = None) -> Any:
        """Call a tool; raises `ToolError` with the names of unknown arguments."""
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        if name in known and (unknown := [each for each in arguments if each not in known[name]]):
            raise ToolError(
                f"{name} has no argument {', '.join(map(repr, unknown))}; nothing was done."
                f" Its arguments: {', '.join(known[name])}"
            )
        return await super().call_tool(name, arguments, context)


def server(site: Site) -> MCPServer:
    found: MCPServer = _Server("kbench", instructions=_ABOUT, version=version())
    for tools in (Tools(site), ChallengeTools(site)):
        for name in vars(type(tools)):
            if not name.startswith("_"):
                found.tool()(_in_a_thread(getattr(tools, name)))
    return found


def _in_a_thread(tool: Tool) -> Callable[..., Coroutine[object, object, object]]:
    """The tool as the protocol wants it: it blocks nobody, and a refusal is told to the agent."""

    @functools.wraps(tool)
    async def run(**given: Any) -> Any:
        try:
            return await anyio.to_thread.run_sync(functools.partial(tool, **given))
        except Stop as error:
            raise ToolError(str(error)) from None

    return run
