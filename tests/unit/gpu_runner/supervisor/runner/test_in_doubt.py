"""Who may have ended itself is measured once more, and is to blame when it ends so again."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data import wire
from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.host import killed
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.host.proc import descendants
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.oracle.client import Oracle
from gpu_runner.supervisor.runner.conditions import Arenas
from gpu_runner.supervisor.runner.faults import Fault, FaultError, InDoubt, RunnerUnfit, told
from gpu_runner.supervisor.runner.preemption import Obliging, Undisturbed, patient
from gpu_runner.supervisor.runner.session import Session
from gpu_runner.supervisor.tools import anchor
from tests.unit.gpu_runner.supervisor.host.test_killed import (
    ENDLESS,
    a_session,
    killing,
    name_of,
    needs_jail,
    recipe,
    wait_for,
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@needs_jail
@pytest.mark.parametrize("which", [0, 1])
def test_a_death_just_before_the_stop_is_in_doubt(cache: Path, which: int) -> None:
    """Who has acknowledged a call still runs for a moment, and may end itself then."""
    with a_session(SupervisorConfig(cache_folder=cache)) as (session, call):
        session._thaw()
        victim = descendants(session._child.pid)[which]
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: killed.is_dead(victim))
        session._freeze()
        with pytest.raises(InDoubt, match="was killed between calls"):
            session.call(call)


@needs_jail
@pytest.mark.parametrize("which", [1, 2])
def test_who_is_killed_before_it_has_loaded_anything_is_not_blamed(cache: Path, which: int) -> None:
    config = SupervisorConfig(cache_folder=cache)
    with a_session(config) as (session, _):
        target = session.target
    with closing(Arena("inputs")) as inputs, closing(Arena("outputs")) as outputs:
        anchor._prepare(inputs, outputs)
        with Session(target, Arenas(inputs, outputs), config) as session:
            outermost = session._child.pid
            wait_for(lambda: name_of([outermost, *descendants(outermost)][-1]) == "library.so")
            os.kill([outermost, *descendants(outermost)][which], signal.SIGKILL)
            with pytest.raises(KilledFromOutside):
                session.ready()


@needs_jail
def test_who_cannot_be_started_is_nobodys_fault(cache: Path) -> None:
    config = SupervisorConfig(cache_folder=cache)
    with a_session(config) as (session, _):
        target = replace(session.target, runner=Path("/bin/false"))
    with closing(Arena("inputs")) as inputs, closing(Arena("outputs")) as outputs:
        anchor._prepare(inputs, outputs)
        with (
            Session(target, Arenas(inputs, outputs), config) as session,
            pytest.raises(
                RunnerUnfit, match=r"no runner can start on this host: .*died with status 1"
            ),
        ):
            session.ready()


@needs_jail
def test_a_process_that_somebody_stops_in_a_call_is_in_doubt(cache: Path) -> None:
    config = SupervisorConfig(cache_folder=cache, call_timeout_s=0.5)
    with a_session(config) as (session, _):
        session._allow(0.5)
        session._run()
        os.kill(descendants(session._child.pid)[-1], signal.SIGSTOP)
        with pytest.raises(InDoubt, match="it was stopped") as caught:
            session._receive("in a call")
        assert caught.value.fault.verdict is Verdict.TIME_LIMIT


@needs_jail
def test_a_compiler_that_somebody_stops_blames_nobody(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path, build_timeout_s=3)
    with killing("cc1plus", number=signal.SIGSTOP):  # noqa: SIM117 - the killer outlives the error
        with pytest.raises(KilledFromOutside, match="somebody stopped it"):
            build(recipe(ENDLESS), config)


@needs_jail
def test_an_oracle_that_somebody_stops_blames_nobody(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path, oracle_timeout_s=0.5)
    with (
        Oracle(config) as oracle,
        closing(Arena("inputs")) as inputs,
        closing(Arena("samples")) as samples,
    ):
        wait_for(lambda: name_of([oracle.pid, *descendants(oracle.pid)][-1]).startswith("python"))
        os.kill(descendants(oracle.pid)[-1], signal.SIGSTOP)
        with pytest.raises(KilledFromOutside, match="somebody stopped it"):
            oracle.load(find_task("vector_add"), inputs, samples)


class Measured:
    """Has processes, each of which dies so or returns a number."""

    manners, doubt = Undisturbed(), ""

    def __init__(self, *ends: FaultError | None) -> None:
        self._ends = list(ends)

    @patient
    def run(self) -> int:
        if (error := self._ends.pop(0)) is not None:
            raise error
        return len(self._ends)


DOUBT = InDoubt(Fault(Verdict.RUNTIME_ERROR, "the process was killed in a call"))
BLAMED = FaultError(Fault(Verdict.RUNTIME_ERROR, "illegal address"))


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ([DOUBT, DOUBT, None], "the process was killed in a call, for the second time"),
        ([DOUBT, BLAMED, None], "illegal address"),
        ([BLAMED, None, None], "illegal address"),
    ],
)
def test_there_is_no_doubt_a_second_time(ends: list[FaultError | None], reason: str) -> None:
    with pytest.raises(FaultError) as caught:
        Measured(*ends).run()
    assert caught.value.fault == Fault(Verdict.RUNTIME_ERROR, reason)


def test_what_is_in_doubt_is_measured_again_and_a_second_process_is_too_much() -> None:
    measured = Measured(DOUBT, None, DOUBT)
    assert measured.run() == 1
    assert measured.doubt == "the process was killed in a call"
    with pytest.raises(FaultError, match="for the second time"):
        measured.run()


def test_a_fork_knows_how_a_process_of_its_parent_has_ended() -> None:
    """An oracle that was started ahead is a child of the slot, not of the evaluation."""
    made = Jail(limits=Limits(cpu_s=60, memory_bytes=1 << 28, processes=32))
    for script, status in (("exit 3", 3), ("kill -9 $$", -9)):
        child = ChildProcess(made, ["/bin/sh", "-c", script], jailed=False)
        wait_for(lambda child=child: not child.running)
        if (fork := os.fork()) == 0:
            os._exit(0 if child.wait(10) == status else 1)
        assert os.waitpid(fork, 0)[1] == 0
        child.kill()


class Wanted(Undisturbed):
    """Somebody as urgent waits all the time."""

    def is_wanted(self, *, by_equals: bool = False) -> bool:
        return by_equals


def test_who_obliges_others_begins_anew_only_so_often() -> None:
    room = [False]
    obliging = Obliging(Wanted(), lambda: room[-1], times=3)
    assert not obliging.is_wanted()
    room.append(True)
    assert [obliging.is_wanted() for _ in range(5)] == [True, True, True, False, False]


def test_a_library_is_named_without_the_folders_of_this_host() -> None:
    text = "/srv/kbench/cache/builds/ce/library.so: undefined symbol: cblas_sscal"
    fault = told(wire.Failed(wire.ErrorCode.SYMBOL, text), "while it was loaded", is_module=False)
    assert fault.reason == "the library can't be used: library.so: undefined symbol: cblas_sscal"
