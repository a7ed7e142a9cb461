"""Forms about accounts and their tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from allauth.account.forms import LoginForm
from allauth.account.forms import SignupForm as AllauthSignUpForm
from django import forms
from django.contrib.auth.models import User

from kbench_web.models import ApiToken

_LIFETIMES = ((30, "30 days"), (90, "90 days"), (365, "1 year"))


class SignInForm(LoginForm):  # type: ignore[misc]
    """A user name and a password."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        name, password = self.fields["login"], self.fields["password"]
        name.label, password.help_text = "User name", ""
        name.widget.attrs |= {"autocapitalize": "none", "autofocus": True}
        for field in (name, password):
            field.widget.attrs.pop("placeholder", None)


class SignUpForm(AllauthSignUpForm):  # type: ignore[misc]
    """A name and a password are all that an account needs; e-mail where the site sends any."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        labels = {
            "username": ("User name", "Letters, digits and @ . + - _"),
            "email": (
                "E-mail (optional)",
                "Nobody else sees it. You can use it to reset your password.",
            ),
            "password1": (
                "Password",
                "At least 8 characters, not only digits, and not a common password.",
            ),
            "password2": ("Password again", ""),
        }
        for name, (label, text) in labels.items():
            if field := self.fields.get(name):
                field.label, field.help_text = label, text
                field.widget.attrs.pop("placeholder", None)
        self.fields["username"].widget.attrs |= {"autocapitalize": "none", "autofocus": True}

    def clean(self) -> dict[str, Any]:
        """Two different passwords are told even if the first one is refused, too."""
        cleaned: dict[str, Any] = super().clean()
        first, second = (self.data.get(self.add_prefix(f"password{n}")) for n in (1, 2))
        if first and second and first != second and "password2" not in self.errors:
            self.add_error("password2", "The two passwords don't match.")
        return cleaned


class NameForm(forms.Form):
    """The name under which everybody sees a person."""

    name = forms.CharField(
        max_length=100,
        required=False,
        label="Display name",
        help_text="Leave empty to use your user name. Your existing results will show the new name,"
        " too.",
    )


class DeletionForm(forms.Form):
    """A proof that whoever deletes an account is its owner."""

    proof = forms.CharField(max_length=200)

    def __init__(self, user: User, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._user = user
        field = self.fields["proof"]
        if user.has_usable_password():
            field.label = "Your password"
            field.widget = forms.PasswordInput(attrs={"autocomplete": "current-password"})
        else:
            field.label = f"Type your user name, {user.get_username()}"

    def clean_proof(self) -> str:
        """The password, or the user name of who has none."""
        proof: str = self.cleaned_data["proof"]
        if self._user.has_usable_password():
            if not self._user.check_password(proof):
                raise forms.ValidationError("That isn't your password.")
        elif proof != self._user.get_username():
            raise forms.ValidationError("That isn't your user name.")
        return proof


class TokenForm(forms.Form):
    """What a new token is called, what it allows, and how long it lasts."""

    name = forms.CharField(
        max_length=100,
        error_messages={"required": "Enter a name, such as the program that will use the token."},
    )
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
