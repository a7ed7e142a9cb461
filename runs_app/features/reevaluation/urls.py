"""Addresses of evaluating submissions again."""

from __future__ import annotations

from django.urls import path

from runs_app.features.reevaluation import views

urlpatterns = [
    path("curate/reevaluate/", views.tasks_reevaluate, name="tasks-reevaluate"),
    path("tasks/<slug:slug>/reevaluate/", views.task_reevaluate, name="task-reevaluate"),
    path(
        "tasks/<slug:slug>/reevaluate/<int:number>/", views.task_reevaluation, name="reevaluation"
    ),
    path(
        "tasks/<slug:slug>/reevaluate/<int:number>/cancel/",
        views.task_reevaluate_cancel,
        name="task-reevaluate-cancel",
    ),
]
