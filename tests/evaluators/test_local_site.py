"""Many kernels in flight at a real site, which is killed and comes back: each is judged once."""

from __future__ import annotations

import time

import pytest

from kbench_client.config import account
from kbench_client.evaluators.judge import Judge, Wanted
from kbench_client.site import Site
from tests.evaluators.conftest import LocalSite
from tests.evaluators.kernels import kernel


@pytest.mark.timeout(120)
def test_a_killed_site_loses_no_kernel(site: LocalSite) -> None:
    asked = Site(account())
    before = len(asked.submissions(200))
    judge = Judge(asked, Wanted(task="scale", device="cpu"), limit_s=90)
    begun = [judge.begin(kernel(f"good speed={n + 1}", n), "cpp") for n in range(64)]
    while not any(each.done() for each in begun):
        time.sleep(0.05)
    site.kill()
    site.start()
    judged = [each.result() for each in begun]
    assert [each.reward for each in judged] == [pytest.approx(n + 1) for n in range(64)]
    assert len({each.id for each in judged}) == 64
    assert len(asked.submissions(200)) == before + 64
