"""Addresses of decisions about tasks."""

from __future__ import annotations

from django.urls import path

from runs_app.features.curation.decisions import views

urlpatterns = [
    path("curate/", views.curate, name="curate"),
    path("curate/bulk/", views.curate_bulk, name="curate-bulk"),
    path("tasks/<slug:slug>/curate/", views.task_curate, name="task-curate"),
]
