"""What a task's page shows first, and how one begins from it."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from gpu_runner.data.task import ShippedKernel, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language
from runs_app.models import Evaluation
from tasks_app.models import TaskVersion
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

WORKLOADS = (
    Workload(name="gpu", parameters={"N": 123}, devices=(DeviceKind.CUDA,)),
    Workload(name="host", parameters={"N": 45}, devices=(DeviceKind.CPU,)),
)
KERNELS = (
    ShippedKernel(path="kernels/good.cu", agent="kbench-good", language=Language.CUDA),
    ShippedKernel(path="kernels/good.cpp", agent="kbench-good", language=Language.CPP),
)


@pytest.fixture
def version() -> TaskVersion:
    """A task with workloads and kernels for GPUs, and after them for CPUs."""
    files = {"reference.py": "", "kernels/good.cu": "// gpu", "kernels/good.cpp": "// host"}
    return factories.make_task_version(workloads=WORKLOADS, kernels=KERNELS, files=files)


def order(text: str, *words: str) -> list[int]:
    return [text.index(word) for word in words]


@pytest.mark.usefixtures("version")
def test_what_the_site_can_measure_comes_first(client: Client) -> None:
    factories.make_runner()
    text = client.get("/tasks/scale/").content.decode()
    first, second = order(text, "N=45", "N=123")
    assert first < second
    first, second = order(text, "kernels/good.cpp", "kernels/good.cu")
    assert first < second
    assert "no runner for this device" in text
    opened = re.findall(r'<details class="panel"( open)?>\s*<summary>For (CPUs|CUDA GPUs)', text)
    assert opened == [(" open", "CPUs"), ("", "CUDA GPUs")]


def test_a_group_without_listed_workloads_is_left_out(client: Client) -> None:
    """Its hidden ones count where they're measured."""
    secret = Workload(name="both", parameters={"N": 1700}, hidden=True)
    factories.make_task_version(workloads=(secret, *WORKLOADS))
    page = client.get("/tasks/scale/").content.decode()
    assert page.count("<summary>For ") == 2
    for name in ("CPUs", "CUDA GPUs"):
        assert "listed, 1 more hidden" in page.split(f"For {name}")[1].split("</summary>")[0]


def test_hidden_workloads_are_counted_for_each_kind_of_device(client: Client) -> None:
    """On the task's page and in the workbench, as a result on such a device counts them."""
    secret = [
        Workload(name=f"{kind}{n}", parameters={"N": 1700 + n}, devices=(kind,), hidden=True)
        for kind, count in ((DeviceKind.CPU, 3), (DeviceKind.CUDA, 2))
        for n in range(count)
    ]
    factories.make_task_version(workloads=(*WORKLOADS, *secret))
    factories.make_cpu()
    page = client.get("/tasks/scale/").content.decode()
    for name, count in (("CPUs", 3), ("CUDA GPUs", 2)):
        assert f"listed, {count} more hidden" in page.split(f"For {name}")[1]
    for slug, count in (("cpu", 3), (factories.make_device().slug, 2)):
        brief = client.get(f"/submit/task/?task=scale&device={slug}").content.decode()
        assert " ".join(brief.split()).count(f"{count} more are hidden") == 1


def test_a_direction_has_a_board_of_its_own_with_its_own_leader(client: Client) -> None:
    both = (Direction.FORWARD, Direction.BACKWARD)
    torch = {"abi": Abi.TORCH, "signature": "", "work": {}, "kernels": (), "directions": both}
    version = factories.make_task_version(**torch)
    for direction, score in (("forward", 2.0), ("backward", 4.0)):
        speeds = {"speedups": {"best": score}, "unlisted_speedups": {"best": score}}
        made = {"mode": "ranked", "direction": direction, "agent": f"{direction}-robot"}
        factories.make_finished_evaluation(task_version=version, result=speeds, **made)
    for path in ("/tasks/scale/?", "/leaderboard/?task=scale&"):
        for query, shown in (("", "forward"), ("direction=backward", "backward")):
            text = client.get(path + query).content.decode()
            assert re.findall(r'"true">(\w+)</a>', text)[-1] == shown.capitalize()
            assert set(re.findall(r"(\w+)-robot", text)) == {shown}
            assert f'direction={"backward" if shown == "forward" else "forward"}"' in text
    assert b'aria-label="Direction"' not in client.get("/leaderboard/").content


def test_a_provisional_result_is_ahead_until_one_is_final(client: Client) -> None:
    version = factories.make_task_version()
    waits = {"speedups": {"eager": 4.0, "best": 4.0}, "pending_baselines": ("compiled",)}
    made = {"task_version": version, "mode": "ranked"}
    factories.make_finished_evaluation(result=waits, agent="early-robot", **made)
    for path in ("/tasks/scale/", "/leaderboard/?task=scale"):
        text = client.get(path).content.decode()
        head = text[text.index("verdict-said neutral") : text.index("<table")]
        for words in ("4.00×", "early-robot", "ahead for now", "Provisional"):
            assert words in head, words
    gpu = factories.make_device().slug
    late = factories.make_finished_evaluation(agent="late-robot", **made)
    Evaluation.objects.filter(pk=late.pk).update(device=gpu, audited="passed")
    text = client.get("/tasks/scale/").content.decode()
    assert "late-robot" in text[text.index("verdict-said faster") : text.index("<table")]


def test_all_who_share_a_lead_are_named(client: Client) -> None:
    version = factories.make_task_version()
    for name in ("ann", "ben", "cleo"):
        factories.make_finished_evaluation(task_version=version, mode="ranked", agent=name)
    factories.pass_audits()
    text = client.get("/leaderboard/?task=scale").content.decode()
    said = re.search(r"(\w+)</a> shares the lead with (\w+) and (\w+) on CPU,", text)
    assert said is not None
    assert set(said.groups()) == {"ann", "ben", "cleo"}


def test_a_board_names_results_and_runs_elsewhere(client: Client) -> None:
    version, gpu = factories.make_task_version(), factories.make_device()
    run = factories.make_run(task_version=version, device=gpu)
    factories.make_run(task_version=version, device=gpu, private=True)
    runs = (
        f'href="{run.get_absolute_url().rpartition(str(run.pk))[0]}?task=scale&amp;device={gpu.pk}"'
    )
    assert runs in client.get("/tasks/scale/").content.decode()
    elsewhere = factories.make_finished_evaluation(task_version=version, mode="ranked")
    Evaluation.objects.filter(pk=elsewhere.pk).update(device=gpu)
    for path in ("/tasks/scale/", "/leaderboard/?task=scale&device=cpu"):
        assert f">1 run on {run.device}</a>" in client.get(path).content.decode(), path
    board = client.get("/leaderboard/?task=scale&device=cpu").content.decode()
    assert ">1 result on NVIDIA H200</a>" in board
    assert f'href="/leaderboard/?device={gpu.pk}&amp;task=scale"' in board
