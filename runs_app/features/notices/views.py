"""Pages of notices: read them, watch things, and say how to be told."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.db.models import Max, QuerySet
from django.forms import Form, ModelForm
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runs_app.core.errors import SubmissionError
from runs_app.core.forms import refusals
from runs_app.features.notices import services
from runs_app.features.notices.forms import WaysForm, WebhookForm
from runs_app.features.notices.models import (
    Delivery,
    Notice,
    NoticeSettings,
    Watch,
    Webhook,
)
from runs_app.models import Device, Run
from runs_app.optimiser.selectors.runs import find_run
from tasks_app.models import Task
from tasks_app.parameters import takes
from tasks_app.people import AuthenticatedRequest, Viewer
from tasks_app.selectors import find_task


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


_PAGE = 50


@login_required
@never_cache
@require_safe
@takes("page")
def notices(request: AuthenticatedRequest) -> HttpResponse:
    """What one was told, newest first, and what one watches."""
    rows = Notice.objects.filter(user=request.user)
    shown = NoticesPage(
        page=Paginator(rows, _PAGE).get_page(request.GET.get("page")),
        unread=rows.filter(read_at=None).count(),
        watches=Watch.objects.filter(user=request.user).select_related("task", "device", "run"),
    )
    return render(request, "notices/notices.html", vars(shown))


@login_required
@require_POST
def notices_read(request: AuthenticatedRequest) -> HttpResponse:
    """Mark all as read."""
    services.mark_read(user=request.user, now=timezone.now())
    return redirect("notices")


@login_required
@require_POST
def notice_open(request: AuthenticatedRequest, notice_id: int) -> HttpResponse:
    """Go to what a notice is about, and mark it as read."""
    notice = get_object_or_404(Notice, pk=notice_id, user=request.user)
    services.mark_read(user=request.user, now=timezone.now(), notice_id=notice.pk)
    return HttpResponseRedirect(notice.url)


@login_required
@require_POST
def watch(request: AuthenticatedRequest) -> HttpResponse:
    """Watch a task, a board or a run, or no longer."""
    task, device, run = _watched(request)
    on = request.POST.get("on") == "1"
    with refusals(request, "Not watched"):
        services.set_watch(
            user=request.user, on=on, now=timezone.now(), task=task, device=device, run=run
        )
    wanted = request.POST.get("next", "")
    here = {request.get_host()}
    if url_has_allowed_host_and_scheme(wanted, here, require_https=request.is_secure()):
        return HttpResponseRedirect(wanted)
    return redirect("notices")


def _watched(request: AuthenticatedRequest) -> tuple[Task | None, Device | None, Run | None]:
    """What the form names, as far as its sender may see it; raises `Http404`."""
    slug, device_slug = request.POST.get("task", ""), request.POST.get("device", "")
    task = find_task(slug, request.user) if slug else None
    if slug and task is None:
        raise Http404("There is no such task.")
    device = get_object_or_404(Device, pk=device_slug) if device_slug else None
    run = visible_run(request.POST.get("run", ""), request.user)
    return task, device, run


def visible_run(text: str, user: Viewer) -> Run | None:
    """The run of that id, None for no id; raises `Http404` for one that `user` may not see."""
    run = find_run(text, user) if text else None
    if text and run is None:
        raise Http404("There is no such run, or it is private.")
    return run


@login_required
@require_POST
def watch_end(request: AuthenticatedRequest, watch_id: int) -> HttpResponse:
    """Watch something no longer."""
    get_object_or_404(Watch, pk=watch_id, user=request.user).delete()
    return redirect("notices")


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def notice_settings(request: AuthenticatedRequest) -> HttpResponse:
    """By which ways one is told of what."""
    row = NoticeSettings.objects.filter(user=request.user).first()
    ways = WaysForm(request.POST or None, instance=row or NoticeSettings(user=request.user))
    if request.method == "POST" and ways.is_valid():
        services.set_ways(user=request.user, ways=ways.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("notice-settings")
    return _settings_page(request, ways, WebhookForm(), status=422 if ways.is_bound else 200)


def _settings_page(
    request: AuthenticatedRequest,
    ways: WaysForm,
    hook_form: WebhookForm,
    *,
    status: int = 200,
    secret: str = "",
) -> HttpResponse:
    hooks = list(Webhook.objects.filter(user=request.user).annotate(newest=Max("deliveries__pk")))
    newest = Delivery.objects.in_bulk([hook.newest for hook in hooks if hook.newest])
    page = SettingsPage(
        ways=ways,
        hook_form=hook_form,
        hooks=[HookRow(hook, newest.get(hook.newest or 0)) for hook in hooks],
        secret=secret,
        site_sends=settings.EMAIL_CONFIGURED,
        has_email=settings.EMAIL_CONFIGURED and bool(request.user.email),
    )
    return render(request, "notices/settings.html", vars(page), status=status)


@login_required
@never_cache
@require_POST
def webhooks(request: AuthenticatedRequest) -> HttpResponse:
    """Add an address that is told; its secret is shown this once."""
    form = WebhookForm(request.POST)
    row = NoticeSettings.objects.filter(user=request.user).first()
    ways = WaysForm(instance=row or NoticeSettings(user=request.user))
    if not form.is_valid():
        return _settings_page(request, ways, form, status=422)
    try:
        hook = services.add_webhook(
            user=request.user, url=form.cleaned_data["url"].strip(), now=timezone.now()
        )
    except SubmissionError as error:
        form.add_error("url", error.reason)
        return _settings_page(request, ways, form, status=422)
    return _settings_page(request, ways, WebhookForm(), secret=services.secret_of(hook))


@login_required
@require_POST
def webhook_test(request: AuthenticatedRequest, webhook_id: int) -> HttpResponse:
    """Send a message that says nothing, also to one that was stopped."""
    hook = get_object_or_404(Webhook, pk=webhook_id, user=request.user)
    now = timezone.now()
    Webhook.objects.filter(pk=hook.pk).update(stopped_reason="", failures=0)
    message = {"kind": "test", "text": "A test.", "url": services.absolute("/notices/"),
               "at": now.isoformat()}  # fmt: skip
    row = Delivery.objects.create(
        user=request.user, webhook=hook, payload=message, created_at=now, next_at=now
    )
    services.enqueue_delivery(row.pk)
    messages.success(request, "A test message is on its way.")
    return redirect("notice-settings")


@login_required
@require_POST
def webhook_delete(request: AuthenticatedRequest, webhook_id: int) -> HttpResponse:
    """Tell an address no longer."""
    get_object_or_404(Webhook, pk=webhook_id, user=request.user).delete()
    messages.success(request, "The webhook has been deleted.")
    return redirect("notice-settings")
