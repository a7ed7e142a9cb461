"""Addresses of the site; each app brings its own."""

from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    *[path("", include(m)) for m in ("tasks_app.urls", "runs_app.urls") if find_spec(m)],
]
