"""What most of the other factories begin with: a moment, tasks, people and devices."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from gpu_runner.data.task import Abi, ShippedKernel, Task, TaskFormat, Work, Workload
from gpu_runner.data.verdict import Direction, Language
from runs_app.models import Device
from tasks_app.models import TaskVersion
from tasks_app.publishing.services import publish

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SOURCE = 'extern "C" void scale(float* out, const float* x, int N) { out[0] = N * x[0]; }\n'
HIDDEN_WORKLOAD = "secret_odd_size"

NUMBERS = itertools.count(1)
"""That no two names have."""


def later(seconds: float) -> datetime:
    """A moment after `NOW`."""
    return NOW + timedelta(seconds=seconds)


def make_task(**overrides: Any) -> Task:
    """A c-ABI task with two listed workloads and a hidden one."""
    fields: dict[str, Any] = {
        "name": "scale",
        "title": "Scale a vector",
        "format": TaskFormat.KBENCH,
        "abi": Abi.C,
        "scenario": "algebra",
        "signature": "void scale(float* out, const float* x, int N)",
        "workloads": (
            Workload(name="n256", parameters={"N": 256}),
            Workload(name="n4096", parameters={"N": 4096}),
            Workload(name=HIDDEN_WORKLOAD, parameters={"N": 1777}, unlisted=True),
        ),
        "work": {Direction.FORWARD: Work(flops="N", bytes="8 * N")},
        "files": {
            "reference.py": "def make_inputs(N):\n    return {}\n",
            "notes.json": '{"sizes": [1777]}',
            "kernels/good.cpp": SOURCE,
        },
        "kernels": (
            ShippedKernel(path="kernels/good.cpp", agent="kbench-good", language=Language.CPP),
        ),
    }
    return Task(**{**fields, **overrides})


def make_task_version(**overrides: Any) -> TaskVersion:
    """A published task's current version."""
    return publish(data=make_task(**overrides), now=NOW).version


def make_user(**overrides: Any) -> User:
    """An account with the password "secret"."""
    username = overrides.pop("username", None) or f"person{next(NUMBERS)}"
    fields = {"date_joined": NOW - timedelta(days=100), **overrides}
    return User.objects.create_user(username=username, password="secret", **fields)


def make_admin(**overrides: Any) -> User:
    """An account that may do everything."""
    return make_user(is_staff=True, is_superuser=True, **overrides)


def make_cpu() -> Device:
    """The CPU. A migration makes it; a test with real transactions empties the database."""
    fields = {"kind": "cpu", "name": "CPU", "created_at": NOW}
    return Device.objects.get_or_create(slug="cpu", defaults=fields)[0]


def make_device(**overrides: Any) -> Device:
    """A CUDA device."""
    fields = {"slug": "nvidia-h200", "kind": "cuda", "name": "NVIDIA H200", "created_at": NOW}
    return Device.objects.create(**{**fields, **overrides})
