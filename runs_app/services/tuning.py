"""Tuning of verifier prompts: a balanced set from stored evaluations, calls, and what came."""

from __future__ import annotations

from django.db import transaction

from runs_app.models import VerifierPrompt


@transaction.atomic
def use_prompt(*, prompt: VerifierPrompt) -> None:
    """Have runs that start from now on use this prompt for its verifier."""
    VerifierPrompt.objects.filter(verifier=prompt.verifier, in_use=True).update(in_use=False)
    VerifierPrompt.objects.filter(pk=prompt.pk).update(in_use=True)
    prompt.in_use = True
