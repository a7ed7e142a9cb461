"""What pages say of how kernels are built, and that the kernels of documents fit their tasks."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest
from django.test import Client
from django.utils.html import escape

from gpu_runner.data.flags import ALLOWED, EXAMPLE, FIXED, source_flags
from gpu_runner.data.formats import load_task
from runs_app.submitting.api import SubmissionIn
from tests import factories

pytestmark = pytest.mark.django_db


def test_the_page_names_compilers_devices_and_flags(client: Client) -> None:
    factories.make_task_version()
    text = client.get("/tasks/scale/").content.decode()
    assert "no runner at the moment" in text
    factories.beat(
        device="nvidia-h100", device_kind="cuda", device_name="NVIDIA H100 80GB HBM3",
        compiler="nvcc 13.0 with g++ 12.2.0", architecture="sm_90a",
    )  # fmt: skip
    text = client.get("/tasks/scale/").content.decode()
    for words in ("NVIDIA H100 80GB HBM3", "nvcc 13.0 with g++ 12.2.0", "sm_90a", "C++20"):
        assert escape(words) in text
    plain = text.replace("<wbr>", "")
    for language in FIXED:
        assert EXAMPLE[language] in plain
        assert source_flags(f"{EXAMPLE[language]}\n", language)  # it may be asked for
        assert all(escape(allowed.form) in plain for allowed in ALLOWED[language])


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
