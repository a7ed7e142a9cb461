"""How to cite a result: what it is, its permanent address, and where it was measured."""

from __future__ import annotations

import re

from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult
from runs_app.core.work.result_state import baseline_words, result_state
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
        return f"{significant(evaluation.rated)}× {baseline_words(evaluation)}{sizes} on {device}"
    if evaluation.latency_ns:
        return f"{duration_text(evaluation.latency_ns)} on {device}"
    return f"{evaluation.verdict or evaluation.status} on {device}".lower().replace("_", " ")


def bibtex(evaluation: Evaluation, result: EvaluationResult | None, address: str) -> str:
    """An entry for BibTeX, with LaTeX's own signs escaped or left out."""
    submission, version = evaluation.submission, evaluation.task_version
    environment = result.environment if result else Environment()
    values = [(name, getattr(environment, name)) for name in _SURROUNDINGS]
    known = [f"{name} {value}" for name, value in values if value]
    compiler = result.build.compiler if result and result.build else ""
    surroundings = ", ".join([*known, *([compiler] if compiler else [])])
    moment = evaluation.finished_at or evaluation.created_at
    digest = f"digest {version.digest}"
    if result and is_of_fewer_sizes(evaluation, result):
        digest += f", measured before it had unlisted sizes (digest {result.task_digest})"
    imported = ", imported" if evaluation.imported else ""
    fields = {
        "title": in_a_line(evaluation),
        "author": submission.agent.name,
        "year": f"{moment:%Y}",
        "month": f"{moment:%m}",
        "howpublished": f"kbench, evaluation {evaluation.pk} of submission {submission.pk}",
        "url": address,
        "note": f"Measured {moment:%Y-%m-%d}{imported}; task {version.task.slug} version"
        f" {version.number}, {digest}; source digest {submission.digest}; {surroundings}",
    }
    told = {name: _escaped(value) for name, value in fields.items()} | {"url": address}
    told["author"] = f"{{{told['author']}}}"  # one name, not a person's first and last one
    lines = [f"  {name} = {{{value}}}," for name, value in told.items()]
    return "\n".join([f"@misc{{kbench-{evaluation},", *lines, "}"])


def is_of_fewer_sizes(evaluation: Evaluation, result: EvaluationResult) -> bool:
    """Whether it was measured elsewhere, on a version without the unlisted sizes of this site's."""
    return evaluation.imported and result.task_digest != evaluation.task_version.digest


def _escaped(text: str) -> str:
    plain = re.sub(r"[{}\\^~]", "", text).strip("; ")
    return re.sub(r"([_&%#$])", r"\\\1", plain)
