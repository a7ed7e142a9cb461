"""Addresses of the pages about tasks."""

from __future__ import annotations

from django.urls import path

from tasks_app.views import tasks, versions

urlpatterns = [
    path("tasks/", tasks.task_list, name="tasks"),
    path("tasks/<slug:slug>/", tasks.task_detail, name="task"),
    path("tasks/<slug:slug>/soundness/", tasks.task_soundness, name="task-soundness"),
    path("tasks/<slug:slug>/versions/", versions.task_versions, name="task-versions"),
    path("tasks/<slug:slug>/versions/<int:number>/", versions.task_version, name="task-version"),
    path(
        "tasks/<slug:slug>/versions/<int:number>/files/<path:path>",
        versions.version_file,
        name="task-version-file",
    ),
]
