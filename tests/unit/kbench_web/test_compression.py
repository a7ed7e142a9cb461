"""Answers are compressed for those who can read them, and hold the same bytes."""

from __future__ import annotations

import gzip
import re

import pytest
from django.test import Client

from tests import factories
from tests.unit.conftest import as_shown

pytestmark = pytest.mark.django_db

GZIP = {"Accept-Encoding": "gzip, br"}


def test_an_answer_is_compressed(client: Client) -> None:
    factories.make_finished_evaluation(mode="ranked")
    for path in ("/", "/queue/", "/api/v1/leaderboard?device=cpu"):
        plain = client.get(path)
        small = client.get(path, headers=GZIP)
        assert not plain.has_header("Content-Encoding")
        assert small["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in small["Vary"]
        assert len(small.content) < len(plain.content)
        text = gzip.decompress(small.content).decode()
        texts = [as_shown(text) if "<html" in text else text, plain.content.decode()]
        one, other = (re.sub(r"\bterm-\d+", "term", each) for each in texts)  # new every time
        assert one == other


def test_the_length_of_a_page_tells_nothing(client: Client) -> None:
    """The same content has many lengths, so guesses that are reflected cannot be compared."""
    answers = [client.get("/api/", headers=GZIP) for _ in range(12)]
    assert len({len(answer.content) for answer in answers}) > 3
