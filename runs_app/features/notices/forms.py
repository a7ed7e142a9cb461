"""How somebody wants to be told."""

from __future__ import annotations

from django import forms

from runs_app.features.notices.models import NoticeKind, NoticeSettings


class WaysForm(forms.ModelForm):  # type: ignore[type-arg]
    """A way for each kind of notice."""

    class Meta:
        model = NoticeSettings
        fields = ("verdict", "place", "run", "watched")
        labels = {str(kind): kind.label for kind in NoticeKind}


class WebhookForm(forms.Form):
    """An address that is told."""

    url = forms.CharField(max_length=500, error_messages={"required": "Enter an address."})
