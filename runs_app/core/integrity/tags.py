"""Whether a result counts, in words and signs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gpu_runner.data.verdict import Mode
from runs_app.core.integrity.page import SuspicionView
from runs_app.core.integrity.ranking import Estimate
from runs_app.core.work.result_state import (
    Judged,
    baseline_noun,
    baseline_words,
    compared_with,
    is_sure,
    result_state,
    state_of_place,
)
from runs_app.models import Evaluation, Quarantine
from tasks_app.numbers import between
from tasks_app.templatetags.display import chip, speedup
from tasks_app.templatetags.terms import explained, term

register = template.Library()


class Place(Judged, Protocol):
    """An entry of a board."""

    @property
    def score(self) -> Estimate | None:
        """The value that boards rank by."""

    @property
    def rated(self) -> Estimate | None:
        """The score or, without one, the speedup on listed sizes."""

    @property
    def compared_with(self) -> str:
        """The baseline of both, as `result_state.compared_with` has it."""


_QUARANTINE = {
    "open": ("warn", "In quarantine"),
    "cleared": ("good", "Cleared by a person"),
    "rejected": ("bad", "Rejected by a person: it doesn't count"),
}
_AUDITED = {
    "none": ("", "Unverified", "not audited; only board leaders are audited automatically"),
    "waiting": ("", "Unverified", "its audit is running"),
    "passed": ("good", "Verified", "it passed every required check of an audit with new seeds"),
    "failed": ("bad", "Audit failed", "it isn't on any board"),
    "suspicious": ("warn", "Audit in quarantine", "it stays off boards until a person decides"),
    "inconclusive": (
        "",
        "Unverified",
        "its audit gave no result or couldn't run a required check; see the submission's page",
    ),
}


@register.simple_tag
def quarantine_badge(state: str) -> SafeString:
    """A badge with the state of a quarantine; nothing where nothing is suspicious."""
    if state not in _QUARANTINE:
        return SafeString("")
    kind, words = _QUARANTINE[state]
    return chip(words, kind)


register.filter(baseline_words)


@register.filter
def what_to_do(suspicions: Iterable[SuspicionView]) -> list[str]:
    """What the author can do about them, each advice once."""
    return [advice for advice in dict.fromkeys(each.advice for each in suspicions) if advice]


@register.filter
def decision_words(state: str) -> str:
    """What a person decided, before the person's name."""
    return str(Quarantine(state).label)


@register.simple_tag
def audited_badge(state: str) -> SafeString:
    """A badge that says what audits found about an entry of a board."""
    kind, words, meaning = _AUDITED[state]
    return chip(explained(words, meaning), kind)


@register.simple_tag
def state_chip(result: Evaluation | Place) -> SafeString:
    """The chip with a result's state, and one if a guest measured it.

    Empty if the result can't be on a board.
    """
    state = result_state(result) if isinstance(result, Evaluation) else state_of_place(result)
    if state is None:
        return SafeString("")
    shown = format_html(" {}", chip(explained(state.label, state.meaning), state.kind))
    if getattr(result, "guest", False):  # several results together are nobody's
        return format_html("{} {}", shown, chip(term("guest runner")))
    return shown


@register.simple_tag
def rated(result: Evaluation | Place) -> SafeString:
    """A result's score, colored once nothing about it is provisional.

    Without a score, this is the speedup on listed sizes, marked as such. An entry of a board has
    its interval below.
    """
    if isinstance(result, Evaluation):
        value, low, high = result.rated, None, None
        spread, names, sure = result.rated_spread, compared_with(result), is_sure(result)
    else:
        estimate, spread, names = result.rated, None, result.compared_with
        sure = state_of_place(result).is_sure
        value, low, high = (
            (estimate.value, estimate.low, estimate.high) if estimate else 3 * (None,)
        )
    over = baseline_noun(names)
    shown = speedup(value, low, high, spread=spread, over=over, sure=sure)
    if low is not None and high is not None:
        interval = between(low, high)
        shown = format_html('{}<span class="sub hide-narrow">{}</span>', shown, interval)
    mode = getattr(result, "mode", Mode.RANKED)
    if mode != Mode.RANKED and names not in ("", "best"):  # no chip says that it is provisional
        only = "" if mode == Mode.AUDIT else " only"  # an audit takes up no others later
        return format_html('{} <span class="sub">vs {}{}</span>', shown, names, only)
    if result.score or value is None or mode != Mode.RANKED:
        return shown
    return format_html('{} <span class="sub">listed sizes only</span>', shown)


@register.simple_tag
def quarantine_link(path: str, count: int) -> SafeString:
    """The navigation's link for admins, with the number of cases that wait."""
    address = reverse("quarantine")
    current = SafeString(' aria-current="page"') if path.startswith(address) else ""
    return format_html(
        '<a href="{}"{} aria-label="Quarantine, {} open">Quarantine ({})</a>',
        address, current, count, count,
    )  # fmt: skip
