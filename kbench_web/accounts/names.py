"""Names of people: which are free, and how somebody takes another one."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from runs_app.core.errors import SubmissionError
from runs_app.models import Agent
from runs_app.submitting.authors import check_name
from tasks_app.people import is_own_agent

_KEPT = ("deleted", "kbench", "admin", "site")


def name_refusal(name: str, user: User | None = None) -> str:
    """Why `user`, or a new user, cannot be shown as `name`; empty if it is free."""
    if is_own_agent(name) or name.lower().startswith(_KEPT[:2]) or name.lower() in _KEPT:
        return f"The name {name} is reserved for the site itself."
    same = Q(username__iexact=name) | Q(first_name__iexact=name)
    agents = Agent.objects.filter(name__iexact=name)
    people = User.objects.filter(same)
    if user is not None:
        agents, people = agents.exclude(user=user), people.exclude(pk=user.pk)
    if people.exists() or agents.exists():
        return f"The name {name} already exists: choose another one."
    return ""


@transaction.atomic
def take_name(*, user: User, name: str, now: datetime) -> None:
    """Show `user` under `name` everywhere, also where results stand already; empty: the user name.

    Raises `SubmissionError` for a name that is none, or somebody else's.
    """
    name = name.strip()
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if name:
        check_name("name", name)
        if refusal := name_refusal(name, locked):
            raise SubmissionError("name", refusal)
    locked.first_name = "" if name == locked.get_username() else name
    locked.save(update_fields=["first_name"])
    Agent.objects.filter(user=locked).update(name=name or _own_agent_name(locked))


def _own_agent_name(user: User) -> str:
    """The user name, or one beside it where an agent has that."""
    name = user.get_username()
    taken = Agent.objects.filter(name=name).exclude(user=user).exists()
    return f"{name} (person {user.pk})" if taken else name
