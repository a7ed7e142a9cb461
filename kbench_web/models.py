"""Tokens of the API: only their digests are stored."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models

_ANOTHER = "create another one on your account page, /account/"


class ApiToken(models.Model):
    """A token that a program shows instead of a password."""

    class Scope(models.TextChoices):
        """What a token allows."""

        READ = "read", "Read"
        SUBMIT = "submit", "Submit, re-run and cancel"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)  # shown, so that its owner can tell it from others
    digest = models.CharField(max_length=64, unique=True)  # SHA-256; the token has 256 random bits
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"

    def refusal(self, now: datetime) -> str:
        """Why this token isn't valid at `now`; empty if it is."""
        if self.revoked_at is not None:
            return f"this token was revoked; {_ANOTHER}"
        if self.expires_at <= now:
            return f"this token expired on {self.expires_at:%Y-%m-%d}; {_ANOTHER}"
        if not self.user.is_active:
            return "this token's account is disabled"
        return ""


class IdempotencyKey(models.Model):
    """A request of the API that is done once, with its answer; kept for a day.

    A key belongs to the token that was shown: an agent with the token of a challenge entry must not
    get what its owner's other tokens were answered.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="idempotency_keys"
    )
    bearer = models.CharField(max_length=50, default="")  # such as "token 7"
    key = models.CharField(max_length=100)
    digest = models.CharField(max_length=64)  # SHA-256 of address and body
    status = models.PositiveSmallIntegerField(default=0)
    body = models.TextField(blank=True)
    location = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "bearer", "key"), name="idempotency_key_once"),
        )

    def __str__(self) -> str:
        return self.key


class SignUpPolicy(models.Model):
    """Who can create an account, as an admin has decided; the newest row counts.

    Without a row the setting KBENCH_SIGN_UP does.
    """

    class Mode(models.TextChoices):
        """Who may."""

        OPEN = "open", "Everybody"
        INVITATION = "invitation", "People with an invitation"
        CLOSED = "closed", "Nobody"

    mode = models.CharField(max_length=10, choices=Mode.choices)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField()

    class Meta:
        ordering = ("-decided_at", "-pk")

    def __str__(self) -> str:
        return self.get_mode_display()


class Invitation(models.Model):
    """A link with which one person may open an account; only its digest is stored."""

    note = models.CharField(max_length=100)  # whom it is for
    digest = models.CharField(max_length=64, unique=True)  # SHA-256 of 256 random bits
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return self.note
