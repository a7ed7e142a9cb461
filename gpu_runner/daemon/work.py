"""The daemon: serves the jobs of one device until it is told to stop."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable

import redis

from gpu_runner.daemon import lineage
from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.daemon.events import EventStream, Spool
from gpu_runner.daemon.fitness import Fitness, Look
from gpu_runner.daemon.heartbeat import Heartbeat, Runner
from gpu_runner.daemon.jobs import Evaluate
from gpu_runner.daemon.sensors import Sensors
from gpu_runner.daemon.slots import SOCKET_TIMEOUT_S, SlotContext, Slots
from gpu_runner.daemon.steering import Steering
from gpu_runner.supervisor.build.eviction import evict
from gpu_runner.supervisor.device import device, toolchain
from gpu_runner.supervisor.device.device import device_name, device_slug
from gpu_runner.supervisor.device.python_packages import python_packages
from gpu_runner.supervisor.evaluate import evaluate as supervise
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.readiness import build_programs, make_ready

logger = logging.getLogger(__name__)

_TICK_S = 0.25  # chosen: a wait that nobody notices
_EVICT_S = 3600.0  # how often the cache is looked through


def work(
    config: DaemonConfig,
    *,
    evaluate: Evaluate = supervise,
    probe_jail: Callable[[], str] = jail.probe,
) -> int:
    """Serve jobs until SIGTERM or SIGINT; return the exit status.

    The first signal lets current jobs finish and takes no new ones; a second one, or the end of
    `drain_timeout_s`, kills them. Raises `DeviceError` where the device is not there.
    """
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("gpu_runner").setLevel(logging.INFO)
    return Daemon(config, evaluate, probe_jail()).run()


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
        packages=python_packages(),
    )


def _preparing(config: DaemonConfig) -> tuple[Look, Look] | None:
    return (build_programs, make_ready) if config.ready else None


class Daemon:
    """One runner: its slots, its heartbeat, and how it stops."""

    def __init__(self, config: DaemonConfig, evaluate: Evaluate, jail_fault: str) -> None:
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
        self._connection = redis.Redis.from_url(
            config.redis_url,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=SOCKET_TIMEOUT_S,
        )
        self._stream = EventStream(self._connection)
        self._spool = Spool(config.cache_folder / "spool" / f"{slug}-{config.index}")
        context = SlotContext(
            redis_url=config.redis_url,
            runner=runner,
            supervisor=supervisor,
            spool=self._spool,
            evaluate=evaluate,
            ready=config.ready,
        )
        self._runner = runner
        self._slots = Slots(context, runner.slots(config.slot_count, config.people_slot_count))
        self._fitness = Fitness(supervisor, config.recheck_s, prepare=_preparing(config))
        self._sensors = Sensors(supervisor)
        self._steering = Steering(self._connection, runner.name, config.heartbeat_s)
        self._heartbeat = self._heart()
        self._stops = 0
        self._flush_at = 0.0
        self._evict_at = 0.0
        self._halted = False

    def _heart(self) -> Heartbeat:
        states, period_s = self._slots.states, self._config.heartbeat_s
        sensors = self._sensors.latest
        return Heartbeat(self._runner, self._stream, states, period_s, sensors=sensors)

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
            logger.error("no jobs are taken: %s", self._jail_fault)
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
        """Take jobs until told to stop."""
        while not self._stops:
            broken = self._fitness.reason()
            held = self._steering.reason()
            self._start_or_halt(broken or held, logging.ERROR if broken else logging.INFO)
            self._sensors.keep()
            state = "ready" if self.fit and not broken else "unfit"
            if held and state == "ready":
                self._tick("draining", held)
            else:
                self._tick(state, f"takes no jobs: {broken}" if broken else self._reason())

    def _start_or_halt(self, why_not: str, level: int) -> None:
        """Keep slots running; while there is a reason not to, have them stop after their jobs."""
        if why_not and not self._halted:
            logger.log(level, "no jobs are taken: %s", why_not)
            self._slots.signal(signal.SIGTERM)
        self._halted = bool(why_not)
        if self.fit and not why_not:
            self._slots.start()

    def _drain(self) -> int:
        logger.info("stopping: current jobs may take %g s more", self._config.drain_timeout_s)
        deadline = time.monotonic() + self._config.drain_timeout_s
        self._slots.signal(signal.SIGTERM)
        while self._slots.running and self._stops == 1 and time.monotonic() < deadline:
            self._tick("draining", "told to stop: finishes its current jobs")
        if self._slots.running:
            logger.warning("killing the jobs that still run")
            self._slots.signal(signal.SIGKILL)
            while self._slots.running:
                time.sleep(_TICK_S / 10)
        self._slots.collect(self._stream)
        self._heartbeat.beat("stopped", "told to stop", jail=not self._jail_fault)
        logger.info("stopped")
        return 0

    def _tick(self, state: str, reason: str) -> None:
        self._slots.collect(self._stream, keep=[*self._fitness.pids, *self._sensors.pids])
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
            sent = self._spool.flush(self._stream)
        except redis.RedisError:
            return  # the heartbeat has said that Redis is away
        if sent:
            logger.info("sent %d events that had been kept while Redis was away", sent)

    def _evict(self) -> None:
        try:
            removed = evict(self._config.cache_folder / "builds", self._config.cache_bytes)
        except OSError as error:
            logger.warning("the cache of builds cannot be looked through: %s", error)
            return
        if removed:
            logger.info("removed %d builds that nobody had asked for in a day", removed)

    def _reason(self) -> str:
        if not self._jail_fault:
            return ""
        if self._config.allow_unjailed:
            return f"works without a jail: {self._jail_fault}"
        return f"takes no jobs, as it has no jail: {self._jail_fault}"

    def _ask_to_stop(self, *_: object) -> None:
        self._stops += 1


def _builds_with(config: DaemonConfig) -> tuple[str, str]:
    """The compiler and what it builds for; neither where there is none, which `doctor` says."""
    try:
        found = toolchain.described(config.kind)
        return found, device.architecture(config.kind, config.index)
    except toolchain.ToolchainError as error:
        logger.error("no kernel can be built here: %s", error)
        return "", ""
