"""What stands behind the kernel that a run calls its best."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Evaluation, LanguageModelCall, Result, Run
from runs_app.optimiser.evolve.commands import Edit
from runs_app.optimiser.evolve.evaluations import LAST_MODES, is_refusal
from runs_app.optimiser.selectors.language_models import CODE_ROLES
from tasks_app.disclosure import public_text

_LAST = sorted(mode.value for mode in LAST_MODES)


ELSEWHERE = "was submitted on the site it came from; its result wasn't imported"


class ConfirmationState(StrEnum):
    """How far a run's best is proven."""

    NONE = "none"  # nothing correct was measured
    MEASURED = "measured"  # by quick evaluations alone
    RANKING = "ranking"  # the search is over, and the best are ranked and audited now
    RANKED = "ranked"  # ranked, and its audit said nothing
    AUDITED = "audited"  # ranked, and its audit has passed


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """One evaluation after the search; `is_refusal` says that the candidate is no longer best."""

    candidate: int
    mode: str
    verdict: str
    reason: str
    latency_ns: float | None
    is_refusal: bool

    @property
    def is_correct_rank(self) -> bool:
        """Whether it ranked the candidate."""
        return self.mode == Mode.RANKED and self.verdict == Verdict.CORRECT

    @property
    def how(self) -> str:
        """What was done to the candidate."""
        return "audited" if self.mode == Mode.AUDIT else "ranked"


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """What a run may say of its best, in a sentence, and every evaluation that it rests on."""

    state: ConfirmationState
    words: str
    rankings: tuple[Ranking, ...] = ()

    @property
    def refused(self) -> tuple[Ranking, ...]:
        """Those that took a candidate its place."""
        return tuple(ranking for ranking in self.rankings if ranking.is_refusal)


def confirmation_of(run: Run) -> Confirmation:
    """What stands behind the run's best; a few queries, however many candidates there are."""
    rows = run.events.filter(kind__in=("searched", "extended", "chosen")).order_by("seq")
    last = run.events.filter(kind="measured", payload__mode__in=_LAST).order_by("seq")
    found = list((rows | last).values_list("kind", "payload"))
    rankings = tuple(_ranking(run, payload) for kind, payload in found if kind == "measured")
    life = [(kind, payload) for kind, payload in found if kind != "measured"]
    state, words = _state(run, life, rankings)
    if run.is_over and not run.has_own_best:
        words = _without_own_best(run)
    elif run.best and submitted_elsewhere(run, run.best.number):
        words = f"{words} It {ELSEWHERE}."
    elif run.best and run.best.entry_id:
        pass  # its submission's state says all
    elif state in (ConfirmationState.RANKED, ConfirmationState.AUDITED) and (doubt := _doubt(run)):
        words = f"{words} It raised a suspicion; an admin will decide once you submit it: {doubt}."
    return Confirmation(state=state, words=words, rankings=rankings)


def submitted_elsewhere(run: Run, number: int) -> bool:
    """Whether a candidate of an imported run was submitted, but its result isn't here."""
    if not run.device.imported_from:
        return False
    was_submitted = run.events.filter(kind="entered", payload__candidate=number).exists()
    return was_submitted and run.candidates.filter(number=number, entry=None).exists()


def entry_of_best(run: Run) -> Evaluation | None:
    """The ranked evaluation by which the best was entered: what boards and its page go by."""
    if run.best is None or run.best.entry_id is None:
        return None
    ranked = Evaluation.objects.filter(
        submission=run.best.entry_id, device=run.device_id, mode=Mode.RANKED.value
    )
    return ranked.select_related("submission").order_by("-created_at").first()


def _without_own_best(run: Run) -> str:
    """What came of a run that wrote nothing faster than its seed."""
    has_seed = run.best is not None
    if run.candidates.exclude(edit=Edit.SEED.value).exists():
        return "No candidate was faster than the seed kernel." if has_seed else ""
    sent = run.calls.filter(role__in=CODE_ROLES, sent_at__isnull=False, ended_at__isnull=False)
    failed = sent.exclude(status=LanguageModelCall.Status.ANSWERED).count()
    answers = sent.count() - failed
    still = "The seed kernel is still the fastest." if has_seed else ""
    if not answers + failed:
        return still
    if not answers:
        return f"No call was answered: {_count(failed, 'call')} failed. {still}".strip()
    words = f"No answer contained a kernel: {_count(answers, 'answer')} came without one"
    words += f", and {_count(failed, 'call')} failed." if failed else "."
    return f"{words} {still}".strip()


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _doubt(run: Run) -> str:
    """The first suspicion that ranking or audit has raised about the best; empty without any."""
    rows = Result.objects.filter(
        evaluation__submission__candidate=run.best_id, evaluation__mode__in=_LAST
    )
    for suspicions in rows.values_list("document__suspicions", flat=True):
        if suspicions:
            text = str(suspicions[0].get("reason") or suspicions[0].get("check") or "a suspicion")
            return public_text(text, run.task_version.hidden_names).rstrip(".")
    return ""


def _ranking(run: Run, payload: dict[str, Any]) -> Ranking:
    return Ranking(
        candidate=payload["candidate"],
        mode=payload["mode"],
        verdict=payload["verdict"],
        reason=public_text(payload["reason"], run.task_version.hidden_names),
        latency_ns=payload.get("latency_ns"),
        is_refusal=is_refusal(payload["verdict"]),
    )


def _state(
    run: Run, life: list[tuple[str, dict[str, object]]], rankings: tuple[Ranking, ...]
) -> tuple[ConfirmationState, str]:
    if life and life[-1][0] == "searched" and not run.is_over:
        return (
            ConfirmationState.RANKING,
            "Until its best candidates are ranked, the fastest on listed workloads is shown.",
        )
    if run.best is None:
        return ConfirmationState.NONE, ""
    name = f"Candidate {run.best.number}"
    chosen = [payload for kind, payload in life if kind == "chosen"]
    if chosen and chosen[-1]["candidate"] == run.best.number:
        return _chosen(name, chosen[-1])
    if run.status in (Run.Status.RUNNING, Run.Status.PAUSED) and run.config.get("ranks_best"):
        words = f"{name} is the fastest so far. It will be ranked when the search is over."
    elif any(each.is_correct_rank and each.candidate == run.best.number for each in rankings):
        words = f"{name} was ranked, but the run ended before its audit. Submit it to a board."
        return ConfirmationState.RANKED, words
    else:
        words = f"{name} was measured on listed workloads only. Submit it to have it ranked."
    return ConfirmationState.MEASURED, words


def _chosen(name: str, payload: dict[str, Any]) -> tuple[ConfirmationState, str]:
    reason = payload["reason"]
    if not payload.get("is_ranked"):
        return ConfirmationState.MEASURED, f"{name} was not ranked: {reason}."
    if not payload.get("is_audited"):
        return (
            ConfirmationState.RANKED,
            f"{name} was ranked in the run; its audit had no result. {reason.capitalize()}.",
        )
    return ConfirmationState.AUDITED, f"{name} was ranked and audited in the run; {reason}."
