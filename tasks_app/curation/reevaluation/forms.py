"""The form in which an admin chooses what is evaluated again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from tasks_app.curation.reevaluation.plan import MOST_AT_ONCE
from tasks_app.curation.reevaluation.selectors import (
    WHAT_WORDS,
    Choice,
    What,
    devices_with_results,
    versions_with_results,
)
from tasks_app.models import Task

_TOP = 10


class ReevaluationForm(forms.Form):
    """From which version, on which devices, and what; it stands in the address."""

    version = forms.TypedChoiceField(coerce=int, label="Results of")
    device = forms.MultipleChoiceField(
        label="Devices", error_messages={"required": "Choose at least one device."}
    )
    what = forms.ChoiceField(
        label="What", choices=[(what.value, words) for what, words in WHAT_WORDS.items()]
    )
    top = forms.IntegerField(label="How many of the board", min_value=1, max_value=MOST_AT_ONCE)

    def __init__(self, data: QueryDict, *, task: Task) -> None:
        """Bind it to `data`, with the usual choice where that says nothing."""
        found = versions_with_results(task)
        self._versions = {version.number: version for version, _ in found}
        self._counts = {version.number: count for version, count in found}
        self.target = task.current_version
        devices = {
            device.slug: device
            for version in self._versions.values()
            for device in devices_with_results(version)
        }
        self._devices = dict(sorted(devices.items()))
        super().__init__(self._with_defaults(data))
        self._choices("version", [(str(number), self._label(number)) for number in self._versions])
        self._choices("device", [(slug, device.name) for slug, device in self._devices.items()])

    @property
    def offers_something(self) -> bool:
        """Whether any version has ranked results."""
        return bool(self._versions)

    def choice(self) -> Choice:
        """The choice of a valid form."""
        values = self.cleaned_data
        assert self.target is not None, "a task without a version offers none"
        return Choice(
            source=self._versions[values["version"]],
            target=self.target,
            devices=tuple(
                self._devices[slug] for slug in self._devices if slug in values["device"]
            ),
            what=What(values["what"]),
            top=values["top"],
        )

    def address(self) -> list[tuple[str, str]]:
        """The choice of a valid form as fields."""
        values = self.cleaned_data
        fields = [(name, str(values[name])) for name in ("version", "what", "top")]
        return fields + [("device", slug) for slug in values["device"]]

    def _with_defaults(self, data: QueryDict) -> MultiValueDict[str, str]:
        values: MultiValueDict[str, str] = MultiValueDict(
            {name: data.getlist(name) for name in data if name in self.base_fields}
        )
        whole = "what" in values  # the form was sent: a device that is left out is left out
        number = next(iter(self._versions), None)
        if "version" not in values and number is not None:
            values["version"] = str(number)
        if "device" not in values and not whole:
            chosen = self._versions.get(_number(values.get("version")))
            known = devices_with_results(chosen) if chosen else []
            values.setlist("device", [device.slug for device in known])
        values.setdefault("what", What.BEST.value)
        values["top"] = values.get("top") or str(_TOP)
        return values

    def _label(self, number: int) -> str:
        count = self._counts[number]
        entered = f"{count} submission{'' if count == 1 else 's'}"
        if self.target is not None and number == self.target.number:
            return f"version {number}, the current one: measure again ({entered})"
        return f"version {number} ({entered})"

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field: Any = self.fields[name]
        field.choices = choices


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
