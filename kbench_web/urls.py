"""Addresses of the site; each app brings its own."""

from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from kbench_web.api import api

_PAGES = ("tasks_app.urls", "runs_app.urls", "leaderboard_app.urls", "kbench_web.account_urls")

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    *[path("", include(module)) for module in _PAGES if find_spec(module)],
]
