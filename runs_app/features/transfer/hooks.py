"""What says on pages that results were imported, and what goes with a file of them."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef
from django.db.models.signals import pre_delete
from django.dispatch import receiver
from django.template.context import Context

from runs_app.core.hooks import Filling, Slot, fills
from runs_app.features.transfer.models import ImportedSubmission, ResultImport
from runs_app.features.transfer.record import IMPORTED
from runs_app.features.transfer.services import SHIPPED_FROM
from runs_app.models import Agent, Device, Evaluation, Run, RunEvent, Submission


@fills(Slot.BOARD)
def _files(context: Context, device: Device, slug: str) -> Filling | None:
    """Which files brought the board."""
    imports = imports_of(device)
    by_agents = Submission.objects.filter(
        imported__result_import__in=imports, agent__kind=Agent.Kind.AGENT
    )
    models = set(by_agents.order_by().values_list("language_model", flat=True).distinct())
    values = {"device": device, "imports": imports, "names_no_model": models == {None}}
    return Filling("transfer/parts/imports.html", values) if imports else None


@fills(Slot.SUBMISSION)
def _when(context: Context, submission: Submission, device: Device, **_: object) -> Filling | None:
    """That another site measured a submission."""
    if not device.imported_from:
        return None
    if submission.run is not None:
        return _of_run(submission.run, device)
    row = ImportedSubmission.objects.select_related("result_import").get(submission=submission)
    file = row.result_import
    return _elsewhere(device, file.site, file.imported_at)


@fills(Slot.RUN_LINKS)
def _where(context: Context, run: Run) -> Filling | None:
    """That another site made a run."""
    return _of_run(run, run.device) if run.device.imported_from else None


def _of_run(run: Run, device: Device) -> Filling:
    told = RunEvent.objects.filter(run=run, kind=IMPORTED).values_list("payload", flat=True).get()
    moment = datetime.fromisoformat(told["imported_at"])
    return _elsewhere(device, told["site"], moment, told["note"])


def _elsewhere(device: Device, site: str, moment: datetime, note: str = "") -> Filling:
    by = "by kbench's developers" if site == SHIPPED_FROM else f"on {site}"
    meaning = (
        f"Measured {by} and imported on {moment:%-d %b %Y}{f' ({note})' if note else ''}."
        " This site has not measured it."
    )
    return Filling("transfer/parts/imported.html", {"device": device, "meaning": meaning})


@receiver(pre_delete, sender=ResultImport)
def _take_back(sender: object, instance: ResultImport, **_: object) -> None:
    """Delete what the file brought."""
    Submission.objects.filter(imported__result_import=instance).delete()


def imports_of(device: Device) -> list[ResultImport]:
    """The files that brought a device's results from another site; none of our own.

    Another file of that site may hold another device's alone.
    """
    if not device.imported_from:
        return []
    own = OuterRef("pk")
    here = Evaluation.objects.filter(device=device, submission__imported__result_import=own)
    return list(ResultImport.objects.filter(Exists(here), site=device.imported_from)[:5])
