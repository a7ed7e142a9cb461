"""Addresses of checks and dry runs of drafts."""

from __future__ import annotations

from django.urls import path

from runs_app.features.curation.checks import views

urlpatterns = [
    path("drafts/<uuid:draft_id>/check/", views.draft_check, name="draft-check"),
    path("drafts/<uuid:draft_id>/try/", views.draft_try, name="draft-try"),
    # Addresses stay: dry runs and findings were called trials when this one was given.
    path("drafts/<uuid:draft_id>/trials/", views.draft_findings, name="draft-findings"),
    path("checks/<uuid:check_id>/cancel/", views.check_cancel, name="check-cancel"),
]
