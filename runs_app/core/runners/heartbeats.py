"""Record the heartbeats of runners."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from gpu_runner.data.event import RunnerState
from gpu_runner.data.order import check_runner
from gpu_runner.data.packages import PACKAGES
from gpu_runner.data.verdict import DeviceKind
from runs_app.core.errors import EventError, Implausible
from runs_app.core.hooks import device_made, heartbeat
from runs_app.core.messaging import broadcast, orders
from runs_app.core.runners.tokens import widen_login
from runs_app.core.work import lifecycle
from runs_app.models import Device, Runner, RunnerToken

MOST_RUNNERS = 64
"""Hosts that may show one token."""
MOST_DEVICES = 8
"""Devices that a token may bring to the site by itself."""
MOST_AT_ONCE = 64
"""Jobs that a runner may hold."""
MOST_OF_TOKEN = 256
"""And all hosts that show one token: 64 of them with 4 slots each."""
_MOST_BUILDS = 1000
_VERSION = re.compile(r"[\w.+!-]{0,50}").fullmatch  # PEP 440's, or nothing: it is absent


def record_runner(*, state: RunnerState, token: RunnerToken, now: datetime) -> bool:
    """Store a heartbeat; the work of a runner that was restarted or has stopped is lost.

    Returns whether it changed anything that watchers see. Raises `EventError` for a state that
    cannot be, or a device that the token does not serve; `DataError` for a name, boot or device.
    """
    _check(state, token)
    device = _device(state, token, now)
    name = f"{token.name}.{state.name}"
    rows = Runner.objects.select_for_update(of=("self",)).select_related("token")
    known = rows.filter(name=name).first()
    if known is None and token.runners.count() >= MOST_RUNNERS:
        raise EventError(f"runner {token} already has {MOST_RUNNERS} hosts; remove some first")
    restarted = known is not None and known.boot_id != state.boot_id
    runner, _ = Runner.objects.update_or_create(
        name=name,
        defaults={
            "token": token,
            "boot_id": state.boot_id,
            "device": device,
            "state": state.state,
            "reason": state.reason,
            "jail": state.jail,
            "current": list(state.current)[:MOST_AT_ONCE],
            "builds": state.builds,
            "version": state.version,
            "compiler": state.compiler[:100],
            "architecture": state.architecture[:50],
            "packages": _packages(state),
            "booted_at": known.booted_at if known and not restarted else now,
            "seen_at": now,
        },
    )
    _settle_work(runner, now, restarted=restarted)
    _heed(runner)
    heartbeat.send(sender=Runner, runner=runner, sensors=state.sensors, now=now)
    changed = known is None or _differ(known, runner)
    if changed:
        broadcast.send_runner(runner)
    return changed


def _check(state: RunnerState, token: RunnerToken) -> None:
    """Refuse what no runner says of itself, and whatever comes after its token was revoked."""
    check_runner("name", state.name, state.boot_id, state.device)
    if token.revoked_at is not None:
        raise EventError(f"the token of runner {token} was revoked")
    if state.state not in Runner.State.values:
        raise EventError(f"{state.state!r} is not a valid runner state")
    if not 0 <= state.builds <= _MOST_BUILDS:
        raise EventError(f"{state.builds} is not a valid number of parallel builds")


def _packages(state: RunnerState) -> dict[str, str]:
    """What it says of packages that we know; a runner of a later version may know others."""
    told = ((name, state.packages.get(name)) for name in PACKAGES)
    return {name: version for name, version in told if version is not None and _VERSION(version)}


def _settle_work(runner: Runner, now: datetime, *, restarted: bool) -> None:
    """Try again what this heartbeat shows to be lost."""
    name, mine = runner.name, Q(runner=runner)
    if restarted:
        earlier = mine & ~Q(runner_boot_id=runner.boot_id)
        lifecycle.lose(earlier, reason=f"runner {name} was restarted", now=now)
    if runner.state == Runner.State.STOPPED:
        lifecycle.lose(mine, reason=f"runner {name} was stopped", now=now)
    elif runner.wanted == Runner.Wanted.DISABLE and runner.state == Runner.State.DRAINING:
        reason = f"an admin disabled runner {name}: {runner.wanted_reason}"
        lifecycle.lose(mine, reason=reason, now=now)


def _heed(runner: Runner) -> None:
    """Tell a runner again what is wanted of it: Redis may have been away when it was told."""
    is_held = runner.state == Runner.State.DRAINING
    if runner.current or is_held is (runner.wanted == Runner.Wanted.WORK):
        transaction.on_commit(lambda: orders.tell(runner))


def _device(state: RunnerState, token: RunnerToken, now: datetime) -> Device:
    """The runner's device; made at the first heartbeat from such a device, if the token may."""
    if state.device_kind not in [kind.value for kind in DeviceKind]:
        raise EventError(f"{state.device_kind!r} is not a valid device kind")
    device = Device.objects.filter(slug=state.device).first()
    served = token.devices.values_list("pk", flat=True)
    _check_serves(token, served, state.device, device)
    if device is None:
        device = _made(state, now)
    if device.imported_from:
        raise EventError(f"device {device.slug!r} has results from another site")
    if device.kind != state.device_kind:
        raise EventError(f"device {device.slug!r} is a {device.kind}, not a {state.device_kind}")
    if device.pk not in served:
        token.devices.add(device)
        transaction.on_commit(lambda: widen_login(token))
    return device


def _check_serves(
    token: RunnerToken, served: Collection[str], slug: str, device: Device | None
) -> None:
    """Raise `Implausible` for a device that is none of the token's."""
    known = RunnerToken.Serves
    if slug in served or (token.serves == known.ANY and device):
        return
    if token.serves != known.LISTED and device is None and len(served) < MOST_DEVICES:
        return
    raise Implausible(f"it reports the device {slug!r}, which it isn't allowed to serve")


def _made(state: RunnerState, now: datetime) -> Device:
    fields = {"kind": state.device_kind, "name": state.device_name[:150], "created_at": now}
    device = Device.objects.create(slug=state.device, **fields)
    device_made.send(sender=Device, device=device, now=now)
    return device


def _differ(before: Runner, after: Runner) -> bool:
    columns = ("boot_id", "device_id", "state", "reason", "jail", "current", "version")
    was_silent = after.seen_at - before.seen_at > timedelta(seconds=settings.RUNNER_TIMEOUT_S)
    return was_silent or any(getattr(before, c) != getattr(after, c) for c in columns)
