"""What became of an import, as lines for a terminal and as a JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data import codec
from tasks_app.formats.importing import Import, Outcome, Row
from tasks_app.formats.loader import Report
from tasks_app.numbers import counted
from tasks_app.publishing.services import Publication

_NAME_WIDTH = 60  # longer names push their line to the right
_FEW = 5  # of many names or reasons, so many are told
_DIGEST_SHOWN = 12  # characters


@dataclass(frozen=True, kw_only=True)
class Result:
    """An import, what was stored of it by the task's name, and the reports that fit none of it."""

    found: Import
    publications: Mapping[str, Publication]
    unused: Sequence[Report] = ()


def lines(result: Result, *, brief: bool = False) -> Iterator[str]:
    """A line for each row, then what is the same for many, then the counts.

    brief: no rows, and of the reasons for a review the most frequent ones only.
    """
    found = result.found
    if not brief:
        yield from _table([_cells(row, found, result.publications) for row in found.rows])
    yield from _reviews(result.publications, _FEW if brief else None)
    for report in result.unused:
        yield f"warning: {_unused(report, result.publications)}"
    if found.reports:
        names = _few([_shown(path, found) for path in found.reports])
        count = counted(len(found.reports), "soundness report")
        yield f"{count} ignored (see --soundness): {names}"
    if found.ignored:
        names = _few([_shown(path, found) for path in found.ignored])
        yield f"{len(found.ignored)} ignored, because their names aren't those of tasks: {names}"
    if found.offers:
        kernels = f"{len(found.offers)} {'kernel' if len(found.offers) == 1 else 'kernels'}"
        command = f"manage.py submit_shipped_kernels --origin {found.path}"
        yield f"{kernels} found, but not submitted: to submit them, run `{command}`"
    yield _counts(found)


def document(result: Result, task_format: str) -> dict[str, object]:
    """The same with everything in it, as a JSON object.

    Its keys: path, format, counts, rows, ignored, ignored_reports, unused_reports.
    """
    found = result.found
    return {
        "path": str(found.path),
        "format": task_format,
        "counts": dict(_outcomes(found)),
        "rows": [_entry(row, found, result.publications) for row in found.rows],
        "ignored": [_shown(path, found) for path in found.ignored],
        "ignored_reports": [_shown(path, found) for path in found.reports],
        "unused_reports": [
            {
                "task": report.task,
                "digest": report.digest,
                "reason": _unused(report, result.publications),
            }
            for report in result.unused
        ],
    }


def _table(cells: list[tuple[str, str, str, str]]) -> Iterator[str]:
    widths = [min(_NAME_WIDTH, max((len(row[i]) for row in cells), default=0)) for i in range(3)]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield "  ".join((*padded, row[3])).rstrip()


def _reviews(publications: Mapping[str, Publication], most: int | None) -> Iterator[str]:
    """How many wait in review for each reason, and which; the first `most` reasons apart."""
    groups: dict[str, list[str]] = {}
    for name, publication in publications.items():
        if publication.refusal:
            groups.setdefault(publication.refusal, []).append(name)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    for reason, names in ranked[:most]:
        yield f"{len(names)} in review, not public: {reason} ({_few(names)})"
    if rest := [name for _, names in ranked[len(ranked[:most]) :] for name in names]:
        yield f"{len(rest)} in review, not public, for other reasons ({_few(rest)})"


def _unused(report: Report, publications: Mapping[str, Publication]) -> str:
    """Which report was of no use, and why."""
    same = publications.get(report.task)
    why = f"no task named {report.task} was loaded"
    if same is not None:
        why = f"the loaded {report.task} has the digest {same.version.digest[:_DIGEST_SHOWN]}"
    digest = report.digest[:_DIGEST_SHOWN]
    return f"unused soundness report for {report.task}, digest {digest}: {why}"


def _cells(
    row: Row, found: Import, publications: Mapping[str, Publication]
) -> tuple[str, str, str, str]:
    """Outcome, task or path, state, notes."""
    name, state = _shown(row.path, found), _state(row, publications)
    if row.task is not None:
        name = str(publications[row.name].version) if row.name in publications else row.name
    return row.outcome.value, name, state, "; ".join(row.notes)


def _state(row: Row, publications: Mapping[str, Publication]) -> str:
    publication = publications.get(row.name) if row.task is not None else None
    if publication is None:
        return "kernel" if row.offer is not None else "-"
    if publication.refusal:
        return "in review"
    if publication.made_public:
        return "published"
    # A new version of a draft or of a retired task changes that task, and shows it to nobody.
    version = publication.version
    if publication.is_new:
        return version.task.state
    # not current though nothing speaks against it: an admin has chosen another version
    return "unchanged" if version.task.current_version_id == version.pk else "replaced"


def _entry(row: Row, found: Import, publications: Mapping[str, Publication]) -> dict[str, object]:
    entry: dict[str, object] = {
        "path": _shown(row.path, found),
        "outcome": row.outcome.value,
        "task": row.name,
        "state": _state(row, publications),
        "notes": list(row.notes),
    }
    if row.task is not None:
        publication = publications.get(row.name)
        entry["version"] = publication.version.number if publication is not None else None
        entry["refusal"] = publication.refusal if publication is not None else ""
        entry["workloads"] = [codec.encode(workload) for workload in row.task.workloads]
    if row.offer is not None:
        entry["agent"] = row.offer.agent
    return entry


def _shown(path: Path, found: Import) -> str:
    """`path` as it lies under what was imported."""
    relative = path.relative_to(found.path) if path.is_relative_to(found.path) else path
    return str(relative) if relative.parts else path.name


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")


def _outcomes(found: Import) -> Iterator[tuple[str, int]]:
    counted = Counter(row.outcome for row in found.rows)
    return ((outcome.value, counted[outcome]) for outcome in Outcome)


def _counts(found: Import) -> str:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in _outcomes(found))
    return f"{len(found.rows)} read: {counts}"
