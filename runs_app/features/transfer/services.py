"""Store what a file of results says, once, on boards of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils.text import slugify

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError, refuse
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import DeviceKind
from runs_app.core.work import outcome, replaced
from runs_app.core.work.noise import noise_between
from runs_app.features.transfer import faults
from runs_app.features.transfer.models import ImportedSubmission, ResultImport
from runs_app.features.transfer.record import ResultFile, ResultRecord
from runs_app.models import Device, Evaluation, Result, Status, Submission
from runs_app.models.submission import columns_of, solution_of
from runs_app.submitting.authors import imported_agent, language_model_of, shipped_agent
from runs_app.submitting.shipped import account_of_nobody
from tasks_app.models import TaskVersion

IMPORT_USER = "kbench (imported)"
"""In whose name imported submissions stand; no name that anybody can sign up with."""
_SLUG_LONGEST = 60
SHIPPED_FROM = "kbench"  # site of the files that come with kbench: a name like any other site's


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What became of a file's results.

    `new` were stored, `known` had been before. `unknown_tasks` counts those that this site has no
    such version of, by task: they are left out, and can be imported once it has.
    """

    new: int = 0
    known: int = 0
    unknown_tasks: Mapping[str, int] = field(default_factory=dict)


@transaction.atomic
def import_results(*, document: object, now: datetime) -> Imported:
    """Store the results of an encoded `ResultFile` that are not here yet.

    Raises `DataError` naming the field of whatever is wrong with the file; nothing is stored then.
    """
    return store_results(faults.decode(document, ResultFile), now)


def store_results(file: ResultFile, now: datetime) -> Imported:
    """The same of a decoded file, within the caller's transaction."""
    faults.refuse_wrong(file, now)
    digests = {record.task_digest for record in file.results}
    versions = versions_of(digests, {record.task for record in file.results})
    _refuse_misfits(file, versions)
    here = [(n, r) for n, r in enumerate(file.results) if r.task_digest in versions]
    unknown = Counter(r.task for r in file.results if r.task_digest not in versions)
    stored = _stored([record.evaluation for _, record in here])
    new = [(n, record) for n, record in here if record.evaluation not in stored]
    if new:
        _Storing(file, versions, now).store(new)
    return Imported(new=len(new), known=len(here) - len(new), unknown_tasks=dict(unknown))


def versions_of(digests: Collection[str], tasks: Collection[str]) -> dict[str, TaskVersion]:
    """By digest: the published versions, and the current ones that only add unlisted sizes."""
    published = TaskVersion.objects.filter(published_at__isnull=False).select_related("task")
    found = {version.digest: version for version in published.filter(digest__in=digests)}
    current = published.filter(task__slug__in=tasks, task__current_version=F("pk"))
    if missing := set(digests) - set(found):
        alike = {version.data.listed_digest(): version for version in current}
        found |= {digest: alike[digest] for digest in missing if digest in alike}
    return found


def _refuse_misfits(file: ResultFile, versions: Mapping[str, TaskVersion]) -> None:
    refuse(
        fault
        for number, record in enumerate(file.results)
        if record.task_digest in versions
        for fault in _fit(record, versions[record.task_digest], f"results[{number}]")
    )


def _fit(record: ResultRecord, version: TaskVersion, name: str) -> list[DataError]:
    if version.task.slug != record.task:
        reason = f"on this site, the digest belongs to {version.task.slug}"
        return [DataError(f"{name}.task", reason)]
    return list(faults.misfits(record, version, name))


def _stored(ids: list[str]) -> set[str]:
    """Which of these evaluations are here already, imported or our own."""
    found: set[str] = set()
    for start in range(0, len(ids), 500):
        rows = Evaluation.objects.filter(pk__in=[UUID(each) for each in ids[start : start + 500]])
        found |= {str(pk) for pk in rows.order_by().values_list("pk", flat=True)}
    return found


def fitted(result: EvaluationResult, version: TaskVersion) -> EvaluationResult:
    """The result without speedups on unlisted sizes that aren't ours."""
    has_unlisted = any(workload.unlisted for workload in version.data.workloads)
    is_ours = version.digest == result.task_digest and has_unlisted
    return result if is_ours else replace(result, unlisted_speedups={})


def device_of(site: str, record: ResultRecord, name: str, now: datetime) -> Device:
    """A device of its own: what was measured elsewhere stands on no board of ours.

    Takes a record of a run as well. Raises `DataError` naming a field of `name`.
    """
    slug = f"{record.device}-at-{slugify(site)}"
    where = "imported" if site == SHIPPED_FROM else f"imported from {site}"
    if len(slug) > _SLUG_LONGEST:
        reason = f"{slug!r} is too long for a board's name: shorten the site's name"
        raise DataError(f"{name}.device", reason)
    device, _ = Device.objects.get_or_create(
        slug=slug,
        defaults={
            "kind": record.device_kind.value,
            "name": f"{record.device_name} ({where})",
            "imported_from": site,
            "created_at": now,
        },
    )
    if device.imported_from != site:
        raise DataError("site", f"this site has a device {slug!r} that isn't from {site}")
    if device.kind != record.device_kind.value:
        reason = f"on this site, {record.device} is a {device.kind} device"
        raise DataError(f"{name}.device_kind", reason)
    return device


class _Storing:
    """The rows of one file; finds or makes devices, agents and submissions as they come."""

    def __init__(
        self, file: ResultFile, versions: Mapping[str, TaskVersion], now: datetime
    ) -> None:
        self._file = file
        self._versions = versions
        self._now = now
        self._devices: dict[tuple[str, DeviceKind], Device] = {}
        self._submissions: dict[UUID, Submission] = {}
        self._made: set[UUID] = set()
        self._author = account_of_nobody(IMPORT_USER)
        self._shipped = {
            (version.digest, kernel.agent, version.data.files[kernel.path])
            for version in versions.values()
            for kernel in version.data.kernels
        }

    def store(self, new: list[tuple[int, ResultRecord]]) -> None:
        exported_at = faults.moment(self._file.exported_at, "exported_at")
        self._import, _ = ResultImport.objects.get_or_create(
            digest=self._file.digest(),
            defaults={
                "site": self._file.site,
                "note": self._file.note,
                "results": 0,
                "exported_at": exported_at,
                "imported_at": self._now,
            },
        )
        ids = {UUID(record.submission) for _, record in new}
        self._submissions = Submission.objects.select_related("imported__result_import").in_bulk(
            ids
        )
        made: list[Submission] = []
        pairs = [self._evaluation(n, record, made) for n, record in new]
        Submission.objects.bulk_create(made, batch_size=200)
        ImportedSubmission.objects.bulk_create(
            [ImportedSubmission(submission=each, result_import=self._import) for each in made],
            batch_size=200,
        )
        Evaluation.objects.bulk_create([row for row, _ in pairs], batch_size=200)
        Result.objects.bulk_create([result for _, result in pairs], batch_size=50)
        replaced.settle(ids)
        self._import.results += len(pairs)
        self._import.save(update_fields=["results"])

    def _evaluation(
        self, number: int, record: ResultRecord, made: list[Submission]
    ) -> tuple[Evaluation, Result]:
        """An evaluation that has ended, and its result; neither is stored yet."""
        name = f"results[{number}]"
        device = self._device(record, name)
        measured_at = faults.moment(record.measured_at, f"{name}.measured_at")
        result = record.result(device.slug)
        version = self._versions[record.task_digest]
        result = fitted(result, version)
        evaluation = Evaluation(
            pk=UUID(record.evaluation),
            submission=self._submission(record, name, made),
            task_version=version,
            direction=record.direction.value,
            device=device,
            mode=record.mode.value,
            status=Status.FINISHED,
            created_at=measured_at,
            queued_at=measured_at,
            finished_at=measured_at,
        )
        outcome.apply(evaluation, result, noise_between(device, evaluation.mode))
        return evaluation, Result(evaluation=evaluation, document=codec.encode(result))

    def _submission(self, record: ResultRecord, name: str, made: list[Submission]) -> Submission:
        key = UUID(record.submission)
        known = self._submissions.get(key)
        if known is not None:
            self._check_same(known, record, name)
            return known
        submission = Submission(
            pk=key,
            author=self._author,
            task_version=self._versions[record.task_digest],
            **columns_of(solution_of(record)),
            agent=self._agent(record),
            language_model=language_model_of(record.language_model, self._now),
            origin=Submission.Origin.IMPORTED,
            created_at=faults.moment(record.entered_at, f"{name}.entered_at"),
        )
        made.append(submission)
        self._submissions[key] = submission
        self._made.add(key)
        return submission

    def _check_same(self, known: Submission, record: ResultRecord, name: str) -> None:
        """A submission has one source and one task, wherever it is measured."""
        site = self._site_of(known)
        if site != self._file.site:
            where = f"imported from {site}" if site else "entered here"
            raise DataError(f"{name}.submission", f"{known.pk} is a submission {where}")
        version = self._versions[record.task_digest]
        if known.digest != record.source_digest or known.task_version_id != version.pk:
            raise DataError(
                f"{name}.submission", f"{known.pk} is here with a different source or task version"
            )

    def _site_of(self, known: Submission) -> str:
        """Which site a submission comes from; empty for our own."""
        if known.pk in self._made:
            return self._file.site
        return known.imported.result_import.site if hasattr(known, "imported") else ""

    def _agent(self, record: ResultRecord) -> Any:
        """Our own agent of the same shipped kernel, else one that names its site."""
        version = self._versions[record.task_digest]
        is_single = not record.files
        if is_single and (version.digest, record.agent, record.source) in self._shipped:
            return shipped_agent(record.agent, self._now)
        return imported_agent(record.agent, record.agent_kind, self._file.site, self._now)

    def _device(self, record: ResultRecord, name: str) -> Device:
        key = record.device, record.device_kind
        if key not in self._devices:
            self._devices[key] = device_of(self._file.site, record, name, self._now)
        return self._devices[key]
