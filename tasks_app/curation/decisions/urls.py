"""Addresses of decisions about tasks."""

from __future__ import annotations

from django.urls import path

from tasks_app.curation.decisions import views

urlpatterns = [
    path("curate/", views.curate, name="curate"),
    path("curate/bulk/", views.curate_bulk, name="curate-bulk"),
    path("curate/history/", views.curate_history, name="curate-history"),
    path("tasks/<slug:slug>/curate/", views.task_curate, name="task-curate"),
]
