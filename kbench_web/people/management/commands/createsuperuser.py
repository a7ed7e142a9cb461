"""Create an admin account, as Django does, with an entry of the audit log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.models import User
from django.utils import timezone

from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry


class Command(createsuperuser.Command):
    """`manage.py createsuperuser`."""

    help = "Create an admin account, with an entry of the audit log."

    def handle(self, *args: Any, **options: Any) -> None:
        before = set(User.objects.values_list("pk", flat=True))
        super().handle(*args, **options)
        for made in User.objects.filter(is_superuser=True).exclude(pk__in=before):
            details = {"created": "manage.py createsuperuser", "admin": True}
            kind, name = AuditEntry.Kind.ACCOUNT, made.get_username()
            add_entry(kind, now=timezone.now(), about=name, details=details)
