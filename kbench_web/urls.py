"""Addresses of the site; each app brings its own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from kbench_web.api import api
from kbench_web.api_docs import api_docs

handler500 = "kbench_web.out_of_service.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("api/", api_docs, name="api-docs"),
    path("", include("kbench_web.accounts.urls")),
    path("", include("kbench_web.audit_log.urls")),
    path("", include("kbench_web.client.urls")),
    path("", include("kbench_web.help.urls")),
    path("", include("kbench_web.people.urls")),
    path("", include("runs_app.urls")),
    path("", include("leaderboard_app.urls")),
]
