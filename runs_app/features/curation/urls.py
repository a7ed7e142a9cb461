"""Addresses of the pages on which tasks are written, checked and decided about."""

from __future__ import annotations

from django.urls import URLResolver, include, path

urlpatterns: list[URLResolver] = [
    path("", include("runs_app.features.curation.decisions.urls")),
    path("", include("runs_app.features.curation.drafts.urls")),
    path("", include("runs_app.features.curation.checks.urls")),
    path("", include("runs_app.features.curation.bulk.urls")),
]
