"""One measurement of a submission, with what happened to it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from gpu_runner.data.event import JobKind
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Direction, Mode, Verdict
from runs_app.models.quarantine import QuarantineCase
from runs_app.models.reevaluation import Reevaluation
from runs_app.models.runner_job import RunnerJob, over_has_an_end
from runs_app.models.submission import Submission
from runs_app.models.trust import Audited, Quarantine
from tasks_app.models import TaskVersion


class Evaluation(RunnerJob):
    """One measurement of one solution on one task version and device.

    `task_version`, `direction` repeat the submission's, for the indexes of boards. A re-run is a
    new row. The spreads are half the 95 % confidence interval over the value: 0.01 means +- 1 %.
    """

    KIND = JobKind.EVALUATION

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="evaluations")
    task_version = models.ForeignKey(
        TaskVersion, on_delete=models.PROTECT, related_name="evaluations"
    )
    direction = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Direction])
    mode = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Mode])

    verdict = models.CharField(
        max_length=20, choices=[(v.value, v.value) for v in Verdict], blank=True, default=""
    )
    background = models.BooleanField(default=False)  # the site's own work: people's goes first
    reevaluation = models.ForeignKey(
        Reevaluation, on_delete=models.PROTECT, null=True, blank=True, related_name="evaluations"
    )

    latency_ns = models.FloatField(null=True, blank=True)
    speedup_best = models.FloatField(null=True, blank=True)
    speedup_eager = models.FloatField(null=True, blank=True)
    speedup_compiled = models.FloatField(null=True, blank=True)
    latency_spread = models.FloatField(null=True, blank=True)
    speedup_spread = models.FloatField(null=True, blank=True)  # of the best; see the class
    eager_spread = models.FloatField(null=True, blank=True)
    compiled_spread = models.FloatField(null=True, blank=True)
    hidden_speedup = models.FloatField(null=True, blank=True)  # against eager, the only one there
    floor_fraction = models.FloatField(null=True, blank=True)
    score = models.FloatField(null=True, blank=True)

    # Repeats the case's state; whoever changes one changes the other.
    quarantine = models.CharField(
        max_length=10, choices=Quarantine.choices, default=Quarantine.NONE
    )
    quarantine_case = models.ForeignKey(
        QuarantineCase,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="evaluations",
    )
    # Of a ranked evaluation: repeats the state of its `BoardAudit`.
    audited = models.CharField(max_length=15, choices=Audited.choices, default=Audited.NONE)

    # Of a ranked evaluation: a later one of its submission and device has replaced it.
    replaced = models.BooleanField(default=False)

    # Of a run's candidate: above that time of a workload, in ns, it is stopped.
    must_beat_ns = models.JSONField(default=dict, blank=True)

    events_stored = models.PositiveIntegerField(default=0)  # position of the newest event

    class Meta:
        """The database refuses a verdict without an end, and a time without a correct result."""

        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=(Q(status="FINISHED") & ~Q(verdict=""))
                | (~Q(status="FINISHED") & Q(verdict="")),
                name="evaluation_verdict_iff_finished",
            ),
            models.CheckConstraint(
                # isnull as well: a comparison with NULL is not false, so a check would pass
                condition=Q(verdict="CORRECT", latency_ns__isnull=False, latency_ns__gt=0)
                | (~Q(verdict="CORRECT") & Q(latency_ns__isnull=True)),
                name="evaluation_latency_iff_correct",
            ),
            over_has_an_end("evaluation_finished_at_iff_over"),
            models.CheckConstraint(
                condition=Q(quarantine="none", quarantine_case__isnull=True)
                | Q(
                    quarantine__in=("open", "cleared", "rejected"),
                    quarantine_case__isnull=False,
                    verdict="CORRECT",
                ),
                name="evaluation_quarantine_iff_case",
            ),
            models.CheckConstraint(
                condition=Q(audited="none") | Q(audited__in=Audited.values, mode="ranked"),
                name="evaluation_audited_only_ranked",
            ),
        )
        indexes = (
            models.Index(fields=("device", "status", "queued_at"), name="evaluation_queue"),
            models.Index(fields=("-finished_at",), name="evaluation_newest"),
            models.Index(fields=("device", "-created_at"), name="evaluation_of_device"),
            models.Index(
                fields=("device", "mode", "-finished_at"),
                name="evaluation_of_mode",
                condition=Q(status="FINISHED"),
            ),
            models.Index(
                fields=("device", "-finished_at"),
                name="evaluation_right",
                condition=Q(mode="ranked", verdict="CORRECT"),
            ),
            models.Index(
                fields=("submission", "device", "mode", "created_at"), name="evaluation_latest"
            ),
            models.Index(
                fields=("task_version", "device", "direction", "verdict", "latency_ns"),
                name="evaluation_record",
                condition=Q(mode="ranked", replaced=False),
            ),
            models.Index(
                fields=("submission", "device"),
                name="evaluation_standing",
                condition=Q(mode="ranked", replaced=False),
            ),
            models.Index(
                fields=("status", "device"),
                name="evaluation_under_way",
                condition=Q(finished_at__isnull=True),
            ),
            models.Index(
                fields=("device", "task_version", "direction", "latency_ns"),
                name="evaluation_verified",
                condition=Q(mode="ranked", verdict="CORRECT", replaced=False, audited="passed"),
            ),
        )

    def __str__(self) -> str:
        """Short id, for lists."""
        return str(self.pk)[:8]

    @property
    def urgency(self) -> Urgency:
        """Which of its device's queues it waits in."""
        if self.background:
            is_ours = self.submission.origin == Submission.Origin.SHIPPED  # other boards come first
            is_urgent = self.mode == Mode.AUDIT and not is_ours
            return Urgency.AUDITS if is_urgent else Urgency.BACKGROUND
        if self.submission.origin == Submission.Origin.RUN:
            return Urgency.RUNS
        return Urgency.BUILDS if self.mode == Mode.COMPILE else Urgency.PEOPLE

    @property
    def is_correct(self) -> bool:
        """Whether the kernel passed."""
        return self.verdict == Verdict.CORRECT


class Result(models.Model):
    """The whole result of an evaluation: an encoded `gpu_runner.data.evaluation.EvaluationResult`.

    Show it only through `work.access.result_document`, which keeps hidden workloads hidden.
    """

    evaluation = models.OneToOneField(
        Evaluation, on_delete=models.CASCADE, primary_key=True, related_name="result"
    )
    document = models.JSONField()

    def __str__(self) -> str:
        """Short id of the evaluation."""
        return str(self.evaluation_id)[:8]


class EvaluationEvent(models.Model):
    """Something that happened to an evaluation, in the order in which the site learnt of it.

    `position` counts from 1 in each evaluation and is the `seq` that sockets show. `seq` is the
    runner's own number within the attempt; null where the site itself is the source.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="events")
    position = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    seq = models.PositiveIntegerField(null=True, blank=True)
    kind = models.CharField(max_length=20)
    payload = models.JSONField(default=dict)
    ignored = models.BooleanField(default=False)  # of an attempt that was given up, or after an end
    created_at = models.DateTimeField()

    class Meta:
        """No event is stored twice."""

        ordering = ("evaluation", "position")
        constraints = (
            models.UniqueConstraint(fields=("evaluation", "position"), name="event_position"),
            models.UniqueConstraint(fields=("evaluation", "attempt", "seq"), name="event_once"),
        )

    def __str__(self) -> str:
        """Position and kind."""
        return f"{self.position} {self.kind}"
