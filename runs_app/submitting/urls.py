"""Addresses of the workbench, of submissions and of their evaluations."""

from __future__ import annotations

from django.urls import path

from runs_app.submitting import views
from runs_app.submitting.workbench import views as workbench

urlpatterns = [
    path("submit/", workbench.submit, name="submit"),
    path("submit/task/", workbench.brief, name="workbench-task"),
    path("submit/attempts/", workbench.own_attempts, name="workbench-attempts"),
    path("submit/rank/<uuid:submission_id>/", workbench.rank, name="workbench-rank"),
    path("submit/source/", workbench.start_source, name="workbench-source"),
    path("submissions/<uuid:submission_id>/", views.submission_detail, name="submission"),
    path("submissions/<str:short_submission>/", views.short_address, name="submission-short"),
    path(
        "submissions/<uuid:submission_id>/source/",
        views.submission_source,
        name="submission-source",
    ),
    path(
        "submissions/<uuid:submission_id>/differences/",
        views.submission_differences,
        name="submission-differences",
    ),
    path(
        "submissions/<uuid:submission_id>/badge.svg",
        views.submission_badge,
        name="submission-badge",
    ),
    path(
        "submissions/<uuid:submission_id>/card.png", views.submission_card, name="submission-card"
    ),
    path(
        "submissions/<uuid:submission_id>/rerun/", views.submission_rerun, name="submission-rerun"
    ),
    path("evaluations/<uuid:evaluation_id>/live/", views.evaluation_live, name="evaluation-live"),
    path("evaluations/<uuid:evaluation_id>/json/", views.evaluation_json, name="evaluation-json"),
    path(
        "evaluations/<uuid:evaluation_id>/cancel/",
        views.evaluation_cancel,
        name="evaluation-cancel",
    ),
]
