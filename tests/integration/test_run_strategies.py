"""Each strategy through workers, queues, streams and a language model's endpoint."""

from __future__ import annotations

import pytest

from tests.integration.conftest import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def test_evolve(site: Site) -> None:
    site.speak("good")
    run = site.start("evolve", {"generations": 2, "proposals": 3, "context": 2})
    site.settled(run)
    site.replays(run)
