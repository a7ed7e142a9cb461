"""Addresses of what is done to many tasks at once."""

from __future__ import annotations

from django.urls import path

from runs_app.features.curation.bulk import views

urlpatterns = [
    path("curate/check/", views.tasks_check, name="tasks-check"),
]
