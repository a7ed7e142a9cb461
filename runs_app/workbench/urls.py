"""Addresses of the workbench."""

from __future__ import annotations

from django.urls import path

from runs_app.workbench import views

urlpatterns = [
    path("submit/", views.submit, name="submit"),
    path("submit/task/", views.brief, name="workbench-task"),
    path("submit/source/", views.start_source, name="workbench-source"),
]
