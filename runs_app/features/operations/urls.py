"""Addresses of the pages on which admins steer the site."""

from __future__ import annotations

from django.urls import path

from runs_app.features.operations import glance, views

urlpatterns = [
    path("metrics", glance.metrics, name="metrics"),
    path("operate/", views.operate, name="operate"),
    path(
        "operate/announcements/<int:announcement_id>/end/",
        views.announcement_end,
        name="announcement-end",
    ),
    path("operate/runners/<int:runner_id>/", views.runner_steer, name="runner-steer"),
    path("operate/runners/<int:runner_id>/sensors/", views.runner_sensors, name="runner-sensors"),
    path("operate/queues/<slug:device_slug>/empty/", views.queue_empty, name="queue-empty"),
    path("operate/runners/add/", views.runner_add, name="runner-add"),
    path("operate/tokens/<int:token_id>/revoke/", views.runner_revoke, name="runner-revoke"),
    path("operate/tokens/<int:token_id>/clear/", views.runner_clear, name="runner-clear"),
]
