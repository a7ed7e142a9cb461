"""What a heartbeat says of its runner, and what it may not say."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from runs_app.core.errors import EventError, Implausible
from runs_app.core.queue import runners
from runs_app.core.runners import heartbeats
from runs_app.core.runners.events import Sender, record_event, refuse
from runs_app.models import Device, Runner, RunnerFlag, RunnerJob, RunnerToken, Status
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

HOPPER = {"device": "nvidia-h100", "device_kind": "cuda", "device_name": "NVIDIA H100"}


def a_token(serves: RunnerToken.Serves, *devices: str, name: str = "stranger") -> RunnerToken:
    token = make.make_runner_token(name=name, serves=serves, trusted=False)
    token.devices.set(devices)
    return token


def test_a_runner_announces_itself_and_its_device() -> None:
    assert make.beat(**HOPPER)
    assert not make.beat(now=make.later(5), **HOPPER)
    runner = Runner.objects.get(name="test.host-1")
    assert (runner.device_id, runner.booted_at) == ("nvidia-h100", make.NOW)
    assert runner.seen_at == make.later(5)
    assert Device.objects.get(slug="nvidia-h100").name == "NVIDIA H100"
    assert [device.slug for device in runner.token.devices.all()] == ["nvidia-h100"]


def test_what_runners_build_with_is_known_by_device() -> None:
    built = {"compiler": "nvcc 13.0 with g++ 12.2.0", "architecture": "sm_90a"}
    for name in ("host-1", "host-2"):
        make.beat(name=name, **HOPPER, **built)
    make.beat(name="old")  # does not say
    [found] = runners.toolchains(["cuda", "cpu"])
    assert (found.device.slug, found.compiler) == ("nvidia-h100", built["compiler"])
    assert found.architecture == "sm_90a"
    assert runners.toolchains(["cpu"]) == []
    newer = {**built, "compiler": "nvcc 13.1 with g++ 13.2.0"}
    make.beat(now=make.later(5), name="host-2", **HOPPER, **newer)
    assert len(runners.toolchains(["cuda"])) == 2
    Runner.objects.update(state=Runner.State.STOPPED)
    assert runners.toolchains(["cuda"]) == []


def test_of_packages_only_known_names_and_versions_are_kept() -> None:
    told = {
        "torch": "2.13.0+cpu", "numba": "", "scipy": "x" * 51, "numpy": "<b>1</b>",
        "leftpad": "1.0", **{f"package-{n}": "1" for n in range(1000)},
    }  # fmt: skip
    make.beat(packages=told, current=tuple(f"evaluation-{n}-1" for n in range(1, 1000)))
    runner = Runner.objects.get()
    assert runner.packages == {"torch": "2.13.0+cpu", "numba": ""}
    assert len(runner.current) == heartbeats.MOST_AT_ONCE


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"device_kind": "tpu"}, EventError, "'tpu' is not a valid device kind"),
        ({"state": "asleep"}, EventError, "'asleep' is not a valid runner state"),
        ({"device_kind": "cuda"}, EventError, "device 'cpu' is a cpu, not a cuda"),
        ({"device": "nvidia-h200", "device_kind": "cuda"}, EventError, "results from another site"),
        ({"device": "../cpu"}, DataError, "'../cpu' is not a valid device name"),
        ({"device": "x" * 61}, DataError, "is not a valid device name"),
        *[({"name": n}, DataError, "name: must") for n in ("", "x" * 101, "a b", ".hidden")],
    ],
)
def test_impossible_runners_are_refused(
    changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    make.make_device(imported_from="elsewhere")
    devices = Device.objects.count()
    with pytest.raises(error, match=words):
        make.beat(**changes)
    with pytest.raises(EventError, match="spool abc can't send a heartbeat"):
        record_event(event=make.make_heartbeat(), sender=Sender(spool="abc"), now=make.NOW)
    assert not Runner.objects.exists()
    assert Device.objects.count() == devices


@pytest.mark.parametrize(
    ("serves", "listed", "device", "may"),
    [
        ("listed", ["cpu"], "cpu", True),
        ("listed", ["cpu"], "nvidia-h200", False),
        ("listed", ["cpu"], "nvidia-h100", False),  # which the site does not know yet
        ("new", ["cpu"], "cpu", True),
        ("new", ["cpu"], "nvidia-h200", False),
        ("new", [], "nvidia-h100", True),
        ("any", [], "nvidia-h200", True),
        ("any", [], "nvidia-h100", True),
    ],
)
def test_a_token_serves_its_own(serves: str, listed: list[str], device: str, may: bool) -> None:
    make.make_device()
    token = a_token(RunnerToken.Serves(serves), *listed)
    kind = "cpu" if device == "cpu" else "cuda"
    state = {"device": device, "device_kind": kind, "device_name": device}
    if may:
        assert make.beat(token=token, **state)
        assert token.devices.filter(slug=device).exists()
        return
    sender, event = Sender(token=token), make.make_heartbeat(**state)
    with pytest.raises(Implausible, match=f"reports the device '{device}', which it isn't"):
        record_event(event=event, sender=sender, now=make.NOW)
    assert not Runner.objects.exists()
    assert not Device.objects.filter(slug="nvidia-h100").exists()
    assert [known.slug for known in token.devices.all()] == listed


def test_a_runner_that_claims_a_device_is_in_doubt_and_waits_in_vain() -> None:
    token, audit = a_token(RunnerToken.Serves.LISTED, "cpu"), make.make_evaluation()
    sender, event = Sender(token=token), make.make_heartbeat(**HOPPER)
    for _ in range(2):
        with pytest.raises(Implausible) as refusal:
            record_event(event=event, sender=sender, now=make.NOW)
        refuse(event=event, sender=sender, error=refusal.value, now=make.NOW)
    flag = RunnerFlag.objects.get()
    assert (flag.token, flag.evaluation) == (token, None)
    assert "'nvidia-h100', which it isn't allowed to serve" in flag.reason
    audit.refresh_from_db()
    assert audit.status == Status.QUEUED


def test_a_token_brings_few_new_devices_and_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "MOST_DEVICES", 2)
    token = a_token(RunnerToken.Serves.NEW)
    for number in (1, 2):
        make.beat(token=token, name=f"host-{number}", device=f"cpu-{number}")
    with pytest.raises(Implausible, match="'cpu-3', which it isn't allowed to serve"):
        make.beat(token=token, name="host-3", device="cpu-3")
    assert not Device.objects.filter(slug="cpu-3").exists()

    monkeypatch.setattr(heartbeats, "MOST_RUNNERS", 2)
    for number in (1, 2, 1):
        make.beat(name=f"host-{number}")
    with pytest.raises(EventError, match="runner test already has 2 hosts"):
        make.beat(name="host-3")
    assert make.beat(name="host-1", token=a_token(RunnerToken.Serves.ANY, name="third"))


def test_a_runner_is_told_from_one_of_another_token_that_calls_itself_so(job: RunnerJob) -> None:
    make.beat()
    make.hand_over(job, "host-1")
    other = a_token(RunnerToken.Serves.ANY)
    for name in ("host-1", "test.host-1"):
        make.beat(token=other, name=name, boot_id="boot-2", state="stopped", now=make.later(3))
    mine = Runner.objects.get(name="test.host-1")
    assert (mine.token.name, mine.boot_id, mine.state) == ("test", "boot-1", "ready")
    assert mine.seen_at == make.NOW
    # its own may have been said before the job was handed over, and be heard late: see `reconcile`
    make.beat(now=make.later(600))
    job.refresh_from_db()
    assert (job.status, job.attempt) == (Status.RUNNING, 1)
    names = set(Runner.objects.filter(token=other).values_list("name", flat=True))
    assert names == {"stranger.host-1", "stranger.test.host-1"}


def test_a_revoked_tokens_heartbeat_is_refused() -> None:
    make.beat()
    token = make.make_runner_token()
    token.revoked_at = make.NOW
    with pytest.raises(EventError, match="the token of runner test was revoked"):
        make.beat(token=token, now=make.later(9), state="draining")
    runner = Runner.objects.get()
    assert (runner.state, runner.seen_at) == ("ready", make.NOW)
