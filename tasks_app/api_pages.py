"""Lists of the API, a page at a time: the address of the next page stands in the header `Link`."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

MOST_LISTED = 500
"""Items of a page, at most."""


def link_next(request: HttpRequest, response: HttpResponse, after: object) -> None:
    """Say where the next page is: the same address with `after`, as RFC 8288 has it."""
    asked = {name: value for name, value in request.GET.items() if name != "after"}
    address = f"{request.path}?{urlencode({**asked, 'after': str(after)})}"
    response["Link"] = f'<{address}>; rel="next"'
