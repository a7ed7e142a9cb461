"""Address of the leaderboard."""

from __future__ import annotations

from django.urls import path

from leaderboard_app import views

urlpatterns = [path("leaderboard/", views.leaderboard, name="leaderboard")]
