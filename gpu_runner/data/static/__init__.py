"""Static checks of a source: a tripwire that tells a person where to look, and never decides.

Most rules are patterns in `words`: functions that a kernel has no use for. `torch_rules` has those
for extensions. `texts` has rules about directives, assembly and streams. `rules` runs all of these
over a compiled source, and `module_rules` its own over a Python module.
`module_names` says what a module's names stand for, `module_compilers` whether it compiles during
calls, and `module_device` what kind of device it is for.
"""

from __future__ import annotations

from gpu_runner.data.static.case import Code
from gpu_runner.data.static.module_compilers import (
    LEFT_TO_CALLS,
    compiles_at_calls,
    names_extensions,
)
from gpu_runner.data.static.module_device import gpu_reason, usual_kind
from gpu_runner.data.static.module_rules import (
    MODULE_RULES,
    module_suspicions,
    modules_suspicions,
    only_calls_libraries,
)
from gpu_runner.data.static.rules import (
    RULES,
    SUSPICIONS_LIMIT,
    code_suspicions,
    most,
    own_lines,
    source_suspicions,
    speaks_of_work,
)
from gpu_runner.data.static.torch_rules import torch_symbol_sentence
from gpu_runner.data.static.words import symbol_sentence

__all__ = [
    "LEFT_TO_CALLS",
    "MODULE_RULES",
    "RULES",
    "SUSPICIONS_LIMIT",
    "Code",
    "code_suspicions",
    "compiles_at_calls",
    "gpu_reason",
    "module_suspicions",
    "modules_suspicions",
    "most",
    "names_extensions",
    "only_calls_libraries",
    "own_lines",
    "source_suspicions",
    "speaks_of_work",
    "symbol_sentence",
    "torch_symbol_sentence",
    "usual_kind",
]
