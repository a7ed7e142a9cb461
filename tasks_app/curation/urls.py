"""Addresses of the pages on which tasks are written, checked and decided about."""

from __future__ import annotations

from django.urls import URLResolver, include, path

urlpatterns: list[URLResolver] = [
    path("", include("tasks_app.curation.decisions.urls")),
    path("", include("tasks_app.curation.drafts.urls")),
    path("", include("tasks_app.curation.checks.urls")),
    path("", include("tasks_app.curation.advice.urls")),
    path("", include("tasks_app.curation.reevaluation.urls")),
    path("", include("tasks_app.curation.bulk.urls")),
]
