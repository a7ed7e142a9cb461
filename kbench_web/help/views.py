"""Documents as pages, and the search."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kbench_web.help.page import shelves
from kbench_web.help.search import LONGEST, Hit
from kbench_web.help.search import search as find
from tasks_app.documents import document_text as text_of
from tasks_app.documents import find_document
from tasks_app.parameters import takes

_SUGGESTED = 5


@dataclass(frozen=True, kw_only=True)
class SearchPage:
    """What a question finds, or why it is not asked."""

    question: str
    hits: list[Hit]
    refusal: str


@require_safe
def document_list(request: HttpRequest) -> HttpResponse:
    """All documents, by what one needs them for."""
    return render(request, "kbench_web/help/documents.html", {"shelves": shelves()})


@require_safe
def document(request: HttpRequest, name: str) -> HttpResponse:
    """One document, with its sections beside it."""
    found = find_document(name)
    if found is None:
        raise Http404(f"There is no document {name}.")
    context = {"document": found, "shelves": [shelf for shelf in shelves() if not shelf.folded]}
    return render(request, "kbench_web/help/document.html", context)


@require_safe
def document_text(request: HttpRequest, name: str) -> HttpResponse:
    """One document as Markdown, for programs."""
    found = text_of(name)
    if found is None:
        raise Http404(f"There is no document {name}.")
    return HttpResponse(found, content_type="text/markdown; charset=utf-8")


@require_safe
@takes("q")
def search(request: HttpRequest) -> HttpResponse:
    """What a question finds."""
    question = request.GET.get("q", "").strip()
    refusal = _refusal(question)
    hits = [] if refusal or not question else find(question, request.user)
    shown = SearchPage(question=question[:LONGEST], hits=hits, refusal=refusal)
    status = 400 if refusal else 200
    return render(request, "kbench_web/help/search.html", vars(shown), status=status)


@require_safe
@takes("q")
def suggestions(request: HttpRequest) -> HttpResponse:
    """The same for the palette, as JSON: a few of each kind; pages alone for an empty question."""
    question = request.GET.get("q", "").strip()
    if refusal := _refusal(question):
        return JsonResponse({"detail": refusal}, status=400)
    hits = find(question, request.user, _SUGGESTED)
    return JsonResponse({"hits": [asdict(hit) for hit in hits]})


def _refusal(question: str) -> str:
    """Why a question is not asked; empty if it is."""
    return f"A search has at most {LONGEST} characters." if len(question) > LONGEST else ""
