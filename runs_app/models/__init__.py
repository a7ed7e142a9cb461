"""Rows of submissions, evaluations, checks of tasks, runs, runners, and who writes kernels."""

from __future__ import annotations

from runs_app.models.agent import Agent, LanguageModel
from runs_app.models.audit import BoardAudit
from runs_app.models.baselines import BaselineMeasurement
from runs_app.models.call import LanguageModelCall
from runs_app.models.candidate import Candidate
from runs_app.models.challenge import Challenge, Entry
from runs_app.models.check import TaskCheck
from runs_app.models.evaluation import Evaluation, EvaluationEvent, Result
from runs_app.models.imported import ResultImport
from runs_app.models.judgement import TaskJudgement
from runs_app.models.notices import (
    DEFAULT_WAYS,
    Delivery,
    Notice,
    NoticeKind,
    NoticeSettings,
    Watch,
    Way,
    Webhook,
)
from runs_app.models.operations import Announcement, PersonalQuota, RunnerReading
from runs_app.models.quarantine import QuarantineCase, QuarantineDecision
from runs_app.models.reevaluation import Reevaluation
from runs_app.models.run import Run, RunEvent
from runs_app.models.runner import Device, Runner
from runs_app.models.runner_job import UNDER_WAY, RunnerJob, Status
from runs_app.models.submission import Submission
from runs_app.models.trust import Audited, Quarantine
from runs_app.models.tuning import Tuning, VerifierPrompt

__all__ = [
    "DEFAULT_WAYS",
    "UNDER_WAY",
    "Agent",
    "Announcement",
    "Audited",
    "BaselineMeasurement",
    "BoardAudit",
    "Candidate",
    "Challenge",
    "Delivery",
    "Device",
    "Entry",
    "Evaluation",
    "EvaluationEvent",
    "LanguageModel",
    "LanguageModelCall",
    "Notice",
    "NoticeKind",
    "NoticeSettings",
    "PersonalQuota",
    "Quarantine",
    "QuarantineCase",
    "QuarantineDecision",
    "Reevaluation",
    "Result",
    "ResultImport",
    "Run",
    "RunEvent",
    "Runner",
    "RunnerJob",
    "RunnerReading",
    "Status",
    "Submission",
    "TaskCheck",
    "TaskJudgement",
    "Tuning",
    "VerifierPrompt",
    "Watch",
    "Way",
    "Webhook",
]
