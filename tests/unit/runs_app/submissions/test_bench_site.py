"""What `tests.bench.turnaround` asks of the API is what the API answers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpu_runner.data import codec
from gpu_runner.data.evaluation import StageTime
from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import DeviceKind, Mode, Stage
from runs_app.models import Evaluation
from runs_app.runners.events import record_event
from tests import factories as make
from tests.bench.site import Kernel, RefusedError, Site
from tests.bench.turnaround_rows import line_of
from tests.installation import Installation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

KERNEL = Kernel("good", "scale", make.SOURCE)


class Serving(Installation):
    """An installation whose process is this one."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def wait(self, condition: Any, what: str, timeout_s: float = 0.0, pause_s: float = 0.0) -> None:
        assert condition(), what


class ClientSite(Site):
    """The site's API without a socket."""

    def __init__(self) -> None:
        self.kind, self.device = DeviceKind.CPU, ""
        self.installation = Serving()
        self._token = make.make_token(make.make_admin())

    def ask(self, path: str, document: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"}
        address = f"/api/v1/{path}"
        if document is None:
            answer = Client().get(address, headers=headers)
        else:
            body = json.dumps(document)
            answer = Client().post(address, body, "application/json", headers=headers)
        if answer.status_code >= 400:
            raise RefusedError(answer.content.decode())
        return answer.json()


@pytest.fixture
def site() -> ClientSite:
    make.make_task_version()
    record_event(event=make.make_heartbeat(), now=timezone.now())
    found = ClientSite()
    found.installation.wait(found._find_device, "the runner's device")
    return found


def test_a_submission_is_followed_to_its_verdict(site: ClientSite) -> None:
    assert site.device == "cpu"
    sent = site.submit(KERNEL, Mode.RANKED)
    assert site.queue()["depth"] == 1
    assert site.evaluation(sent)["status"] == "QUEUED"
    evaluation = Evaluation.objects.get(submission=sent.submission, mode="ranked")
    make.start(evaluation, now=evaluation.created_at + timedelta(seconds=2))
    stages = (StageTime(stage=Stage.BUILD, started_s=0.0, duration_s=2.5),)
    result = codec.encode(make.make_result(evaluation, stages=stages))
    make.send(evaluation, EventKind.FINISHED, {"result": result}, seq=2)
    seconds, document = site.verdict(sent)
    line = line_of(sent, seconds, document)
    assert line["seconds"] > 0
    assert (line["verdict"], line["stages"]) == ("CORRECT", {"build": 2.5})
    assert line["times"] == {"n256": 1000.0}  # that of the hidden workload is in nobody's table
    assert line["waited"] == 2.0
    assert site.ranked_tasks() == {"scale"}
    queue = site.queue()
    assert (queue["depth"], queue["running"]) == (1, [])  # the leader is audited: not idle yet


def test_no_two_submissions_have_the_same_source(site: ClientSite) -> None:
    first, second = (site.submit(KERNEL, Mode.QUICK) for _ in range(2))
    sources = {site.ask(f"submissions/{s.submission}")["source"] for s in (first, second)}
    assert len(sources) == 2
    assert all(source.endswith(make.SOURCE) for source in sources)


def test_a_refusal_is_said(site: ClientSite) -> None:
    with pytest.raises(RefusedError, match="there is no task 'other'"):
        site.submit(Kernel("good", "other", make.SOURCE), Mode.QUICK)
