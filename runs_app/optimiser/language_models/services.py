"""What an admin changes of a language model, each with an entry of the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.forms.models import model_to_dict

from runs_app.core.errors import WrongState
from runs_app.core.work.admins import check_admin
from runs_app.models import LanguageModel
from runs_app.optimiser.selectors.language_models import is_named
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry


@transaction.atomic
def save_language_model(
    *, model: LanguageModel, fields: Sequence[str], user: User, now: datetime
) -> LanguageModel:
    """Add or change one; runs that ask it take its address and prices from their next call on.

    Raises `NotAllowed` for others than admins. The log names each of `fields` that changed.
    """
    check_admin(user)
    before = LanguageModel.objects.filter(pk=model.pk).first()
    model.created_at = model.created_at or now
    model.save()
    details = _changes(before, model, fields) if before else {"change": "added"}
    if details:
        add_entry(
            AuditEntry.Kind.MODEL, now=now, actor=user, about=model.name[:100], details=details
        )
    return model


@transaction.atomic
def remove_language_model(*, model: LanguageModel, user: User, now: datetime) -> None:
    """Take one away that nothing names; raises `WrongState` for others, and `NotAllowed`."""
    check_admin(user)
    if is_named(model):
        raise WrongState("", "other data refers to it; clear its base URL instead")
    name = model.name
    model.delete()
    details = {"change": "removed"}
    add_entry(AuditEntry.Kind.MODEL, now=now, actor=user, about=name[:100], details=details)


def _changes(
    before: LanguageModel, after: LanguageModel, fields: Sequence[str]
) -> dict[str, object]:
    old, new = model_to_dict(before, fields), model_to_dict(after, fields)
    return {
        name: f"from {_said(old[name])} to {_said(new[name])}"
        for name in fields
        if old[name] != new[name]
    }


def _said(value: object) -> object:
    """A field's value in the log; a price of 0 is one."""
    return "none" if value in (None, "", {}) else value
