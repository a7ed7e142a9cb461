"""The API's view of submissions, queues, runs, challenges, and advice on tasks."""

from __future__ import annotations

from ninja import Router

from runs_app.advice.api import router as judgements_router
from runs_app.challenges.api import router as challenges_router
from runs_app.optimisation.api import router as runs_router
from runs_app.queue.api import router as queue_router
from runs_app.submissions.status_api import router as submissions_router

router = Router()
router.add_router("", submissions_router)
router.add_router("", queue_router)
router.add_router("", runs_router)
router.add_router("", challenges_router)
router.add_router("", judgements_router)

__all__ = ["router"]
