"""Addresses of the pages about submissions, evaluations and queues."""

from __future__ import annotations

from django.urls import path

from runs_app.views import submissions as views

urlpatterns = [
    path("submit/", views.submit, name="submit"),
    path("submissions/<uuid:submission_id>/", views.submission_detail, name="submission"),
    path(
        "submissions/<uuid:submission_id>/source/",
        views.submission_source,
        name="submission-source",
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
    path("queue/", views.queue, name="queue"),
    path("agents/<int:agent_id>/", views.agent_detail, name="agent"),
    path(
        "language-models/<int:language_model_id>/",
        views.language_model_detail,
        name="language-model",
    ),
]
