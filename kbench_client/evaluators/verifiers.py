"""Prime Intellect's `verifiers`: a site's tasks as an environment for reinforcement learning.

Its programs, such as `vf-eval`, find the same environment by the name `kbench-client`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

from kbench_client.commands.tasks import about, folder_of
from kbench_client.evaluators.judge import missing
from kbench_client.kernels import LANGUAGES

TASKSET = "kbench-client"
"""By this name `verifiers` imports `kbench_client`, and finds what that exports."""
_BLOCK = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_NAMES = {"cuda": "CUDA C++", "cpp": "C++", "python": "Python"}


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


def prompt_of(task: dict[str, Any], language: str) -> str:
    """What a language model has to know to write a kernel for a task."""
    files = folder_of(task)
    parts = [about(task)]
    if "reference.py" in files:
        parts.append(f"The reference:\n\n```python\n{files['reference.py']}```")
    suffix = next((end for end, name in LANGUAGES.items() if name == language), "")
    if (start := files.get(f"kernel{suffix}")) is not None:
        parts.append(f"A correct but slow kernel:\n\n```\n{start}```")
    name = _NAMES.get(language, language)
    parts.append(f"Write a faster kernel in {name}. Answer with all of it in one code block.")
    return "\n\n".join(parts)


def kernel_in(reply: str) -> str:
    """The last code block of a reply; without one, all of it."""
    blocks = _BLOCK.findall(reply)
    return str(blocks[-1]) if blocks else reply
