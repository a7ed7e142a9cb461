"""Addresses of the first page, of boards, of tasks, and of those who write kernels."""

from __future__ import annotations

from django.urls import path

from leaderboard_app.boards import views as boards
from leaderboard_app.home import views as home
from leaderboard_app.profiles import views as profiles
from leaderboard_app.tasks import views as tasks

urlpatterns = [
    path("", home.home, name="home"),
    path("leaderboard/", boards.leaderboard, name="leaderboard"),
    path("leaderboard/cite/", boards.cite, name="cite"),
    path("tasks/", tasks.task_list, name="tasks"),
    path("tasks/<slug:slug>/", tasks.task_detail, name="task"),
    path("tasks/<slug:slug>/soundness/", tasks.task_soundness, name="task-soundness"),
    path("tasks/<slug:slug>/versions/", tasks.task_versions, name="task-versions"),
    path("tasks/<slug:slug>/versions/<int:number>/", tasks.task_version, name="task-version"),
    path(
        "tasks/<slug:slug>/versions/<int:number>/files/<path:path>",
        tasks.version_file,
        name="task-version-file",
    ),
    path("agents/<int:agent_id>/", profiles.agent_detail, name="agent"),
    path("language-models/", profiles.language_model_list, name="language-models"),
    path(
        "language-models/<int:language_model_id>/",
        profiles.language_model_detail,
        name="language-model",
    ),
    path(
        "language-models/<int:language_model_id>/test/",
        profiles.language_model_test,
        name="language-model-test",
    ),
]
