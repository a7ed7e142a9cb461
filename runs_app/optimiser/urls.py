"""Addresses of optimization runs, of verifiers, and of language models' settings."""

from __future__ import annotations

from django.urls import path

from runs_app.optimiser import views
from runs_app.optimiser.language_models.views import language_model_form, language_model_remove
from runs_app.optimiser.start.views import run_estimate, run_start
from runs_app.optimiser.verifiers.views import tuning, verifiers

urlpatterns = [
    path("runs/new/", run_start, name="run-start"),
    path("runs/new/estimate/", run_estimate, name="run-estimate"),
    path("runs/", views.run_list, name="runs"),
    path("runs/<uuid:run_id>/", views.run_detail, name="run"),
    path("runs/<str:short_run>/", views.short_address, name="run-short"),
    path("runs/<uuid:run_id>/head/", views.run_head, name="run-head"),
    path("runs/<uuid:run_id>/changes/", views.run_changes, name="run-changes"),
    path("runs/<uuid:run_id>/replay/", views.run_replay, name="run-replay"),
    path("runs/<uuid:run_id>/pause/", views.run_control, {"action": "pause"}, name="run-pause"),
    path("runs/<uuid:run_id>/resume/", views.run_control, {"action": "resume"}, name="run-resume"),
    path("runs/<uuid:run_id>/stop/", views.run_control, {"action": "stop"}, name="run-stop"),
    path("runs/<uuid:run_id>/extend/", views.run_extend, name="run-extend"),
    path(
        "runs/<uuid:run_id>/candidates/<int:number>/", views.candidate_detail, name="run-candidate"
    ),
    path(
        "runs/<uuid:run_id>/candidates/<int:number>/enter/",
        views.candidate_enter,
        name="run-candidate-enter",
    ),
    path("runs/<uuid:run_id>/calls/<int:number>/", views.call_detail, name="run-call"),
    path("verifiers/", verifiers, name="verifiers"),
    path("verifiers/tunings/<uuid:tuning_id>/", tuning, name="tuning"),
    path("language-models/new/", language_model_form, name="language-model-new"),
    path(
        "language-models/<int:language_model_id>/edit/",
        language_model_form,
        name="language-model-edit",
    ),
    path(
        "language-models/<int:language_model_id>/remove/",
        language_model_remove,
        name="language-model-remove",
    ),
]
