"""Addresses of verifiers and their tuning."""

from __future__ import annotations

from django.urls import path

from runs_app.verifiers import views

urlpatterns = [
    path("verifiers/", views.verifiers, name="verifiers"),
    path("verifiers/tunings/<uuid:tuning_id>/", views.tuning, name="tuning"),
]
