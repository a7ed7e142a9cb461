"""Jobs that a runner must not do, as somebody with access to its queues could put there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rq import Callback, Queue

from gpu_runner.data import codec, mailbox
from gpu_runner.data.event import EventKind
from tests.unit.gpu_runner.daemon.conftest import StartDaemon
from tests.unit.gpu_runner.daemon.running import make_order, make_request


def test_a_name_that_the_site_does_not_hand_over_is_no_job(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    daemon.queue.push_job_id(mailbox.rq_id("cpu", "evaluation-e9-1"))
    daemon.queue.push_job_id("nonsense")
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)
    assert daemon.events("e9") == []
    assert [ask.job for ask in daemon.site.asks][-1] == "evaluation-e1-1"


def test_jobs_of_rq_with_functions_callbacks_and_pickles_are_not_even_read(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    daemon = start_daemon()
    target = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (target,)

    daemon.queue.enqueue("os.system", f"touch {target}")
    daemon.queue.enqueue("os.getcwd", on_success=Callback("os.getcwd"))
    Queue("device-cpu", connection=daemon.connection).enqueue("os.getcwd", Bomb())
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)
    assert not target.exists()


def test_a_request_that_cannot_be_read_is_lost_with_the_field(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    order = make_order(make_request())
    request = {**order.request, "colour": "blue"}
    daemon.site.put(codec.decode(type(order), {**codec.encode(order), "request": request}))
    assert "colour" in daemon.wait_for(EventKind.LOST).payload["reason"]


@pytest.mark.parametrize("answer", ["{", "[]", '{"kind": "evaluation"}', '"x"'])
def test_an_answer_that_cannot_be_read_ends_no_slot(start_daemon: StartDaemon, answer: str) -> None:
    daemon = start_daemon()
    daemon.site.orders["evaluation-bad-1"] = answer  # type: ignore[assignment]
    daemon.queue.push_job_id(mailbox.rq_id("cpu", "evaluation-bad-1"))
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)
