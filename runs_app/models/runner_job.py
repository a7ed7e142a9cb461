"""What a runner works at: the life that all kinds of its jobs share."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from gpu_runner.data.queue import Urgency
from runs_app.models.runner import Device, Runner, RunnerToken

LONGEST_TEXT = 10_000
"""Characters that are stored of a runner's words."""


class Status(models.TextChoices):
    """Where a job stands in its life; its outcome is in columns of its kind."""

    QUEUED = "QUEUED", "Queued"
    RUNNING = "RUNNING", "Running"
    FINISHED = "FINISHED", "Finished"
    CANCELLED = "CANCELLED", "Canceled"


UNDER_WAY = (Status.QUEUED.value, Status.RUNNING.value)
"""Statuses of a job that has not ended."""


SPOOL = "spool:"
"""With this and the spool's name begins, in place of a runner's boot, who holds a job."""


def over_has_an_end(name: str) -> models.CheckConstraint:
    """The constraint, of that name, that only a job which is over has an end."""
    return models.CheckConstraint(
        condition=Q(status__in=("FINISHED", "CANCELLED"), finished_at__isnull=False)
        | Q(status__in=UNDER_WAY, finished_at__isnull=True),
        name=name,
    )


class RunnerJob(models.Model):
    """One job for a runner of a device; `runs_app.core.work.lifecycle` alone changes its status.

    Each kind of job is a subclass, and `JOBS` lists them: no other code asks which kind a job is.

    `attempt` counts the retries of an infrastructure that failed. `reason` says why it was tried
    again, or why it ended as it did; `stage` is what its runner is at, or was at last. Only the
    holder of an attempt is believed about it: the runner, or the spool, to which it was handed.
    """

    KIND: ClassVar[str]  # its name on the wire: that of its request
    is_full = False  # whether no more of its progress is stored
    changes_others = True  # whether its end may change other jobs
    FINISH: ClassVar[str]
    """Path of `finish(job, payload, now, seq)`, which ends it as its runner's FINISHED says."""
    ENDED: ClassVar[str] = ""
    """Path of `ended(job, now)`, for what follows from any end; empty if nothing does."""
    NEEDS_TRUST: ClassVar[bool] = False  # whether only a runner of a trusted host may do it
    PREFERS_TRUST: ClassVar[Q] = Q(pk__isnull=False)  # those for guests only if there is no other
    FAILED: ClassVar[Q]  # finished without an outcome, through our fault
    MOVING: ClassVar[tuple[str, ...]] = (
        "status", "started_at", "stage", "runner", "runner_boot_id", "last_seq", "last_event_at",
    )  # fmt: skip
    """Columns that change while a runner works."""
    LOCKED_WITH: ClassVar[tuple[str, ...]] = ("runner__token",)
    LOCKED_WITHOUT: ClassVar[tuple[str, ...]] = ()
    """Rows that whoever locks a job reads with it, and what is left out of them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="%(class)ss")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=1)
    last_seq = models.PositiveIntegerField(default=0)  # of the attempt's events that counted
    queue_place = models.PositiveSmallIntegerField(default=Urgency.PEOPLE.place)  # see `urgency`
    stage = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    runner = models.ForeignKey(
        Runner, on_delete=models.SET_NULL, null=True, blank=True, related_name="%(class)ss"
    )
    runner_boot_id = models.CharField(max_length=100, blank=True)
    ticket = models.CharField(max_length=32, blank=True)  # with which the runner asked for it
    lost_by = models.ForeignKey(
        RunnerToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )  # whose runner had the attempt before, which came to nothing
    created_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    last_event_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ("-created_at", "-pk")

    @property
    def spool(self) -> str:
        """Name of the spool that has it, for a host that reaches no site; empty for none."""
        is_there = self.status == Status.RUNNING and self.runner_boot_id.startswith(SPOOL)
        return self.runner_boot_id.removeprefix(SPOOL) if is_there else ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to this job."""
        return self.status not in UNDER_WAY

    @property
    def urgency(self) -> Urgency:
        """Who waits for it, and so in which of its device's queues it is."""
        return list(Urgency)[self.queue_place]

    @staticmethod
    def waits_as(*urgencies: Urgency) -> Q:
        """A condition that holds for jobs of these urgencies."""
        return Q(queue_place__in=[each.place for each in urgencies])

    @classmethod
    def checks(cls, **measured_by: int) -> Q:
        """Those that check what a runner has measured, by columns of what it measured."""
        return Q(pk__in=())

    def request(self) -> object:
        """Everything that its runner needs to know."""
        raise NotImplementedError

    def give_to(self, runner: Runner, ticket: str) -> None:
        """Note who holds it."""
        self.runner, self.runner_boot_id, self.ticket = runner, runner.boot_id, ticket

    def take_stage(self, payload: Mapping[str, object]) -> None:
        """Note what its runner is at; raises `ValueError` for what cannot be."""
        self.stage = str(payload.get("detail", ""))[:LONGEST_TEXT]

    def fail(self) -> dict[str, object]:
        """Note that nothing comes of it, through our fault; what its watchers are told of that."""
        return {}

    def next_event(self, **columns: Any) -> Any:
        """The row for what happens to it now; None if that is not stored. The caller saves both."""
        return None
