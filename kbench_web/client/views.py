"""What programs get, and those who write them: the wheel, a guide, the API by example."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe

from gpu_runner.data.flags import FIXED
from gpu_runner.data.verdict import Language
from kbench_web.client import wheel
from runs_app.core.queue.devices import devices
from runs_app.core.work.environments import device_facts
from runs_app.submitting.quota import BUILDS_A_SUBMISSION
from tasks_app.documents import documents


@dataclass(frozen=True, kw_only=True)
class ApiPage:
    """This site's address, the client's, and how often one may ask and submit."""

    host: str
    wheel: str
    per_minute: int
    per_day: int


@dataclass(frozen=True, kw_only=True)
class GuidePage(ApiPage):
    """The same with the client's version, how many submissions of one may wait, and the devices.

    builds_waiting, builds_per_day: limits of compile checks, which count apart. cpp_flags,
    cuda_flags: what every build gets. devices: each with what is known of its host.
    """

    version: str
    waiting: int
    builds_waiting: int
    builds_per_day: int
    cpp_flags: str
    cuda_flags: str
    devices: list[tuple[str, list[str]]]


_ROBOTS = """User-agent: *
Disallow: /admin/
Disallow: /account/
Disallow: /search/
Disallow: /compare/
Disallow: /leaderboard/cite/
"""
log = logging.getLogger(__name__)


@require_safe
def download(request: HttpRequest, name: str) -> HttpResponseBase:
    """The wheel of this version; another version's name is not found."""
    if name != wheel.name():
        raise Http404(f"this site offers {wheel.name()}")
    try:
        path = wheel.wheel()
    except (wheel.WheelError, OSError) as error:
        log.exception("the client cannot be built")
        return HttpResponse(f"the client cannot be built: {error}\n", "text/plain", status=503)
    return FileResponse(path.open("rb"), content_type="application/zip", filename=name)


@require_safe
def notebook(request: HttpRequest) -> HttpResponseBase:
    """A notebook that uses the client as a library."""
    path = Path(settings.BASE_DIR) / "docs" / "kbench.ipynb"
    return FileResponse(
        path.open("rb"), content_type="application/x-ipynb+json", filename=path.name
    )


@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    """The guide for agents, as text, with this site's addresses."""
    page = GuidePage(
        **vars(_api_page(request)),
        version=wheel.version(),
        waiting=settings.MAX_WAITING_PER_USER,
        builds_waiting=settings.MAX_WAITING_PER_USER * BUILDS_A_SUBMISSION,
        builds_per_day=settings.MAX_SUBMISSIONS_PER_DAY * BUILDS_A_SUBMISSION,
        cpp_flags=" ".join(FIXED[Language.CPP]),
        cuda_flags=" ".join(FIXED[Language.CUDA]),
        devices=[(device.slug, device_facts(device)) for device in devices()],
    )
    text = render_to_string("kbench_web/agents.md", vars(page), request)
    return HttpResponse(text, content_type="text/markdown; charset=utf-8")


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """Where language models find what this site has for them (llmstxt.org)."""
    guides = [document for document in documents() if "/" not in document.name]
    page = {"host": _api_page(request).host, "guides": guides}
    text = render_to_string("kbench_web/llms.txt", page, request)
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    """What crawlers leave alone: forms and searches. Boards, tasks and results are for all."""
    del request
    return HttpResponse(_ROBOTS, content_type="text/plain; charset=utf-8")


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """The API by example."""
    return render(request, "kbench_web/api_docs.html", vars(_api_page(request)))


def _api_page(request: HttpRequest) -> ApiPage:
    return ApiPage(
        host=request.build_absolute_uri("/").rstrip("/"),
        wheel=request.build_absolute_uri(quote(reverse("client-wheel", args=[wheel.name()]))),
        per_minute=settings.API_REQUESTS_PER_MINUTE,
        per_day=settings.MAX_SUBMISSIONS_PER_DAY,
    )
