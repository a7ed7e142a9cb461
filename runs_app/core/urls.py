"""Addresses of the queue, of quarantine and of audits."""

from __future__ import annotations

from django.urls import path

from runs_app.core.integrity import views
from runs_app.core.queue.views import queue

urlpatterns = [
    path("queue/", queue, name="queue"),
    path(
        "submissions/<uuid:submission_id>/audit/", views.submission_audit, name="submission-audit"
    ),
    path("quarantine/", views.quarantine, name="quarantine"),
    path("quarantine/<int:case_id>/decide/", views.quarantine_decide, name="quarantine-decide"),
]
