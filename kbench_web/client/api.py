"""The API's view of the site itself: its version, and who asks."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from ninja import Field, Router, Schema

from kbench_web.client import wheel
from kbench_web.models import ApiToken
from runs_app.core.hooks import Bearer

router = Router(tags=["site"])


class SiteOut(Schema):
    """What this site is, and what the token that was shown allows."""

    version: str = Field(examples=["0.1.0+1f0c77a2"])
    client: str = Field(description="Path of the client's wheel, for `pip install`.")
    guide: str = Field(examples=["/agents.md"], description="Path of the agents' guide.")
    user: str = Field(description="Whose token you sent; empty without one.")
    scopes: list[str] = Field(description="What the token allows.", examples=[["read", "submit"]])
    entry: str = Field(description="In a challenge: the entry whose token you sent, or empty.")


@router.get("/site", response=SiteOut, summary="The site, and whose token this is")
def show_site(request: HttpRequest) -> dict[str, object]:
    """Answer with the site's version; with a token also with its owner and scopes."""
    shown = getattr(request, "auth", None)
    token = shown if isinstance(shown, ApiToken | Bearer) else None
    return {
        "version": wheel.version(),
        "client": reverse("client-wheel", args=[wheel.name()]),
        "guide": reverse("agents-guide"),
        "user": token.user.get_username() if token else "",
        "scopes": list(token.scopes) if token else [],
        "entry": str(token.pk) if isinstance(token, Bearer) else "",
    }
