"""Kernels and replies for scripted language models, and the samples of the page about searches."""

from __future__ import annotations

import re
from pathlib import Path

SEED = """// EVOLVE-BLOCK-START
// good speed=1
extern "C" void scale(const float* x, float* out, int N) {
    for (int i = 0; i < N; ++i) out[i] = N * x[i];
}
// EVOLVE-BLOCK-END
"""
PAGE = Path(__file__).parents[2] / "docs" / "searches.md"


def kernel(words: str, number: int = 0) -> str:
    """A kernel about which the site's pretended runner reads these words."""
    return SEED.replace("good speed=1", f"{words} {number}")


def reply_with(words: str, number: int) -> str:
    """What a language model says."""
    code = f"<CODE>\n```cpp\n{kernel(words, number)}```\n</CODE>"
    return f"<NAME>\nturned\n</NAME>\n<DESCRIPTION>\nIt may help.\n</DESCRIPTION>\n{code}"


def page_sample(name: str) -> str:
    """The sample that uses this adapter, for the task `scale` instead of `softmax`."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [found] = [each for each in blocks if f"evaluators.{name} " in each]
    return found.replace('"softmax"', '"scale"')
