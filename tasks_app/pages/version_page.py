"""What differs between versions of a task, as far as whoever asks may see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.task import Task as TaskData
from gpu_runner.data.task import Values, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from tasks_app import selectors
from tasks_app.disclosure import public_task, sees_hidden
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import Draft, Soundness, Task, TaskVersion
from tasks_app.numbers import counted
from tasks_app.pages.text_diff import Budget, TextDiff, diff
from tasks_app.people import Viewer

_MOST_COMPARED = 25
NOTHING = 0
"""In place of the number of the version to compare with: show the whole."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """A version as somebody may see it: the task, and the texts of its folder."""

    task: TaskData
    files: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class FactChange:
    """A fact about the task in both versions; empty where one does not have it."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """A file that differs; `state` is new, gone or changed."""

    path: str
    state: str
    diff: TextDiff


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What became of `older`, or of nothing, in `newer`.

    hidden_differ, withheld_differ: hidden workloads, and files that could list them, differ, and
    whoever asks may not see how.
    """

    older: TaskVersion | None
    newer: TaskVersion
    facts: tuple[FactChange, ...]
    workloads: tuple[FactChange, ...]
    files: tuple[FileChange, ...]
    hidden_differ: bool = False
    withheld_differ: bool = False

    @property
    def is_same(self) -> bool:
        """Whether both are the same version, or hold the same task."""
        return self.older is not None and self.older.digest == self.newer.digest

    @property
    def added(self) -> int:
        """Lines added in all files."""
        return sum(change.diff.added for change in self.files)

    @property
    def removed(self) -> int:
        """Lines removed in all files."""
        return sum(change.diff.removed for change in self.files)

    @property
    def summary(self) -> str:
        """All of it in one line."""
        if self.is_same:
            return "nothing"
        parts = [*self._file_words(), *self._workload_words()]
        if self.hidden_differ:
            parts.append("hidden workloads differ")
        if self.withheld_differ:
            parts.append("files that only admins see differ")
        return "; ".join(parts) or "nothing that you can see"

    def _file_words(self) -> Iterable[str]:
        if not self.files:
            return
        counts = {"changed": 0, "new": 0, "gone": 0}
        for change in self.files:
            counts[change.state] += 1
        words = [f"{counted(count, 'file')} {state}" for state, count in counts.items() if count]
        yield f"{', '.join(words)}, +{self.added} −{self.removed} lines"

    def _workload_words(self) -> Iterable[str]:
        kinds: dict[str, list[str]] = {"new": [], "gone": [], "changed": []}
        for change in self.workloads:
            state = (
                "changed" if change.before and change.after else "new" if change.after else "gone"
            )
            kinds[state].append(change.name)
        for state, names in kinds.items():
            if names:
                yield f"{counted(len(names), 'workload')} {state}: {', '.join(names)}"


@dataclass(frozen=True, kw_only=True)
class VersionRow:
    """A version in the list, compared with the public one before it, if there is one.

    comparison: None where it was not made. soundness, draft: for admins, what its report says and
    the draft that it was made from.
    """

    version: TaskVersion
    is_current: bool
    is_public: bool
    is_in_review: bool
    previous: TaskVersion | None
    comparison: Comparison | None
    soundness: str = ""
    draft: Draft | None = None


def rows(task: Task, user: Viewer) -> list[VersionRow]:
    """The versions that `user` may see, newest first, the first of them with what changed."""
    versions = list(selectors.seen_versions(task, user))
    public = {version.pk for version in selectors.seen_versions(task, None)}
    review = selectors.versions_in_review(task)
    extra = _curation(versions) if sees_hidden(user) else {}
    budget = Budget()
    found = []
    for index, version in enumerate(versions):
        previous = next((v for v in versions[index + 1 :] if v.pk in public), None)
        is_compared = previous is not None and index < _MOST_COMPARED and not budget.is_late
        row = VersionRow(
            version=version,
            is_current=version.pk == task.current_version_id and version.pk in public,
            is_public=version.pk in public,
            is_in_review=version.pk in review,
            previous=previous,
            comparison=_if_shown(previous, version, user, budget) if is_compared else None,
            **extra.get(version.pk, {}),
        )
        found.append(row)
    return found


def _if_shown(
    older: TaskVersion | None, newer: TaskVersion, user: Viewer, budget: Budget
) -> Comparison | None:
    try:
        return compare(older, newer, user, budget)
    except DataError:
        return None


def public_before(version: TaskVersion) -> TaskVersion | None:
    """The public version before this one."""
    earlier = selectors.seen_versions(version.task, None).filter(number__lt=version.number)
    return earlier.first()


def compare(
    older: TaskVersion | None, newer: TaskVersion, user: Viewer, budget: Budget
) -> Comparison:
    """What differs, as far as `user` may see it.

    Raises `DataError` if nothing of a version may be shown, because all its workloads are hidden.
    """
    versions = [newer] if older is None else [older, newer]
    sides = _sides(versions, user)
    after, before = sides[-1], sides[0] if older is not None else None
    hidden, withheld = (False, False) if sees_hidden(user) else _concealed(versions, sides)
    return Comparison(
        older=older,
        newer=newer,
        facts=_changes(_facts(before.task), _facts(after.task)) if before else (),
        workloads=_changes(_workloads(before.task), _workloads(after.task)) if before else (),
        files=tuple(_file_changes(before.files if before else {}, after.files, budget)),
        hidden_differ=hidden,
        withheld_differ=withheld,
    )


def shown_files(version: TaskVersion, user: Viewer) -> Mapping[str, str]:
    """The texts of a version's folder, as far as `user` may see them; raises `DataError`."""
    return _sides([version], user)[0].files


def _sides(versions: Sequence[TaskVersion], user: Viewer) -> list[Side]:
    """Each version as `user` may see it; a file that one must not show, none of them shows."""
    code_only = any(version.hidden_names for version in versions)
    sides = []
    for version in versions:
        document = version.document
        if not sees_hidden(user):
            document = public_task(document, code_only=code_only)
        task = codec.decode(TaskData, document)
        sides.append(Side(task=task, files=write_folder(task)))
    return sides


def _concealed(versions: Sequence[TaskVersion], sides: Sequence[Side]) -> tuple[bool, bool]:
    """Whether hidden workloads differ, and whether files do that are not shown."""
    hidden = [[w for w in v.document["workloads"] if w.get("hidden")] for v in versions]
    withheld = [
        {path: text for path, text in version.document["files"].items() if path not in side.files}
        for version, side in zip(versions, sides, strict=True)
    ]
    return hidden[0] != hidden[-1], withheld[0] != withheld[-1]


def _file_changes(
    before: Mapping[str, str], after: Mapping[str, str], budget: Budget
) -> Iterable[FileChange]:
    for path in sorted(
        {*before, *after}, key=lambda path: ("/" in path, path != "task.toml", path)
    ):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        state = "new" if old is None else "gone" if new is None else "changed"
        yield FileChange(path=path, state=state, diff=diff(old or "", new or "", budget))


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[FactChange, ...]:
    names = [*before, *(name for name in after if name not in before)]
    return tuple(
        FactChange(name=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in names
        if before.get(name, "") != after.get(name, "")
    )


def _facts(task: TaskData) -> dict[str, str]:
    """What decides over a kernel's score, and what people read first."""
    bound = task.tolerance
    facts = {
        "Title": task.title,
        "Scenario": task.scenario,
        "Format": task.format.value,
        "ABI": task.abi.value,
        "Dtype": task.dtype,
        "Directions": ", ".join(task.directions),
        "Signature": task.signature,
        "In-out parameters": ", ".join(task.inout),
        "Tolerance": "the task's own verifier"
        if task.has_verifier
        else f"ε × ({bound.constant:g} + {bound.growth:g} √({bound.reduction}))",
        "Baselines": ", ".join(task.baselines) or "none",
        "Vendor libraries": "allowed" if task.libraries else "not allowed",
        "Kernels": ", ".join(kernel.path for kernel in task.kernels),
    }
    for direction, work in task.work.items():
        facts[f"FLOPs, {direction}"] = work.flops
        facts[f"Bytes, {direction}"] = work.bytes
        facts[f"Weight, {direction}"] = work.weight
    return facts


def _workloads(task: TaskData) -> dict[str, str]:
    return {workload.name: _workload_text(workload) for workload in task.workloads}


def _workload_text(workload: Workload) -> str:
    """Parameters, and what is not usual."""
    parts = [", ".join(f"{name}={value}" for name, value in workload.parameters.items())]
    if workload.values is not Values.DRAWN:
        parts.append(f"{workload.values} values")
    if set(workload.devices) != set(DeviceKind):
        parts.append(f"{', '.join(workload.devices) or 'no device'} only")
    if set(workload.directions) != set(Direction):
        parts.append(f"{', '.join(workload.directions) or 'no direction'} only")
    if workload.hidden:
        parts.append("hidden")
    return "; ".join(part for part in parts if part) or "no parameters"


def _curation(versions: Sequence[TaskVersion]) -> dict[int, dict[str, Any]]:
    """By version: what its report says, and the draft that it was made from."""
    made_in = Prefetch("made_in", Draft.objects.defer("files"))
    prefetch_related_objects(versions, "reports", made_in)
    return {
        version.pk: {"soundness": _soundness_words(version.report), "draft": _draft_of(version)}
        for version in versions
    }


def _draft_of(version: TaskVersion) -> Draft | None:
    """The draft whose files it still is, or else the one in which it was made last."""
    drafts = version.made_in.all()
    return max(
        drafts,
        key=lambda draft: (draft.version_id == version.pk, draft.changed_at),
        default=None,
    )


def _soundness_words(report: Soundness | None) -> str:
    if report is None:
        return "no soundness report"
    return "shown to be sound" if report.passed else report.brief_refusal
