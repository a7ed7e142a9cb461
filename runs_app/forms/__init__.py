"""Forms for entering a kernel and for starting a run."""

from __future__ import annotations

from runs_app.forms.submission import MODES, SubmissionForm

__all__ = ["MODES", "SubmissionForm"]
