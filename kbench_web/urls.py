"""Addresses of the site; each app brings its own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from kbench_web.api import api

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("", include("kbench_web.account_urls")),
    path("", include("tasks_app.urls")),
    path("", include("runs_app.urls")),
    path("", include("leaderboard_app.urls")),
]
