"""A runner of another host asks for a job, and waits until there is one."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator

from gpu_runner.data import codec
from gpu_runner.data.order import Order
from kbench_web import gateway
from runs_app.core.checks.services import request_check
from runs_app.core.messaging import broadcast
from runs_app.core.runners.tokens import revoke
from runs_app.models import Runner, RunnerToken
from tests import factories as make
from tests.unit.kbench_web.asking import answer_of, ask_of, begin, post

pytestmark = pytest.mark.django_db(transaction=True)

QUIET_S = 0.2


async def test_a_job_that_waits_is_handed_over_at_once(lab_runner: Runner) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    answer = await post("take", ask_of(lab_runner, ticket="0" * 32))
    assert answer.status == 200
    order = codec.decode(Order, answer.document)
    assert (order.job_id, order.attempt) == (str(evaluation.pk), 1)
    await sync_to_async(evaluation.refresh_from_db)()
    assert (evaluation.status, evaluation.runner_id) == ("RUNNING", lab_runner.pk)
    again = await post("take", ask_of(lab_runner, ticket="0" * 32))
    assert again.document == answer.document  # the first answer was lost on its way


async def begun(lab_runner: Runner, **ask: Any) -> ApplicationCommunicator:
    """An ask that waits."""
    asked = begin("take", json.dumps(ask_of(lab_runner, **ask)).encode())
    assert await asked.receive_nothing(timeout=QUIET_S, interval=0.05)
    return asked


@pytest.mark.parametrize("what", ["an evaluation", "a private one", "a check"])
async def test_it_waits_and_answers_as_soon_as_one_is_queued(lab_runner: Runner, what: str) -> None:
    await sync_to_async(RunnerToken.objects.update)(trusted=True)
    version = await sync_to_async(make.make_task_version)()
    admin = await sync_to_async(make.make_admin)()
    asked = await begun(lab_runner)
    if what == "a check":
        job: Any = await sync_to_async(request_check)(
            version=version, device=lab_runner.device, user=admin, now=make.NOW
        )
    else:
        job = await sync_to_async(make.make_evaluation)(private=what == "a private one")
    began = time.monotonic()
    answer = await answer_of(asked)
    assert time.monotonic() - began < gateway._LOOK_S / 2
    assert codec.decode(Order, answer.document).job_id == str(job.pk)


async def test_nothing_comes_for_long_and_it_says_so(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "LONGEST_S", 0.3)
    began = time.monotonic()
    answer = await post("take", ask_of(lab_runner))
    assert (answer.status, answer.document) == (204, None)
    assert time.monotonic() - began >= 0.3
    assert not gateway.hub()._watchers.get("queue")  # nobody listens to it afterwards


async def test_without_a_message_it_looks_now_and_then(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_LOOK_S", 0.1)
    asked = await begun(lab_runner)
    with mock.patch.object(broadcast, "_send"):
        await sync_to_async(make.make_evaluation)()
    assert (await answer_of(asked)).status == 200


async def test_a_runner_that_goes_away_gets_no_job(lab_runner: Runner) -> None:
    asked = await begun(lab_runner)
    await asked.send_input({"type": "http.disconnect"})
    await asyncio.sleep(0.2)
    evaluation = await sync_to_async(make.make_evaluation)()
    await asyncio.sleep(0.3)
    await sync_to_async(evaluation.refresh_from_db)()
    assert evaluation.status == "QUEUED"
    assert (await answer_of(asked)).status == 204


async def test_who_waits_at_once_gets_one_job_each(lab_runner: Runner) -> None:
    other = await sync_to_async(make.make_runner)(token=lab_runner.token, name="gpu-2")
    waiting = [await begun(each) for each in (lab_runner, other)]
    version = await sync_to_async(make.make_task_version)()
    found = set()
    for number, _ in enumerate(waiting):
        row = await sync_to_async(make.make_evaluation)(
            task_version=version, source=f"{make.SOURCE}// {number}"
        )
        found.add(str(row.pk))
    answers = [await answer_of(each) for each in waiting]
    assert {answer.document["job_id"] for answer in answers} == found


async def test_a_token_that_is_revoked_meanwhile_is_told_at_once(lab_runner: Runner) -> None:
    asked = await begun(lab_runner)
    admin = await sync_to_async(make.make_admin)()
    await sync_to_async(revoke)(token=lab_runner.token, reason="it lies", user=admin, now=make.NOW)
    await sync_to_async(make.make_evaluation)()
    assert (await answer_of(asked)).status == 401


async def test_a_token_has_so_many_asks_open(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_MOST_ASKS", 2)
    waiting = [await begun(lab_runner) for _ in range(2)]
    answer = await post("take", ask_of(lab_runner))
    assert answer.status == 429
    for asked in waiting:
        await asked.send_input({"type": "http.disconnect"})
        assert (await answer_of(asked)).status == 204
    await sync_to_async(make.make_evaluation)()
    assert (await post("take", ask_of(lab_runner))).status == 200
