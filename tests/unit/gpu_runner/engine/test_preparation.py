"""What is said of a Python module that cannot be imported."""

from __future__ import annotations

import pytest

from gpu_runner.engine.runner.preparation import _as_compilers_say

BUILD = """line 7: RuntimeError: Error building extension 'own': [1/2] c++ -c main.cpp
FAILED: main.o
main.cpp:3:5: error: 'x' was not declared in this scope
ninja: build stopped: subcommand failed."""
SILENT = "line 7: RuntimeError: Error building extension 'own'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("line 7: ValueError: no", "kernel.py:7: error: ValueError: no"),
        ("no forward", "error: no forward"),
        (BUILD, "main.cpp:3:5: error: 'x' was not declared in this scope"),
        (SILENT, f"kernel.py:7: error: {SILENT[8:]}"),
    ],
)
def test_a_reason_has_the_place_and_the_compilers_own_words(text: str, said: str) -> None:
    assert _as_compilers_say(text) == said
