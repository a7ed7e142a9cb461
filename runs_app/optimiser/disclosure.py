"""Texts of a run as everybody may read them: none names a hidden workload of the task."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import TypeVar

from runs_app.models import Candidate, LanguageModelCall
from tasks_app.disclosure import public_value

T = TypeVar("T", Candidate, LanguageModelCall)

_OF_CANDIDATES = ("title", "reason", "knobs", "techniques", "feedback")
_OF_CALLS = ("messages", "response", "error", "problem")


def public_candidate(candidate: Candidate, hidden_names: Collection[str]) -> Candidate:
    """Copy of a row for reading, never to be saved; columns that were not loaded stay so."""
    return _public(candidate, _OF_CANDIDATES, hidden_names)


def public_call(call: LanguageModelCall, hidden_names: Collection[str]) -> LanguageModelCall:
    """The same of a call."""
    return _public(call, _OF_CALLS, hidden_names)


def _public(row: T, columns: Collection[str], hidden_names: Collection[str]) -> T:
    shown = copy.copy(row)
    for name in columns:
        if name in row.__dict__:
            setattr(shown, name, public_value(row.__dict__[name], hidden_names))
    return shown
