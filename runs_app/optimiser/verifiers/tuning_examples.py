"""Chooses kernels to tune a verifier on, and others, of other tasks, to check it with.

They are stored evaluations that everybody may see, with what hardware said.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_runner.data.verdict import Direction
from runs_app.core.errors import SubmissionError
from runs_app.models import Evaluation, Result, Status
from runs_app.optimiser.evolve.history import draw
from runs_app.optimiser.evolve.judging import truth
from runs_app.optimiser.evolve.tuning import Example
from runs_app.optimiser.services.problem import NAIVE, Seed, problem_for
from tasks_app.disclosure import public_reason

MOST_EVALUATIONS = 50_000
"""Evaluations that are looked at, newest first."""

_LOG_CHARACTERS = 1200
_TRIES = 200


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
    rows = Evaluation.objects.filter(
        submission__private=False, status=Status.FINISHED, device__imported_from=""
    )
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
        reference=known_kernel(row),
        passes=kernel.passes,
        said=_said(row),
        held_out=held_out,
    )


def known_kernel(row: Evaluation) -> str:
    """The naive kernel that came with the task, unless it is the one to be judged."""
    data = row.task_version.data
    for kernel in data.kernels:
        source = data.files.get(kernel.path, "")
        fits = kernel.language is row.device.language and kernel.direction == row.direction
        is_other = bool(source) and source.strip() != row.submission.source.strip()
        if fits and is_other and kernel.agent == NAIVE:
            return f"{kernel.agent}, which comes with the task:\n\n{source}"
    return "No kernel for this task is known to work yet."


def _said(row: Evaluation) -> str:
    """Verdict and reason as everybody may see them, and the end of what the compiler printed."""
    stored = Result.objects.filter(evaluation=row).first()
    result = stored.data if stored else None
    reason = public_reason(result, row.task_version.hidden_names) if result else row.reason
    log = result.build.log.strip() if result and result.build else ""
    if not log or row.verdict != "COMPILE_ERROR":
        return f"{row.verdict}: {reason}"
    return f"{row.verdict}: {reason}\nThe compiler's log ends:\n{log[-_LOG_CHARACTERS:]}"


@dataclass(frozen=True)
class Kernel:
    """A kernel of which hardware has told whether the verifier should let it pass."""

    key: str
    task: str
    passes: bool


class TooFewError(ValueError):
    """There are not enough kernels; the message counts what is there and what is needed."""


def choose(
    kernels: Sequence[Kernel], train: int, held_out: int, seed: int
) -> tuple[list[Kernel], list[Kernel]]:
    """Training and held-out kernels: half of each pass, and no task is in both.

    Tasks are drawn from `seed`; within a set they take turns, so that none fills it. Raises
    `TooFewError`, and `ValueError` for odd or too small sizes.
    """
    for name, size in (("examples", train), ("held-out", held_out)):
        if size < 2 or size % 2:
            raise ValueError(f"{name}: must be an even number, at least 2; half must fail")
    by_task = defaultdict(list)
    for kernel in sorted(kernels, key=lambda k: (k.task, k.key)):
        by_task[kernel.task].append(kernel)
    for attempt in range(_TRIES):
        tasks = sorted(by_task)
        draw(seed, "split", attempt).shuffle(tasks)
        cut = _first_enough([by_task[task] for task in tasks], held_out // 2)
        held = [kernel for task in tasks[:cut] for kernel in by_task[task]]
        rest = [kernel for task in tasks[cut:] for kernel in by_task[task]]
        if _enough(held, held_out // 2) and _enough(rest, train // 2):
            return _balanced(rest, train // 2, seed), _balanced(held, held_out // 2, seed)
    raise TooFewError(_what_is_missing(kernels, train, held_out))


def _first_enough(groups: Sequence[Sequence[Kernel]], each: int) -> int:
    """How many of the first tasks it takes to have enough of both kinds."""
    found: list[Kernel] = []
    for count, group in enumerate(groups, 1):
        found += group
        if _enough(found, each):
            return count
    return len(groups)


def _enough(kernels: Sequence[Kernel], each: int) -> bool:
    passing = sum(kernel.passes for kernel in kernels)
    return passing >= each and len(kernels) - passing >= each


def _balanced(kernels: Sequence[Kernel], each: int, seed: int) -> list[Kernel]:
    chosen: list[Kernel] = []
    for passes in (True, False):
        by_task: dict[str, list[Kernel]] = defaultdict(list)
        for kernel in kernels:
            if kernel.passes is passes:
                by_task[kernel.task].append(kernel)
        for task, group in by_task.items():
            draw(seed, "order", task, passes).shuffle(group)
        turns = sorted(
            (turn, task) for task, group in by_task.items() for turn in range(len(group))
        )
        chosen += [by_task[task][turn] for turn, task in turns[:each]]
    draw(seed, "mix").shuffle(chosen)
    return chosen


def _what_is_missing(kernels: Sequence[Kernel], train: int, held_out: int) -> str:
    counts = Counter(kernel.passes for kernel in kernels)
    tasks = len({kernel.task for kernel in kernels})
    return (
        f"training needs {train // 2} passing and {train // 2} failing kernels, and the test needs "
        f"{held_out // 2} of each from other tasks; there are only "
        f"{counts[True]} passing and {counts[False]} failing kernels, from {tasks} tasks"
    )
