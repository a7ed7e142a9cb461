"""Addresses of the leaderboard."""

from __future__ import annotations

from django.urls import path

from leaderboard_app.boards import views

urlpatterns = [
    path("leaderboard/", views.leaderboard, name="leaderboard"),
]
