"""The parts of the environment for `verifiers`: needs that package to be imported."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable

import httpx2
import verifiers.v1 as vf
from pydantic import Field

from kbench_client.config import account
from kbench_client.evaluators.judge import Wanted, fixed_files, shared
from kbench_client.evaluators.verifiers import kernel_in, prompt_of
from kbench_client.site import Site

_fixed_files = functools.cache(fixed_files)  # all rollouts get the same files


class KbenchData(vf.TaskData):
    """A task of the site, and how kernels for it are measured."""

    task: str
    language: str
    device: str
    mode: str
    agent: str
    model: str
    folder: str
    entry: str
    limit_s: float


class KbenchTask(vf.Task[KbenchData]):
    """Writes a kernel; the site's score or speedup is the reward."""

    @vf.reward(weight=1.0)
    async def speedup(self, trace: vf.Trace) -> float:
        """The site's reward; raises `Stop` where the kernel isn't to blame."""
        names = ("task", "device", "mode", "agent", "model")
        wanted = Wanted(**{name: getattr(self.data, name) for name in names})
        judge = shared(wanted, self.data.limit_s)
        beside = _fixed_files(self.data.folder, self.data.entry)
        begun = judge.begin(kernel_in(trace.last_reply), self.data.language, **beside)
        judged = await asyncio.wrap_future(begun)
        value = judged.value()
        trace.record_metric("correct", float(judged.verdict == "CORRECT"))
        trace.record_metric("device_seconds", judged.seconds or 0.0)
        return value


class KbenchConfig(vf.TasksetConfig):
    """Which tasks, and how kernels are measured; `limit_s` is for each kernel.

    Each kernel takes the place of `entry` in `folder`, if there is one, and gets its other files.
    """

    tasks: list[str] = Field(default_factory=list)
    language: str = "cpp"
    device: str = ""
    mode: str = "quick"
    agent: str = ""
    model: str = ""
    folder: str = ""
    entry: str = ""
    limit_s: float = 600.0


class KbenchTaskset(vf.Taskset[KbenchTask, KbenchConfig]):
    """The site's tasks."""

    def load(self) -> Iterable[KbenchTask]:
        """Ask the site for each task, and make a prompt of it."""
        config = self.config
        names = ("language", "device", "mode", "agent", "model", "folder", "entry", "limit_s")
        same = {name: getattr(config, name) for name in names}
        site = Site(account())
        _fixed_files(config.folder, config.entry)  # what is wrong with them is said here
        for name in config.tasks or [each["name"] for each in site.tasks()]:
            task = site.task(name)
            prompt = prompt_of(task, config.language)
            data = KbenchData(name=task["name"], task=task["name"], prompt=prompt, **same)
            yield KbenchTask(data, config.task)


class KbenchHarnessConfig(vf.HarnessConfig):
    """One question, one answer."""


class KbenchHarness(vf.Harness[KbenchHarnessConfig]):
    """Asks the language model once, from this process: nothing is executed here."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(  # noqa: PLR0913, PLR0917 - the interface's arguments
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Send the prompt through `verifiers`, which records the reply."""
        system, prompt = self.resolve_text_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        body = {"model": ctx.model, "messages": [*messages, {"role": "user", "content": prompt}]}
        async with httpx2.AsyncClient(timeout=None) as client:
            headers = {"Authorization": f"Bearer {secret}"}
            answer = await client.post(f"{endpoint}/chat/completions", json=body, headers=headers)
        return vf.ProgramResult(int(answer.is_error), "", answer.text if answer.is_error else "")


class KbenchEnvConfig(vf.EnvConfig):
    """One agent, which needs no sandbox."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class KbenchEnv(vf.Env[KbenchEnvConfig]):
    """Each episode is one kernel."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Have the agent write it."""
        await agents.agent.run(task)
