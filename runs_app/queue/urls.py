"""Addresses of the queue."""

from __future__ import annotations

from django.urls import path

from runs_app.queue import views

urlpatterns = [
    path("queue/", views.queue, name="queue"),
]
