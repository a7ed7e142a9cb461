"""Addresses of drafts."""

from __future__ import annotations

from django.urls import path

from runs_app.features.curation.drafts import views

urlpatterns = [
    path("drafts/", views.drafts, name="drafts"),
    path("drafts/example/", views.draft_example, name="draft-example"),
    path("drafts/<uuid:draft_id>/", views.draft, name="draft"),
    path("drafts/<uuid:draft_id>/act/", views.draft_act, name="draft-act"),
    path("drafts/<uuid:draft_id>/download/", views.draft_download, name="draft-download"),
    path("tasks/<slug:slug>/versions/<int:number>/draft/", views.draft_copy, name="draft-copy"),
]
