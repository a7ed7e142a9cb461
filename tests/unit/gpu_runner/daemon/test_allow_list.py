"""Jobs that a runner must not do, as somebody with access to its queues could put there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rq import Callback, Queue

from gpu_runner.data import codec, mailbox
from gpu_runner.data.event import EventKind
from tests.unit.gpu_runner.daemon.conftest import StartDaemon
from tests.unit.gpu_runner.daemon.running import make_order, make_request


def test_what_the_site_does_not_hand_over_is_not_done_and_ends_no_slot(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    """Names, jobs of RQ with functions, callbacks and pickles, and answers that make no sense."""
    daemon = start_daemon()
    target = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (target,)

    daemon.queue.push_job_id(mailbox.rq_id("cpu", "evaluation-e9-1"))
    daemon.queue.push_job_id("nonsense")
    daemon.queue.enqueue("os.system", f"touch {target}")
    daemon.queue.enqueue("os.getcwd", on_success=Callback("os.getcwd"))
    Queue("device-cpu", connection=daemon.connection).enqueue("os.getcwd", Bomb())
    for number, answer in enumerate(("{", "[]", '{"kind": "evaluation"}', '"x"')):
        daemon.site.orders[f"evaluation-bad-{number}"] = answer  # type: ignore[assignment]
        daemon.queue.push_job_id(mailbox.rq_id("cpu", f"evaluation-bad-{number}"))
    order = make_order(make_request("new"))
    request = {**order.request, "colour": "blue"}
    daemon.site.put(codec.decode(type(order), {**codec.encode(order), "request": request}))
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)
    assert "colour" in daemon.wait_for(EventKind.LOST, "new").payload["reason"]
    assert not target.exists()
    assert daemon.events("e9") == []
    assert [ask.job for ask in daemon.site.asks][-1] == "evaluation-e1-1"
