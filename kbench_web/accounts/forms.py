"""Forms about accounts and their tokens."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User

from kbench_web.models import ApiToken

_LIFETIMES = ((30, "30 days"), (90, "90 days"), (365, "1 year"))


class SignUpForm(UserCreationForm):  # type: ignore[type-arg]
    """A name and a password are all that an account needs."""

    class Meta(UserCreationForm.Meta):
        """The name is what stands on the leaderboard."""

        model = User
        fields = ("username",)


class TokenForm(forms.Form):
    """What a new token is called, what it allows, and how long it lasts."""

    name = forms.CharField(max_length=100, error_messages={"required": "Name its use."})
    scope = forms.ChoiceField(
        choices=[("submit", "Read and submit"), ("read", "Read only")], initial="submit"
    )
    days = forms.TypedChoiceField(choices=_LIFETIMES, coerce=int, initial=90)

    @property
    def scopes(self) -> list[str]:
        """Scopes of the new token."""
        read = ApiToken.Scope.READ.value
        submit = ApiToken.Scope.SUBMIT.value
        return [read, submit] if self.cleaned_data["scope"] == submit else [read]

    @property
    def lifetime(self) -> timedelta:
        """How long the new token lasts."""
        return timedelta(days=self.cleaned_data["days"])
