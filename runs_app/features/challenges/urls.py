"""Addresses of challenges and of their entries."""

from __future__ import annotations

from django.urls import path

from runs_app.features.challenges import views

urlpatterns = [
    path("challenges/", views.challenges, name="challenges"),
    path("challenges/new/", views.challenge_new, name="challenge-new"),
    path("challenges/<slug:slug>/", views.challenge, name="challenge"),
    path("challenges/<slug:slug>/end/", views.challenge_end, name="challenge-end"),
    path("entries/<uuid:entry_id>/", views.entry, name="entry"),
    path("entries/<uuid:entry_id>/finish/", views.entry_finish, name="entry-finish"),
    path("entries/<uuid:entry_id>/transcript/", views.entry_transcript, name="entry-transcript"),
]
