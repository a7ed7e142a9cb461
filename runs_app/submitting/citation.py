"""How to cite a result: what it is, its permanent address, and where it was measured."""

from __future__ import annotations

import re

from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult
from runs_app.core.work.result_state import compared_with, result_state
from runs_app.models import Evaluation
from tasks_app.numbers import duration_text, significant

_SURROUNDINGS = ("device_name", "driver", "cuda", "torch", "cpus")


def in_a_line(evaluation: Evaluation) -> str:
    """A result in one line: task, author, number, device and state."""
    task, state = evaluation.task_version.task.title, result_state(evaluation)
    line = f"{task} by {evaluation.submission.agent.name}: {outcome(evaluation)}"
    return f"{line} ({state.label.lower()})" if state else line


def outcome(evaluation: Evaluation) -> str:
    """The speedup or the time of a correct result; else the verdict, or that there is none yet."""
    device = evaluation.device.name
    if evaluation.rated:
        sizes = "" if evaluation.score else " on listed sizes"
        return f"{significant(evaluation.rated)}× {compared_with(evaluation)}{sizes} on {device}"
    if evaluation.latency_ns:
        return f"{duration_text(evaluation.latency_ns)} on {device}"
    return f"{evaluation.verdict or evaluation.status} on {device}".lower().replace("_", " ")


def bibtex(evaluation: Evaluation, result: EvaluationResult | None, address: str) -> str:
    """An entry for BibTeX; what its syntax would take for its own is left out."""
    submission, version = evaluation.submission, evaluation.task_version
    environment = result.environment if result else Environment()
    values = [(name, getattr(environment, name)) for name in _SURROUNDINGS]
    known = [f"{name} {value}" for name, value in values if value]
    compiler = result.build.compiler if result and result.build else ""
    surroundings = ", ".join([*known, *([compiler] if compiler else [])])
    moment = evaluation.finished_at or evaluation.created_at
    fields = {
        "title": in_a_line(evaluation),
        "author": submission.agent.name,
        "year": f"{moment:%Y}",
        "month": f"{moment:%m}",
        "howpublished": f"kbench, evaluation {evaluation.pk} of submission {submission.pk}",
        "url": address,
        "note": f"Task {version.task.slug} version {version.number}, digest {version.digest};"
        f" source digest {submission.digest}; {surroundings}",
    }
    lines = [f"  {name} = {{{_plain(value)}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{kbench-{evaluation},", *lines, "}"])


def _plain(text: str) -> str:
    return re.sub(r"[{}\\]", "", text).strip("; ")
