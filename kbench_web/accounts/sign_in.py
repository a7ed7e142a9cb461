"""Signing in and up, and passwords: django-allauth's views with this site's pages."""

from __future__ import annotations

from dataclasses import dataclass

from allauth.account import views as allauth
from allauth.account.forms import ResetPasswordForm
from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from kbench_web.accounts.adapter import sign_up_closed
from kbench_web.accounts.forms import SignInForm, SignUpForm
from kbench_web.accounts.invitations import may_sign_up
from kbench_web.accounts.sessions import end_other_sessions

_FORM = "kbench_web/accounts/form.html"


@dataclass(frozen=True, kw_only=True)
class SaidPage:
    """A message, and a link that leads on."""

    title: str
    lede: str
    back: str
    back_words: str


class Refusing:
    """Answers 422 where a form is wrong, as all pages of the site do."""

    def form_invalid(self, form: object) -> HttpResponse:
        """The page with what is wrong."""
        response: HttpResponse = super().form_invalid(form)  # type: ignore[misc]
        response.status_code = 422
        return response


class SignInView(allauth.LoginView):  # type: ignore[misc]
    """A user name and a password; a wrong one is counted by django-axes."""

    template_name = "kbench_web/accounts/sign_in.html"
    form_class = SignInForm

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """Whether there is a way to an account beside."""
        open_to = may_sign_up(self.request, timezone.now())
        context: dict[str, object] = super().get_context_data(**kwargs)
        return context | {"open": open_to, "process": "login"}


class SignUpView(Refusing, allauth.SignupView):  # type: ignore[misc]
    """A new account, if this visitor may open one."""

    template_name = "kbench_web/accounts/sign_up.html"
    form_class = SignUpForm

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        """Store the account; an invitation may be gone by now."""
        try:
            response: HttpResponse = super().form_valid(form)
        except ImmediateHttpResponse as refusal:
            response = refusal.response
        return response

    def closed(self) -> HttpResponse:
        """Why this visitor may not."""
        return sign_up_closed(self.request)


class PasswordChangeView(Refusing, allauth.PasswordChangeView):  # type: ignore[misc]
    """Another password; all other sessions end."""

    template_name = _FORM
    success_url = reverse_lazy("account")
    extra_context = {"title": "Change your password", "button": "Change the password"}  # noqa: RUF012

    def form_valid(self, form: object) -> HttpResponse:
        """Store it."""
        response: HttpResponse = super().form_valid(form)
        end_other_sessions(self.request)
        return response


class PasswordSetView(Refusing, allauth.PasswordSetView):  # type: ignore[misc]
    """A first password for an account that signed in elsewhere until now."""

    template_name = _FORM
    success_url = reverse_lazy("account")
    extra_context = {"title": "Set a password", "button": "Set the password"}  # noqa: RUF012


class ReauthenticateView(Refusing, allauth.ReauthenticateView):  # type: ignore[misc]
    """The password once more, before something that matters."""

    template_name = _FORM
    extra_context = {"title": "Confirm your password", "button": "Continue"}  # noqa: RUF012


class EmailResetForm(ResetPasswordForm):  # type: ignore[misc]
    """The e-mail address of an account."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.fields["email"].label = "E-mail address"
        self.fields["email"].widget.attrs.pop("placeholder", None)


class EmailView(allauth.EmailView):  # type: ignore[misc]
    """The e-mail addresses of an account, where the site sends any."""

    def dispatch(self, request: HttpRequest, *arguments: object, **options: object) -> HttpResponse:
        """Nothing is stored where nothing can be sent."""
        if request.user.is_authenticated and not settings.EMAIL_CONFIGURED:
            return render(request, "kbench_web/accounts/no_email.html", status=404)
        response: HttpResponse = super().dispatch(request, *arguments, **options)
        return response


class PasswordResetView(Refusing, allauth.PasswordResetView):  # type: ignore[misc]
    """A link by e-mail; without e-mail, who makes one."""

    template_name = _FORM
    form_class = EmailResetForm
    extra_context = {  # noqa: RUF012
        "title": "Reset your password",
        "button": "Send the link",
        "lede": "If an account has this address, we'll send it a link to choose a new password.",
    }

    def dispatch(self, request: HttpRequest, *arguments: object, **options: object) -> HttpResponse:
        """Nothing is asked for where nothing can be sent."""
        if not settings.EMAIL_CONFIGURED:
            return render(request, "kbench_web/accounts/no_email.html")
        response: HttpResponse = super().dispatch(request, *arguments, **options)
        return response


class ResetFromKeyView(Refusing, allauth.PasswordResetFromKeyView):  # type: ignore[misc]
    """A new password, with the link that an e-mail or an admin gave."""

    template_name = "kbench_web/accounts/reset_from_key.html"
    success_url = reverse_lazy("account_reset_password_from_key_done")
    reset_user: User | None

    def form_valid(self, form: object) -> HttpResponse:
        """Store it, and end all sessions of the account."""
        response: HttpResponse = super().form_valid(form)
        if self.reset_user is not None:
            end_other_sessions(self.request, self.reset_user)
        return response


@never_cache
@require_safe
def reset_sent(request: HttpRequest) -> HttpResponse:
    """Say that an e-mail is on its way."""
    lede = "If an account has this address, we sent it a link to choose a new password."
    return _said(request, "Check your e-mail", lede, ("login", "Back to sign-in"))


@never_cache
@require_safe
def reset_done(request: HttpRequest) -> HttpResponse:
    """The new password counts."""
    if request.user.is_authenticated:
        messages.success(request, "Your password has been changed.")
        return redirect("account")
    lede = "All sessions of the account have ended. Sign in with your new password."
    return _said(request, "Password changed", lede, ("login", "Sign in"))


@never_cache
@require_safe
def inactive(request: HttpRequest) -> HttpResponse:
    """The account was deactivated by an admin."""
    lede = "A site admin deactivated it. Ask an admin why, or ask to have it reactivated."
    return _said(request, "This account is deactivated", lede, ("home", "Home"), status=403)


def _said(
    request: HttpRequest, title: str, lede: str, back: tuple[str, str], *, status: int = 200
) -> HttpResponse:
    """A message, and a link that leads on."""
    page = SaidPage(title=title, lede=lede, back=reverse(back[0]), back_words=back[1])
    return render(request, "kbench_web/accounts/said.html", vars(page), status=status)
