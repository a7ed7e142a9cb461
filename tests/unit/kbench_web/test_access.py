"""Who may do what: every address of the site, asked by everybody, when the thing is alice's.

A new address has to be named in `access_table`, with who may read it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.apps import apps
from django.conf import settings as site_settings
from django.contrib.admin.utils import NestedObjects
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client

from kbench_web.asgi import application
from kbench_web.socket_access import UNAUTHORIZED
from runs_app.consumers import NOT_FOUND
from runs_app.models import Agent
from tests import factories as make
from tests.unit.kbench_web.access_table import (
    ABSENT,
    ADMIN,
    FORMS,
    OTHER,
    OWNER,
    PUBLIC,
    READERS,
    STATUSES,
    VISITOR,
)
from tests.unit.kbench_web.marked import found_in, mark_results
from tests.unit.kbench_web.world import SECRETS, Route, World, make_world, routes, sockets

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

_NOT_COUNTED = {"sessions.Session", "usersessions.UserSession", "axes.AccessAttempt"}
"""Tables in which a visit leaves its trace."""
_ANYTHING = {"uidb36", "key"}
"""Parts of addresses that may be anything."""
_USED = {"last_used_at", "last_login"}
_FORM = {
    "action": "publish", "agent": "mallory", "confirm": "on", "description": "mallory",
    "device": "cpu", "direction": "forward", "do": "retire", "evaluations": "5",
    "kind": "note", "language": "cpp", "minutes": "5", "mode": "quick", "name": "mallory",
    "on": "1", "path": "reference.py", "reason": "because", "revision": "1",
    "source": make.SOURCE, "state": "cleared", "task": "scale", "text": "mallory",
    "title": "mallory", "url": "https://mallory.example/", "wanted": "disabled",
}  # fmt: skip
"""Fields that forms of the site have, with values that they take."""
_OF_ALICE = {
    "Agent", "ApiToken", "Candidate", "Draft", "Entry", "Evaluation", "Notice", "Run", "Submission",
    "TaskCheck", "User", "UserSession", "Watch", "Webhook",
}  # fmt: skip


@dataclass(frozen=True)
class Who:
    """Somebody who asks with a cookie, which the API ignores, or a token, which pages ignore."""

    role: str
    user: User | None = None
    token: str = ""

    def client(self, **options: Any) -> Client:
        """Their browser or program."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        client = Client(raise_request_exception=False, headers=headers, **options)
        if self.user is not None:
            client.force_login(self.user)
        return client

    def role_at(self, route: Route) -> str:
        """As whom the address knows them."""
        is_known = bool(self.token) if _is_api(route) else self.user is not None
        return self.role if is_known else VISITOR


@pytest.fixture
def world(settings: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    """Its results have hidden numbers that would be recognized."""
    settings.API_REQUESTS_PER_MINUTE = 10**6
    mark_results(monkeypatch)
    return make_world()


EVERYBODY = (
    "visitor", "bob", "bob's read token", "bob's token", "the token of alice's entry", "alice",
    "alice's token", "admin", "admin's token",
)  # fmt: skip
STRANGERS = EVERYBODY[:5]


def everybody(world: World) -> dict[str, Who]:
    """Those who ask, by name."""
    return {
        "visitor": Who(VISITOR),
        "bob": Who(OTHER, world.bob),
        "bob's read token": Who(OTHER, token=make.make_token(world.bob, scopes=["read"])),
        "bob's token": Who(OTHER, token=make.make_token(world.bob)),
        "the token of alice's entry": Who(OTHER, token=world.entry_token),
        "alice": Who(OWNER, world.alice),
        "alice's token": Who(OWNER, token=make.make_token(world.alice, name="alices-token")),
        "admin": Who(ADMIN, world.admin),
        "admin's token": Who(ADMIN, token=make.make_token(world.admin)),
    }


def _is_api(route: Route) -> bool:
    return route.path.startswith("/api/v1/")


def _is_djangos(route: Route) -> bool:
    return route.path.startswith("/admin/")


def asked_by(who: Who) -> list[Route]:
    """Addresses where it makes a difference who asks: pages know no tokens."""
    return [each for each in routes() if not who.token or _is_api(each)]


def rows() -> dict[str, str]:
    """By table what is in it."""
    found = {}
    for model in apps.get_models():
        if model._meta.managed and model._meta.label not in _NOT_COUNTED:
            stored = sorted(map(_values, model._default_manager.all()))
            found[model._meta.label] = hashlib.sha256("\n".join(stored).encode()).hexdigest()
    return found


def _values(row: Model) -> str:
    columns = [each.attname for each in row._meta.concrete_fields if each.attname not in _USED]
    return repr([(name, getattr(row, name)) for name in columns])


def rows_of(user: User) -> dict[tuple[str, Any], str]:
    """All that would go with somebody, and what is in it."""
    collector = NestedObjects(using="default")
    collector.collect(User.objects.filter(pk=user.pk))
    collector.collect(Agent.objects.filter(owner=user))
    found = {row for own in collector.data.values() for row in own} | set(collector.protected)
    return {(row._meta.label, row.pk): _values(row) for row in found}


def changed(before: Mapping[Any, str], after: Mapping[Any, str]) -> list[Any]:
    """What is gone or another."""
    return [key for key, value in before.items() if after.get(key) != value]


def expected(route: Route, role: str) -> set[int]:
    """The statuses of a GET."""
    if _is_djangos(route):
        return {200, 302, 403, 405} if role == ADMIN else {302, 403}
    return STATUSES[READERS[route.path]][role]


def test_the_table_names_every_address() -> None:
    here = {each.path for each in [*routes(), *sockets()] if not _is_djangos(each)}
    new, gone = here - set(READERS), set(READERS) - here
    assert not new, f"say in access_table.py who may read {sorted(new)}"
    assert not gone, f"access_table.py names addresses that the site no longer has: {sorted(gone)}"


@pytest.mark.parametrize("name", EVERYBODY)
def test_a_get_tells_no_secret_and_changes_nothing(name: str, world: World) -> None:
    who = everybody(world)[name]
    client, before = who.client(), rows()
    for route in asked_by(who):
        role = who.role_at(route)
        secrets = () if role in (OWNER, ADMIN) else SECRETS
        hidden = () if role == ADMIN else (make.HIDDEN_WORKLOAD,)
        for address in world.addresses(route):
            answer = client.get(address)
            assert answer.status_code < 500, address
            if address == world.address(route):
                assert answer.status_code in expected(route, role), (address, role)
            text = _text(answer)
            told = [word for word in (*secrets, *hidden) if word in text]
            told += [] if role == ADMIN else found_in(text)
            assert told == [], f"{address} tells {name} of {told}"
    assert changed(before, rows()) == [], f"GETs by {name} changed tables"


@pytest.mark.parametrize("name", ["admin", "admin's token"])
def test_what_is_not_there_is_not_found(name: str, world: World) -> None:
    """Each part of an address in turn is one that nothing has."""
    who = everybody(world)[name]
    client, found = who.client(), {}
    for route in asked_by(who):
        if READERS.get(route.path, ABSENT) in (FORMS, ABSENT):
            continue
        for parameter in set(route.parameters) - _ANYTHING:
            lost = _nothing_like(world.values[parameter])
            names = (
                parameter,
                {"slug": "challenge", "number": "reevaluation_id"}.get(parameter, ""),
            )
            gone = replace(world, values={**world.values, **dict.fromkeys(names, lost)})
            found[gone.address(route)] = client.get(gone.address(route)).status_code
    assert {address: status for address, status in found.items() if status != 404} == {}
    assert len(found) > 8


def _nothing_like(value: Any) -> Any:
    """A number, a key or a name that nothing has."""
    if isinstance(value, int):
        return 987654
    return uuid4() if isinstance(value, UUID) else "nothing"


def _text(answer: Any) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return bytes(body).decode(errors="replace")


@pytest.mark.parametrize("name", STRANGERS)
def test_a_post_changes_nothing_of_somebody_else(name: str, world: World) -> None:
    who = everybody(world)[name]
    before, own = rows(), rows_of(world.alice)
    assert {label.rpartition(".")[2] for label, _ in own} >= _OF_ALICE
    for route in asked_by(who):
        if _is_djangos(route):
            continue  # one check of Django's lets nobody but admins into any of them
        client = who.client()  # a form may have signed them out
        body = json.dumps({}) if _is_api(route) else _FORM
        kind = {"content_type": "application/json"} if _is_api(route) else {}
        assert client.post(world.address(route), body, **kind).status_code < 500, route.path
    touched = changed(own, rows_of(world.alice))
    assert [key for key in touched if not _is_its_own(name, key)] == [], f"POSTs by {name}"
    if name == "visitor":
        assert changed(before, rows()) == []


def _is_its_own(name: str, key: tuple[str, Any]) -> bool:
    """The token of an entry ends its entry."""
    return "entry" in name and key[0] == "challenges.Entry"


def test_a_form_of_another_site_does_nothing(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.alice)
    before = rows()
    pages = [route for route in routes() if not _is_api(route)]
    answers = {route.path: client.post(world.address(route), _FORM).status_code for route in pages}
    assert {path for path, status in answers.items() if status != 403} == set()
    assert changed(before, rows()) == []


@pytest.mark.django_db(transaction=True)
async def test_a_socket_is_private_like_its_page(settings: Any) -> None:
    """One world for everybody: making one takes longer than all sockets together."""
    world = await sync_to_async(make_world)()
    asking = await sync_to_async(everybody)(world)
    for name, who in asking.items():
        headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
        if who.token:
            headers.append((b"authorization", f"Bearer {who.token}".encode()))
        elif who.user:
            session = (await sync_to_async(who.client)()).cookies[site_settings.SESSION_COOKIE_NAME]
            cookie = f"{site_settings.SESSION_COOKIE_NAME}={session.value}"
            headers.append((b"cookie", cookie.encode()))
        for route in sockets():
            socket = WebsocketCommunicator(application, world.address(route), headers=headers)
            assert (await socket.connect())[0], (name, route.path)
            told = READERS[route.path] == PUBLIC or who.role in (OWNER, ADMIN)
            if "entry" in name:
                assert (await socket.receive_output())["code"] == UNAUTHORIZED, route.path
            elif not told:
                assert (await socket.receive_output())["code"] == NOT_FOUND, (name, route.path)
            await socket.disconnect()
    assert set(asking) == set(EVERYBODY)
