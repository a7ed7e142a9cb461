"""Whether a result counts, in words and signs."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from runs_app.integrity.eligibility import Why
from runs_app.integrity.page import SuspicionView
from runs_app.integrity.selectors import open_case_count
from runs_app.models import Evaluation
from tasks_app.templatetags.terms import explained

register = template.Library()

_QUARANTINE = {
    "open": ("warn", "!", "In quarantine"),
    "cleared": ("good", "✓", "Cleared by a person"),
    "rejected": ("bad", "✗", "Rejected by a person: counts nowhere"),
}
_UNVERIFIED = "Unverified"
_DECISIONS = {"cleared": "Cleared", "rejected": "Rejected"}
_AUDITED = {
    "none": ("", "○", _UNVERIFIED, "not audited: only the leader of a board is, on its own"),
    "waiting": ("", "○", _UNVERIFIED, "its audit is under way"),
    "passed": (
        "good",
        "✓",
        "Verified",
        "new seeds, sanitizers and a profiler agreed",
    ),
    "failed": ("bad", "✗", "Audit failed", "it is on no board"),
    "suspicious": ("warn", "!", "Audit in quarantine", "it is on no board until a person decided"),
    "inconclusive": (
        "",
        "○",
        _UNVERIFIED,
        "its audit has no result, or could not make every check that it needs; its page says why",
    ),
}


@register.simple_tag
def quarantine_badge(state: str) -> SafeString:
    """A badge with the state of a quarantine; nothing where nothing is suspicious."""
    if state not in _QUARANTINE:
        return SafeString("")
    return format_html(
        '<span class="badge {}"><span aria-hidden="true">{}</span>{}</span>', *_QUARANTINE[state]
    )


@register.filter
def what_to_do(suspicions: Iterable[SuspicionView]) -> list[str]:
    """What the author can do about them, each advice once."""
    return [advice for advice in dict.fromkeys(each.advice for each in suspicions) if advice]


@register.filter
def decision_words(state: str) -> str:
    """What a person decided, before the person's name."""
    return _DECISIONS[state]


@register.simple_tag
def audited_badge(state: str, why: str = "") -> SafeString:
    """A badge with what audits say of a place on a board.

    Nothing of a result that is unverified and, as `why` it is not eligible, held back: no audit is
    due before a person lets it.
    """
    kind, sign, words, meaning = _AUDITED[state]
    if why in (Why.REFUSED, Why.QUARANTINED) and words == _UNVERIFIED:
        return SafeString("")
    return format_html(
        '<span class="badge {}"><span aria-hidden="true">{}</span>{}</span>',
        kind, sign, explained(words, meaning),
    )  # fmt: skip


@register.simple_tag
def trust_badges(evaluation: Evaluation) -> SafeString:
    """What lists say beside a verdict: a suspicion that holds, and an audit that said something."""
    badges = [] if evaluation.quarantine == "cleared" else [quarantine_badge(evaluation.quarantine)]
    if evaluation.audited in ("failed", "suspicious", "passed"):
        badges.append(audited_badge(evaluation.audited))
    return format_html_join("", " {}", ((badge,) for badge in badges if badge))


@register.simple_tag
def audited_words(state: str, submission_id: object = "") -> SafeString:
    """The same in a line below a name; of an audit that ended and leaves it there, a link to it."""
    _, sign, words, meaning = _AUDITED[state]
    said = explained(words.lower(), meaning)
    if state in ("passed", "inconclusive") and submission_id:
        address = f"{reverse('submission', args=[submission_id])}#h-audited"
        said = format_html('<a href="{}">{}</a>', address, words.lower())
    line = '<span class="sub"><span aria-hidden="true">{}</span> {}</span>'
    return format_html(line, sign, said)


@register.simple_tag
def quarantine_link(path: str) -> SafeString:
    """The navigation's link for admins, with the number of cases that wait."""
    address = reverse("quarantine")
    count = open_case_count()
    current = SafeString(' aria-current="page"') if path.startswith(address) else ""
    return format_html(
        '<a href="{}"{} aria-label="Quarantine, {} open">Quarantine ({})</a>',
        address, current, count, count,
    )  # fmt: skip
