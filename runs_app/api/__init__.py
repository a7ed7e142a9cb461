"""The API's view of submissions, queues and runs."""

from __future__ import annotations

from runs_app.api.submissions import router

__all__ = ["router"]
