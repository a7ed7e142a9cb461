"""Find or enter those who write kernels."""

from __future__ import annotations

import re
from datetime import datetime

from django.contrib.auth.models import User

from runs_app.core.errors import SubmissionError
from runs_app.models import Agent, LanguageModel
from tasks_app.people import is_kept_agent, is_own_agent, shown_name

_NAME = re.compile(r"^[A-Za-z0-9][\w .:/@+()-]{0,99}$", re.ASCII)


def agent_of(user: User, name: str, now: datetime) -> Agent:
    """The agent of that name, or the one that stands for `user` in person.

    A name belongs to whoever uses it first; those of the site's strategies belong to everybody.
    Raises `SubmissionError` for a name that stands for somebody else or is no name.
    """
    name = name.strip()
    if not name or name in (user.get_username(), shown_name(user)):
        return _person(user, now)
    check_name("agent", name)
    if is_kept_agent(name):
        raise SubmissionError("agent", f"{name!r} is reserved for kernels that come with the tasks")
    owner = None if is_own_agent(name) else user
    agent, made = Agent.objects.get_or_create(
        name=name, defaults={"kind": Agent.Kind.AGENT, "owner": owner, "created_at": now}
    )
    if agent.kind != Agent.Kind.AGENT:
        kind = agent.get_kind_display().lower()
        raise SubmissionError("agent", f"{name!r} is already taken ({kind}); choose another name")
    if agent.imported_from:
        raise SubmissionError("agent", f"{name!r} is taken by an agent on another site")
    if not made and owner is not None:
        _check_owner(agent, owner)
    return agent


def _check_owner(agent: Agent, user: User) -> None:
    """Raise `SubmissionError` unless the agent's name is `user`'s; an unused one becomes theirs."""
    if agent.owner_id is None and not (agent.submissions.exists() or agent.runs.exists()):
        Agent.objects.filter(pk=agent.pk, owner=None).update(owner=user)
        agent.refresh_from_db(fields=["owner"])
    if agent.owner_id != user.pk:
        raise SubmissionError(
            "agent",
            f"{agent.name!r} belongs to another user, who used it first; choose another name",
        )


def imported_agent(name: str, kind: str, site: str, now: datetime) -> Agent:
    """The agent that stands for one of another site; its name says so where it could be one's own.

    A person could come here, too, and a strategy's name is everybody's.
    """
    names = [f"{name} @ {site}", f"{name[:90]} @ {site} (imported)"]
    is_free = kind == Agent.Kind.AGENT and not (is_kept_agent(name) or is_own_agent(name))
    if is_free and not Agent.objects.filter(name=names[0]).exists():
        names.insert(0, name)
    for shown in names:
        agent, _ = Agent.objects.get_or_create(
            name=shown, defaults={"kind": kind, "imported_from": site, "created_at": now}
        )
        if agent.imported_from == site and agent.kind == kind:
            return agent
    raise SubmissionError("agent", f"{shown!r} is somebody else's name: rename that agent")


def shipped_agent(name: str, now: datetime) -> Agent:
    """The agent under which kernels that come with the tasks stand on the board.

    Where the name stands for somebody else already, one beside it: nobody who writes a task stands
    in another's name, or keeps a task's other kernels from being entered.
    """
    for shown in (name, f"{name[:90]} (shipped)"):
        agent, _ = Agent.objects.get_or_create(
            name=shown, defaults={"kind": Agent.Kind.SHIPPED, "created_at": now}
        )
        if agent.kind == Agent.Kind.SHIPPED:
            return agent
    raise SubmissionError("agent", f"{shown!r} is somebody else's name: rename that agent")


def language_model_of(name: str, now: datetime) -> LanguageModel | None:
    """The language model of that name; None for no name."""
    name = name.strip()
    if not name:
        return None
    check_name("language_model", name)
    return LanguageModel.objects.get_or_create(name=name, defaults={"created_at": now})[0]


def _person(user: User, now: datetime) -> Agent:
    existing = Agent.objects.filter(user=user).first()
    if existing is not None:
        return existing
    name = shown_name(user)
    if Agent.objects.filter(name=name).exists():  # an agent had the name before the person came
        name = f"{name} (person {user.pk})"
    told = {"name": name, "kind": Agent.Kind.PERSON, "created_at": now}
    return Agent.objects.get_or_create(user=user, defaults=told)[0]  # two requests may come at once


def check_name(field: str, name: str) -> None:
    """Raise `SubmissionError` for what is no name of an agent, a person or a language model."""
    if not _NAME.match(name):
        raise SubmissionError(
            field,
            "must start with a letter or digit and contain at most 100 characters: letters, "
            "digits, spaces and _ . : / @ + ( ) -",
        )
