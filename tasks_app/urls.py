"""Addresses of the pages about tasks."""

from __future__ import annotations

from django.urls import path

from tasks_app.views import curate, drafts, tasks, versions

urlpatterns = [
    path("curate/", curate.curate, name="curate"),
    path("curate/bulk/", curate.curate_bulk, name="curate-bulk"),
    path("curate/history/", curate.curate_history, name="curate-history"),
    path("tasks/<slug:slug>/curate/", curate.task_curate, name="task-curate"),
    path("drafts/", drafts.drafts, name="drafts"),
    path("drafts/example/", drafts.draft_example, name="draft-example"),
    path("drafts/<uuid:draft_id>/", drafts.draft, name="draft"),
    path("drafts/<uuid:draft_id>/act/", drafts.draft_act, name="draft-act"),
    path("drafts/<uuid:draft_id>/download/", drafts.draft_download, name="draft-download"),
    path("tasks/<slug:slug>/versions/<int:number>/draft/", drafts.draft_copy, name="draft-copy"),
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
