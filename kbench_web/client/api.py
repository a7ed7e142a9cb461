"""The API's view of the site itself: its version, and who asks."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from ninja import Field, Router, Schema

from kbench_web.client import wheel
from kbench_web.models import ApiToken
from runs_app.core.hooks import Bearer
from runs_app.submitting.quota import quota

router = Router(tags=["site"])


class QuotaOut(Schema):
    """How many submissions a person has left."""

    per_day: int = Field(description="Maximum number of submissions and re-runs in 24 hours.")
    left: int = Field(description="How many submissions and re-runs are left now.")
    resets_at: datetime = Field(description="When the oldest counted submission stops counting.")
    waiting: int = Field(
        description="Evaluations that are waiting or running, excluding compile checks."
    )
    waiting_limit: int = Field(
        description="Maximum number of evaluations waiting or running at once."
    )


class SiteOut(Schema):
    """About this site, and what the token that you sent allows."""

    version: str = Field(examples=["0.1.0+1f0c77a2"])
    client: str = Field(description="Path of the client's wheel, for `pip install`.")
    guide: str = Field(examples=["/agents.md"], description="Path of the agents' guide.")
    user: str = Field(description="Whose token you sent; empty without one.")
    scopes: list[str] = Field(description="What the token allows.", examples=[["read", "submit"]])
    entry: str = Field(
        description="In a challenge, the entry whose token you sent; otherwise empty."
    )
    quota: QuotaOut | None = Field(
        description="A person's quota; a challenge entry has its own budget instead."
    )


@router.get("/site", response=SiteOut, summary="The site, and whose token this is")
def show_site(request: HttpRequest) -> dict[str, object]:
    """Return the site's version and, if you send a token, its owner and scopes."""
    shown = getattr(request, "auth", None)
    token = shown if isinstance(shown, ApiToken | Bearer) else None
    return {
        "version": wheel.version(),
        "client": reverse("client-wheel", args=[wheel.name()]),
        "guide": reverse("agents-guide"),
        "user": token.user.get_username() if token else "",
        "scopes": list(token.scopes) if token else [],
        "entry": str(token.pk) if isinstance(token, Bearer) else "",
        "quota": _quota(token.user) if isinstance(token, ApiToken) else None,
    }


def _quota(user: User) -> dict[str, object]:
    used = quota(user, timezone.now())
    return {
        "per_day": used.daily_limit,
        "left": used.remaining,
        "resets_at": used.resets_at,
        "waiting": used.waiting,
        "waiting_limit": used.waiting_limit,
    }
