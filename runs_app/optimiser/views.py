"""Pages of optimization runs: the list, the live page, and one candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from csp.decorators import csp_update
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_POST, require_safe

from runs_app.core.errors import SubmissionError
from runs_app.core.forms import refusals
from runs_app.core.plotly_policy import PLOTLY_STYLES
from runs_app.core.queue.devices import devices
from runs_app.core.queue.runners import no_runner
from runs_app.models import Candidate, Run
from runs_app.optimiser import candidate_page
from runs_app.optimiser import page as run_page
from runs_app.optimiser.candidate_page import workload_times
from runs_app.optimiser.changes import change_of, replayed
from runs_app.optimiser.disclosure import public_call, public_candidate
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.headline import headline
from runs_app.optimiser.selectors.compared import (
    Baseline,
    baseline_of,
    compared_candidates,
    search_speeds,
)
from runs_app.optimiser.selectors.confirmation import confirmation_of, entry_of_best
from runs_app.optimiser.selectors.over_seed import over_seed_of
from runs_app.optimiser.selectors.runs import (
    RUN_FILTERS,
    filtered_runs,
    find_candidate,
    find_run,
    may_control,
    named_run,
    run_waiting_reason,
)
from runs_app.optimiser.selectors.runs import active_s as active_seconds
from runs_app.optimiser.selectors.spending import total_usd
from runs_app.optimiser.services.control import (
    changed_budget,
    check_extension,
    extend_run,
    pause_run,
    resume_run,
    stop_run,
)
from runs_app.optimiser.services.enter import enter_candidate
from runs_app.optimiser.start.forms import BudgetForm
from tasks_app.disclosure import sees_hidden
from tasks_app.pages.text_diff import Budget, diff
from tasks_app.parameters import query_of, takes
from tasks_app.people import AuthenticatedRequest
from tasks_app.selectors import published_tasks

_ROWS = 50
_AT_ONCE = 2000
_TABLE_ROWS = 100
_LARGEST = 2**31 - 1
_MINUTE_S = 60


@never_cache
@require_safe
@takes(*RUN_FILTERS, "page")
def run_list(request: HttpRequest) -> HttpResponse:
    """The runs that the address asks for, newest first."""
    filters = {name: request.GET.get(name, "") for name in RUN_FILTERS}
    runs = filtered_runs(request.user, filters)
    page = Paginator(runs, _ROWS).get_page(request.GET.get("page"))
    shown = run_page.RunListPage(
        page=page,
        rows=run_page.run_rows(page.object_list),
        filters=filters,
        filtered=any(filters.values()),
        moving=any(run.status == Run.Status.RUNNING for run in page.object_list),
        no_runner=no_runner(timezone.now()),
        address=query_of(filters),
        tasks=published_tasks().values_list("slug", flat=True),
        devices=devices(),
        strategies=[(info.name, info.title) for info in STRATEGIES.values()],
        statuses=Run.Status.choices,
    )
    fragment = request.headers.get("HX-Request") == "true"
    name = "parts/run_table.html" if fragment else "run_list.html"
    return render(request, f"runs_app/optimisation/{name}", vars(shown))


@never_cache
@require_safe
@csp_update({"style-src": PLOTLY_STYLES})  # type: ignore[arg-type]  # takes any view
@takes("page")
def run_detail(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The live page of a run."""
    run = _run(request, run_id)
    return _run_response(request, run, BudgetForm(initial=_budget_initial(run)))


@never_cache
@require_safe
def short_address(request: HttpRequest, short_run: str) -> HttpResponse:
    """Go to the run whose id begins so, as tables show it."""
    return redirect(named_run(short_run, request.user))


@never_cache
@require_safe
def run_head(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The part of the live page that tells the status and holds the buttons."""
    run = _run(request, run_id)
    head = _head(request, run, BudgetForm(initial=_budget_initial(run)))
    return render(request, "runs_app/optimisation/parts/run_head.html", {"head": head})


@never_cache
@require_safe
@gzip_page  # no secret is in it beside anything that a stranger chose
@takes("since")
def run_changes(request: HttpRequest, run_id: UUID) -> JsonResponse:
    """What the events after `?since=N` changed, with the values that hold now.

    `seq` is the number of the newest event.
    """
    run = _run(request, run_id)
    rows = run.events.filter(seq__gt=_since(request)).order_by("seq")
    return JsonResponse(change_of(run, rows.iterator(_AT_ONCE), timezone.now()))


@never_cache
@require_safe
@gzip_page  # as above
@takes("since")
def run_replay(request: HttpRequest, run_id: UUID) -> JsonResponse:
    """The same for each event in order, so that a page can show the run after any of them."""
    run = _run(request, run_id)
    return JsonResponse({"changes": list(replayed(run, _since(request)))})


@login_required
@require_POST
def run_control(request: AuthenticatedRequest, run_id: UUID, action: str) -> HttpResponse:
    """Pause, resume or stop a run."""
    run = _run(request, run_id)
    actions: dict[str, tuple[Callable[..., object], str]] = {
        "pause": (pause_run, "paused"),
        "resume": (resume_run, "resumed"),
        "stop": (stop_run, "stopped"),
    }
    act, done = actions[action]
    with refusals(request, f"Not {done}"):
        act(run=run, user=request.user, now=timezone.now())
    return redirect(run)


@login_required
@require_POST
@csp_update({"style-src": PLOTLY_STYLES})  # type: ignore[arg-type]  # takes any view
def run_extend(request: AuthenticatedRequest, run_id: UUID) -> HttpResponse:
    """Give a run another budget; an error is said beside its field."""
    run = _run(request, run_id)
    form = BudgetForm(request.POST)
    if form.is_valid():
        with form.refusals():
            caps, more = form.caps(), _more(request, run)
            check_extension(caps, more)
            extend_run(
                run=run,
                user=request.user,
                budget=changed_budget(run, caps),
                parameters=more,
                now=timezone.now(),
            )
    if form.errors:
        return _run_response(request, run, form, status=422)
    messages.success(request, "The run has been extended.")
    return redirect(run)


def _more(request: HttpRequest, run: Run) -> dict[str, int]:
    """Parameters of the strategy that the form has raised; raises `SubmissionError`."""
    more: dict[str, int] = {}
    for each in run_page.growing(run):
        text = request.POST.get(f"more-{each.name}", "").strip()
        if not text or text == str(each.value):
            continue
        if not (text.isascii() and text.isdigit() and len(text) < 7):
            raise SubmissionError("", f"{each.label}: enter a whole number above {each.value}")
        more[each.name] = int(text)
    return more


@never_cache
@require_safe
def candidate_detail(request: HttpRequest, run_id: UUID, number: int) -> HttpResponse:
    """A candidate: a fragment for the drawer, and a whole page for everybody else."""
    run = _run(request, run_id)
    hidden = run.task_version.hidden_names
    candidate = public_candidate(_candidate(run, number), hidden)
    page = _candidate_page(request, run, candidate)
    fragment = request.headers.get("HX-Request") == "true"
    name = "parts/candidate.html" if fragment else "run_candidate.html"
    return render(request, f"runs_app/optimisation/{name}", vars(page))


@never_cache
@require_safe
def call_detail(request: HttpRequest, run_id: UUID, number: int) -> HttpResponse:
    """The prompt and the answer of a call, for everybody who may see the run."""
    run = _run(request, run_id)
    page = candidate_page.find_call(run, number) if number <= _LARGEST else None
    if page is None:
        raise Http404("The run has no such call.")
    return render(request, "runs_app/optimisation/run_call.html", vars(page))


@login_required
@require_POST
def candidate_enter(request: AuthenticatedRequest, run_id: UUID, number: int) -> HttpResponse:
    """Submit a candidate in the name of the run's agent."""
    run = _run(request, run_id)
    candidate = _candidate(run, number)
    with refusals(request, "Not submitted"):
        return redirect(enter_candidate(candidate=candidate, user=request.user, now=timezone.now()))
    return redirect(run)


def _run_response(
    request: HttpRequest, run: Run, form: BudgetForm, status: int = 200
) -> HttpResponse:
    rows = run.candidates.defer("source", "feedback").order_by("-number")
    table = Paginator(rows, _TABLE_ROWS).get_page(request.GET.get("page"))
    hidden = run.task_version.hidden_names
    table.object_list = [public_candidate(each, hidden) for each in table.object_list]
    baseline = baseline_of(run)
    page = run_page.RunPage(
        run=run,
        head=_head(request, run, form),
        config=run_page.script_config(run, baseline),
        config_rows=run_page.config_rows(run),
        table=table,
        rows=_rows(run, table.object_list, baseline),
        baseline=baseline,
        class_scores=run_page.scores_of_classes(run),
    )
    return render(request, "runs_app/optimisation/run.html", vars(page), status=status)


def _rows(
    run: Run, candidates: Sequence[Candidate], baseline: Baseline | None
) -> list[run_page.CandidateRow]:
    speeds = search_speeds(run, candidates, baseline)
    ranked = compared_candidates(candidates, [run])
    return [
        run_page.CandidateRow(
            candidate=each, search=speeds.get(each.number), evaluation=ranked.get(each.pk)
        )
        for each in candidates
    ]


def _head(request: HttpRequest, run: Run, form: BudgetForm) -> run_page.RunHead:
    now = timezone.now()
    active_s = active_seconds(run, now)
    controls = may_control(request.user, run)
    return run_page.RunHead(
        run=run,
        growing=run_page.growing(run) if controls else [],
        strategy=run_page.strategy_title(run.strategy),
        models=[model["name"] for model in run.config.get("models", [])],
        meters=run_page.meters(run, active_s),
        active_s=active_s,
        waiting_reason=run_waiting_reason(run, now),
        confirmation=confirmation_of(run),
        headline=headline(run),
        entry=entry_of_best(run),
        may_control=controls,
        budget_form=form,
        most_usd=None if sees_hidden(request.user) else settings.MAX_RUN_USD,
    )


def _candidate_page(
    request: HttpRequest, run: Run, candidate: Candidate
) -> candidate_page.CandidatePage:
    parents = candidate_page.parents_of(run, candidate)
    seed = candidate_page.seed_of(run)
    parent = parents[0] if parents else None
    hidden = run.task_version.hidden_names
    calls = [public_call(call, hidden) for call in candidate_page.calls_about(run, candidate)]
    before, after = candidate_page.neighbours(run, candidate.number)
    baseline = baseline_of(run)
    own_call = next((call for call in calls if call.pk == candidate.call_id), None)
    return candidate_page.CandidatePage(
        run=run,
        candidate=candidate,
        feedback=candidate.feedback or {},
        language=run.problem.get("language", "cpp"),
        over_seed=over_seed_of(run, candidate),
        baseline=baseline,
        search=search_speeds(run, [candidate], baseline).get(candidate.number),
        evaluation=compared_candidates([candidate], [run]).get(candidate.pk),
        parents=parents,
        diff=diff(parent.source, candidate.source, Budget()).lines if parent else (),
        times=workload_times(run, candidate, seed, parent, baseline),
        votes=candidate_page.votes(candidate),
        calls=calls,
        own_call=own_call,
        thought=candidate_page.thought(own_call),
        cost_usd=total_usd(call.cost_usd for call in calls),
        tokens=sum(call.tokens_in + call.tokens_out for call in calls),
        profile=candidate_page.profile_rows(candidate.feedback),
        before=before,
        after=after,
        may_control=may_control(request.user, run),
    )


def _budget_initial(run: Run) -> dict[str, object]:
    caps = run_page.budget(run)
    seconds = caps.pop("wall_time_s", None)
    return caps | {"minutes": None if seconds is None else f"{seconds / _MINUTE_S:g}"}


def _run(request: HttpRequest, run_id: UUID) -> Run:
    run = find_run(run_id, request.user)
    if run is None:
        raise Http404("There is no such run, or it is private.")
    return run


def _candidate(run: Run, number: int) -> Candidate:
    candidate = find_candidate(run, number) if number <= _LARGEST else None
    if candidate is None:
        raise Http404("The run has no such candidate.")
    return candidate


def _since(request: HttpRequest) -> int:
    text = request.GET.get("since", "")
    return min(int(text[:10]), _LARGEST) if text.isascii() and text.isdigit() else 0
