"""Sets the scene inside the site: people's jobs on two devices, and the tokens of runners.

`manage.py shell` runs it; it prints what the attacks need to know, as JSON.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from gpu_runner.data.verdict import DeviceKind, Mode
from runs_app.core.baselines.services import ensure_baselines
from runs_app.core.checks.services import request_check
from runs_app.core.runners.tokens import add_runner, grant_login, revoke
from runs_app.core.work import lifecycle
from runs_app.models import Device, Evaluation, RunnerToken
from runs_app.submitting.services import submit
from tasks_app.models import TaskVersion
from tests import factories as make

OWN, FOREIGN, QUIET, JOBS = "shared-gpu", "foreign-gpu", "quiet-gpu", 300
"""Devices that the attacker's tokens serve, don't serve, and one on which a guest and an honest
runner get nothing but decisions about others; how many jobs wait for the first.
"""
SECRET = "// nobody but alice's runner may read this\n"


def build() -> None:
    """Make everything and print it."""
    now = timezone.now()
    admin = make.make_admin(username="root")
    version = make.make_task_version()
    own, foreign, quiet = (_device(slug) for slug in (OWN, FOREIGN, QUIET))
    tokens = {
        "mallory": _token("mallory", [own], admin, trusted=True),
        "honest": _token("honest", [own, quiet], admin, trusted=True),
        "guest": _token("guest", [own, quiet], admin, trusted=False),
        "lost": _token("lost", [own], admin, trusted=True),
        "newcomer": _new_devices(admin),
    }
    jobs = [_evaluation(version, own, number) for number in range(JOBS)]
    others = [_evaluation(version, foreign, JOBS + number) for number in range(4)]
    check = request_check(version=version, device=quiet, user=admin, now=now)
    baselines = ensure_baselines(version=version, device=quiet, direction="forward", now=now)
    assert baselines is not None
    audit = lifecycle.evaluate(
        submission=jobs[0].submission, device=quiet, mode=Mode.AUDIT, now=now
    )
    facts: dict[str, Any] = {
        "tokens": tokens,
        "logins": {
            token.name: grant_login(token)
            for token in RunnerToken.objects.filter(name__in=("mallory", "lost"))
        },
        "mailboxes": {token.name: token.mailbox for token in RunnerToken.objects.all()},
        "foreign": [str(each.pk) for each in others],
        "check": f"check-{check.pk}-1",
        "baselines": f"baselines-{baselines.pk}-1",
        "audit": f"evaluation-{audit.pk}-1",
    }
    print("FACTS" + json.dumps(facts))


def take_back(name: str) -> None:
    """Revoke a token."""
    token = RunnerToken.objects.get(name=name)
    revoke(token=token, reason="lost", user=User.objects.get(username="root"), now=timezone.now())


def _device(slug: str) -> Device:
    name, kind = slug.upper(), DeviceKind.CPU.value
    return Device.objects.create(slug=slug, kind=kind, name=name, created_at=timezone.now())


def _token(name: str, devices: list[Device], admin: User, *, trusted: bool) -> str:
    serves = RunnerToken.Serves.LISTED
    fields = {"serves": serves, "devices": devices, "trusted": trusted}
    return add_runner(name=name, user=admin, now=timezone.now(), **fields)[1]


def _new_devices(admin: User) -> str:
    fields = {"serves": RunnerToken.Serves.NEW, "devices": [], "trusted": False}
    return add_runner(name="newcomer", user=admin, now=timezone.now(), **fields)[1]


def _evaluation(version: TaskVersion, device: Device, number: int) -> Evaluation:
    joined = timezone.now() - timedelta(days=100)
    user = User.objects.create(username=f"person{number}", date_joined=joined)
    submission = submit(
        user=user,
        task_version=version,
        source=f"{SECRET}// {number}\n{make.SOURCE}",
        device=device.slug,
        mode=Mode.RANKED,
        private=True,
        now=timezone.now(),
    )
    return submission.evaluations.get()
