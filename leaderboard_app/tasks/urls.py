"""Addresses of the pages about tasks."""

from __future__ import annotations

from django.urls import path

from leaderboard_app.tasks import version_views, views

urlpatterns = [
    path("tasks/", views.task_list, name="tasks"),
    path("tasks/<slug:slug>/", views.task_detail, name="task"),
    path("tasks/<slug:slug>/soundness/", views.task_soundness, name="task-soundness"),
    path("tasks/<slug:slug>/versions/", version_views.task_versions, name="task-versions"),
    path(
        "tasks/<slug:slug>/versions/<int:number>/", version_views.task_version, name="task-version"
    ),
    path(
        "tasks/<slug:slug>/versions/<int:number>/files/<path:path>",
        version_views.version_file,
        name="task-version-file",
    ),
]
