"""Record the heartbeats of runners."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from gpu_runner.data.event import RunnerState
from gpu_runner.data.verdict import DeviceKind
from runs_app.errors import EventError
from runs_app.messaging import broadcast, queues
from runs_app.models import Device, Runner, Status
from runs_app.operations import readings
from runs_app.submissions.shipped import submit_first_kernels
from runs_app.work import lifecycle


def record_runner(*, state: RunnerState, now: datetime) -> bool:
    """Store a heartbeat; the work of a runner that was restarted or has stopped is lost.

    Returns whether it changed anything that watchers see. Raises `EventError` for a device or a
    state that cannot be.
    """
    device = _device(state, now)
    if state.state not in Runner.State.values:
        raise EventError(f"{state.state!r} is no state of a runner")
    known = Runner.objects.select_for_update(of=("self",)).filter(name=state.name).first()
    restarted = known is not None and known.boot_id != state.boot_id
    runner, _ = Runner.objects.update_or_create(
        name=state.name,
        defaults={
            "boot_id": state.boot_id,
            "device": device,
            "state": state.state,
            "reason": state.reason,
            "jail": state.jail,
            "current": list(state.current),
            "builds": state.builds,
            "version": state.version,
            "compiler": state.compiler[:100],
            "architecture": state.architecture[:50],
            "packages": dict(state.packages),
            "booted_at": known.booted_at if known and not restarted else now,
            "seen_at": now,
        },
    )
    if restarted:
        _lose(runner, f"runner {runner.name} was restarted", now, other_boots=True)
    if state.state == Runner.State.STOPPED:
        _lose(runner, f"runner {runner.name} was stopped", now, other_boots=False)
    _heed(runner, now)
    readings.record(runner, state.sensors, now)
    changed = known is None or _differ(known, runner)
    if changed:
        broadcast.send_runner(runner)
    return changed


def _heed(runner: Runner, now: datetime) -> None:
    """See to it that a runner does what an admin wants of it.

    One that is disabled gives its work back once it takes no more; else it could take it again.
    """
    holds = runner.state == Runner.State.DRAINING
    works = runner.state == Runner.State.READY
    wants_work = runner.wanted == Runner.Wanted.WORK
    if (works and not wants_work) or (holds and wants_work):
        transaction.on_commit(lambda: queues.steer(runner))
    if holds and runner.wanted == Runner.Wanted.DISABLE and runner.current:
        reason = f"an admin disabled runner {runner.name}: {runner.wanted_reason}"
        _lose(runner, reason, now, other_boots=False)


def _device(state: RunnerState, now: datetime) -> Device:
    """The runner's device; made at the first heartbeat from such a device."""
    if state.device_kind not in [kind.value for kind in DeviceKind]:
        raise EventError(f"{state.device_kind!r} is no kind of device")
    device, made = Device.objects.get_or_create(
        slug=state.device,
        defaults={"kind": state.device_kind, "name": state.device_name, "created_at": now},
    )
    if device.imported_from:
        raise EventError(f"device {device.slug!r} holds results of another site")
    if made and settings.SUBMIT_SHIPPED_KERNELS:
        submit_first_kernels(device=device, now=now)
    if device.kind != state.device_kind:
        raise EventError(f"device {device.slug!r} is a {device.kind}, not a {state.device_kind}")
    if not made and device.name != state.device_name:
        device.name = state.device_name
        device.save(update_fields=["name"])
    return device


def _lose(runner: Runner, reason: str, now: datetime, *, other_boots: bool) -> None:
    """Retry what ran on this boot of the runner, or on any boot but this one."""
    for seen in lifecycle.find(Q(runner=runner, status=Status.RUNNING)):
        if (seen.runner_boot_id != runner.boot_id) is other_boots:
            job = lifecycle.lock_in(seen, Status.RUNNING)
            if job is not None:
                lifecycle.retry_or_give_up(job, reason=reason, now=now)


def _differ(before: Runner, after: Runner) -> bool:
    columns = ("boot_id", "device_id", "state", "reason", "jail", "current", "version")
    was_silent = after.seen_at - before.seen_at > timedelta(seconds=settings.RUNNER_TIMEOUT_S)
    return was_silent or any(getattr(before, c) != getattr(after, c) for c in columns)
