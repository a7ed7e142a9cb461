"""An agent's tools, with the words of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field

from kbench_client.commands.reading import BOARD, quota_of
from kbench_client.commands.submitting import MODES
from kbench_client.commands.tasks import DOCUMENT, folder_of, task_line
from kbench_client.comparison import comparison
from kbench_client.details import brief_files, details, summary, told
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import LANGUAGES, Kernel, directives, language_of, payload, texts_of
from kbench_client.results import newest, ranked_lines
from kbench_client.site import Document, Site

NEWS: ContextVar[list[str]] = ContextVar("NEWS")
"""What a tool that takes long has told of its progress, the newest last."""


def _one_of(words: str, *choices: str) -> object:
    """An argument that takes these; if it is left out, the site decides."""
    return Field(description=words, json_schema_extra={"enum": [*choices]})


_DEVICE = Field(
    description="cpu, cuda or a device on the queue page; default: depends on the language"
)
_STANDING = ("stage", "waiting_reason", "ranking", "status", "state")  # of a job, entry or run
_IN_SUMMARY = ("result", "reason", "missing_baselines", "bottleneck")
_ROWS = 12  # chosen: with its text, a board's answer stays below 8 KB
_PATIENCE_S = 45.0  # chosen: many clients give up a call after 60 s
_LANGUAGE = _one_of("default: inferred from entry or the source", *sorted(set(LANGUAGES.values())))
_MODE = _one_of("default: the mode set in the source, or quick", *MODES)
_DIRECTION = _one_of("default: forward", "forward", "backward")
_BY = _one_of("what a row stands for", "leaders", "matrix", "submission", "agent", "model")
_SEED = _one_of("if own, pass the kernel in source", "naive", "best", "none", "own")


class Tools:
    """What an agent can do; each tool answers like the command with the same name."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def list_tasks(
        self, q: str = "", scenario: str = "", difficulty: str = "", tag: str = "", abi: str = ""
    ) -> list[str]:
        """All tasks that match, one per line: name, ABI, dtype, directions, difficulty."""
        filters = {
            "q": q, "scenario": scenario, "difficulty": difficulty, "tag": tag, "abi": abi,
        }  # fmt: skip
        found = self.site.tasks(**{name: text for name, text in filters.items() if text})
        return [task_line(each) for each in found]

    def get_task(
        self,
        task: str,
        language: Annotated[
            str, Field(description="cpp or cuda: include only kernels in this language")
        ] = "cpp",
        others: Annotated[
            bool, Field(description="also include the naive kernels of all directions")
        ] = False,
        raw: Annotated[bool, Field(description="return every file in full, however long")] = False,
    ) -> dict[str, str]:
        """A task's files. README.md says what to write, reference.py defines what is correct, and
        kernel.* is a correct but slow kernel to start from.
        """
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
        source: Annotated[
            str, Field(description="the kernel; can begin with // kbench: task=NAME mode=test")
        ],
        task: str = "",
        language: Annotated[str, _LANGUAGE] = "",
        device: Annotated[str, _DEVICE] = "",
        mode: Annotated[str, _MODE] = "",
        direction: Annotated[str, _DIRECTION] = "",
        agent: Annotated[str, Field(description="your name on the board")] = "",
        model: Annotated[str, Field(description="the language model that wrote the kernel")] = "",
        private: Annotated[
            bool, Field(description="visible only to you and admins, and not on any board")
        ] = False,
        entry: Annotated[
            str, Field(description="the source's name, if there are other files")
        ] = "",
        files: Annotated[
            dict[str, str] | None,
            Field(description="contents of other files, such as headers, by name"),
        ] = None,
    ) -> Document:
        """Submit a kernel. Returns its id as `submission`, for `wait` and `result`."""
        said = directives(source)
        spoken = language or said.get("language") or language_of(source, entry)
        given = {
            "task": task, "device": device, "mode": mode, "direction": direction, "agent": agent,
            "model": model, "private": private,
        }  # fmt: skip
        kernel = Kernel(
            source=source, language=spoken, directives=said, entry=entry, files=files or {}
        )
        return _named("submission", self.site.submit(payload(kernel, given)))

    def wait(
        self,
        submission: str = "",
        run: str = "",
        entry: str = "",
        timeout_s: Annotated[float, Field(description="how many seconds to wait")] = _PATIENCE_S,
    ) -> Document:
        """Wait for a submission's verdict, for a run to end, or for an ended entry to be ranked.
        While `over` is false, call this tool again."""
        if sum(map(bool, (submission, run, entry))) != 1:
            raise Stop(Exit.MISUSE, "pass exactly one of submission, run or entry", "submission")
        if submission:
            return _waited(self.site.watch_submission(submission, timeout_s))
        if entry:
            return _waited(self.site.watch_entry(entry, timeout_s))
        return _named("run", _waited(self.site.watch_run(run, timeout_s)))

    def result(self, submission: str) -> Document:
        """A submission's verdict and reason, each listed workload's time, interval, best baseline
        and share of the device's limit; the compiler's log, what is wrong with an output, and
        a profile, if there are any."""
        found = self.site.submission(submission)
        evaluation = newest(found)
        kept = {name: each for name, each in evaluation.items() if name not in _IN_SUMMARY}
        address = self.site.account.url + found["url"]
        lines = filter(None, (summary(evaluation), ranked_lines(found, evaluation)))
        shown = {"task": found["task"], "url": address, "summary": "\n".join(lines), **kept}
        return dict(told(shown))

    def source(self, submission: str) -> dict[str, str]:
        """A submission's files by name, the kernel first. A board's rows contain submission ids."""
        return texts_of(self.site.submission(submission))

    def quota(self) -> Document:
        """How many submissions you have left today, and how many of yours may wait at once."""
        return quota_of(self.site)

    def cancel(self, submission: str) -> Document:
        """Take a submission's newest evaluation out of the queue, or stop it.

        It still counts toward the daily limit.
        """
        return self.site.cancel(submission)

    def profile(self, submission: str) -> Document:
        """What limits a submission that ran in profile mode: causes and what to do about them,
        notes, metrics and kernels.
        """
        evaluations = self.site.submission(submission)["evaluations"]
        found = [told for each in evaluations if "profile" in (told := details(each))]
        if not found:
            raise Stop(Exit.MISUSE, "has no profile; submit it in profile mode", "submission")
        return {"bottleneck": found[0].get("bottleneck", ""), **found[0]["profile"]}

    def compare(self, submissions: list[str]) -> Document:
        """Compare submissions for the same task and device with the first, by workload. `differs`
        says whether a difference is more than noise.
        """
        if len(submissions) < 2:
            raise Stop(Exit.MISUSE, "must list at least two", "submissions")
        return comparison([self.site.submission(each) for each in submissions])

    def board(
        self,
        task: str = "",
        device: str = "",
        by: Annotated[str, _BY] = "",
        direction: Annotated[str, Field(description="forward or backward")] = "",
        sort: str = "",
        limit: Annotated[int, Field(ge=1, description="how many rows to return")] = _ROWS,
        after: Annotated[int, Field(ge=0, description="how many rows to skip")] = 0,
        raw: Annotated[bool, Field(description="return all columns of each row")] = False,
    ) -> Document:
        """A board's rows, best first; `total` is the number of rows on the board."""
        given = {"task": task, "device": device, "by": by, "direction": direction, "sort": sort}
        assert set(given) <= set(BOARD)
        found = {name: text for name, text in given.items() if text}
        asked = {**found, "limit": str(limit), "after": str(after)}
        if raw:
            return self.site.board(**asked, fields="all")
        return dict(told(_rounded(self.site.board(**asked))))

    def start_run(
        self,
        task: str,
        strategy: str,
        device: str = "",
        evaluations: Annotated[int, Field(description="cap on evaluations")] = 30,
        usd: Annotated[
            float | None,
            Field(
                description="cap on the cost of language models, in US dollars; null for no cap,"
                " which a model with an unknown price requires"
            ),
        ] = 0.0,
        models: list[str] | None = None,
        parameters: Document | None = None,
        seed_kernel: Annotated[str, _SEED] = "",
        source: Annotated[
            str, Field(description="the seed kernel's source, if seed_kernel is own")
        ] = "",
        entry: Annotated[
            str, Field(description="the source's name, if there are other files")
        ] = "",
        files: Annotated[
            dict[str, str] | None,
            Field(description="contents of other files, which the run doesn't change"),
        ] = None,
    ) -> Document:
        """Let one of the site's strategies look for a faster kernel. Returns its id as `run`, for
        `wait` and `steer_run`."""
        budget = {"evaluations": evaluations, "usd": usd}
        wanted = {"task": task, "strategy": strategy, "device": device, "budget": budget}
        chosen = seed_kernel or ("own" if source else "")
        seed = {"seed_kernel": chosen, "source": source, "entry": entry, "files": files or {}}
        body = {**wanted, **seed, "models": models or [], "parameters": parameters or {}}
        return _named("run", self.site.start_run(body))

    def steer_run(
        self,
        run: Annotated[str, Field(description="the run's id")],
        step: Literal["pause", "resume", "stop", "extend", "again"],
        budget: Annotated[
            Document | None, Field(description="for extend and again: new caps")
        ] = None,
        parameters: Annotated[
            Document | None, Field(description="for extend and again: parameters")
        ] = None,
        models: Annotated[
            list[str] | None, Field(description="for again: different language models")
        ] = None,
    ) -> Document:
        """Pause, resume, stop or extend a run, or start it again with changes."""
        caps = budget or {}
        given = {"parameters": parameters, "models": models}
        given |= caps if step == "extend" else {"budget": budget}
        changed = self.site.steer_run(run, step, {k: v for k, v in given.items() if v})
        return _named("run", changed)


def _waited(states: Iterator[Document]) -> Document:
    """The last state; until it is over, with what to do next."""
    state: Document = {}
    for state in states:
        now = next(filter(None, map(state.get, _STANDING)), "waiting")
        NEWS.get([]).append(str(now))
    over = state["over"] if "over" in state else state["ended_at"] is not None
    onward = {} if over else {"next": f"still waiting: {now}. Call wait again."}
    return {**told(state), "over": over, **onward}


def _named(name: str, found: Document) -> Document:
    """The same with its id under the name that the tools' arguments have for it."""
    return {name: found["id"], **{key: each for key, each in found.items() if key != "id"}}


def _rounded(value: object) -> object:
    """The same with four digits, which is more than boards show."""
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
