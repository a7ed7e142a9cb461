"""Addresses of comparisons."""

from __future__ import annotations

from django.urls import path

from runs_app.features.compare import run_views, views

urlpatterns = [
    path("compare/submissions/", views.compare_submissions, name="compare-submissions"),
    path("compare/agents/", views.compare_agents, name="compare-agents"),
    path("compare/language-models/", views.compare_models, name="compare-models"),
    path("runs/compare/", run_views.compare_runs, name="compare"),
    path("runs/ablation/", run_views.ablation, name="ablation"),
]
