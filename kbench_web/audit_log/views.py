"""The page of the audit log."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from tasks_app.disclosure import admin_of
from tasks_app.models import AuditEntry
from tasks_app.pages import audit_page
from tasks_app.pages.audit_page import AuditLine, audit_lines
from tasks_app.parameters import Choice, query_of, read_filters, takes
from tasks_app.people import AuthenticatedRequest
from tasks_app.spreadsheet import as_csv

_ENTRIES = 100


@dataclass(frozen=True, kw_only=True)
class AuditLogPage:
    """The entries that fit the filters."""

    page: Page[AuditEntry]
    entries: list[AuditLine]
    filters: dict[str, str]
    address: str
    choices: list[Choice]


@login_required
@never_cache
@require_safe
@takes(*audit_page.FILTERS, "format", "page")
def audit_log(request: AuthenticatedRequest) -> HttpResponse:
    """All entries, newest first; with `format=csv` as a file."""
    admin_of(request, "only admins can read the audit log")
    filters = read_filters(request.GET, audit_page.FILTERS)
    entries = audit_page.audit_entries(filters)
    if request.GET.get("format") == "csv":
        text = as_csv(audit_page.records(entries), audit_page.RECORD_FIELDS)
        response = HttpResponse(text, content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="kbench-audit-log.csv"'
        return response
    page = Paginator(entries, _ENTRIES).get_page(request.GET.get("page"))
    shown = AuditLogPage(
        page=page,
        entries=audit_lines(page, with_files=True, grouped=False),
        filters=filters,
        address=query_of(filters),
        choices=audit_page.choices(filters),
    )
    return render(request, "kbench_web/audit_log/audit_log.html", vars(shown))
