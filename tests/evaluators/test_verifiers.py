"""`verifiers` itself, with a scripted language model: rewards are the site's, faults are errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kbench_client.evaluators.verifiers import load_environment
from tests.evaluators.conftest import LocalSite
from tests.evaluators.kernels import page_sample, reply_with
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint

vf = pytest.importorskip("verifiers.v1")

REPLIES = ["wrong", "good speed=4", "fault", "good speed=2"]


def script(asked: Asked) -> Answer:
    return Answer(reply_with(REPLIES[(asked.number - 1) % len(REPLIES)], asked.number))


async def play(environment: Any, endpoint: ScriptedEndpoint, times: int) -> Any:
    """So many episodes of its one task, all at once."""
    client = vf.EvalClientConfig(base_url=endpoint.base_url, api_key_var="OPENAI_API_KEY")
    context = vf.ModelContext(model="m", client=client)
    [task] = list(environment.taskset)
    async with environment.serving():
        runs = (environment.run_episode(task, context) for _ in range(times))
        return await asyncio.gather(*runs)


def test_rollouts_have_the_sites_rewards(site: LocalSite) -> None:
    names: dict[str, Any] = {}
    exec(page_sample("verifiers"), names)
    environment = names["environment"]
    [task] = list(environment.taskset)
    assert "void scale(" in task.data.prompt

    with ScriptedEndpoint(script) as endpoint:
        episodes = asyncio.run(play(environment, endpoint, 8))
    good = [each.traces[0] for each in episodes if each.ok]
    bad = [each.traces[0] for each in episodes if not each.ok]
    assert sorted(round(each.reward, 3) for each in good) == [0, 0, 2, 2, 4, 4]
    assert ["may be correct: the host is broken" in each.last_error.message for each in bad] == [
        True,
        True,
    ]
    assert {each.rewards["speedup"] for each in bad} == {None}
    assert all(each.metrics["device_seconds"] >= 0 for each in good)


def test_replies_take_the_place_of_a_folders_entry(site: LocalSite, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text("// the entry, which each reply replaces: speed=9")
    (tmp_path / "fast.h").write_text("// speed=5")
    environment = load_environment(["scale"], device="cpu", folder=str(tmp_path), entry="main.cpp")
    with ScriptedEndpoint([Answer(reply_with("good", 1))]) as endpoint:
        [episode] = asyncio.run(play(environment, endpoint, 1))
    assert round(episode.traces[0].reward, 3) == 5


def test_its_programs_find_the_environment_by_name(site: LocalSite, tmp_path: Path) -> None:
    with ScriptedEndpoint([Answer(reply_with("good speed=3", 1))]) as endpoint:
        words = ["--env.taskset.tasks", '["scale"]', "--env.taskset.device", "cpu"]
        words += [
            "--model",
            "m",
            "--client.base-url",
            endpoint.base_url,
            "--num-rollouts",
            "1",
            "--push",
            "false",
        ]
        words += ["--client.api-key-var", "OPENAI_API_KEY"]
        done = subprocess.run(
            [Path(sys.executable).with_name("vf-eval"), "kbench-client", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(endpoint.asked) == 1
    [traces] = tmp_path.rglob("traces.jsonl")
    assert '"speedup"' in traces.read_text()
