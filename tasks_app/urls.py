"""Addresses of the pages about tasks."""

from __future__ import annotations

from django.urls import path

from tasks_app.views import tasks

urlpatterns = [
    path("tasks/", tasks.task_list, name="tasks"),
    path("tasks/<slug:slug>/", tasks.task_detail, name="task"),
    path("tasks/<slug:slug>/soundness/", tasks.task_soundness, name="task-soundness"),
]
