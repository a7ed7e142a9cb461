"""What the pages of notices show."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.paginator import Page
from django.db.models import QuerySet
from django.forms import Form, ModelForm

from runs_app.features.notices.models import Delivery, Notice, NoticeSettings, Watch, Webhook


@dataclass(frozen=True, kw_only=True)
class NoticesPage:
    """What a person was told, and what they watch."""

    page: Page[Notice]
    unread: int
    watches: QuerySet[Watch]


@dataclass(frozen=True)
class HookRow:
    """A webhook with its latest message."""

    hook: Webhook
    last: Delivery | None


@dataclass(frozen=True, kw_only=True)
class SettingsPage:
    """How a person gets notices; `secret` belongs to a new webhook and is shown once."""

    ways: ModelForm[NoticeSettings]
    hook_form: Form
    hooks: list[HookRow]
    secret: str
    site_sends: bool
    has_email: bool
