"""The daemon: serves the jobs of one device until it is told to stop."""

from __future__ import annotations

import functools
import logging
import signal
import sys
import time
from collections.abc import Callable

from gpu_runner.daemon import lineage
from gpu_runner.daemon.child import Fitness, Look, Sensors
from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.daemon.events import Outbox
from gpu_runner.daemon.heartbeat import Heartbeat, Runner
from gpu_runner.daemon.slot import STOPPED, SlotContext
from gpu_runner.daemon.slots import Slots
from gpu_runner.daemon.sources.contract import Away, Source
from gpu_runner.data.codec import DataError
from gpu_runner.data.queue import Urgency
from gpu_runner.supervisor.build.eviction import evict
from gpu_runner.supervisor.device import device, toolchain
from gpu_runner.supervisor.device.device import device_name, device_slug
from gpu_runner.supervisor.device.toolchain import told_packages
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.readiness import build_programs, make_ready

logger = logging.getLogger(__name__)

NOT_FIT = 2
"""Exit status of a host that cannot do a folder's jobs."""

_TICK_S = 0.25  # chosen: a wait that nobody notices
_ASK_S = 1.0  # chosen: a job that is cancelled ends about as fast
_EVICT_S = 3600.0  # how often the cache is looked through


def work(config: DaemonConfig, *, probe_jail: Callable[[], str] = jail.probe) -> int:
    """Serve jobs until SIGTERM or SIGINT; return the exit status.

    The first signal lets current jobs finish and takes no new ones; a second one, or the end of
    `drain_timeout_s`, kills them. Raises `DeviceError` where the device is not there,
    and `DataError` for a folder that is no spool.
    """
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("gpu_runner").setLevel(logging.INFO)
    return Daemon(config, probe_jail()).run()


def _runner_of(config: DaemonConfig, slug: str) -> Runner:
    compiler, architecture = _builds_with(config)
    return Runner(
        name=config.runner_name(slug),
        device=slug,
        device_kind=config.kind,
        device_name=device_name(config.kind, config.index),
        builds=config.slot_count + config.people_slot_count,
        compiler=compiler,
        architecture=architecture,
        packages=told_packages(),
    )


def _preparing(config: DaemonConfig) -> tuple[Look, Look] | None:
    return (build_programs, make_ready) if config.ready else None


class Wishes:
    """What the site wants of this runner; it is asked once a second."""

    def __init__(
        self, source: Source, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """For the runner of this name; nothing is asked yet."""
        self._source, self._name, self._clock = source, name, clock
        self._due_at = clock()
        self._hold = ""

    def hold(self, slots: Slots) -> str:
        """Why no job may be taken, or empty, as was said last. Ends jobs that were taken back."""
        if self._clock() >= self._due_at:
            self._due_at = self._clock() + _ASK_S
            try:
                word = self._source.word(self._name)
            except (Away, DataError):
                return self._hold  # the heartbeat says that the site is away
            self._hold = word.hold
            slots.drop(word.dropped)
        return self._hold


class Daemon:
    """One runner: its slots, its heartbeat, and how it stops."""

    def __init__(self, config: DaemonConfig, jail_fault: str) -> None:
        """Prepare; nothing runs yet. `jail_fault` says why there is no jail, or is empty."""
        slug = device_slug(config.kind, config.index)
        runner = _runner_of(config, slug)
        supervisor = SupervisorConfig(
            kind=config.kind,
            index=config.index,
            device=slug,
            cache_folder=config.cache_folder,
            allow_unjailed=config.allow_unjailed,
        )
        self._config = config
        self._jail_fault = jail_fault
        connect = functools.partial(config.connect, slug)
        self._source = connect()
        outbox = config.outbox(slug)
        self._outbox = Outbox(outbox)
        context = SlotContext(
            connect=connect, runner=runner, supervisor=supervisor, outbox=outbox, ready=config.ready
        )
        self._runner = runner
        self._slots = Slots(context, self._kinds(runner))
        self._fitness = Fitness(supervisor, config.recheck_s, prepare=_preparing(config))
        self._sensors = Sensors(supervisor)
        self._wishes = Wishes(self._source, runner.name)
        self._heartbeat = self._heart()
        self._stops = 0
        self._flush_at = 0.0
        self._evict_at = 0.0
        self._halted = False
        self._unfit = ""

    def _kinds(self, runner: Runner) -> list[list[Urgency]]:
        if not self._source.is_endless:
            return [list(Urgency)] * self._config.slot_count
        return runner.slots(self._config.slot_count, self._config.people_slot_count)

    def _heart(self) -> Heartbeat:
        states, period_s = self._slots.states, self._config.heartbeat_s
        sensors = self._sensors.latest
        return Heartbeat(self._runner, self._source, states, period_s, sensors=sensors)

    @property
    def fit(self) -> bool:
        """Whether jobs are taken at all: without a jail only where the host was told to."""
        return not self._jail_fault or self._config.allow_unjailed

    def run(self) -> int:
        """Serve until told to stop; return the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        lineage.adopt_orphans()
        logger.info("runner %s serves %s", self._runner.name, self._runner.device)
        if not self.fit:
            logger.error("this runner takes no jobs: %s", self._jail_fault)
            if not self._source.is_endless:
                return NOT_FIT
        # Before the first heartbeat: a new boot makes the site take up again what it believes lost.
        self._flush()
        self._fitness.begin()
        try:
            self._serve()
        except BaseException:
            self._slots.signal(signal.SIGKILL)  # Python waits for them before it says what failed
            raise
        finally:
            self._fitness.end()
            self._sensors.end()
        return self._drain()

    def _serve(self) -> None:
        """Take jobs until told to stop, or until a folder has none left."""
        while not self._stops and not self._slots.done:
            broken = self._fitness.reason()
            if broken and not self._source.is_endless and not self._slots.running:
                self._unfit = broken
                return
            held = self._wishes.hold(self._slots)
            # Before the heartbeat that says so, and again and again: a slot that has just been
            # forked does not listen yet.
            if why_not := broken or held:
                self._halt(why_not, logging.ERROR if broken else logging.INFO)
            self._sensors.keep()
            state = "ready" if self.fit and not broken else "unfit"
            if held and state == "ready":
                self._tick("draining", held)
            else:
                self._tick(state, f"takes no jobs: {broken}" if broken else self._reason())
            # After the first heartbeat: the site gives no job to a runner that it has not heard.
            self._halted = bool(why_not)
            if self.fit and not why_not:
                self._slots.start()

    def _halt(self, why_not: str, level: int) -> None:
        """Have the slots stop after their current jobs."""
        if not self._halted:
            logger.log(level, "not taking jobs: %s", why_not)
        self._slots.signal(signal.SIGTERM)

    def _drain(self) -> int:
        logger.info("stopping: current jobs have %g s to finish", self._config.drain_timeout_s)
        deadline = time.monotonic() + self._config.drain_timeout_s
        while self._slots.running and self._stops == 1 and time.monotonic() < deadline:
            self._slots.signal(signal.SIGTERM)
            self._tick("draining", "told to stop: finishing its current jobs")
        if self._slots.running:
            logger.warning("killing the jobs that are still running")
            self._slots.signal(signal.SIGKILL)
            while self._slots.running:
                time.sleep(_TICK_S / 10)
        self._slots.collect(self._source)
        self._heartbeat.beat("stopped", "told to stop", jail=not self._jail_fault)
        logger.info("stopped")
        self._outbox.close()
        return NOT_FIT if self._unfit else max(self._slots.statuses, default=STOPPED)

    def _tick(self, state: str, reason: str) -> None:
        self._slots.collect(self._source, keep=[*self._fitness.pids, *self._sensors.pids])
        self._heartbeat.beat(state, reason, jail=not self._jail_fault)
        if time.monotonic() >= self._flush_at:
            self._flush_at = time.monotonic() + self._config.heartbeat_s
            self._flush()
        if time.monotonic() >= self._evict_at:
            self._evict_at = time.monotonic() + _EVICT_S
            self._evict()
        time.sleep(_TICK_S)

    def _flush(self) -> None:
        try:
            sent = self._outbox.flush(self._source)
        except Away:
            return  # the heartbeat has said so
        if sent:
            logger.info("sent %d events that had been kept while the site was down", sent)

    def _evict(self) -> None:
        try:
            removed = evict(self._config.cache_folder / "builds", self._config.cache_bytes)
        except OSError as error:
            logger.warning("cannot read the build cache: %s", error)
            return
        if removed:
            logger.info("removed %d builds that nobody had used in a day", removed)

    def _reason(self) -> str:
        if not self._jail_fault:
            return ""
        if self._config.allow_unjailed:
            return f"running without a jail: {self._jail_fault}"
        return f"takes no jobs, because it has no jail: {self._jail_fault}"

    def _ask_to_stop(self, *_: object) -> None:
        self._stops += 1


def _builds_with(config: DaemonConfig) -> tuple[str, str]:
    """The compiler and what it builds for; neither where there is none, which `doctor` says."""
    try:
        found = toolchain.described(config.kind)
        return found, device.architecture(config.kind, config.index)
    except toolchain.ToolchainError as error:
        logger.error("cannot build kernels on this host: %s", error)
        return "", ""
