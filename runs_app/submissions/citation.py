"""How a result is cited: what it is, where it stays, and in which surroundings it was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runs_app.models import Audited, Evaluation, Quarantine
from tasks_app.templatetags.display import duration_text, significant

_SURROUNDINGS = ("device_name", "driver", "cuda", "torch", "cpus")


_DOUBTS = {
    Quarantine.OPEN.value: "in quarantine",
    Quarantine.REJECTED.value: "rejected",
    Audited.FAILED.value: "audit failed",
    Audited.SUSPICIOUS.value: "audit in quarantine",
}
"""What keeps a correct result away from boards; none of these names is of both kinds."""


def doubt(evaluation: Evaluation) -> str:
    """Why a correct result counts nowhere, in a word or two; empty where nothing is doubted."""
    return _DOUBTS.get(evaluation.quarantine) or _DOUBTS.get(evaluation.audited, "")


def in_a_line(evaluation: Evaluation) -> str:
    """A result in one line: its task, its author, its number, its device, and a doubt about it."""
    task, doubted = evaluation.task_version.task.title, doubt(evaluation)
    line = f"{task} by {evaluation.submission.agent.name}: {outcome(evaluation)}"
    return f"{line} ({doubted})" if doubted else line


def outcome(evaluation: Evaluation) -> str:
    """The speedup or the time of a correct result; else the verdict, or that there is none yet."""
    device = evaluation.device.name
    if evaluation.speedup_best:
        return f"{significant(evaluation.speedup_best)}× the best baseline on {device}"
    if evaluation.latency_ns:
        return f"{duration_text(evaluation.latency_ns)} on {device}"
    return f"{evaluation.verdict or evaluation.status} on {device}".lower().replace("_", " ")


def bibtex(evaluation: Evaluation, document: Mapping[str, Any], address: str) -> str:
    """An entry for BibTeX; what its syntax would take for its own is left out."""
    submission, version = evaluation.submission, evaluation.task_version
    environment = document.get("environment", {})
    known = [f"{name} {environment[name]}" for name in _SURROUNDINGS if environment.get(name)]
    compiler = (document.get("build") or {}).get("compiler", "")
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
