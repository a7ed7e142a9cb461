"""What leads a run's page: its best kernel against the best baseline, and against the seed."""

from __future__ import annotations

from runs_app.core.work.result_state import is_sure
from runs_app.models import Run
from runs_app.optimiser.selectors.compared import compared
from runs_app.optimiser.selectors.over_seed import OverSeed, over_seeds
from runs_app.submitting.pictures.comparison import standing
from runs_app.submitting.summary import Summary, speed, unit_of
from tasks_app.numbers import duration_parts, duration_text, times


def headline(run: Run) -> Summary:
    """Its figure is the speedup over the best baseline; without one over the seed, or the time."""
    best, over_seed = run.best, over_seeds([run]).get(run.pk)
    if best is None or best.latency_ns is None:
        return Summary(sentence=f"No kernel {'was' if run.is_over else 'is'} correct{_yet(run)}.")
    name = "The seed kernel" if best.is_seed else f"Candidate {best.number}"
    seed = _over_seed(over_seed) if over_seed else ""
    evaluation = compared([run]).get(run.pk)
    if evaluation and evaluation.rated:
        speedup, spread = evaluation.rated, evaluation.rated_spread
        more = f", and {seed}" if seed else ""
        who, sure = name if run.is_over else _so_far(name), run.is_over and is_sure(evaluation)
        return Summary(
            number=times(speedup),
            unit=unit_of(evaluation),
            kind=standing(speedup, spread) if sure else "neutral",
            is_sure=sure,
            sentence=f"{who} reaches {speed(evaluation, speedup, spread)}{more}.",
        )
    number, unit = duration_parts(best.latency_ns)
    if over_seed:
        number, unit = times(over_seed.value), "over the seed kernel"
    said = f"reaches {seed}" if seed else f"takes {duration_text(best.latency_ns)} a call"
    why = f"no baseline has been measured on {run.device}{_yet(run)}"
    return Summary(number=number, unit=unit, kind="neutral", sentence=f"{name} {said}; {why}.")


def _so_far(name: str) -> str:
    """Until the run is over, its best may still be refused or beaten."""
    return f"So far, {name[:1].lower()}{name[1:]}"


def _yet(run: Run) -> str:
    return "" if run.is_over else " yet"


def _over_seed(over: OverSeed) -> str:
    known = f", {over.interval_words}" if over.interval else ""
    known += ", so not different" if over.is_level else ""
    change = f"from {duration_text(over.seed.ns)} to {duration_text(over.own.ns)}"
    return f"{times(over.value)} the speed of the seed kernel in the search ({change}{known})"
