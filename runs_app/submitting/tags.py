"""Verdicts, statuses and stages in words and signs."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from tasks_app.templatetags.display import chip

register = template.Library()

_SIGNS = {"good": "✓", "bad": "✗", "warn": "!", "accent": "●", "": "○"}

_VERDICTS: dict[str, tuple[str, str, str]] = {
    "CORRECT": ("good", "Correct", "Every output that was checked is within the tolerance."),
    "COMPILED": ("good", "Compiled", "It builds. Nothing was run, timed or verified."),
    "WRONG_SHAPE": ("bad", "Wrong shape", "An output's shape differs from the reference's."),
    "WRONG_DTYPE": ("bad", "Wrong dtype", "An output's dtype differs from the reference's."),
    "WRONG_RESULT": ("bad", "Wrong result", "An output differs by more than the tolerance allows."),
    "COMPILE_ERROR": ("bad", "Compile error", "The compiler rejected the source; see its log."),
    "RUNTIME_ERROR": ("bad", "Runtime error", "The kernel failed while it ran."),
    "TIME_LIMIT": ("bad", "Time limit", "The kernel ran longer than the limit."),
    "MEMORY_LIMIT": ("bad", "Memory limit", "The kernel asked for more memory than the limit."),
    "VIOLATION": ("bad", "Violation", "The kernel broke a rule of the protocol."),
    "TOO_SLOW": (
        "bad",
        "Too slow",
        "It was stopped because it could no longer beat its run's best.",
    ),
    "UNSTABLE": (
        "warn",
        "Unstable",
        "It is correct, but its times are too noisy for a score. A re-run may settle it.",
    ),
    "SYSTEM_ERROR": (
        "warn",
        "System error",
        "This is our fault, not the kernel's; nothing counts against you. Run it again.",
    ),
}
_STATUSES = {
    "QUEUED": ("", "Queued"),
    "RUNNING": ("accent", "Running"),
    "CANCELLED": ("", "Canceled"),
    "FINISHED": ("", "Finished"),
}
_STAGES = {
    "build": "Build",
    "device": "Device",
    "prepare": "Prepare",
    "check": "First check",
    "baselines": "Baselines",
    "measure": "Measure",
    "verify": "Verify",
    "profile": "Profile",
    "audit": "Audit",
}
_STATES = {
    "ready": ("good", "Ready"),
    "draining": ("warn", "Draining"),
    "disabled": ("bad", "Disabled"),
    "stopped": ("bad", "Stopped"),
    "unfit": ("bad", "Unfit"),
    "silent": ("bad", "Silent"),
}


@register.simple_tag
def outcome(status: str, verdict: str, extra: str = "") -> SafeString:
    """A badge with the verdict, or with the status where there is no verdict yet."""
    if verdict:
        kind, words, _ = _VERDICTS.get(verdict, ("", verdict, ""))
    else:
        kind, words = _STATUSES.get(status, ("", status))
    return _badge(kind, words, extra)


@register.simple_tag
def runner_state(state: str) -> SafeString:
    """A badge with a runner's state."""
    return _badge(*_STATES.get(state, ("", state)), "")


@register.filter
def verdict_words(verdict: str) -> str:
    """A verdict's name for people."""
    return _VERDICTS.get(verdict, ("", verdict, ""))[1]


@register.filter
def verdict_meaning(verdict: str) -> str:
    """What a verdict means, in a sentence."""
    return _VERDICTS.get(verdict, ("", "", ""))[2]


@register.filter
def verdict_kind(verdict: str) -> str:
    """The class of a verdict: good, bad or warn."""
    return _VERDICTS.get(verdict, ("", "", ""))[0]


@register.filter
def stage_words(stage: str) -> str:
    """A stage's name for people."""
    return _STAGES.get(stage, stage)


def _badge(kind: str, words: str, extra: str) -> SafeString:
    return chip(words, f"{kind} {extra}", sign=_SIGNS[kind])
