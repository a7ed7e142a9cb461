"""Verdicts, statuses and stages in words and signs."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from gpu_runner.data.verdict import Stage
from runs_app.models import Status
from tasks_app.templatetags.display import chip

register = template.Library()

_VERDICTS: dict[str, tuple[str, str]] = {
    "CORRECT": ("good", "Every output that was checked is within the tolerance."),
    "COMPILED": ("good", "It builds. Nothing was run, timed or verified."),
    "WRONG_SHAPE": ("bad", "An output's shape differs from the reference's."),
    "WRONG_DTYPE": ("bad", "An output's dtype differs from the reference's."),
    "WRONG_RESULT": ("bad", "An output differs by more than the tolerance allows."),
    "COMPILE_ERROR": ("bad", "The compiler rejected the source; see its log."),
    "RUNTIME_ERROR": ("bad", "The kernel failed while it ran."),
    "TIME_LIMIT": ("bad", "The kernel ran longer than the limit."),
    "MEMORY_LIMIT": ("bad", "The kernel tried to use more memory than the limit."),
    "VIOLATION": ("bad", "The kernel broke a rule of the protocol."),
    "TOO_SLOW": ("bad", "It was stopped because it could no longer beat its run's best."),
    "UNSTABLE": (
        "warn",
        "It is correct, but its times are too noisy for a score. A re-run may settle it.",
    ),
    "SYSTEM_ERROR": (
        "warn",
        "This is our fault, not the kernel's; nothing counts against you. Run it again.",
    ),
}
_NO_VERDICT = ("", "")
_STATES = {"ready": "good", "draining": "warn"}


@register.simple_tag
def outcome(status: str, verdict: str, extra: str = "") -> SafeString:
    """A badge with the verdict, or with the status where there is no verdict yet."""
    if verdict:
        return chip(verdict_words(verdict), verdict_kind(verdict), extra)
    return chip(Status(status).label, "accent" if status == Status.RUNNING else "", extra)


@register.simple_tag
def runner_state(state: str) -> SafeString:
    """A badge with a runner's state."""
    return chip(state.capitalize(), _STATES.get(state, "bad"))


@register.filter
def verdict_words(verdict: str) -> str:
    """A verdict's name for people."""
    return verdict.replace("_", " ").capitalize()


@register.filter
def verdict_meaning(verdict: str) -> str:
    """What a verdict means, in a sentence."""
    return _VERDICTS.get(verdict, _NO_VERDICT)[1]


@register.filter
def verdict_kind(verdict: str) -> str:
    """The class of a verdict: good, bad or warn."""
    return _VERDICTS.get(verdict, _NO_VERDICT)[0]


@register.filter
def stage_words(stage: str) -> str:
    """A stage's name for people."""
    return "First check" if stage == Stage.CHECK else stage.capitalize()
