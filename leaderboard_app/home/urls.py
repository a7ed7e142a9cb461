"""Address of the first page."""

from __future__ import annotations

from django.urls import path

from leaderboard_app.home import views

urlpatterns = [path("", views.home, name="home")]
