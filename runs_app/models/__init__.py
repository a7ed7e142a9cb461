"""Rows of submissions, evaluations, runners, and those who write kernels."""

from __future__ import annotations

from runs_app.models.agent import Agent, LanguageModel
from runs_app.models.evaluation import Evaluation, EvaluationEvent, Result, Status
from runs_app.models.runner import Device, Runner
from runs_app.models.submission import Submission

__all__ = [
    "Agent",
    "Device",
    "Evaluation",
    "EvaluationEvent",
    "LanguageModel",
    "Result",
    "Runner",
    "Status",
    "Submission",
]
