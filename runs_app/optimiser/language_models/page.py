"""What the page shows on which an admin says how a language model is called."""

from __future__ import annotations

from dataclasses import dataclass

from django.forms import ModelForm

from runs_app.models import LanguageModel


@dataclass(frozen=True, kw_only=True)
class FormPage:
    """The form of a language model; `name` is the one before, `can_go` if nothing names it."""

    form: ModelForm[LanguageModel]
    model: LanguageModel
    name: str
    can_go: bool
