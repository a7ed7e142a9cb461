"""Which kernel a run begins with, and who may thereby see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs_app.models import Run
from tests import factories as make

pytestmark = pytest.mark.django_db


def test_a_private_kernel_is_the_seed_of_a_private_run_only(start: Callable[..., Run]) -> None:
    version = make.make_finished_evaluation().task_version
    own: dict[str, Any] = {
        "source": make.SOURCE + "// mine\n",
        "task_version": version,
        "private": True,
    }
    fast = make.make_finished_evaluation(result={"latency_ns": 1.0}, **own)
    best: dict[str, Any] = {
        "user": fast.submission.author,
        "task_version": version,
        "seed_kernel": "best",
    }
    assert start(**best).problem["seed_source"] == make.SOURCE
    assert start(**best, private=True).problem["seed_source"] == own["source"]
