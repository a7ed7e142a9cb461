"""Language models are told what to compute, never how kbench's own kernels compute it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from gpu_runner.data import codec
from gpu_runner.data.formats import catalog_specifications, load_task
from gpu_runner.data.formats.kbench import KERNELS
from gpu_runner.data.task import ShippedKernel, Task
from gpu_runner.data.verdict import Direction, Language
from kbench_client.commands.tasks import DOCUMENT, folder_of
from runs_app.features.advice.services import prompt_for
from runs_app.models import Device
from runs_app.optimiser.evolve.commands import Prompt
from runs_app.optimiser.evolve.prompts import common, load, names, render
from runs_app.optimiser.services.problem import NAIVE, problem_for, seed_for
from runs_app.optimiser.services.request import read_run_request
from runs_app.optimiser.verifiers.tuning_examples import known_kernel
from tasks_app.disclosure import public_task
from tasks_app.models import TaskVersion
from tests import factories as make

TASKS = catalog_specifications()


def version_of(task: Task) -> TaskVersion:
    """A version as it is stored, of which only the document matters."""
    stored = TaskVersion.objects.first() or make.make_task_version()
    return TaskVersion(pk=stored.pk, task=stored.task, document=codec.encode(task))


def lines(text: str) -> set[str]:
    """The lines that say something: brackets and the like are everywhere."""
    return {line.strip() for line in text.splitlines() if len(line.strip()) > 24}


def of_kernels(task: Task, *, but: str = "") -> set[str]:
    """The lines of shipped kernels that neither the task itself nor one of them has."""
    kernels = {path: text for path, text in task.files.items() if path.startswith(KERNELS)}
    own = [text for path, text in task.files.items() if path not in kernels]
    known = set().union(*map(lines, [*own, task.description, but]))
    return set().union(*(lines(text) for text in kernels.values())) - known


def told(prompts: Iterator[Prompt]) -> set[str]:
    """All lines of all messages."""
    messages = itertools.chain.from_iterable(prompt.messages for prompt in prompts)
    return set().union(*(lines(message.content) for message in messages))


def prompts_of(task: Task, device: Device, direction: Direction) -> Iterator[Prompt]:
    """All prompts that runs have, of a run that starts with the naive kernel."""
    version = version_of(task)
    document = {
        "task": task.name, "device": device.slug, "strategy": "evolve", "models": [],
        "direction": direction.value, "seed": 7,
    }  # fmt: skip
    seed = seed_for(read_run_request(document), version, device, None)
    problem = problem_for(version, device, direction, seed)
    for name in names():
        given = load(name).placeholders - common(problem).keys()
        yield render(name, problem, **dict.fromkeys(given, seed.source))
    yield prompt_for(version)


@pytest.mark.django_db
@pytest.mark.each_task
@pytest.mark.parametrize("name", sorted(TASKS))
def test_no_prompt_has_a_line_of_a_shipped_kernel_but_the_seeds(name: str) -> None:
    task = load_task(TASKS[name])
    for device in (make.make_cpu(), make.make_device()):
        contract = told(prompts_of(make.make_task(), device, Direction.FORWARD))
        for direction in task.directions:
            seeds = (k for k in task.kernels if k.agent == NAIVE)
            but = "\n".join(task.files[k.path] for k in seeds)
            secret = of_kernels(task, but=but) - contract
            leaked = secret & told(prompts_of(task, device, direction))
            assert not leaked, (device.slug, direction, sorted(leaked)[:3])


def test_the_catalog_has_kernels_that_could_be_told() -> None:
    assert sum(len(of_kernels(load_task(path))) for path in TASKS.values()) > 1000


@pytest.mark.django_db
def test_a_verifier_is_tuned_with_the_naive_kernel_at_most() -> None:
    """A tuned one may come first in the task."""
    kernels = tuple(
        ShippedKernel(path=f"kernels/{name}.cpp", agent=f"kbench-{name}", language=Language.CPP)
        for name in ("best", "naive")
    )
    files = make.make_task().files | {each.path: f"// {each.agent}" for each in kernels}
    version = make.make_task_version(kernels=kernels, files=files)
    evaluation = make.make_finished_evaluation(task_version=version)
    said = known_kernel(evaluation)
    assert ("kbench-naive" in said, "kbench-best" in said) == (True, False)


@pytest.mark.each_task
@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_tasks_folder_has_naive_kernels_alone(name: str) -> None:
    """Of the client and its MCP server; `task.json` is part of it."""
    task = load_task(TASKS[name])
    answer = {
        "name": task.name, "title": task.title, "abi": task.abi, "dtype": task.dtype,
        "directions": list(task.directions), "document": public_task(codec.encode(task)),
    }  # fmt: skip
    files = folder_of(answer)
    assert DOCUMENT in files
    naive = [task.files[k.path] for k in task.kernels if k.agent == NAIVE]
    paths = {name for name in files if name.startswith(KERNELS)}
    assert paths == {k.path for k in task.kernels if k.agent == NAIVE}
    secret = of_kernels(task, but="\n".join(naive))
    assert not secret & set().union(*map(lines, codec_texts(files)))


def codec_texts(files: dict[str, str]) -> Iterator[str]:
    """The texts, with JSON's line breaks as line breaks."""
    for text in files.values():
        yield text.replace("\\n", "\n").replace('\\"', '"')
