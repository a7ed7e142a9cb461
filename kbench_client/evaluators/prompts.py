"""A site's tasks as prompts, and the kernel in a reply."""

from __future__ import annotations

import re
from typing import Any

from kbench_client.commands.tasks import about, folder_of
from kbench_client.kernels import LANGUAGES

_BLOCK = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_NAMES = {"cuda": "CUDA C++", "cpp": "C++", "python": "Python"}


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
