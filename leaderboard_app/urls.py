"""Addresses of the first page, of boards, of tasks, and of those who write kernels."""

from __future__ import annotations

from django.urls import URLResolver, include, path

urlpatterns: list[URLResolver] = [
    path("", include("leaderboard_app.home.urls")),
    path("", include("leaderboard_app.boards.urls")),
    path("", include("leaderboard_app.tasks.urls")),
    path("", include("leaderboard_app.profiles.urls")),
]
