"""Static checks of a source: a tripwire that tells a person where to look, and never decides.

Most rules are a pattern in `words`: functions that a kernel has no use for. `torch_rules` are those
of extensions, `concurrency` finds work that outlives a call, `directives` speaks of attributes and
assembly, too, and `workloads` of hard-coded sizes. `check` runs all; the others serve them.
"""

from __future__ import annotations

from gpu_runner.data.static.check import RULES, SUSPICIONS_LIMIT, check_source
from gpu_runner.data.static.preprocess import own_lines
from gpu_runner.data.static.torch_rules import torch_symbol_sentence
from gpu_runner.data.static.words import symbol_sentence

__all__ = [
    "RULES",
    "SUSPICIONS_LIMIT",
    "check_source",
    "own_lines",
    "symbol_sentence",
    "torch_symbol_sentence",
]
