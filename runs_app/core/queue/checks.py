"""What checks of tasks do or wait for, and why the last one produced no report, in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import OuterRef, Subquery

from runs_app.core.queue.runners import RunnerStatus, runner_list
from runs_app.models import UNDER_WAY, Status, TaskCheck


def checks_under_way(now: datetime, version_id: int | None = None) -> dict[int, str]:
    """Words about all of them, or about those of one version, by the version's id."""
    rows = TaskCheck.objects.filter(status__in=UNDER_WAY).select_related("device")
    if version_id is not None:
        rows = rows.filter(version=version_id)
    checks = list(rows.order_by("created_at", "pk"))
    runners = runner_list(now) if checks else []
    found: dict[int, list[str]] = {}
    for check in checks:
        found.setdefault(check.version_id, []).append(check_words(check, runners))
    return {version: "; another one ".join(words) for version, words in found.items()}


def failed_checks() -> dict[int, str]:
    """Why each version's newest check produced no report, by the version's id; only for admins."""
    newest = TaskCheck.objects.filter(version=OuterRef("version")).order_by("-created_at", "-pk")
    rows = TaskCheck.objects.filter(
        pk=Subquery(newest.values("pk")[:1]), status=Status.FINISHED, passed__isnull=True
    ).select_related("device")
    return {check.version_id: f"on {check.device} failed: {check.reason}" for check in rows}


def check_words(check: TaskCheck, runners: Iterable[RunnerStatus]) -> str:
    """What follows "a check": "waits for its turn on CPU", or for a runner if there is none."""
    if check.status != Status.QUEUED:
        return f"runs on {check.device}"
    mine = (each for each in runners if each.runner.device_id == check.device_id)
    ready = any(each.takes_work for each in mine)
    waits_for = "its turn" if ready else "a runner that takes jobs"
    return f"waiting for {waits_for} on {check.device}"
