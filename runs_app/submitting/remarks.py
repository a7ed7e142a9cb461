"""What is said of a submission's source: before it is measured, and beside its result."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection
from uuid import UUID

from django.core.cache import cache

from gpu_runner.data.python_source import bound_names, tree_of
from gpu_runner.data.static import only_calls_libraries
from gpu_runner.data.verdict import Direction, Language, Verdict
from runs_app.core.work.access import public_reason
from runs_app.models import Agent, Evaluation, Submission
from tasks_app.models import TaskVersion
from tasks_app.people import Viewer

CLASS = "ModelNew"
"""What a module may export instead of `forward`, as KernelBench's do."""


def remark_on(submission: Submission) -> str:
    """What its author should know; empty if there is nothing."""
    if said := missing_function(submission) or library_remark(submission):
        return said
    first = first_of_its_source(submission)
    return f"The same source was submitted by {first.agent}: submission {first}." if first else ""


def missing_function(submission: Submission) -> str:
    """That a Python module binds nothing that could be called; else empty."""
    tree = tree_of(submission.source) if submission.language == Language.PYTHON.value else None
    if not isinstance(tree, ast.Module):
        return ""
    towards = submission.direction
    wanted = [towards, *([CLASS] if towards == Direction.FORWARD.value else [])]
    if {*wanted, "*", "__getattr__"} & bound_names(tree):
        return ""
    names = " or ".join(f"`{name}`" for name in wanted)
    return f"The module doesn't define {names}, so its verdict will be COMPILE_ERROR: add it."


def first_of_its_source(submission: Submission) -> Submission | None:
    """The first public submission of the same source to the same task, by another agent."""
    same = Submission.objects.filter(
        digest=submission.digest,
        task_version=submission.task_version,
        private=False,
        created_at__lt=submission.created_at,
        run=None,
    )
    others = same.exclude(agent=submission.agent).select_related("agent")
    return others.order_by("created_at", "pk").first()


def library_remark(submission: Submission) -> str:
    """That a Python module only calls libraries where its task asks for a kernel; else empty.

    The text alone decides, and nothing of it is executed.
    """
    if submission.language != Language.PYTHON.value:
        return ""
    found = only_calls_libraries(submission.source, submission.task_version.data, submission.files)
    return f"The module {found}: its result will wait in quarantine for an admin." if found else ""


_CUDA = re.compile(r"\b__(?:global|device|shared)__\b|<cuda\w*\.h|<<<")
_CPP = re.compile(
    r'^[ \t]*#[ \t]*include\b|\bextern[ \t]+"C"|^[ \t]*(?:template|namespace)\b', re.M
)
_PYTHON = re.compile(r"^(?:import|from|def|class)[ \t]+\w", re.M)

_FITS = ((Language.CPP, Language.CUDA),)
"""What looks like the first may be the second."""


def language_hint(source: str, language: Language) -> str:
    """A hint that a source that didn't compile looks like another language, or nothing."""
    looks = _looks_like(source)
    if looks is None or looks is language or (looks, language) in _FITS:
        return ""
    if (looks, language) == (Language.CUDA, Language.CPP):
        return f"This looks like {looks.label}, but the device is a CPU: choose a GPU."
    return f"This looks like {looks.label}, but Language is set to {language.label}: change it."


def told_reason(evaluation: Evaluation, submission: Submission, user: Viewer) -> str:
    """The reason of its verdict, with a hint if the source looks like another language."""
    return f"{public_reason(evaluation, user)} {hint_of(evaluation, submission)}".strip()


def hint_of(evaluation: Evaluation, submission: Submission) -> str:
    """As `language_hint`, of an evaluation; empty unless its source didn't compile."""
    if evaluation.verdict != Verdict.COMPILE_ERROR:
        return ""
    return language_hint(submission.source, Language(submission.language))


def _looks_like(source: str) -> Language | None:
    if tree_of(source) is not None:
        return Language.PYTHON if _PYTHON.search(source) else None
    if _CUDA.search(source):
        return Language.CUDA
    return Language.CPP if _CPP.search(source) else None


LEAST = 0.7
"""Source: of 58 pairs of kernels in the catalog, those written apart share at most 0.52."""
_KEPT_S = 7 * 24 * 3600  # chosen: neither source ever changes, so this only bounds the cache


def likeness(submission: Submission) -> str:
    """As `likenesses`, of one submission; empty if its source is like none."""
    return likenesses(submission.task_version, [submission.pk]).get(str(submission.pk), "")


def likenesses(version: TaskVersion, keys: Collection[UUID | str]) -> dict[str, str]:
    """By submission to this version, in words: "97 % like kbench-good".

    Those that came with the task, and those that are like none, are left out.
    """
    rows = Submission.objects.filter(pk__in=keys).exclude(agent__kind=Agent.Kind.SHIPPED)
    names = {
        pk: f"likeness:{version.digest}:{digest}" for pk, digest in rows.values_list("pk", "digest")
    }
    said: dict[str, str] = cache.get_many(names.values())
    missing = [pk for pk, name in names.items() if name not in said]
    if missing:
        found = rows.filter(pk__in=missing).only(*Submission.OF_SOLUTION)
        new = {
            names[each.pk]: _words(version, "\n".join(each.solution.texts.values()), each.language)
            for each in found
        }
        cache.set_many(new, timeout=_KEPT_S)
        said |= new
    return {str(pk): words for pk, name in names.items() if (words := said.get(name))}


def shared(one: str, other: str) -> float:
    """The share of two sources' characters that stand in lines which both have, from 0 to 1.

    Blank lines, indentation and the order of lines don't matter.
    """
    lines, others = _lines(one), _lines(other)
    size = _size(lines) + _size(others)
    return 2 * _size(lines & others) / size if size else 1.0


def _words(version: TaskVersion, source: str, language: str) -> str:
    task = version.data
    found = [
        (shared(source, task.files[kernel.path]), kernel.agent)
        for kernel in task.kernels
        if kernel.language == language
    ]
    share, agent = max(found, default=(0.0, ""))
    if share < LEAST:
        return ""
    return f"the same as {agent}" if share == 1 else f"{int(100 * share)} % like {agent}"


def _lines(text: str) -> Counter[str]:
    return Counter(line for each in text.splitlines() if (line := each.strip()))


def _size(lines: Counter[str]) -> int:
    return sum(len(line) * count for line, count in lines.items())
