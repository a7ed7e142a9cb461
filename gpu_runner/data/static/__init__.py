"""Static checks of a source: a tripwire that tells a person where to look, and never decides.

Most rules are a pattern in `words`: functions that a kernel has no use for. `torch_rules` are those
of extensions, `concurrency` finds work that outlives a call, `directives` speaks of attributes and
assembly, too, and `workloads` of hard-coded sizes. `rules` runs all of these over a compiled
source, and `module_rules` its own over a Python module; the others serve them.
`module_compilers` says whether a module compiles in calls.
"""

from __future__ import annotations

from gpu_runner.data.static.module_compilers import (
    LEFT_TO_CALLS,
    compiles_at_calls,
    names_extensions,
)
from gpu_runner.data.static.module_rules import (
    MODULE_RULES,
    module_suspicions,
    only_calls_libraries,
)
from gpu_runner.data.static.preprocess import own_lines
from gpu_runner.data.static.rules import RULES, SUSPICIONS_LIMIT, source_suspicions
from gpu_runner.data.static.torch_rules import torch_symbol_sentence
from gpu_runner.data.static.words import symbol_sentence

__all__ = [
    "LEFT_TO_CALLS",
    "MODULE_RULES",
    "RULES",
    "SUSPICIONS_LIMIT",
    "compiles_at_calls",
    "module_suspicions",
    "names_extensions",
    "only_calls_libraries",
    "own_lines",
    "source_suspicions",
    "symbol_sentence",
    "torch_symbol_sentence",
]
