"""The kernels of a tuning: stored evaluations that everybody may see, with what hardware said."""

from __future__ import annotations

from collections.abc import Iterable

from gpu_runner.data.verdict import Direction
from runs_app.errors import SubmissionError
from runs_app.evolve.judging import truth
from runs_app.evolve.tuning import Example
from runs_app.evolve.tuning_set import Kernel, TooFewError, choose
from runs_app.models import Evaluation, Result, Status
from runs_app.optimisation.services.problem import Seed, problem_for
from tasks_app.disclosure import public_reason

MOST_EVALUATIONS = 50_000
"""Evaluations that are looked at, the newest first."""

_LOG_CHARACTERS = 1200


def examples_for(*, verifier: str, train: int, held_out: int, seed: int) -> list[Example]:
    """A balanced set, training kernels first; raises `SubmissionError` with counts if too few.

    Of public submissions and of public runs; each source once, by its newest evaluation.
    """
    kernels = _kernels(verifier)
    try:
        trained, checked = choose(kernels, train, held_out, seed)
    except TooFewError as error:
        raise SubmissionError("", f"verifier {verifier}: {error}") from None
    except ValueError as error:
        field, _, reason = str(error).partition(": ")
        raise SubmissionError(field, reason) from None
    rows = _rows([*trained, *checked])
    return [
        *(_example(rows[kernel.key], kernel, held_out=False) for kernel in trained),
        *(_example(rows[kernel.key], kernel, held_out=True) for kernel in checked),
    ]


def _kernels(verifier: str) -> list[Kernel]:
    rows = Evaluation.objects.filter(submission__private=False, status=Status.FINISHED)
    newest = rows.order_by("-finished_at", "pk").values_list(
        "pk", "submission__digest", "task_version__task__slug", "verdict"
    )
    found: dict[str, Kernel] = {}
    for pk, digest, task, verdict in newest[:MOST_EVALUATIONS]:
        passes = truth(verifier, verdict)
        if passes is not None and digest not in found:
            found[digest] = Kernel(key=str(pk), task=task, passes=passes)
    return list(found.values())


def _rows(kernels: Iterable[Kernel]) -> dict[str, Evaluation]:
    rows = Evaluation.objects.filter(pk__in=[kernel.key for kernel in kernels])
    chosen = rows.select_related("submission", "task_version__task", "device")
    return {str(row.pk): row for row in chosen}


def _example(row: Evaluation, kernel: Kernel, *, held_out: bool) -> Example:
    version = row.task_version
    problem = problem_for(version, row.device, Direction(row.direction), Seed())
    return Example(
        key=kernel.key,
        task=kernel.task,
        problem=problem,
        source=row.submission.source,
        reference=_known_kernel(row),
        passes=kernel.passes,
        said=_said(row),
        held_out=held_out,
    )


def _known_kernel(row: Evaluation) -> str:
    """A kernel that came with the task, unless it is the one to be judged."""
    data = row.task_version.data
    for kernel in data.kernels:
        source = data.files.get(kernel.path, "")
        fits = kernel.language is row.device.language and kernel.direction == row.direction
        if fits and source and source.strip() != row.submission.source.strip():
            return f"{kernel.agent}, which comes with the task:\n\n{source}"
    return "No kernel for this task is known to work yet."


def _said(row: Evaluation) -> str:
    """Verdict and reason as everybody may see them, and the end of what the compiler printed."""
    result = Result.objects.filter(evaluation=row).first()
    document = result.document if result else {}
    reason = public_reason(document, row.task_version.hidden_names) if document else row.reason
    log = ((document.get("build") or {}).get("log") or "").strip()
    shown = f"\nThe compiler's log ends:\n{log[-_LOG_CHARACTERS:]}" if _shows(row, log) else ""
    return f"{row.verdict}: {reason}{shown}"


def _shows(row: Evaluation, log: str) -> bool:
    return bool(log) and row.verdict == "COMPILE_ERROR"
