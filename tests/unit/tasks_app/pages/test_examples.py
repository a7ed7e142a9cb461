"""The kernels that the documents show fit the task that they name."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from gpu_runner.data.formats import load_task
from runs_app.submitting.api import SubmissionIn

_ROOT = Path(__file__).resolve().parents[4]
_SIGNATURE = load_task(_ROOT / "tasks_app/catalog/vector_add").signature


def _document() -> str:
    text = (_ROOT / "docs/kernels.md").read_text(encoding="utf-8")
    return textwrap.dedent(text.split("```c++\n", 1)[1].split("```", 1)[0])


def _schema() -> str:
    examples = SubmissionIn.model_fields["source"].examples
    assert examples
    return str(examples[0])


@pytest.mark.parametrize("source", [_document(), _schema()], ids=["kernels.md", "OpenAPI"])
def test_example_defines_the_declared_function(source: str) -> None:
    """It has the signature, and compiles after the declaration that precedes every kernel."""
    assert f'extern "C" {_SIGNATURE} {{' in " ".join(source.split())
    compiler = shutil.which("g++")
    assert compiler, "g++ is needed to compile kernels"
    subprocess.run(
        [compiler, "-fopenmp", "-fsyntax-only", "-Werror", "-x", "c++", "-"],
        input=f'extern "C" {_SIGNATURE};\n{source}',
        text=True,
        check=True,
    )
