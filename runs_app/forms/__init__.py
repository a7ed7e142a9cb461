"""Forms for entering a kernel and for starting a run."""

from __future__ import annotations

from runs_app.forms.run import BudgetForm, RunForm
from runs_app.forms.submission import MODES, SubmissionForm

__all__ = ["MODES", "BudgetForm", "RunForm", "SubmissionForm"]
