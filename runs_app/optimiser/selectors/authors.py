"""Names under which kernels are written, as far as somebody may know that they exist."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from runs_app.core.work.access import visible_submissions
from runs_app.models import Agent, LanguageModel, LanguageModelCall, Tuning
from runs_app.optimiser.selectors.runs import visible_runs
from tasks_app.disclosure import sees_hidden
from tasks_app.people import Viewer

_ITSELF = OuterRef("pk")


def visible_agents(user: Viewer) -> QuerySet[Agent]:
    """Agents and people that `user` may know: their own, and those of anything they may see."""
    if sees_hidden(user):
        return Agent.objects.all()
    runs = visible_runs(user).order_by()
    known = (
        Exists(visible_submissions(user).filter(agent=_ITSELF).order_by())
        | Exists(runs.filter(agent=_ITSELF))
        | Exists(runs.filter(user=OuterRef("user")))
        | Q(kind=Agent.Kind.SHIPPED)
        | Q(listed=True)
    )
    if user.pk is not None:
        known |= Q(owner=user.pk) | Q(user=user.pk)
    return Agent.objects.filter(known)


def visible_language_models(user: Viewer) -> QuerySet[LanguageModel]:
    """Those that the site calls or has called, and those of anything that `user` may see."""
    if sees_hidden(user):
        return LanguageModel.objects.all()
    return LanguageModel.objects.filter(
        ~Q(base_url="")
        | Q(listed=True)
        | Exists(LanguageModelCall.objects.filter(language_model=_ITSELF))
        | Exists(Tuning.objects.filter(language_model=_ITSELF))
        | Exists(visible_submissions(user).filter(language_model=_ITSELF).order_by())
    )
