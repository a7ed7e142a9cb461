"""What people fill in about challenges and entries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.text import decoded
from gpu_runner.data.verdict import Direction
from runs_app.core.forms import ServiceForm, moment_field
from runs_app.core.queue.devices import devices
from runs_app.features.challenges.services import (
    LONGEST_S,
    MOST_EVALUATIONS,
    MOST_TASKS,
    MOST_TOKENS,
    MOST_USD,
    TRANSCRIPT_LIMIT_BYTES,
)
from tasks_app.models import Task
from tasks_app.selectors import published_tasks

_MINUTE_S = 60
_WEEK = timedelta(days=7)


class _Form(ServiceForm):
    FIELDS: ClassVar[Mapping[str, str]] = {"wall_time_s": "minutes", "language_model": "model"}


def _task_words(task: Task) -> SafeString:
    """A task with its name, difficulty and tags, by which the list is searched."""
    tags = filter(None, (task.difficulty, *task.tags))
    shown = format_html_join(" ", '<span class="tag">{}</span>', ((tag,) for tag in tags))
    name = format_html('{} <span class="faint mono">{}</span>', task.title, task.slug)
    return format_html("<span>{} {}</span>", name, shown)


class ChallengeForm(_Form):
    """Fields of `services.make_challenge`."""

    name = forms.CharField(max_length=100)
    description = forms.CharField(
        required=False, max_length=5000, widget=forms.Textarea(attrs={"rows": 4})
    )
    tasks = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple(attrs={"class": "check-list"}),
        error_messages={"required": "Choose at least one task."},
        help_text=f"At most {MOST_TASKS}, each with hidden workloads for the device.",
    )
    direction = forms.ChoiceField(
        choices=[(d.value, d.value.capitalize()) for d in Direction],
        initial=Direction.FORWARD.value,
    )
    device = forms.ChoiceField()
    evaluations = forms.IntegerField(
        label="Evaluations per task",
        initial=20,
        min_value=1,
        max_value=MOST_EVALUATIONS,
        help_text="For each entry. Evaluations that fail with a system error don't count.",
    )
    minutes = forms.IntegerField(
        label="Minutes",
        initial=120,
        min_value=1,
        max_value=LONGEST_S // _MINUTE_S,
        help_text="For each entry, from the moment it begins.",
    )
    usd = forms.FloatField(
        label="US dollars",
        required=False,
        min_value=0.01,
        max_value=MOST_USD,
        help_text="For each entry, as its agent reports it. Leave empty for no limit.",
    )
    starts_at = moment_field("Start (UTC)")
    ends_at = moment_field("End (UTC)")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer the tasks and devices that there are now, and a week from now on."""
        super().__init__(*args, **kwargs)
        now = timezone.now().replace(second=0, microsecond=0)
        self.fields["starts_at"].initial = now
        self.fields["ends_at"].initial = now + _WEEK
        self.offer("tasks", [(task.slug, _task_words(task)) for task in published_tasks()])
        here = [device for device in devices() if not device.imported_from]
        self.offer("device", [(device.slug, device.name) for device in here])

    def request(self) -> dict[str, Any]:
        """Arguments of the service."""
        values = self.filled()
        return values | {"wall_time_s": values.pop("minutes") * _MINUTE_S}


class EntryForm(_Form):
    """Fields of `services.enter`."""

    agent = forms.CharField(
        required=False,
        max_length=100,
        help_text="The name to show on pages. Leave empty to enter under your own name.",
    )
    setting = forms.CharField(
        required=False,
        max_length=100,
        help_text="A label for how the agent is set up. Another entry by the same agent with the"
        " same label counts as a repeat.",
    )
    model = forms.CharField(label="Language model", required=False, max_length=100)


class ReportForm(_Form):
    """Fields of `services.report`; the transcript comes as a file."""

    usd = forms.FloatField(
        label="Total cost (USD)", required=False, min_value=0, max_value=MOST_USD
    )
    tokens = forms.IntegerField(
        label="Total tokens", required=False, min_value=0, max_value=MOST_TOKENS
    )
    transcript = forms.FileField(
        required=False,
        allow_empty_file=True,
        help_text="A text file of at most 2 MiB. It is public once the challenge is closed.",
    )

    def clean_transcript(self) -> str | None:
        """The text of the file."""
        upload = self.cleaned_data["transcript"]
        if upload is None:
            return None
        if upload.size > TRANSCRIPT_LIMIT_BYTES:
            raise forms.ValidationError(f"It is larger than {TRANSCRIPT_LIMIT_BYTES >> 20} MiB.")
        try:
            return decoded(upload.read(), "transcript")
        except DataError as error:
            raise forms.ValidationError(f"The file {error.reason}.") from None
