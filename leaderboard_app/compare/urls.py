"""Addresses of comparisons; those of runs are the runs' own."""

from __future__ import annotations

from django.urls import path

from leaderboard_app.compare import views

urlpatterns = [
    path("compare/submissions/", views.compare_submissions, name="compare-submissions"),
    path("compare/agents/", views.compare_agents, name="compare-agents"),
    path("compare/language-models/", views.compare_models, name="compare-models"),
]
