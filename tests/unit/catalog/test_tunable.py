"""Kernels with knobs: every combination of values is right, or refused by a static_assert."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gpu_runner.data.formats import catalog_folder
from gpu_runner.supervisor.device.toolchain import for_architecture
from runs_app.optimiser.evolve.knobs import find_knobs, with_knobs
from tests.unit.catalog.calling import assert_right, compile_kernel
from tests.unit.catalog.judging import cases, task
from tests.unit.catalog.test_tasks import TUNED

pytestmark = pytest.mark.each_task

REFUSED = "static assertion failed"
NVCC = ("nvcc", "-std=c++20", "-O3", for_architecture("sm_90a"), "-c")
CHOICES = ("first", "last", "random-1", "random-2", "random-3")

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def source_of(name: str, suffix: str) -> str:
    return (catalog_folder() / name / "kernels" / f"tunable.{suffix}").read_text()


def chosen(source: str, name: str, choice: str) -> str:
    """The source with the first, the last, or random values of all knobs; the same each time."""
    rng = random.Random(f"{name} {choice}")
    picks = {"first": lambda values: values[0], "last": lambda values: values[-1]}
    pick = picks.get(choice, rng.choice)
    return with_knobs(source, {knob.name: pick(knob.values) for knob in find_knobs(source)})


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", sorted(TUNED))
def test_a_combination_is_right_or_refused(name: str, choice: str, tmp_path: Path) -> None:
    source, target = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    source.write_text(chosen(source_of(name, "cpp"), name, choice))
    done = compile_kernel(source, target, task(name).c_signature)
    if done.returncode != 0:
        assert REFUSED in done.stderr
        return
    library = ctypes.CDLL(str(target))
    for case in cases(name):
        assert_right(case, library, seed=1)


@needs_nvcc
@pytest.mark.parametrize("choice", ["default", "random-1"])
@pytest.mark.parametrize("name", sorted(TUNED))
def test_a_cuda_combination_compiles_or_is_refused(name: str, choice: str, tmp_path: Path) -> None:
    text, source = source_of(name, "cu"), tmp_path / "kernel.cu"
    source.write_text(text if choice == "default" else chosen(text, name, choice))
    command = [*NVCC, str(source), "-o", str(tmp_path / "kernel.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        assert "warning" not in done.stderr
    else:
        assert choice != "default"
        assert REFUSED in done.stderr
