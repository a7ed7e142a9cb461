"""Runs a file with other sizes in the process of a test: quick, and only for files of our own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from gpu_runner.data.formats import load_task
from gpu_runner.data.formats.kernelbench import with_workloads
from gpu_runner.data.formats.source import parse_module
from gpu_runner.data.task import Task
from gpu_runner.engine.formats import sizes
from gpu_runner.engine.formats.kernelbench import make_problem
from gpu_runner.supervisor.oracle.further import further_workloads
from gpu_runner.supervisor.oracle.sizes import Answer, Sizes


def varied(path: Path) -> Task:
    """The task of a file with all workloads that `vary` finds."""
    task = load_task(path)
    problem = make_problem(task, path.parent)

    def run(changes: Mapping[str, object], really: bool) -> Answer:
        with torch.no_grad():
            return Answer.read(sizes.run(problem, changes, really=really))

    asked = Sizes(run, parse_module(path.read_text(), path.name))
    return with_workloads(task, further_workloads(task.workloads[0], asked))
