"""One measurement of a submission, with what happened to it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from gpu_runner.data import codec
from gpu_runner.data.archive import Loaded
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.scores import is_tuned, score
from gpu_runner.data.verdict import Direction, Mode, Stage, Verdict
from runs_app.models.quarantine import Audited, Quarantine, QuarantineCase
from runs_app.models.runner import Runner
from runs_app.models.runner_job import RunnerJob, over_has_an_end
from runs_app.models.submission import Submission
from tasks_app.models import TaskVersion

_MOST_STORED = 1000  # events of an evaluation; later ones only say that it is alive


class Evaluation(RunnerJob):
    """One measurement of one solution on one task version and device.

    `task_version`, `direction` repeat the submission's, for the indexes of boards. A re-run is a
    new row. The spreads are half the 95 % confidence interval over the value: 0.01 means +- 1 %.
    Those of times and speedups are of this evaluation alone. `noise` is half the interval of what
    evaluations of its source differ by: all that is shown or ranked holds both, see `spread`.
    """

    KIND = EvaluationRequest.KIND
    FINISH = "runs_app.core.runners.results.finish"
    ENDED = "runs_app.core.runners.results.ended"
    PREFERS_TRUST = Q(mode=Mode.AUDIT.value)
    FAILED = Q(verdict=Verdict.SYSTEM_ERROR.value)
    MOVING = (*RunnerJob.MOVING, "events_stored")
    LOCKED_WITH = ("runner__token", "device", "task_version__task", "submission__author")
    LOCKED_WITHOUT = ("task_version__document", "submission__source", "submission__files")

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="evaluations")
    task_version = models.ForeignKey(
        TaskVersion, on_delete=models.PROTECT, related_name="evaluations"
    )
    direction = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Direction])
    mode = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Mode])

    verdict = models.CharField(
        max_length=20, choices=[(v.value, v.value) for v in Verdict], blank=True, default=""
    )

    latency_ns = models.FloatField(null=True, blank=True)
    speedup_best = models.FloatField(null=True, blank=True)
    speedup_eager = models.FloatField(null=True, blank=True)
    speedup_compiled = models.FloatField(null=True, blank=True)
    latency_spread = models.FloatField(null=True, blank=True)
    speedup_spread = models.FloatField(null=True, blank=True)  # of the best; see the class
    eager_spread = models.FloatField(null=True, blank=True)
    compiled_spread = models.FloatField(null=True, blank=True)
    unlisted_speedup = models.FloatField(null=True, blank=True)  # of the best, as `speedup_best`
    score = models.FloatField(null=True, blank=True)  # the mean of both
    score_spread = models.FloatField(null=True, blank=True)
    own_spread = models.FloatField(null=True, blank=True)  # what it alone would give the score
    noise = models.FloatField(default=0.0)  # see the class
    draws = models.PositiveSmallIntegerField(default=1)  # evaluations of the source in the score
    merit = models.FloatField(null=True, blank=True)  # what boards order by: see `outcome.apply`
    floor_fraction = models.FloatField(null=True, blank=True)
    p_score = models.FloatField(null=True, blank=True)
    awaits_baselines = models.BooleanField(default=False)

    # Repeats the case's state; whoever changes one changes the other.
    quarantine = models.CharField(
        max_length=10, choices=Quarantine.choices, default=Quarantine.NONE
    )
    quarantine_case = models.ForeignKey(
        QuarantineCase, on_delete=models.PROTECT, null=True, blank=True, related_name="evaluations"
    )
    # Of a ranked evaluation: repeats the state of its `BoardAudit`.
    audited = models.CharField(max_length=15, choices=Audited.choices, default=Audited.NONE)

    # Of a ranked evaluation: a later one of its submission and device has replaced it.
    replaced = models.BooleanField(default=False)

    # Measured on a host that the site's admins don't control.
    guest = models.BooleanField(default=False)

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
                fields=("task_version", "device", "direction", "verdict", "-merit"),
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
                fields=("device", "task_version", "direction", "-merit"),
                name="evaluation_verified",
                condition=Q(mode="ranked", verdict="CORRECT", replaced=False, audited="passed"),
            ),
        )

    def __str__(self) -> str:
        return str(self.pk)[:8]

    def get_absolute_url(self) -> str:
        """Its submission's page, with this evaluation."""
        return f"{reverse('submission', args=[self.submission_id])}?evaluation={self.pk}"

    @property
    def own_score(self) -> float | None:
        """The score that this evaluation alone would give; `score` is its source's."""
        return score(self.speedup_best, self.unlisted_speedup)

    @property
    def imported(self) -> bool:
        """Whether another site measured it."""
        return bool(self.device.imported_from)

    @property
    def rated(self) -> float | None:
        """Its score; for want of one its speedup on listed sizes."""
        return self.score or self.speedup_best

    @property
    def rated_spread(self) -> float | None:
        """Half the interval of `rated`, which holds what evaluations of its source differ by."""
        return self.score_spread if self.score else self.spread("speedup")

    def spread(self, of: str) -> float | None:
        """The same of its latency, speedup, eager or compiled; None if it isn't known."""
        own = getattr(self, f"{of}_spread")
        return None if own is None else math.hypot(own, self.noise)

    @property
    def is_tuned(self) -> bool:
        """Whether it is so much better on the sizes that it could see than on unlisted ones."""
        return is_tuned(self.speedup_best, self.unlisted_speedup)

    @property
    def is_full(self) -> bool:  # type: ignore[override]
        """Whether no more of its progress is stored."""
        return self.events_stored >= _MOST_STORED

    @property
    def changes_others(self) -> bool:  # type: ignore[override]
        """It replaces others, or audits one."""
        return self.mode in (Mode.RANKED, Mode.AUDIT)

    @classmethod
    def checks(cls, **measured_by: int) -> Q:
        """Audits of it."""
        measured = cls._default_manager.filter(
            submission=OuterRef("submission"),
            device=OuterRef("device"),
            mode=Mode.RANKED.value,
            verdict=Verdict.CORRECT.value,
            **measured_by,
        )
        return Q(mode=Mode.AUDIT.value) & Q(Exists(measured))

    def request(self) -> EvaluationRequest:
        """The task and the solution; of an audit also what was loaded before."""
        return EvaluationRequest(
            evaluation_id=str(self.pk),
            task=self.task_version.data,
            solution=self.submission.solution,
            mode=Mode(self.mode),
            device=self.device_id,
            attempt=self.attempt,
            urgency=self.urgency,
            must_beat_ns=self.must_beat_ns,
            loaded=self._to_compare(),
        )

    def _to_compare(self) -> tuple[Loaded, ...]:
        """What the result that an audit is about says that it ran; empty where it says nothing."""
        if self.mode != Mode.AUDIT:
            return ()
        ranked = Result.objects.filter(
            evaluation__submission=self.submission_id,
            evaluation__device=self.device_id,
            evaluation__mode=Mode.RANKED.value,
            evaluation__verdict=Verdict.CORRECT.value,
        ).order_by("-evaluation__created_at", "-pk")
        document = ranked.values_list("document", flat=True).first() or {}
        return codec.decode_stored(tuple[Loaded, ...], document.get("loaded", ()), "loaded")

    def give_to(self, runner: Runner, ticket: str) -> None:
        """Note who holds it, and whether that is a guest."""
        super().give_to(runner, ticket)
        self.guest = not runner.token.trusted

    def take_stage(self, payload: Mapping[str, object]) -> None:
        """Note the stage; raises `ValueError` for one that there is not."""
        self.stage = Stage(str(payload.get("stage"))).value

    def fail(self) -> dict[str, object]:
        """The verdict is then ours, not the author's."""
        self.verdict = Verdict.SYSTEM_ERROR.value
        return {"verdict": self.verdict}

    def next_event(self, **columns: object) -> EvaluationEvent:
        """The next one of its events."""
        self.events_stored += 1
        return EvaluationEvent(
            evaluation=self, attempt=self.attempt, position=self.events_stored, **columns
        )

    @property
    def is_correct(self) -> bool:
        """Whether the kernel passed."""
        return self.verdict == Verdict.CORRECT


class Result(models.Model):
    """The whole result of an evaluation: an encoded `gpu_runner.data.evaluation.EvaluationResult`.

    Show it only through `work.access.shown_result`, which keeps hidden workloads hidden.
    """

    evaluation = models.OneToOneField(
        Evaluation, on_delete=models.CASCADE, primary_key=True, related_name="result"
    )
    document = models.JSONField()

    def __str__(self) -> str:
        return str(self.evaluation_id)[:8]

    @property
    def data(self) -> EvaluationResult:
        """The result, with all that only admins may see."""
        return codec.decode_stored(EvaluationResult, self.document, "result")


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
    created_at = models.DateTimeField()

    class Meta:
        """No event is stored twice."""

        ordering = ("evaluation", "position")
        constraints = (
            models.UniqueConstraint(fields=("evaluation", "position"), name="event_position"),
            models.UniqueConstraint(fields=("evaluation", "attempt", "seq"), name="event_once"),
        )

    def __str__(self) -> str:
        return f"{self.position} {self.kind}"
