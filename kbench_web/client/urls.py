"""Addresses for programs, beside the API."""

from __future__ import annotations

from django.urls import path

from kbench_web.client.views import agents, download, notebook

urlpatterns = [
    path("agents.md", agents, name="agents-guide"),
    path("client/kbench.ipynb", notebook, name="client-notebook"),
    path("client/<str:name>", download, name="client-wheel"),
]
