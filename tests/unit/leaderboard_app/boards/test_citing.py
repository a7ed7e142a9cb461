"""Citations of boards, and their addresses up to a day."""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from leaderboard_app.boards.query import By
from tests import factories
from tests.unit.leaderboard_app.boards.test_board import ranked
from tests.unit.leaderboard_app.boards.test_leaders import found, of_days_ago

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("by", list(By))
def test_the_digest_is_that_of_the_file(client: Client, by: By) -> None:
    version = factories.make_task_version(name="first")
    ranked(version, speedup=2.0, agent="robot", language_model="alpha")
    board = f"device=cpu&by={by.value}"
    assert "/leaderboard/cite/?" in client.get(f"/leaderboard/?{board}").content.decode()
    page = unescape(client.get(f"/leaderboard/cite/?{board}").content.decode())
    today = f"{timezone.now().date()}"
    assert f"until={today}" in page
    [file] = set(re.findall(r'"(/api/v1/leaderboard\?[^"]+)"', page))
    digest = hashlib.sha256(client.get(file).content).hexdigest()
    assert page.count(digest) == 2  # BibTeX and text


def test_a_task_has_a_citation_for_each_board_and_a_wrong_address_says_so(client: Client) -> None:
    version = factories.make_task_version(name="first")
    ranked(version, agent="robot")
    assert "/leaderboard/cite/?" in client.get("/tasks/first/").content.decode()
    answer = client.get("/leaderboard/cite/?device=cpu&task=frist", follow=True)
    assert (answer.status_code, "frist" in answer.content.decode()) == (400, True)


def test_a_board_up_to_a_day_leaves_out_what_came_later(client: Client) -> None:
    version = factories.make_task_version(name="first")
    oldest = of_days_ago(version, 12, speedup=1.2, agent="oldest")
    old = of_days_ago(version, 4, speedup=1.5, agent="older")
    of_days_ago(version, 0, speedup=2.0, agent="newest")
    day = timezone.now().date() - timedelta(days=2)
    leader = found(until=day)["first"]
    assert leader.entry.evaluation_id == str(old.pk)
    assert leader.before is not None
    assert leader.before.evaluation_id == str(oldest.pk)
    page = client.get(f"/leaderboard/cite/?device=cpu&task=first&until={day}").content.decode()
    assert "2 rows" in page
    assert str(day) in client.get(f"/leaderboard/?device=cpu&until={day}").content.decode()
