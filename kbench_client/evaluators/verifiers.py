"""Prime Intellect's `verifiers`: a site's tasks as an environment for reinforcement learning.

Its programs, such as `vf-eval`, find the same environment by the name `kbench-client`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from kbench_client.evaluators.judge import missing

TASKSET = "kbench-client"
"""By this name `verifiers` imports `kbench_client`, and finds what that exports."""


def load_environment(tasks: Sequence[str] = (), **config: Any) -> Any:
    """An environment whose tasks are the site's, and whose reward the site measures.

    `config` are the other fields of `KbenchConfig`. Without `tasks` it has all that the site
    lists. What the site can't judge becomes an error of its rollout, never a reward.
    """
    try:
        loaders = importlib.import_module("verifiers.v1.utils.loaders")
    except ModuleNotFoundError:
        raise missing("verifiers") from None
    taskset = {"id": TASKSET, "tasks": list(tasks), **config}
    return loaders.load_environment(loaders.resolve_env_config({"taskset": taskset}))
