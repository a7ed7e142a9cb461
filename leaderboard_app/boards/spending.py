"""What public runs cost, by agent and by language model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from django.db.models import F, Sum

from leaderboard_app.boards.groups import Group
from leaderboard_app.boards.query import By, Query
from runs_app.models import LanguageModelCall, Run


def with_spending(query: Query, groups: Sequence[Group], tasks: Collection[str]) -> list[Group]:
    """The groups with the money and tokens of their public runs on these tasks."""
    spent = {name: (usd, tokens) for name, usd, tokens in _spent(query, tasks)} if groups else {}
    return [
        replace(group, usd=spent[group.owner][0], tokens=spent[group.owner][1])
        if group.owner in spent
        else group
        for group in groups
    ]


def _spent(query: Query, tasks: Collection[str]) -> Iterable[tuple[str, float, int]]:
    runs = Run.objects.filter(
        private=False, device=query.device, task_version__task__slug__in=tasks
    ).order_by()
    if query.by is By.AGENT:
        return runs.values_list("agent__name").annotate(usd=Sum("usd"), tokens=Sum("tokens"))
    calls = LanguageModelCall.objects.filter(run__in=runs.values("pk")).order_by()
    return calls.values_list("language_model__name").annotate(
        usd=Sum("cost_usd"), tokens=Sum(F("tokens_in") + F("tokens_out"))
    )
