"""What admins fill in about the running of the site."""

from __future__ import annotations

from django import forms

from runs_app.models import Announcement, Runner
from runs_app.operations.emptying import Part


class AnnouncementForm(forms.Form):
    """What everybody is told, what it stops, and how long it counts."""

    kind = forms.ChoiceField(choices=Announcement.Kind.choices, label="What it does")
    text = forms.CharField(
        max_length=500,
        label="What everybody reads",
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say what everybody reads."},
    )
    until = forms.DateTimeField(
        required=False,
        label="Until, in UTC",
        help_text="Empty: until an admin ends it.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"],
    )


class SteeringForm(forms.Form):
    """What a runner is to do."""

    wanted = forms.ChoiceField(choices=Runner.Wanted.choices)
    reason = forms.CharField(max_length=500, required=False)


class EmptyingForm(forms.Form):
    """Which parts of a queue are cancelled, and why."""

    parts = forms.MultipleChoiceField(
        choices=[(part.value, part.value) for part in Part],
        error_messages={"required": "Choose what to cancel."},
    )
    reason = forms.CharField(
        max_length=500, error_messages={"required": "Say why: the owners read it."}
    )
