"""Addresses of notices, of what is watched, and of feeds."""

from __future__ import annotations

from django.urls import path

from runs_app.features.notices import feeds, views

urlpatterns = [
    path("notices/", views.notices, name="notices"),
    path("notices/read/", views.notices_read, name="notices-read"),
    path("notices/<int:notice_id>/open/", views.notice_open, name="notice-open"),
    path("notices/watch/", views.watch, name="watch"),
    path("notices/watch/<int:watch_id>/end/", views.watch_end, name="watch-end"),
    path("notices/settings/", views.notice_settings, name="notice-settings"),
    path("notices/webhooks/", views.webhooks, name="webhooks"),
    path("notices/webhooks/<int:webhook_id>/test/", views.webhook_test, name="webhook-test"),
    path("notices/webhooks/<int:webhook_id>/delete/", views.webhook_delete, name="webhook-delete"),
    path("feeds/tasks/<slug:slug>.atom", feeds.TaskFeed(), name="task-feed"),
    path("feeds/boards/<slug:device_slug>.atom", feeds.BoardFeed(), name="board-feed"),
    path("feeds/runs/<uuid:run_id>.atom", feeds.RunFeed(), name="run-feed"),
]
