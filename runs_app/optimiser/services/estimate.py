"""What a run may cost, by rehearsing its strategy against invented answers."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from runs_app.optimiser.services import spending
from runs_app.optimiser.services.rehearsal import CALL_S, Rehearsal
from runs_app.optimiser.services.request import RunRequest
from runs_app.optimiser.services.start import planned

_EVALUATION_S, _RANKING_S = 8.0, 20.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What the rehearsal used.

    usd_high: the run's cap on money. Without a cap it is the rehearsal's worst case, and the run
    may cost more, since real kernels fail and are mended: `usd_capped` is false then. Both are None
    if nobody knows a language model's price.
    """

    usd_low: float | None
    usd_high: float | None
    usd_capped: bool
    tokens: int
    calls: int
    evaluations: int
    minutes: float
    text: str


def estimate_run(*, request: RunRequest, user: User | None = None) -> Estimate:
    """Rehearse the run: every answer is a kernel of usual length, every one correct, none better.

    Raises `SubmissionError` as `start_run` would.
    """
    _, _, problem, config = planned(request, user)
    rehearsal = Rehearsal(problem, config)
    about = "about" if rehearsal.play() else "at least"
    history, minutes = rehearsal.history, _minutes(rehearsal)
    calls, evaluations = len(history.questions), history.told.begun
    cap = config.budget.usd if spending.is_priced(config.models) else 0.0
    worst_usd = sum(question.worst_usd for question in history.questions.values())
    high = worst_usd if cap is None else cap
    return Estimate(
        usd_low=min(history.paid_usd, high) if history.is_priced else None,
        usd_high=high if history.is_priced else None,
        usd_capped=cap is not None,
        tokens=history.paid_tokens,
        calls=calls,
        evaluations=evaluations,
        minutes=minutes,
        text=f"{about} {calls} calls and {evaluations} evaluations, {minutes:.0f} min",
    )


def _minutes(rehearsal: Rehearsal) -> float:
    config, history = rehearsal.config, rehearsal.history
    calls_s = len(history.questions) * CALL_S / config.concurrent_asks
    seconds = max(calls_s, history.told.begun * _EVALUATION_S)
    if config.budget.wall_time_s is not None:
        seconds = min(seconds, config.budget.wall_time_s)
    return (seconds + rehearsal.rankings * _RANKING_S) / 60
