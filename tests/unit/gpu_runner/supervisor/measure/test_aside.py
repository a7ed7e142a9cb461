"""A process that compiles in a call stands still while others have the device."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpu_runner.data.queue import Urgency
from gpu_runner.supervisor.device.lock import Courteous, Turn, exclusive
from gpu_runner.supervisor.host import living
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure import aside as module
from gpu_runner.supervisor.measure.aside import Aside
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.freeze import Freezer, NotStopped
from gpu_runner.supervisor.runner.preemption import Interrupted

COMPILING = """
import pathlib, socket, sys, time
path, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
answer = socket.socket(fileno=int(sys.argv[3]))
for step in range(steps):
    path.with_suffix(".new").write_text(str(step))
    path.with_suffix(".new").replace(path)  # it may be stopped between any two words
    time.sleep(0.01)
answer.sendall(b"answer")
"""
LAST = "149"  # step of a call
HELD_S = 1.0
TURN_S = 0.5


@dataclass
class Device:
    """Whose memory a call works in, as far as `Aside` asks."""

    busy_for: int = 0
    roomy: bool = True

    def is_roomy(self) -> bool:
        return self.roomy

    def is_quiet(self) -> bool:
        time.sleep(0.01)
        self.busy_for -= 1
        return self.busy_for < 0


class Call:
    """A process that works for so many steps of 10 ms, and then answers."""

    def __init__(self, folder: Path, steps: int) -> None:
        self._path, self.channel = folder / "step", Channel()
        words = [str(self._path), str(steps), str(self.channel.child_descriptor)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMPILING, *words], pass_fds=[self.channel.child_descriptor]
        )
        self.channel.started()
        self.freezer = Freezer(self.process.pid, bare=True)
        while not self.step:
            time.sleep(0.01)

    @property
    def step(self) -> str:
        return self._path.read_text() if self._path.exists() else ""

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.channel.close()


class Person:
    """Takes the device for a while, and notes whether the call went on meanwhile."""

    def __init__(self, config: SupervisorConfig, call: Call, urgency: Urgency) -> None:
        self.met, self.stood_still = "", False
        self.holders: list[int] = []
        self._given = config, call, urgency
        self._thread = threading.Thread(target=self._measure)
        self._thread.start()

    def _measure(self) -> None:
        config, call, urgency = self._given
        with exclusive(config, urgency):
            self.met = call.step
            self.holders = living.holders(config)
            time.sleep(HELD_S)
            self.stood_still = self.met == call.step

    def join(self) -> None:
        self._thread.join()


@pytest.fixture
def config(tmp_path: Path) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path, device_timeout_s=60)


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TURN_S", TURN_S)


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Call]:
    made = Call(tmp_path, steps=int(LAST) + 1)
    yield made
    made.end()


def aside(turn: Any, device: Device, config: SupervisorConfig) -> Aside:
    manners = Courteous(turn, nullcontext, lambda: None)
    return Aside(manners, cast(Any, device), config)


@pytest.mark.parametrize("urgency", [Urgency.PEOPLE, Urgency.RUNS])
def test_it_goes_on_where_it_was_once_the_others_are_done(
    config: SupervisorConfig, call: Call, urgency: Urgency
) -> None:
    with exclusive(config, urgency) as turn:
        people = [Person(config, call, Urgency.PEOPLE) for _ in range(2)]
        call.channel.allow(60)
        began = time.monotonic()
        aside(turn, Device(), config)(call.freezer, call.channel)
        assert call.channel.is_readable(0)
        own_s = time.monotonic() - began - len(people) * HELD_S
        assert call.channel.left_s > 59.5 - own_s
    assert living.holders(config) == []
    for person in people:
        person.join()
        assert person.stood_still
        assert person.holders == [call.process.pid]
        assert person.met != LAST


def test_equals_wait_for_the_end_of_its_turn(config: SupervisorConfig, call: Call) -> None:
    """Among many equals a call would otherwise never end."""
    with exclusive(config, Urgency.PEOPLE) as turn:
        began = int(call.step)
        person = Person(config, call, Urgency.PEOPLE)
        call.channel.allow(60)
        aside(turn, Device(), config)(call.freezer, call.channel)
    person.join()
    assert int(person.met) - began >= TURN_S * 100 / 2  # half of its steps on an idle host


def test_equals_have_the_device_while_the_workshop_compiles(
    config: SupervisorConfig, call: Call
) -> None:
    """From before the end of a turn, and its time counts as the call's own."""
    compiled_s, began = 2.0, time.monotonic()
    workshop = cast(Any, SimpleNamespace())
    workshop.busy_s = lambda: 1.0 if time.monotonic() - began < compiled_s else 0.0

    with exclusive(config, Urgency.PEOPLE) as turn:
        later = Turn(config, Urgency.PEOPLE)
        met: list[float] = []

        def measured() -> None:
            later.step_aside()  # it has had the device before, and came later
            met.append(time.monotonic() - began)
            later.give()

        again = threading.Thread(target=measured)
        again.start()
        while not turn.is_wanted(by_equals=True, unused=True):
            time.sleep(0.01)
        assert not turn.is_wanted(by_equals=True)
        call.channel.allow(60)
        manners = Courteous(turn, nullcontext, lambda: None)
        Aside(manners, cast(Any, Device()), config, workshop)(call.freezer, call.channel)
        again.join()
        assert met[0] < compiled_s
        assert call.channel.left_s < 60 - compiled_s / 2
        assert call.step == LAST


def test_it_lets_nobody_pass_who_is_less_urgent(config: SupervisorConfig, call: Call) -> None:
    with exclusive(config, Urgency.PEOPLE) as turn:
        audit = Person(config, call, Urgency.AUDITS)
        call.channel.allow(60)
        aside(turn, Device(), config)(call.freezer, call.channel)
        assert call.step == LAST
        assert not audit.met
    audit.join()


@pytest.mark.parametrize("device", [Device(busy_for=10**6), Device(roomy=False)])
def test_it_is_ended_for_the_more_urgent_if_it_leaves_them_no_room(
    config: SupervisorConfig, call: Call, device: Device
) -> None:
    with exclusive(config, Urgency.RUNS) as turn:
        person = Person(config, call, Urgency.PEOPLE)
        call.channel.allow(60)
        with pytest.raises(Interrupted):
            aside(turn, device, config)(call.freezer, call.channel)
    person.join()


def test_it_is_noticed_if_it_runs_while_others_have_the_device(
    config: SupervisorConfig, call: Call
) -> None:
    """No honest process can, and whoever is measured meanwhile would suffer."""

    def woken() -> None:
        call.process.send_signal(signal.SIGCONT)
        time.sleep(0.1)

    with exclusive(config, Urgency.RUNS) as turn:
        person = Person(config, call, Urgency.PEOPLE)
        call.channel.allow(60)
        manners = Courteous(turn, nullcontext, woken)
        with pytest.raises(NotStopped):
            Aside(manners, cast(Any, Device()), config)(call.freezer, call.channel)
    person.join()


def test_equals_wait_for_what_it_has_queued(config: SupervisorConfig, call: Call) -> None:
    with exclusive(config) as turn:
        person = Person(config, call, Urgency.PEOPLE)
        call.channel.allow(60)
        aside(turn, Device(busy_for=20), config)(call.freezer, call.channel)
    person.join()
    assert person.stood_still


def test_what_it_has_queued_takes_no_longer_than_a_call_may(
    config: SupervisorConfig, call: Call
) -> None:
    with exclusive(config) as turn:
        person = Person(config, call, Urgency.PEOPLE)
        call.channel.allow(60)
        endless = aside(turn, Device(busy_for=10**6), replace(config, call_timeout_s=0.2))
        with pytest.raises(FaultError, match=r"0.2 s after its process was stopped"):
            endless(call.freezer, call.channel)
    person.join()


def test_equals_wait_for_a_call_that_holds_much_memory(
    config: SupervisorConfig, call: Call
) -> None:
    """Or those who wait would fill the device, and nobody could be measured."""
    with exclusive(config) as turn:
        person = Person(config, call, Urgency.PEOPLE)
        call.channel.allow(60)
        aside(turn, Device(roomy=False), config)(call.freezer, call.channel)
        assert call.step == LAST
    person.join()
    assert person.met == LAST


def test_it_waits_no_longer_than_the_call_may_take(config: SupervisorConfig, call: Call) -> None:
    with exclusive(config) as turn:
        call.channel.allow(0.3)
        aside(turn, Device(), config)(call.freezer, call.channel)
    assert call.step != LAST
