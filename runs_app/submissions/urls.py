"""Addresses of submissions and their evaluations."""

from __future__ import annotations

from django.urls import path

from runs_app.submissions import views

urlpatterns = [
    path("submissions/<uuid:submission_id>/", views.submission_detail, name="submission"),
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
        "submissions/<uuid:submission_id>/rerun/",
        views.submission_rerun,
        name="submission-rerun",
    ),
    path("evaluations/<uuid:evaluation_id>/live/", views.evaluation_live, name="evaluation-live"),
    path("evaluations/<uuid:evaluation_id>/json/", views.evaluation_json, name="evaluation-json"),
    path(
        "evaluations/<uuid:evaluation_id>/cancel/",
        views.evaluation_cancel,
        name="evaluation-cancel",
    ),
]
