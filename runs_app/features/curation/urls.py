"""Addresses of the pages on which tasks are written, checked and decided about."""

from __future__ import annotations

from django.urls import path

from runs_app.features.curation.checks import views as checks
from runs_app.features.curation.decisions import views as decisions
from runs_app.features.curation.drafts import views as drafts

urlpatterns = [
    path("curate/", decisions.curate, name="curate"),
    path("curate/bulk/", decisions.curate_bulk, name="curate-bulk"),
    path("tasks/<slug:slug>/curate/", decisions.task_curate, name="task-curate"),
    path("drafts/", drafts.drafts, name="drafts"),
    path("drafts/example/", drafts.draft_example, name="draft-example"),
    path("drafts/<uuid:draft_id>/", drafts.draft, name="draft"),
    path("drafts/<uuid:draft_id>/act/", drafts.draft_act, name="draft-act"),
    path("drafts/<uuid:draft_id>/download/", drafts.draft_download, name="draft-download"),
    path("tasks/<slug:slug>/versions/<int:number>/draft/", drafts.draft_copy, name="draft-copy"),
    path("drafts/<uuid:draft_id>/check/", checks.draft_check, name="draft-check"),
    path("drafts/<uuid:draft_id>/try/", checks.draft_try, name="draft-try"),
    # Addresses stay: dry runs and findings were called trials when this one was given.
    path("drafts/<uuid:draft_id>/trials/", checks.draft_findings, name="draft-findings"),
    path("checks/<uuid:check_id>/cancel/", checks.check_cancel, name="check-cancel"),
    path("curate/check/", checks.tasks_check, name="tasks-check"),
]
