"""The page on which a kernel is written, submitted and watched, and the parts that it asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from csp.constants import NONCE
from csp.decorators import csp_update
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect, replace_url, retarget

from gpu_runner.data.solution import code_of
from gpu_runner.data.static import usual_kind
from gpu_runner.data.verdict import Direction, Language, Mode
from runs_app.core.errors import SubmissionError
from runs_app.core.hooks import Bearer, bearer_of
from runs_app.core.queue.devices import devices
from runs_app.core.queue.loads import loads
from runs_app.core.queue.selectors import wait_of_people
from runs_app.core.work.access import (
    asked_for,
    author_names,
    get_submission,
    standing_of,
    visible_evaluations,
)
from runs_app.core.work.environments import cpu_in_short
from runs_app.core.work.estimate import estimates
from runs_app.models import Device, Submission
from runs_app.submitting.live import Live, live_view
from runs_app.submitting.quota import quota
from runs_app.submitting.remarks import remark_on
from runs_app.submitting.services import rerun
from runs_app.submitting.services import submit as submit_kernel
from runs_app.submitting.workbench import page
from runs_app.submitting.workbench.attempts import Attempts, attempts
from runs_app.submitting.workbench.forms import MODES, SubmissionForm, refusal
from tasks_app.models import Task, TaskVersion
from tasks_app.parameters import takes
from tasks_app.people import Viewer
from tasks_app.selectors import directions_of, evaluable_tasks, find_task

_FOLDER = "runs_app/workbench"
_LANGUAGES = {".cu": "cuda", ".py": "python"}
"""Of what is begun from, by its suffix; what is C++ goes to the device that comes first."""


@never_cache
@vary_on_headers("HX-Request")
@require_http_methods(["GET", "HEAD", "POST"])
@csp_update({"style-src": [NONCE]})  # the editor writes its styles into an element of its own
@takes("task", "device", "direction", "mode", "submission", "kernel", "bearer")
def submit(request: HttpRequest) -> HttpResponse:
    """Show the workbench, or enter what it holds; an error is said beside its field.

    `submission` or `kernel` in the address says what to begin from, `bearer` for whom of the
    viewer's to submit. A script gets the console alone, or the reasons why there is none.
    """
    in_place = request.headers.get("HX-Request") == "true"
    if request.method != "POST":
        return _opened(request, in_place=in_place)
    if not request.user.is_authenticated:
        task = request.POST.get("task", "")
        back = reverse("submit") + (f"?task={task}" if _open_version(task, request.user) else "")
        return _to_sign_in(request, back, was_signed_in="signed_in" in request.POST)
    form = SubmissionForm(request.POST, request.FILES, user=request.user)
    submission = _enter(request.user, form)
    if submission is None and in_place:
        return _refused(request, form)
    if submission is None:
        form.keep_upload()
        return _workbench(request, form, status=422)
    return _begun(request, request.user, submission) if in_place else redirect(submission)


@require_POST
def rank(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    """Have an attempt measured in `mode`, or for the boards; a script gets the console."""
    if not request.user.is_authenticated:
        back = f"{reverse('submit')}?submission={submission_id}"
        return _to_sign_in(request, back, was_signed_in=True)
    submission = get_submission(str(submission_id), request.user)
    device, mode = request.POST.get("device", ""), request.POST.get("mode", Mode.RANKED.value)
    try:
        rerun(
            submission=submission, user=request.user, device=device, mode=mode, now=timezone.now()
        )
    except SubmissionError as error:
        return _refused(request, refusal(error))
    return _begun(request, request.user, submission)


@never_cache
@require_safe
@takes("task", "device", "direction")
def own_attempts(request: HttpRequest) -> HttpResponse:
    """What the viewer has tried at a task, and how much may still be entered today."""
    version = _open_version(request.GET.get("task", ""), request.user)
    device = _device(request.GET.get("device", ""))
    known = _attempts(version, request.GET.get("direction", ""), device, request.user)
    left = quota(request.user, timezone.now()) if request.user.is_authenticated else None
    expected = {"device": device.slug, "modes": estimates(device.slug)} if device and left else None
    context = {"attempts": known, "quota": left, "expected": expected}
    return render(request, f"{_FOLDER}/parts/attempts.html", context)


@never_cache
@require_safe
@takes("task", "device", "direction")
def brief(request: HttpRequest) -> HttpResponse:
    """The task of the address in brief, for one device and direction."""
    slug = request.GET.get("task", "")
    version = _open_version(slug, request.user)
    if slug and version is None:
        raise Http404(f"There is no task {slug!r} that accepts submissions.")
    device = _device(request.GET.get("device", ""))
    shown = _brief(version, request.GET.get("direction", ""), device, request.user)
    facts = cpu_in_short(device) if device else None
    return render(request, f"{_FOLDER}/parts/brief.html", {"brief": shown, "facts": facts})


@require_safe
@takes("task", "kernel", "direction", "device")
def start_source(request: HttpRequest) -> HttpResponse:
    """The text of a kernel that comes with a task, or of its starter, on whatever device."""
    return HttpResponse(_kernel(request), content_type="text/plain; charset=utf-8")


def _to_sign_in(request: HttpRequest, back: str, *, was_signed_in: bool) -> HttpResponse:
    """To the sign-in page and then `back`; a script has kept what the editor holds."""
    to_login = redirect_to_login(back)
    if request.headers.get("HX-Request") != "true":
        return to_login
    if was_signed_in:
        messages.warning(request, "You were signed out. Your kernel is saved in this browser.")
    return HttpResponseClientRedirect(to_login.url)


def _refused(request: HttpRequest, form: Form) -> HttpResponse:
    answer = render(request, f"{_FOLDER}/parts/refusal.html", {"form": form}, status=422)
    return retarget(answer, "#refusal")


def _begun(request: HttpRequest, user: User, submission: Submission) -> HttpResponse:
    """The console of what was just queued, and what has changed with it."""
    console = _console(submission, user, "")
    device = console.live.evaluation.device if console.live else None
    console = replace(
        console,
        is_fresh=True,
        remark=remark_on(submission),
        quota=quota(user, timezone.now()),
        attempts=_attempts(submission.task_version, submission.direction, device, user),
    )
    return _console_alone(request, console)


def _console_alone(request: HttpRequest, console: page.Console) -> HttpResponse:
    answer = render(request, f"{_FOLDER}/parts/console.html", {"console": console})
    asked = {"submission": str(console.submission.pk)}
    if bearer := (request.POST or request.GET).get("bearer"):
        asked["bearer"] = bearer
    return replace_url(answer, f"{reverse('submit')}?{urlencode(asked)}")


def _opened(request: HttpRequest, *, in_place: bool) -> HttpResponse:
    names = ("task", "device", "direction", "mode", "bearer")
    initial: dict[str, Any] = {n: request.GET[n] for n in names if n in request.GET}
    if "bearer" in initial:
        if _bearer(initial["bearer"], request.user) is None:
            raise Http404("You can't submit under that id.")
        initial["private"] = True
    opening, console = page.Opening(), None
    if "submission" in request.GET:
        submission = get_submission(request.GET["submission"], request.user)
        console = _console(submission, request.user, initial.get("device", ""))
        if in_place:
            return _console_alone(request, console)
        initial = _choices_of(submission, console.live) | initial
        opening = page.Opening(
            source=submission.source,
            name=f"submission {submission} by {submission.agent}",
            key=f"submission:{submission.pk}",
            language=submission.language,
            entry=submission.entry,
            files=submission.files,
        )
    elif "kernel" in request.GET:
        opening = page.Opening(
            source=_kernel(request),
            name=request.GET["kernel"],
            key=f"kernel:{request.GET['kernel']}",
            language=_LANGUAGES.get(PurePosixPath(request.GET["kernel"]).suffix, ""),
        )
    if opening.language == Language.PYTHON:
        initial["language"] = opening.language
    if "device" not in initial and opening.language:
        initial["device"] = _device_for(opening)
    texts = {"source": opening.source, "entry": opening.entry, "beside": opening.files}
    form = SubmissionForm(initial=initial | texts, user=request.user)
    return _workbench(request, form, opening, console)


def _choices_of(submission: Submission, live: Live | None) -> dict[str, str]:
    evaluation = live.evaluation if live else None
    known = {"task": submission.task_version.task.slug, "direction": submission.direction}
    if evaluation is not None and not evaluation.device.imported_from:
        known["device"] = evaluation.device_id
    return known


def _kernel(request: HttpRequest) -> str:
    slug, path = request.GET.get("task", ""), request.GET.get("kernel", "")
    version = _open_version(slug, request.user)
    if version is None:
        raise Http404(f"There is no task {slug!r} that accepts submissions.")
    text = page.kernel_source(version, path, request.GET.get("direction", ""), request.user)
    if text is None:
        raise Http404(f"The task {slug!r} has no kernel {path!r} to show.")
    return text


def _console(submission: Submission, user: Viewer, device: str) -> page.Console:
    """The evaluation that is under way or stands for it, on that device if there is one."""
    known = list(asked_for(visible_evaluations(user).filter(submission=submission)))
    known = [each for each in known if each.device_id == device] or known
    is_busy = bool(known) and not known[0].is_over
    evaluation = known[0] if is_busy else standing_of(known)
    live = live_view(evaluation, user, timezone.now()) if evaluation else None
    return page.Console(submission=submission, live=live)


def _enter(user: User, form: SubmissionForm) -> Submission | None:
    """The stored submission, or None with the reason on the form."""
    values = form.filled()
    version = _open_version(values["task"], user)
    by_agent = values["written_by"] == "agent"
    names = ("source", "entry", "device", "language", "mode")
    fields = {n: values[n] for n in names} | {"direction": values["direction"] or "forward"}
    fields["files"] = values["beside"]
    if values["bearer"]:
        return _enter_for(values["bearer"], user, form, {**fields, "task": values["task"]})
    with form.refusals() as faults:
        if version is None:
            faults.add("task", "this task no longer accepts submissions")
        return submit_kernel(
            user=user,
            task_version=version,
            agent=values["agent"] if by_agent else "",
            language_model=values["language_model"] if by_agent else "",
            private=values["private"],
            now=timezone.now(),
            faults=faults,
            **fields,
        )
    return None


def _enter_for(
    key: str, user: User, form: SubmissionForm, fields: dict[str, Any]
) -> Submission | None:
    """The same for a bearer of the user's, which names the author itself."""
    bearer = _bearer(key, user)
    if bearer is None:
        form.add_refusal("", "you can't submit under that id")
    if bearer is None or not form.is_valid():
        return None
    with form.refusals():
        return bearer.submit(agent="", language_model="", now=timezone.now(), **fields)
    return None


def _bearer(key: str, user: Viewer) -> Bearer | None:
    return bearer_of(key, user) if isinstance(user, User) and key else None


def _workbench(
    request: HttpRequest,
    form: SubmissionForm,
    opening: page.Opening | None = None,
    console: page.Console | None = None,
    status: int = 200,
) -> HttpResponse:
    user, now = request.user, timezone.now()
    queues = loads(now)
    agents, language_models = author_names(user)
    chosen = _chosen_device(form, [queue.device for queue in queues])
    version = _open_version(form["task"].value() or "", user)
    direction = form["direction"].value() or ""
    shown = page.WorkbenchPage(
        form=form,
        opening=opening or page.Opening(),
        foreign=opening is not None and _is_foreign(opening, [q.device for q in queues]),
        modes=[(mode.value, label, text) for mode, label, text in MODES],
        chosen_mode=form["mode"].value(),
        chosen_device=chosen.slug if chosen else "",
        facts=cpu_in_short(chosen) if chosen else "",
        written_by=form["written_by"].value(),
        files=form.names(),
        queues=queues,
        expected={
            queue.device.slug: {
                "modes": estimates(queue.device.slug),
                "before": wait_of_people(queue.device.slug, now),
            }
            for queue in queues
        },
        quota=quota(user, now) if user.is_authenticated else None,
        agents=agents,
        language_models=language_models,
        directions=_directions(user),
        brief=_brief(version, direction, chosen, user),
        attempts=_attempts(version, direction, chosen, user),
        host=request.build_absolute_uri("/").rstrip("/"),
        console=console,
        bearer=_bearer(form["bearer"].value() or "", user),
    )
    return render(request, f"{_FOLDER}/workbench.html", {"page": shown}, status=status)


def _directions(user: Viewer) -> dict[str, tuple[str, ...]]:
    """Those of each task that has more or others than forward; without loading the documents."""
    known = directions_of(evaluable_tasks(user))
    return {slug: found for slug, found in known.items() if found != (Direction.FORWARD.value,)}


def _chosen_device(form: SubmissionForm, devices: list[Device]) -> Device | None:
    wanted = form["device"].value()
    first = devices[0] if devices else None
    return next((device for device in devices if device.slug == wanted), first)


def _brief(
    version: TaskVersion | None, direction: str, device: Device | None, user: Viewer
) -> page.Brief | None:
    return None if version is None else page.brief(version, direction, device, user)


def _attempts(
    version: TaskVersion | None, direction: str, device: Device | None, user: Viewer
) -> Attempts:
    if version is None:
        return Attempts()
    return attempts(version, page.direction_of(version.data, direction).value, device, user)


def _is_foreign(opening: page.Opening, devices: list[Device]) -> bool:
    """Whether the page opens with a source that no device of this site takes."""
    wanted = opening.language
    return bool(wanted and devices) and not any(wanted in device.languages for device in devices)


def _device_for(opening: page.Opening) -> str:
    """The first device of the kind that the source is for, or that takes it; else empty."""
    language = Language(opening.language)
    slugs = devices().values_list("slug", flat=True)
    usual = slugs.filter(kind=usual_kind(language, code_of(opening.source, opening.files)).value)
    any_kind = slugs.filter(kind__in=[kind.value for kind in language.device_kinds])
    return usual.first() or any_kind.first() or ""


def _device(slug: str) -> Device | None:
    return Device.objects.filter(slug=slug).first()


def _open_version(slug: str, user: Viewer) -> TaskVersion | None:
    task: Task | None = find_task(slug, user) if slug else None
    return task.current_version if task else None
