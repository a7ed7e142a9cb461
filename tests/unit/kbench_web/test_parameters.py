"""No page leaves a parameter of its address aside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from tests import factories as make
from tests.unit.kbench_web.world import routes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

OURS = ("tasks_app.", "runs_app.", "leaderboard_app.", "kbench_web.")
OF_ALLAUTH = "kbench_web.accounts."


def addresses() -> Iterator[str]:
    """Of the site's own pages, those whose address needs no argument."""
    for route in routes():
        module = route.callback.__module__
        is_ours = module.startswith(OURS) and not module.startswith(OF_ALLAUTH)
        if is_ours and not route.parameters:
            yield route.path


def test_every_page_refuses_what_it_does_not_know() -> None:
    client = Client()
    client.force_login(make.make_admin())
    statuses = {address: client.get(address, {"devise": "cpu"}) for address in addresses()}
    assert len(statuses) > 30
    assert {address: answer.status_code for address, answer in statuses.items()} == dict.fromkeys(
        statuses, 400
    )


def test_a_refusal_says_what_is_known() -> None:
    for address, wrong, known in (
        ("/queue/", "devise", "none"),
        ("/tasks/", "senario", "<code>scenario</code>"),
        ("/runs/", "stategy", "<code>strategy</code>"),
    ):
        answer = Client().get(address, {wrong: "cpu"})
        text = answer.content.decode()
        assert (answer.status_code, f"<code>{wrong}</code>" in text, known in text) == (
            400, True, True,
        )  # fmt: skip
    for address in ("/runs/?strategy=evolve&page=1&mine=1", "/tasks/?q=x&tag="):
        assert Client().get(address).status_code == 200
