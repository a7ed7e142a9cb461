"""Rows of submissions, evaluations, task checks, runs, runners, and authors of kernels."""

from __future__ import annotations

from runs_app.models.agent import Agent, LanguageModel
from runs_app.models.audit import BoardAudit
from runs_app.models.candidate import Candidate
from runs_app.models.check import BaselineMeasurement, TaskCheck
from runs_app.models.evaluation import Evaluation, EvaluationEvent, Result
from runs_app.models.limits import Announcement, PersonalQuota
from runs_app.models.quarantine import Audited, Quarantine, QuarantineCase, QuarantineDecision
from runs_app.models.run import LanguageModelCall, Run, RunEvent
from runs_app.models.runner import Device, Runner, RunnerFlag, RunnerToken
from runs_app.models.runner_job import UNDER_WAY, RunnerJob, Status
from runs_app.models.submission import Submission
from runs_app.models.tuning import Tuning, VerifierPrompt

JOBS: dict[str, type[RunnerJob]] = {
    model.KIND: model for model in (Evaluation, TaskCheck, BaselineMeasurement)
}
"""The kinds of job that runners do, by their names on the wire."""

__all__ = [
    "JOBS", "UNDER_WAY", "Agent", "Announcement", "Audited", "BaselineMeasurement",
    "BoardAudit", "Candidate", "Device", "Evaluation", "EvaluationEvent", "LanguageModel",
    "LanguageModelCall", "PersonalQuota", "Quarantine", "QuarantineCase", "QuarantineDecision",
    "Result", "Run", "RunEvent", "Runner", "RunnerFlag", "RunnerJob", "RunnerToken", "Status",
    "Submission", "TaskCheck", "Tuning", "VerifierPrompt",
]  # fmt: skip
