"""Addresses of quarantine and audits."""

from __future__ import annotations

from django.urls import path

from runs_app.integrity import views

urlpatterns = [
    path(
        "submissions/<uuid:submission_id>/audit/",
        views.submission_audit,
        name="submission-audit",
    ),
    path("quarantine/", views.quarantine, name="quarantine"),
    path("quarantine/<int:case_id>/decide/", views.quarantine_decide, name="quarantine-decide"),
]
