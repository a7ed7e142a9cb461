"""What forms have in common whose values a service takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest

from gpu_runner.data.characters import bad_character
from tasks_app.errors import Faults, FieldError


@dataclass(frozen=True)
class Refusals:
    """A block in which a service may refuse something: `tell` shows it, and the block ends.

    faults: what was wrong before, for a service that adds to it and then refuses all at once.
    """

    tell: Callable[[FieldError], object]
    faults: Faults = field(default_factory=Faults)

    def __enter__(self) -> Faults:
        return self.faults

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, FieldError):
            self.tell(error)
        return isinstance(error, FieldError)


class SourceField(forms.CharField):
    """A kernel's source, which its service requires if need be."""

    def __init__(self) -> None:
        super().__init__(required=False, strip=False, widget=forms.Textarea)
        self.validators = [_check_characters]  # instead of Django's, which doesn't say where


def _check_characters(text: str) -> None:
    if reason := bad_character(text):
        raise forms.ValidationError(f"The source {reason}.")


def moment_field(label: str, **options: Any) -> forms.DateTimeField:
    """A moment in UTC, which a browser lets people choose."""
    return forms.DateTimeField(
        label=label,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"],
        **options,
    )


def refusals(request: HttpRequest, what: str) -> Refusals:
    """Tells on the next page `what` did not happen, and why."""
    return Refusals(lambda error: messages.error(request, f"{what}: {error.reasons}."))


class ServiceForm(forms.Form):
    """A form of one service: it offers what there is, and shows what the service refuses."""

    FIELDS: ClassVar[Mapping[str, str]] = {}
    """The form's field by the service's name of it, where they differ."""

    def field_of(self, name: str) -> str:
        """The form's field for what the service calls so."""
        return self.FIELDS.get(name, name)

    def add_refusal(self, field: str, reason: str) -> None:
        """Show a service's refusal beside the field that it names, else above all fields."""
        name = self.field_of(field)
        text = f"{reason[:1].upper()}{reason[1:].removesuffix('.')}."
        self.add_error(name if name in self.fields else None, text)

    def refusals(self) -> Refusals:
        """Shows on the form what is refused: it is not valid then.

        If it is not valid already, call only a service that takes the faults, with the `filled`
        fields: all that is wrong is shown at once.
        """
        faults = Faults()
        for name, _, text in self.problems():
            faults.add(name, text)
        return Refusals(self._add_refusals, faults)

    def filled(self) -> dict[str, Any]:
        """The value of each field; of a wrong one an empty text, or what the form begins with."""
        return {name: self._value_of(name, field) for name, field in self.fields.items()}

    def problems(self) -> list[tuple[str, str, str]]:
        """Every error with the name and the label of its field; both are empty for the whole."""
        return [
            ("", "", text) if name == NON_FIELD_ERRORS else (name, str(self[name].label), text)
            for name, errors in self.errors.items()
            for text in map(str, errors)
        ]

    def _add_refusals(self, error: FieldError) -> None:
        wrong = set(self.errors)  # of these, the service did not get what was entered
        for name, reason in error.every:
            if (self.field_of(name) or NON_FIELD_ERRORS) not in wrong:
                self.add_refusal(name, reason)

    def _value_of(self, name: str, field: forms.Field) -> Any:
        if name not in self.errors:
            return self.cleaned_data[name]
        is_text = isinstance(field, forms.CharField | forms.ChoiceField)
        return "" if is_text else self.get_initial_for_field(field, name)

    def offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        """Let a field have one of these values, each with its words."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField), "only choice fields are filled here"
        field.choices = choices
