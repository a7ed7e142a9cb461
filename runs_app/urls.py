"""Addresses of what this app shows; each feature brings its own."""

from __future__ import annotations

from django.urls import URLResolver, include, path

from runs_app.core import features

urlpatterns: list[URLResolver] = [
    *(path("", include(module)) for module in features.modules("urls")),
    path("", include("runs_app.submitting.urls")),
    path("", include("runs_app.core.urls")),
    path("", include("runs_app.optimiser.urls")),
]
