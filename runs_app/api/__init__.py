"""The API's view of submissions, queues, runs, and what language models say of tasks."""

from __future__ import annotations

from ninja import Router

from runs_app.api.judgements import router as judgements_router
from runs_app.api.runs import router as runs_router
from runs_app.api.submissions import router as submissions_router

router = Router()
router.add_router("", submissions_router)
router.add_router("", runs_router)
router.add_router("", judgements_router)

__all__ = ["router"]
