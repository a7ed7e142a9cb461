"""The top of a submission's page: a headline, one sentence, and chips.

Whatever else a result has to say fills a chip, or a block below one of the page's headings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.urls import reverse

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.scores import SLOWER_ON_HARD
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.integrity.audits import TIMES_DIFFER
from runs_app.core.integrity.board_place import BoardPlace
from runs_app.core.integrity.eligibility import Why
from runs_app.core.work.result_state import baseline_words, is_sure
from runs_app.models import Audited, BoardAudit, Evaluation, Status
from runs_app.submitting.diagnostics import Diagnostic
from runs_app.submitting.pictures.comparison import standing
from runs_app.submitting.profile_page import ANCHOR
from runs_app.submitting.remarks import hint_of
from runs_app.submitting.selectors import Rival
from runs_app.submitting.tags import verdict_meaning
from tasks_app.disclosure import HIDDEN
from tasks_app.numbers import (
    TOO_NOISY,
    between,
    duration_parts,
    duration_text,
    ends,
    plus_minus,
    times,
)

WIDE = 0.10
"""If half the interval, relative to its value, is wider, the page says that the host was noisy."""
_AUDITS = {
    Audited.PASSED.value: "confirms a ranked result",
    Audited.FAILED.value: "takes a ranked result off its board",
    Audited.SUSPICIOUS.value: "takes a ranked result off its board until an admin decides",
    Audited.INCONCLUSIVE.value: "neither confirms nor rejects a ranked result",
}
_SCORED = "The ranked result has the score"
_OUR_FAULT = "this is our fault and doesn't count against you"


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A short statement; `meaning` is what it shows when it is asked."""

    words: str
    meaning: str
    kind: str = ""
    name: str = ""
    sign: str = ""


@dataclass(frozen=True)
class Link:
    """What follows the sentence: more about it, and where that is."""

    words: str
    address: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a page says first of an evaluation.

    `number` is the score. Without a score it is the speedup on listed sizes, and without a known
    baseline it is the time. Only a correct result has a number; others are told in `sentence`,
    which `link` follows.
    """

    sentence: str
    number: str = ""
    unit: str = ""
    kind: str = ""
    is_sure: bool = True
    chips: tuple[Chip, ...] = ()
    link: BoardPlace | Link | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of an evaluation, as far as its viewer may see it."""

    evaluation: Evaluation
    result: EvaluationResult | None
    why: Why
    reason: str = ""
    waiting_reason: str = ""
    awaited: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    has_old_baselines: bool = False
    audit: BoardAudit | None = None
    diagnostics: Sequence[Diagnostic] = ()
    rivals: Sequence[Rival] = ()
    limit: str = ""
    """What a profile says first."""
    place: BoardPlace | None = None
    """If it counts on its board."""


def summary(facts: Facts) -> Summary:
    """An evaluation in one sentence, with a number if it is correct."""
    evaluation = facts.evaluation
    if evaluation.verdict == Verdict.CORRECT and evaluation.latency_ns:
        return _correct(facts, evaluation.latency_ns)
    sentence = _ended(facts) if evaluation.verdict else _under_way(facts)
    end = "" if sentence.endswith(("?", ".")) else "."
    said = f"{sentence[:1].upper()}{sentence[1:]}{end} {hint_of(evaluation, evaluation.submission)}"
    return Summary(sentence=said.rstrip(), link=_more(facts))


def _more(facts: Facts) -> Link | None:
    """Where a wrong result is explained."""
    if facts.evaluation.verdict != Verdict.WRONG_RESULT or facts.result is None:
        return None
    found, document = facts.result.mismatch, reverse("document", args=["results"])
    if found is None:
        return Link(
            "How other input values are drawn, and what often fails", f"{document}#other-values"
        )
    if found.workload == HIDDEN:
        return Link("What to try if a hidden workload fails", f"{document}#hidden-workloads")
    return Link("What usually causes this", f"{document}#what-a-wrong-result-looks-like")


def _under_way(facts: Facts) -> str:
    evaluation = facts.evaluation
    if evaluation.status == Status.RUNNING and not evaluation.spool:
        again = f" for the {_ordinal(evaluation.attempt)} time" if evaluation.attempt > 1 else ""
        return f"It is being measured in {evaluation.mode} mode on {evaluation.device}{again}"
    if evaluation.status == Status.CANCELLED:
        return facts.reason or "it was canceled before it reached a verdict"
    return facts.waiting_reason or facts.reason or "it is waiting for a runner"


def _ordinal(count: int) -> str:
    return {2: "second", 3: "third"}.get(count, f"{count}th")


def _ended(facts: Facts) -> str:
    """Any end but a correct one that has a time."""
    verdict, reason = facts.evaluation.verdict, facts.reason
    found = facts.result.mismatch if facts.result else None
    first = next((each for each in facts.diagnostics if each.severity == "error"), None)
    if verdict == Verdict.SYSTEM_ERROR:
        known = f": {reason.rstrip('.')}" if reason else ""
        return f"{_OUR_FAULT}{known}; run it again"
    if verdict == Verdict.COMPILE_ERROR and first:
        return f"{first.place.words}: {first.message}"
    if verdict == Verdict.UNSTABLE and reason:
        return f"it is correct but has no score, because {reason}; a re-run may settle it"
    if found and found.index and found.expected is not None and found.actual is not None:
        place = f"{found.output}[{', '.join(map(str, found.index))}]"
        values = f"{place} is {found.actual:.4g}, but {found.expected:.4g} was expected"
        return f"on {found.workload}, {values}" if found.workload else values
    return reason or verdict_meaning(verdict)


def _correct(facts: Facts, own_ns: float) -> Summary:
    evaluation = facts.evaluation
    speedup, spread = evaluation.rated, evaluation.rated_spread
    number, unit, sure = *duration_parts(own_ns), is_sure(evaluation)
    if speedup:
        number, unit = times(speedup), unit_of(evaluation)
    if evaluation.mode == Mode.AUDIT:
        number, unit = duration_parts(own_ns)
        link = Link(_SCORED, evaluation.submission.get_absolute_url())
        said, chips = _of_audit(facts), tuple(_of_times(facts))
        return Summary(
            number=number, unit=unit, kind="neutral", is_sure=False,
            sentence=said, chips=chips, link=link,
        )  # fmt: skip
    said = speed(evaluation, speedup, spread) if speedup else _time(facts, own_ns)
    more = _kept_away(facts) if speedup else _no_speedup(facts)
    return Summary(
        number=number,
        unit=unit,
        kind=standing(speedup, spread) if sure else "neutral",
        is_sure=sure,
        sentence=f"Correct, and {said}{'; ' if more else ''}{more}.{_still(facts)}",
        chips=tuple(_chips(facts, own_ns)),
        link=facts.place or (Link(facts.limit, ANCHOR) if facts.limit else None),
    )


def _of_audit(facts: Facts) -> str:
    """What the audit found that this evaluation is."""
    audit = facts.audit
    if audit is None or audit.evaluation_id != facts.evaluation.pk or audit.state not in _AUDITS:
        return "Correct. This is an audit, which decides whether a ranked result can be trusted."
    return f"This audit {_AUDITS[audit.state]}: {audit.reason.rstrip('.')}."


def unit_of(evaluation: Evaluation) -> str:
    """What the figure of a headline is called: sizes that count into it differ."""
    return "score" if evaluation.score else "on listed sizes"


def speed(evaluation: Evaluation, speedup: float, spread: float | None) -> str:
    """How fast a correct result is, what that compares with, and its interval."""
    sizes = "listed and unlisted sizes" if evaluation.score else "listed sizes only"
    many = f", over {evaluation.draws} evaluations of this source" if evaluation.draws > 1 else ""
    said = f"{times(speedup)} the speed of {baseline_words(evaluation)} on {sizes}{many}"
    if spread is None:
        return said
    return f"{said} ({_interval(speedup, spread, 'the baseline')})"


def _interval(ratio: float, spread: float, other: str) -> str:
    """The interval behind a ratio, and whether it holds 1."""
    known = between(*ends(ratio, spread))
    if abs(math.log(ratio)) > spread:
        return known
    if known == TOO_NOISY:
        return f"too noisy to tell it from {other}"
    return f"{known}, so not different from {other}"


def _time(facts: Facts, own_ns: float) -> str:
    spread = facts.evaluation.spread("latency")
    known = f" {plus_minus(spread)}" if spread is not None and spread < 1 else ""
    noisy = ", too noisy for an interval" if spread is not None and spread >= 1 else ""
    return f"a call takes {duration_text(own_ns)}{known}{noisy}{_sizes(facts.result)}"


def _still(facts: Facts) -> str:
    """What a provisional result waits for, as another sentence."""
    waits = "" if facts.why is Why.REPLACED else facts.waiting_reason
    return f" {waits[:1].upper()}{waits[1:]}." if waits else ""


def _sizes(result: EvaluationResult | None) -> str:
    """Over how many sizes a time is the mean, and between which times; empty of a single one."""
    timed = [w.measurement for w in result.workloads if not w.hidden] if result else []
    times_ns = sorted(each.time_ns for each in timed if each)
    if len(times_ns) <= 1:
        return ""
    ends_ns = f"{duration_text(times_ns[0])} to {duration_text(times_ns[-1])}"
    return f", the geometric mean over {len(times_ns)} sizes ({ends_ns})"


def _no_speedup(facts: Facts) -> str:
    """Why there is no speedup."""
    evaluation = facts.evaluation
    if facts.why.is_doubt:
        return _kept_away(facts)
    if facts.result and facts.result.pending_baselines and not evaluation.imported:
        return "its speedup will appear once its baselines have been measured"
    if evaluation.mode in (Mode.TEST, Mode.RANKED):
        return f"there is no speedup{_reasons(facts.missing)}"
    if facts.has_old_baselines:
        return (
            f"{evaluation.mode} mode doesn't measure baselines, so the chart uses those from an"
            " earlier evaluation"
        )
    return "a ranked evaluation measures the baselines, and nobody has run one on this device yet"


def _reasons(missing: Mapping[str, str]) -> str:
    """Why each baseline is missing, or the reason alone if it is the same for all of them."""
    if len(reasons := set(missing.values())) <= 1:
        return "".join(f": {why}" for why in reasons)
    return f" ({'; '.join(f'{name}: {why}' for name, why in missing.items())})"


def _kept_away(facts: Facts) -> str:
    """Why it doesn't count, as the end of a sentence; empty if it does."""
    words = "" if facts.why is Why.COUNTS else facts.why.label.rstrip(".")
    return f"{words[:1].lower()}{words[1:]}"


def _is_itself(facts: Facts, rival: Rival) -> bool:
    return rival.is_leader and rival.evaluation.pk == facts.evaluation.pk


def _chips(facts: Facts, own_ns: float) -> Iterable[Chip]:
    why, result = facts.why, facts.result
    if why is not Why.COUNTS and not why.is_doubt:
        yield Chip(words="Not on a board", meaning=why.label, name="eligibility")
    if facts.awaited and not facts.evaluation.imported:
        meaning = f"We are still waiting for these baselines: {facts.awaited}."
        yield Chip(words="Baselines pending", meaning=meaning, name="awaited")
    yield from _of_times(facts)
    for rival in facts.rivals:
        if not _is_itself(facts, rival) and rival.evaluation.latency_ns:
            yield from _against(facts, rival, rival.evaluation.latency_ns / own_ns)
    if result and result.hard_ratio and result.hard_ratio >= SLOWER_ON_HARD:
        meaning = "Hard values, such as denormals, are checked but never timed."
        words = f"{times(result.hard_ratio)} the time on hard values"
        yield Chip(words=words, meaning=meaning, kind="warn")
    if (facts.evaluation.latency_spread or 0.0) > WIDE:
        yield Chip(
            words="Noisy host",
            meaning="The times of its calls vary too much for a precise result. A busy host can"
            " cause this. Run it again at a quieter time to narrow the interval.",
            kind="warn",
        )


def _of_times(facts: Facts) -> Iterable[Chip]:
    """A chip if the audit's time and the ranked one exclude each other."""
    reason = facts.audit.reason if facts.audit else ""
    if TIMES_DIFFER in reason:
        yield Chip(words="Times differ", meaning=f"The audit: {reason}.", kind="warn")


def _against(facts: Facts, rival: Rival, ratio: float) -> Iterable[Chip]:
    """How fast it is compared with a result of the same mode: by score, or else by its time."""
    own, other = facts.evaluation, rival.evaluation
    if own.submission.digest == other.submission.digest:
        meaning = "They are the same source, so any difference is noise."
        yield Chip(words=f"Same source as {rival.phrase}", meaning=meaning, sign="≈")
        return
    if own.mode != other.mode:
        return
    spreads = [each.spread("latency") for each in (own, other)]
    what = "times of a call"
    if own.score and other.score:
        ratio, what = own.score / other.score, "scores"
        spreads = [own.score_spread, other.score_spread]
    width = sum(each or 0.0 for each in spreads)
    same = abs(math.log(ratio)) <= width
    words = f"{times(ratio)} {rival.phrase}"
    meaning = f"By the {what} ({_interval(ratio, width, 'this one')})."
    yield Chip(words=words, meaning=meaning, sign="≈" if same else "▲" if ratio > 1 else "▼")
