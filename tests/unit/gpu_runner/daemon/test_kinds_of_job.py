"""A kind of job that this runner does not know, as a newer site may have."""

from __future__ import annotations

from gpu_runner.data.event import EventKind
from gpu_runner.data.order import Order
from tests.unit.gpu_runner.daemon.conftest import StartDaemon

ORDER = Order(kind="double", job_id="d1", attempt=1, timeout_s=60, request={"number": 21})


def test_a_runner_that_does_not_know_a_kind_says_so(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    daemon.site.put(ORDER)
    assert "'double'" in daemon.wait_for(EventKind.LOST, "d1").payload["reason"]
