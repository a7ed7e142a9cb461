"""Addresses of the pages about tasks."""

from __future__ import annotations

from django.urls import path

from tasks_app import views

urlpatterns = [
    path("tasks/", views.task_list, name="tasks"),
    path("tasks/<slug:slug>/", views.task_detail, name="task"),
    path("tasks/<slug:slug>/soundness/", views.task_soundness, name="task-soundness"),
]
