"""What admins fill in about the running of the site."""

from __future__ import annotations

from django import forms

from runs_app.core.forms import ServiceForm, moment_field
from runs_app.features.operations.emptying import Part
from runs_app.models import Announcement, Device, Runner, RunnerToken


class AnnouncementForm(ServiceForm):
    """What everybody is told, what it stops, and how long it counts."""

    kind = forms.ChoiceField(choices=Announcement.Kind.choices, label="Type")
    text = forms.CharField(
        max_length=500,
        label="Message to everybody",
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Enter the message."},
    )
    until = moment_field(
        "Until (UTC)",
        required=False,
        help_text="Leave empty to keep it until an admin ends it.",
    )


class SteeringForm(forms.Form):
    """What a runner is to do."""

    wanted = forms.ChoiceField(choices=Runner.Wanted.choices)
    reason = forms.CharField(max_length=500, required=False)


class EmptyingForm(ServiceForm):
    """Which parts of a queue are cancelled, and why."""

    parts = forms.MultipleChoiceField(
        choices=[(part.value, part.value) for part in Part],
        error_messages={"required": "Choose what to cancel."},
    )
    reason = forms.CharField(
        max_length=500, error_messages={"required": "Say why: the jobs' owners will read it."}
    )


class RunnerForm(ServiceForm):
    """A runner that may join."""

    name = forms.CharField(
        max_length=40,
        help_text="Lowercase letters, digits and dashes, such as lab-h100.",
        error_messages={"required": "Give the runner a name."},
    )
    serves = forms.ChoiceField(
        choices=RunnerToken.Serves.choices,
        initial=RunnerToken.Serves.NEW,
        label="Devices it may serve",
    )
    devices = forms.ModelMultipleChoiceField(
        Device.objects.filter(imported_from=""),
        required=False,
        label="Devices",
        widget=forms.CheckboxSelectMultiple,
    )
    trusted = forms.BooleanField(
        required=False,
        label="I control this host",
        help_text="Results from other hosts are labeled, and boards can leave them out. Only"
        " trusted runners check tasks and audit results of trusted runners.",
    )


class ReasonForm(forms.Form):
    """Why an admin does something."""

    reason = forms.CharField(max_length=500, error_messages={"required": "Say why."})
