"""Sign-in, to the site and to the admin, with a limit on wrong passwords."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from kbench_web.rate_limit import count, ends_in_s

WRONG_PASSWORDS = 10
WINDOW_S = 600


class SignInForm(AuthenticationForm):
    """Django's form; past the limit not even the right password is looked at.

    A name and an address are counted together, so that nobody can lock others out from elsewhere.
    """

    def clean(self) -> dict[str, Any]:
        """Refuse for a while after too many failures; count another one."""
        key = f"sign-in {self._address()} {self.cleaned_data.get('username', '')}"
        if count(key, WINDOW_S, by=0) >= WRONG_PASSWORDS:
            minutes = -(-ends_in_s(WINDOW_S) // 60)
            raise ValidationError(
                f"{WRONG_PASSWORDS} wrong passwords for this name; try again in {minutes} min",
                code="too_many",
            )
        try:
            return super().clean()
        except ValidationError:
            count(key, WINDOW_S)
            raise

    def _address(self) -> str:
        return str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""


class AdminSignInForm(SignInForm, AdminAuthenticationForm):
    """The same before the admin, which lets only staff in."""
