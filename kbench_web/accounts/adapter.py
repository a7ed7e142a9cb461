"""What django-allauth asks this site: who may sign up, and under which names."""

from __future__ import annotations

import logging
import smtplib

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from kbench_web.accounts import invitations
from kbench_web.accounts.names import name_refusal
from kbench_web.proxies import client_address

log = logging.getLogger(__name__)

_NOBODY = "::"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts with a password."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Whether this visitor may open an account."""
        invitations.note_invitation(request)
        return invitations.may_sign_up(request, timezone.now())

    def clean_username(self, username: str, **options: object) -> str:
        """The name, if nobody has it; raises `ValidationError`."""
        name: str = super().clean_username(username, **options)
        if not options.get("shallow") and (refusal := name_refusal(name)):
            raise ValidationError(refusal)
        return name

    def save_user(self, request: HttpRequest, user: User, form: object, **options: object) -> User:
        """Store the new account, and use up its invitation with it."""
        try:
            with transaction.atomic():
                saved: User = super().save_user(request, user, form, **options)
                invitations.use_invitation(request, saved, timezone.now())
                return saved
        except invitations.InvitationGoneError:
            raise ImmediateHttpResponse(sign_up_closed(request)) from None

    def send_mail(self, template_prefix: str, email: str, context: dict[str, object]) -> None:
        """Send an e-mail; a mail server that is away costs nobody the page, and is logged."""
        if not settings.EMAIL_CONFIGURED:
            return
        try:
            super().send_mail(template_prefix, email, context)
        except (smtplib.SMTPException, OSError) as error:
            log.error("an e-mail (%s) was not sent: %s", template_prefix, error)

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address that the rest of the site counts by."""
        return client_address(request) or _NOBODY


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Accounts that sign in elsewhere."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        """The same rule as for accounts with a password."""
        return invitations.may_sign_up(request, timezone.now())

    def get_app(self, request: HttpRequest, *arguments: object, **options: object) -> object:
        """How this site is known at another one; raises `Http404` where it is at none."""
        try:
            return super().get_app(request, *arguments, **options)
        except SocialApp.DoesNotExist:
            raise Http404("You can't sign in here through that site.") from None

    def populate_user(
        self, request: HttpRequest, sociallogin: object, data: dict[str, object]
    ) -> User:
        """The new account, without the names that the other site tells: people choose their own."""
        shown = {key: data[key] for key in ("username", "email") if data.get(key)}
        user: User = super().populate_user(request, sociallogin, shown)
        user.first_name = user.last_name = ""
        return user


def sign_up_closed(request: HttpRequest) -> HttpResponse:
    """The page that says why nobody, or not this visitor, may open an account."""
    context = {"mode": invitations.sign_up_mode()}
    return render(request, "kbench_web/accounts/sign_up_closed.html", context, status=403)
