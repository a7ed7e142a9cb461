"""What all parts of the API have in common: a refusal, and lists that are told page by page.

The address of the next page stands in the header `Link`.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from ninja import Field, Schema

MOST_LISTED = 500
"""Items of a page, at most."""


class Fault(Schema):
    """A problem with a request."""

    field: str = Field(examples=["language"], description="Empty if no single field is at fault.")
    reason: str = Field(examples=["'rust' is not one of cuda, cpp"])


def link_next(request: HttpRequest, response: HttpResponse, after: object) -> None:
    """Put the address of the next page, which differs in `after`, into the `Link` header."""
    asked = {name: value for name, value in request.GET.items() if name != "after"}
    address = f"{request.path}?{urlencode({**asked, 'after': str(after)})}"
    response["Link"] = f'<{address}>; rel="next"'
