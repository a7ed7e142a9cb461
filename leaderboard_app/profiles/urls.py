"""Addresses of those who write kernels."""

from __future__ import annotations

from django.urls import path

from leaderboard_app.profiles import views

urlpatterns = [
    path("agents/<int:agent_id>/", views.agent_detail, name="agent"),
    path("language-models/", views.language_model_list, name="language-models"),
    path(
        "language-models/<int:language_model_id>/",
        views.language_model_detail,
        name="language-model",
    ),
    path(
        "language-models/<int:language_model_id>/test/",
        views.language_model_test,
        name="language-model-test",
    ),
]
