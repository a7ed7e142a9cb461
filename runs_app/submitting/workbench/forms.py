"""The form in which a person enters a kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.text import decoded
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES
from gpu_runner.data.verdict import Direction, Language, Mode
from runs_app.core.errors import SubmissionError
from runs_app.core.forms import ServiceForm, SourceField
from runs_app.core.queue.devices import devices as known_devices
from runs_app.core.text import storable
from tasks_app.people import Viewer
from tasks_app.selectors import evaluable_tasks

MODES = (
    (Mode.QUICK, "Quick", "Is it correct, and roughly how fast? Uses the listed workloads"),
    (Mode.RANKED, "Ranked", "Also runs hidden workloads. A correct kernel goes on the leaderboard"),
    (Mode.PROFILE, "Profile", "Like quick, plus a profile that shows where the time goes"),
    (Mode.TEST, "Test", "Makes a few calls to see whether it is correct. Times are rough"),
    (Mode.COMPILE, "Compile", "Builds it and shows the compiler's messages"),
)
WRITTEN_BY = (("person", "A person"), ("agent", "An agent or language model"))
LANGUAGES = (("", "C++ or CUDA"), (Language.PYTHON.value, "Python"))
"""What is compiled is in the device's own language."""


class _Several(forms.ClearableFileInput):
    allow_multiple_selected = True


class Uploads(forms.FileField):
    """Files that are chosen together; none is fine."""

    widget = _Several

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        """Check each."""
        return [super(Uploads, self).clean(each, initial) for each in data or ()]


class Held(forms.JSONField):
    """The files that a page held: texts by their names, as JSON."""

    def to_python(self, value: Any) -> Any:
        """Read it; what can't be read is no valid JSON, however it can't."""
        try:
            held = super().to_python(value) or {}
        except (ValueError, RecursionError):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None
        if not isinstance(held, dict) or not all(isinstance(text, str) for text in held.values()):
            raise forms.ValidationError("The files must be an object that maps names to contents.")
        return held

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What the page shows again; nothing of what can't be read."""
        try:
            return storable(super().bound_data(data, initial))
        except (ValueError, RecursionError):
            return {}


def held_names(bound: forms.BoundField) -> list[str]:
    """Names of the files in such a field."""
    held = bound.value()
    with suppress(TypeError, ValueError):
        held = json.loads(held) if isinstance(held, str) else held
    return sorted(map(str, held)) if isinstance(held, dict) else []


class SubmissionForm(ServiceForm):
    """Fields of `runs_app.submitting.services.submit`; the source comes as text or as a file."""

    FIELDS: ClassVar[Mapping[str, str]] = {"model": "language_model", "files": "beside"}

    task = forms.ChoiceField(error_messages={"required": "Choose a task."})
    direction = forms.ChoiceField(
        choices=[(d.value, d.value.capitalize()) for d in Direction],
        initial=Direction.FORWARD.value,
        required=False,
    )
    device = forms.ChoiceField(error_messages={"required": "Choose a device."})
    language = forms.ChoiceField(choices=LANGUAGES, required=False)
    mode = forms.ChoiceField(
        choices=[(mode.value, label) for mode, label, _ in MODES], initial=Mode.QUICK.value
    )
    source = SourceField()
    file = forms.FileField(required=False)
    entry = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    beside = Held(required=False, widget=forms.HiddenInput)
    more = Uploads(required=False)
    written_by = forms.ChoiceField(choices=WRITTEN_BY, initial="person")
    agent = forms.CharField(required=False, max_length=100)
    language_model = forms.CharField(required=False, max_length=100)
    private = forms.BooleanField(required=False)
    bearer = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)

    def __init__(self, *args: Any, user: Viewer | None = None, **kwargs: Any) -> None:
        self._kept: dict[str, str] = {}
        super().__init__(*args, **kwargs)
        tasks = evaluable_tasks(user).order_by("title").values_list("slug", "title")
        devices = known_devices()
        self.offer("task", [("", "Choose a task"), *tasks])
        self.offer("device", [(device.slug, device.name) for device in devices])

    def clean(self) -> dict[str, object]:
        """Take the source from the file, if there is one; name an author who is no person."""
        values = super().clean() or {}
        upload = values.get("file")
        if upload is not None:
            values["source"] = self._text(upload)
            if str(upload.name).endswith(Language.PYTHON.suffix):
                values["language"] = Language.PYTHON.value
        values["beside"] = self._kept = self._beside(values)
        if not values.get("source", "").strip() and not {"source", "file"} & set(self.errors):
            self.add_error("source", "Paste the kernel's source, or choose a file.")
        if values.get("written_by") == "agent" and not values.get("agent", "").strip():
            self.add_error("agent", "Enter the agent's name, or choose “A person”.")
        return values

    def field_of(self, name: str) -> str:
        """As of every form; a source that can't be read is the file's fault."""
        return "file" if name == "source" and "file" in self.errors else super().field_of(name)

    def keep_upload(self) -> None:
        """Show an uploaded source in the editor, so that an error does not lose it."""
        source = self.cleaned_data.get("source", "")
        known = {"beside": json.dumps(self._kept)}
        if source and self.files.get("file") is not None:
            known["source"] = source
        self.data = {name: self.data.get(name) for name in self.data} | known

    def names(self) -> list[str]:
        """Names of the files beside the source that the form holds."""
        return held_names(self["beside"])

    def _beside(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The files that the page held, without those to remove, and with those that are added."""
        dropped = self.data.getlist("drop") if isinstance(self.data, QueryDict) else []
        held = values.get("beside", {}).items()
        kept = {name: text for name, text in held if name not in dropped}
        added: set[str] = set()
        for upload in values.get("more") or ():
            if upload.name in added:
                self.add_error("more", f"There are two files {upload.name}: choose one.")
            added.add(upload.name)
            found = [name for name in kept if PurePosixPath(name).name == upload.name]
            kept[found[0] if len(found) == 1 else upload.name] = self._text(upload, "more")
        return kept

    def _text(self, upload: Any, field: str = "file") -> str:
        if upload.size > SOURCE_LIMIT_BYTES:
            limit = SOURCE_LIMIT_BYTES // 2**20
            reason = f"{upload.name} is {upload.size} bytes; the limit is {limit} MiB."
            self.add_error(field, reason)
            return ""
        try:
            return decoded(upload.read(), field)
        except DataError as error:
            self.add_error(field, f"{upload.name} {error.reason}.")
            return ""


def refusal(error: SubmissionError) -> ServiceForm:
    """A form without fields that shows why nothing was entered."""
    form = ServiceForm({})
    form.add_refusal("", error.reasons)
    return form
