"""Rows of submissions, evaluations, runs, runners, and those who write kernels."""

from __future__ import annotations

from runs_app.models.agent import Agent, LanguageModel
from runs_app.models.call import LanguageModelCall
from runs_app.models.candidate import Candidate
from runs_app.models.evaluation import Evaluation, EvaluationEvent, Result, Status
from runs_app.models.run import Run, RunEvent
from runs_app.models.runner import Device, Runner
from runs_app.models.submission import Submission
from runs_app.models.tuning import Tuning, VerifierPrompt

__all__ = [
    "Agent",
    "Candidate",
    "Device",
    "Evaluation",
    "EvaluationEvent",
    "LanguageModel",
    "LanguageModelCall",
    "Result",
    "Run",
    "RunEvent",
    "Runner",
    "Status",
    "Submission",
    "Tuning",
    "VerifierPrompt",
]
