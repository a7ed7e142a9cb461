"""The form in which an admin chooses what is measured again; it stands in the address."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from runs_app.features.reevaluation.plan import Choice
from runs_app.features.reevaluation.selectors import devices_of, sources_of
from tasks_app.models import Task, TaskVersion


class ReevaluationForm(forms.Form):
    """From which version, and on which devices; usually the newest earlier one, on all."""

    version = forms.ChoiceField(label="Results of")
    device = forms.MultipleChoiceField(label="Devices")

    def __init__(self, data: QueryDict, *, task: Task) -> None:
        """Bind it to `data`, with the usual choice where that says nothing."""
        self._target = task.current_version
        self._sources = {str(version.number): version for version in sources_of(task)}
        self._devices = {device.slug: device for device in devices_of(self._sources.values())}
        values: MultiValueDict[str, str] = MultiValueDict()
        values.setlist("version", data.getlist("version") or list(self._sources)[:1])
        values.setlist("device", data.getlist("device") or list(self._devices))
        super().__init__(values)
        version, device = self._choices("version"), self._choices("device")
        version.choices = [(number, self._label(each)) for number, each in self._sources.items()]
        device.choices = [(slug, each.name) for slug, each in self._devices.items()]

    @property
    def offers_something(self) -> bool:
        """Whether any version has results."""
        return bool(self._sources)

    def choice(self) -> Choice:
        """The choice of a valid form."""
        assert self._target is not None, "a task without a version has none to offer"
        wanted = self.cleaned_data["device"]
        return Choice(
            source=self._sources[self.cleaned_data["version"]],
            target=self._target,
            devices=tuple(each for slug, each in self._devices.items() if slug in wanted),
        )

    def _label(self, version: TaskVersion) -> str:
        current = self._target is not None and version.pk == self._target.pk
        more = " (current): measure it again" if current else ""
        return f"version {version.number}{more}"

    def _choices(self, name: str) -> Any:
        return self.fields[name]
