"""Addresses of what this app shows; each feature brings its own."""

from __future__ import annotations

from django.urls import URLResolver, include, path

urlpatterns: list[URLResolver] = [
    path("", include("runs_app.workbench.urls")),
    path("", include("runs_app.submissions.urls")),
    path("", include("runs_app.integrity.urls")),
    path("", include("runs_app.queue.urls")),
    path("", include("runs_app.operations.urls")),
    path("", include("runs_app.notices.urls")),
    path("", include("runs_app.optimisation.start.urls")),
    path("", include("runs_app.optimisation.compare.urls")),
    path("", include("runs_app.optimisation.urls")),
    path("", include("runs_app.verifiers.urls")),
    path("", include("runs_app.challenges.urls")),
]
