"""Which parameters the address of a page may have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

View = Callable[..., HttpResponse]


def takes(*names: str) -> Callable[[View], View]:
    """Answer 400 to an address with a parameter that the page does not know.

    A filter that is spelt wrong would else show everything, as if it had been meant.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            unknown = next((name for name in request.GET if name not in names), None)
            if unknown is None:
                return view(request, *args, **kwargs)
            context = {"unknown": unknown, "known": names}
            return render(request, "tasks_app/unknown_parameter.html", context, status=400)

        return checked

    return decorate
