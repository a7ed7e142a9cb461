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
    ranked(first, speedup=2.0, agent="broad")
    ranked(second, speedup=4.0, agent="broad")
    ranked(first, speedup=3.0, agent="narrow")
    ranked(second, speedup=0.25, agent="narrow")

    for address in ("by=leaders", "by=matrix"):
        assert "hero-value" not in opened(client, address), "all are provisional"
    factories.pass_audits()
    leaders = opened(client, "by=leaders")
    assert '<span class="hero-value">2</span><span class="hero-unit">of 2 tasks</span>' in leaders
    assert "have a leading kernel on CPU that is known to be faster" in leaders
    names = opened(client, "by=agent")
    assert '<span class="hero-value">100</span><span class="hero-unit">%</span>' in names
    assert "leads: it is faster than the best baseline on this share of 2 tasks on CPU" in names
    cells = opened(client, "by=matrix")
    assert '<span class="hero-value">1</span><span class="hero-unit">of 2</span>' in cells
    assert "and narrow are each the fastest on 1 of 2 solved tasks on CPU" in cells


def test_there_is_no_headline_without_results_or_in_another_order(client: Client) -> None:
    version = factories.make_task_version(name="first")
    for address in ("by=leaders", "by=agent", "by=matrix"):
        assert "hero-value" not in opened(client, address)
    ranked(version, speedup=2.0, agent="broad")
    factories.pass_audits()
    assert "hero-value" in opened(client, "by=leaders")
    assert "hero-value" not in opened(client, "by=leaders&sort=newest")
