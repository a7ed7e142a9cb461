"""Address of the audit log."""

from __future__ import annotations

from django.urls import path

from kbench_web.audit_log import views

urlpatterns = [
    path("curate/history/", views.audit_log, name="audit-log"),
]
