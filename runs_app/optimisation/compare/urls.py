"""Addresses of comparing runs and settings."""

from __future__ import annotations

from django.urls import path

from runs_app.optimisation.compare import ablation, views

urlpatterns = [
    path("runs/compare/", views.compare, name="compare"),
    path("runs/ablation/", ablation.ablation, name="ablation"),
]
