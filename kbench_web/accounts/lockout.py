"""Wrong passwords from one address, for whatever names; django-axes counts those for one name."""

from __future__ import annotations

from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum


class SignInHandler(AxesDatabaseHandler):  # type: ignore[misc]
    """Locks an address out that tries a few passwords for each of many names.

    A right password forgets the wrong ones for its name alone, so nobody frees an address by
    signing in to an account of their own.
    """

    def get_failures(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        """Wrong passwords for this name from this address; too many if the address had too many."""
        failures: int = super().get_failures(request, credentials)
        recent = AccessAttempt.objects.filter(
            ip_address=request.axes_ip_address, attempt_time__gte=get_cool_off_threshold(request)
        )
        total = recent.aggregate(total=Sum("failures_since_start"))["total"] or 0
        if total < settings.SIGN_IN_FAILURES_PER_ADDRESS:
            return failures
        request.locked_out_by_address = True  # the page says so
        return max(failures, settings.AXES_FAILURE_LIMIT)
