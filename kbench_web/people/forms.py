"""What admins fill in about accounts."""

from __future__ import annotations

from django import forms

from kbench_web.models import SignUpPolicy
from runs_app.core.forms import ServiceForm


class SignUpForm(forms.Form):
    """Who can create an account."""

    mode = forms.ChoiceField(choices=SignUpPolicy.Mode.choices, label="Who can create an account")


class InvitationForm(forms.Form):
    """Whom an invitation is for."""

    note = forms.CharField(
        max_length=100,
        label="Who it's for",
        error_messages={"required": "Enter who the invitation is for."},
    )


class QuotaForm(ServiceForm):
    """Limits of one person; empty for the site's."""

    waiting = forms.IntegerField(
        min_value=0, max_value=10**6, required=False, label="Concurrent evaluations"
    )
    per_day = forms.IntegerField(
        min_value=0, max_value=10**6, required=False, label="Submissions in 24 hours"
    )
    running_runs = forms.IntegerField(
        min_value=0, max_value=10**4, required=False, label="Concurrent runs"
    )
    usd_per_day = forms.FloatField(
        min_value=0, max_value=10**6, required=False, label="US dollars in 24 hours"
    )
    reason = forms.CharField(
        max_length=500, label="Reason", error_messages={"required": "Enter a reason."}
    )


class ChangeForm(forms.Form):
    """A change of an account, and why."""

    change = forms.ChoiceField(
        choices=[(name, name) for name in ("activate", "deactivate", "admin", "no-admin")]
    )
    reason = forms.CharField(
        max_length=500, label="Reason", error_messages={"required": "Enter a reason."}
    )
