"""Addresses of starting a run."""

from __future__ import annotations

from django.urls import path

from runs_app.optimisation.start import views

urlpatterns = [
    path("runs/new/", views.run_start, name="run-start"),
    path("runs/new/estimate/", views.run_estimate, name="run-estimate"),
]
