"""Whose turn it is on a device: one at a time, the more urgent first, and nobody who has died."""

from __future__ import annotations

import multiprocessing
import os
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.queue import Urgency
from gpu_runner.supervisor.device import lock
from gpu_runner.supervisor.device.device import DeviceError
from gpu_runner.supervisor.device.lock import Courteous, Turn, exclusive
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.preemption import Interrupted, Manners, patient


@pytest.fixture
def config(tmp_path: Path) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path, device_timeout_s=60)


class Waiting:
    """Somebody who waits for the device in a thread, and gives it back when told."""

    def __init__(self, config: SupervisorConfig, urgency: Urgency) -> None:
        self.has_it, self.enough = threading.Event(), threading.Event()
        self._config, self._urgency = config, urgency
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with exclusive(self._config, self._urgency):
            self.has_it.set()
            self.enough.wait(60)

    def end(self) -> None:
        self.enough.set()
        self._thread.join()


def wanted(turn: Turn) -> bool:
    """Whether somebody stands in the line soon."""
    return any(turn.is_wanted() or threading.Event().wait(0.01) for _ in range(3000))


def test_a_person_who_comes_later_goes_before_an_audit(config: SupervisorConfig) -> None:
    with exclusive(config, Urgency.BACKGROUND) as held:
        audit = Waiting(config, Urgency.AUDITS)
        assert wanted(held)
        person = Waiting(config, Urgency.PEOPLE)
        assert not person.has_it.wait(0.1)
    assert person.has_it.wait(60)
    assert not audit.has_it.is_set()
    person.end()
    assert audit.has_it.wait(60)
    audit.end()


@pytest.mark.parametrize("urgency", [Urgency.PEOPLE, Urgency.RUNS])
def test_nobody_steps_aside_for_those_who_are_no_more_urgent(
    config: SupervisorConfig, urgency: Urgency
) -> None:
    with exclusive(config, urgency) as held:
        other = Waiting(config, urgency)
        less = Waiting(config, Urgency.BASELINES)
        assert not other.has_it.wait(0.1)
        assert not held.is_wanted()
    for each in (other, less):
        assert each.has_it.wait(60)
        each.end()


def test_of_equals_the_first_one_goes_first(config: SupervisorConfig) -> None:
    with exclusive(config) as held:
        line = [Waiting(config, Urgency.PEOPLE)]
        for number in range(2, 6):
            assert stands(config, number - 1)
            line.append(Waiting(config, Urgency.PEOPLE))
        assert stands(config, 5)
        assert not held.is_wanted()
    for place, first in enumerate(line):
        assert first.has_it.wait(60)
        assert not any(other.has_it.is_set() for other in line[place + 1 :])
        first.end()


def stands(config: SupervisorConfig, count: int, name: str = "[0-9]*") -> bool:
    """Whether so many stand in the line soon, with names of this pattern."""
    line = f"locks/*.line/{name}"
    return any(
        len(list(config.cache_folder.glob(line))) == count or threading.Event().wait(0.01)
        for _ in range(3000)
    )


def aside(turn: Turn) -> threading.Thread:
    """Has a turn leave the device to others, and wait for it again."""
    thread = threading.Thread(target=turn.step_aside)
    thread.start()
    return thread


def test_an_equal_who_comes_later_has_one_turn_and_then_waits(config: SupervisorConfig) -> None:
    first, second = (Turn(config, Urgency.PEOPLE) for _ in range(2))
    first.take()
    arriving = threading.Thread(target=second.take)
    arriving.start()
    assert stands(config, 1)
    assert first.is_wanted(by_equals=True)
    first_again = aside(first)
    arriving.join()
    assert stands(config, 1)
    assert second.is_wanted(by_equals=True)
    second_again = aside(second)
    first_again.join()
    assert stands(config, 1)
    assert not first.is_wanted(by_equals=True)
    newcomer = Waiting(config, Urgency.PEOPLE)
    assert stands(config, 2)
    assert first.is_wanted(by_equals=True)
    first.give()
    assert newcomer.has_it.wait(60)
    newcomer.end()
    second_again.join()
    second.give()


def test_who_steps_aside_is_next_of_those_who_have_had_it(config: SupervisorConfig) -> None:
    """So the first to come is the first to be done, whoever has had it in between."""
    turns = [Turn(config, Urgency.RUNS) for _ in range(3)]
    for turn in turns:
        turn.take()
        turn.step_aside()  # nobody waits: it has it back at once
        turn.give()
    holder = Turn(config, Urgency.RUNS)
    holder.take()
    again = [threading.Thread(target=turn.take) for turn in reversed(turns)]
    for thread in again:
        thread.start()
    assert stands(config, 3)
    assert holder.is_wanted(by_equals=True)
    holder.give()
    for turn, thread in zip(turns, reversed(again), strict=True):
        thread.join(60)
        assert not thread.is_alive()
        turn.give()


def test_who_has_waited_for_long_goes_before_newcomers(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_OVERDUE_S", 0.05)
    turn, holder = Turn(config, Urgency.PEOPLE), Turn(config, Urgency.PEOPLE)
    turn.take()
    turn.give()
    holder.take()
    overdue = aside(turn)
    assert stands(config, 1)
    newcomer = Waiting(config, Urgency.PEOPLE)
    assert stands(config, 2)
    assert stands(config, 1, "[0-9]-0-*")
    assert Turn(config, Urgency.PEOPLE).is_wanted(by_equals=True)
    holder.give()
    overdue.join(60)
    assert not overdue.is_alive()
    assert not newcomer.has_it.is_set()
    turn.give()
    newcomer.end()


class Worker:
    """Whose measurement is interrupted once."""

    def __init__(self, manners: Manners, person: Waiting) -> None:
        self.manners, self.tries = manners, 0
        self._person = person

    @patient
    def measure(self) -> str:
        self.tries += 1
        if self.manners.is_wanted():
            assert not self._person.has_it.is_set()
            threading.Timer(0.1, self._person.end).start()
            raise Interrupted
        assert self._person.has_it.is_set()
        return "measured"


def test_work_that_steps_aside_begins_again_when_it_has_the_device_back(
    config: SupervisorConfig,
) -> None:
    settled: list[bool] = []
    with exclusive(config, Urgency.BACKGROUND) as held:
        person = Waiting(config, Urgency.PEOPLE)
        assert wanted(held)
        worker = Worker(Courteous(held, nullcontext, lambda: settled.append(True)), person)
        assert worker.measure() == "measured"
    assert worker.tries == 2
    assert settled == [True]


def _die_in_line(config: SupervisorConfig) -> None:
    threading.Timer(0.2, os._exit, (0,)).start()
    Turn(config, Urgency.PEOPLE).take()


def test_who_dies_in_the_line_or_with_the_device_is_in_nobodys_way(
    config: SupervisorConfig,
) -> None:
    context = multiprocessing.get_context("fork")
    with exclusive(config, Urgency.BACKGROUND) as held:
        dying = context.Process(target=_die_in_line, args=(config,))
        dying.start()
        assert wanted(held)
        dying.join()
        assert not held.is_wanted()
    owner = context.Process(target=_die_in_line, args=(config,))
    owner.start()
    owner.join()
    with exclusive(config, Urgency.BACKGROUND):
        pass


def test_a_device_that_does_not_become_free_is_named(config: SupervisorConfig) -> None:
    words = r"cpu did not become free within 0\.05 s"
    with exclusive(config), pytest.raises(DeviceError, match=words):
        Turn(replace(config, device_timeout_s=0.05), Urgency.PEOPLE).take()
