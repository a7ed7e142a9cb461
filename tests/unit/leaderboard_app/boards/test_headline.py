"""Each board over several problems opens with one figure and one sentence."""

from __future__ import annotations

import pytest
from django.test import Client

from tests import factories
from tests.unit.leaderboard_app.boards.test_board import ranked

pytestmark = pytest.mark.django_db


def opened(client: Client, address: str) -> str:
    """The page's words, without what is between them."""
    return " ".join(client.get(f"/leaderboard/?device=cpu&{address}").content.decode().split())


def test_boards_open_with_what_leads_them(client: Client) -> None:
    first, second = (factories.make_task_version(name=name) for name in ("first", "second"))
    for address in ("by=leaders", "by=agent", "by=matrix"):
        assert "hero-value" not in opened(client, address), "there are no results"
    ranked(first, speedup=2.0, agent="broad")
    ranked(second, speedup=4.0, agent="broad")
    ranked(first, speedup=3.0, agent="narrow")
    ranked(second, speedup=0.25, agent="narrow")
    for address in ("by=leaders", "by=matrix"):
        assert "hero-value" not in opened(client, address), "all are provisional"
    factories.pass_audits()
    for by, value, unit in (
        ("leaders", "2", "of 2 tasks"),
        ("agent", "100", "%"),
        ("matrix", "1", "of 2"),
    ):
        figure = f'"hero-value">{value}</span><span class="hero-unit">{unit}</span>'
        assert figure in opened(client, f"by={by}")
    assert "hero-value" not in opened(client, "by=leaders&sort=newest")
