"""Addresses of the WebSockets."""

from __future__ import annotations

from django.urls import path

from runs_app.consumers import EvaluationConsumer, QueueConsumer, RunConsumer

websocket_urlpatterns = [
    path("ws/evaluations/<uuid:evaluation_id>/", EvaluationConsumer.as_asgi()),
    path("ws/runs/<uuid:run_id>/", RunConsumer.as_asgi()),
    path("ws/queue/", QueueConsumer.as_asgi()),
]
