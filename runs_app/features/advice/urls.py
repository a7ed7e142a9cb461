"""Addresses of what language models say of tasks."""

from __future__ import annotations

from django.urls import path

from runs_app.features.advice import views

urlpatterns = [
    path("drafts/<uuid:draft_id>/judgements/", views.draft_judgements, name="draft-judgements"),
    path(
        "tasks/<slug:slug>/versions/<int:number>/judgements/",
        views.version_judgements,
        name="version-judgements",
    ),
]
