"""Addresses of the pages about submissions, evaluations, runs and queues."""

from __future__ import annotations

from django.urls import path

from runs_app.views import (
    ablation,
    authors,
    bulk,
    compare,
    judgements,
    quarantine,
    reevaluation,
    run_start,
    runs,
    trials,
    verifiers,
)
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
    path(
        "submissions/<uuid:submission_id>/audit/",
        quarantine.submission_audit,
        name="submission-audit",
    ),
    path("quarantine/", quarantine.quarantine, name="quarantine"),
    path(
        "quarantine/<int:case_id>/decide/", quarantine.quarantine_decide, name="quarantine-decide"
    ),
    path("tasks/<slug:slug>/reevaluate/", reevaluation.task_reevaluate, name="task-reevaluate"),
    path(
        "tasks/<slug:slug>/reevaluate/<int:act_id>/cancel/",
        reevaluation.task_reevaluate_cancel,
        name="task-reevaluate-cancel",
    ),
    path("queue/", views.queue, name="queue"),
    path("runs/", runs.run_list, name="runs"),
    path("runs/new/", run_start.run_start, name="run-start"),
    path("runs/new/estimate/", run_start.run_estimate, name="run-estimate"),
    path("runs/compare/", compare.compare, name="compare"),
    path("runs/ablation/", ablation.ablation, name="ablation"),
    path("runs/<uuid:run_id>/", runs.run_detail, name="run"),
    path("runs/<uuid:run_id>/head/", runs.run_head, name="run-head"),
    path("runs/<uuid:run_id>/events/", runs.run_events, name="run-events"),
    path("runs/<uuid:run_id>/pause/", runs.run_control, {"action": "pause"}, name="run-pause"),
    path("runs/<uuid:run_id>/resume/", runs.run_control, {"action": "resume"}, name="run-resume"),
    path("runs/<uuid:run_id>/stop/", runs.run_control, {"action": "stop"}, name="run-stop"),
    path("runs/<uuid:run_id>/extend/", runs.run_extend, name="run-extend"),
    path(
        "runs/<uuid:run_id>/candidates/<int:number>/",
        runs.candidate_detail,
        name="run-candidate",
    ),
    path(
        "runs/<uuid:run_id>/candidates/<int:number>/enter/",
        runs.candidate_enter,
        name="run-candidate-enter",
    ),
    path("agents/<int:agent_id>/", authors.agent_detail, name="agent"),
    path("language-models/", authors.language_model_list, name="language-models"),
    path(
        "language-models/<int:language_model_id>/",
        authors.language_model_detail,
        name="language-model",
    ),
    path(
        "language-models/<int:language_model_id>/test/",
        authors.language_model_test,
        name="language-model-test",
    ),
    path("drafts/<uuid:draft_id>/check/", trials.draft_check, name="draft-check"),
    path("drafts/<uuid:draft_id>/try/", trials.draft_try, name="draft-try"),
    path("drafts/<uuid:draft_id>/trials/", trials.draft_trials, name="draft-trials"),
    path(
        "drafts/<uuid:draft_id>/judgements/", judgements.draft_judgements, name="draft-judgements"
    ),
    path(
        "tasks/<slug:slug>/versions/<int:number>/judgements/",
        judgements.version_judgements,
        name="version-judgements",
    ),
    path("checks/<uuid:check_id>/cancel/", trials.check_cancel, name="check-cancel"),
    path("curate/check/", bulk.tasks_check, name="tasks-check"),
    path("curate/reevaluate/", bulk.tasks_reevaluate, name="tasks-reevaluate"),
    path("verifiers/", verifiers.verifiers, name="verifiers"),
    path("verifiers/tunings/<uuid:tuning_id>/", verifiers.tuning, name="tuning"),
]
