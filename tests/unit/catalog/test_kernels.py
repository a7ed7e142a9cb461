"""The shipped C++ kernels, with all values of their knobs, are right on every CPU workload."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Direction, Language
from gpu_runner.supervisor.device.toolchain import for_architecture
from runs_app.optimiser.evolve.knobs import find_knobs, with_knobs
from tests.bench.families import Places
from tests.unit.catalog.calling import assert_right, compile_kernel, written_by
from tests.unit.catalog.judging import Case, cases, folder, task
from tests.unit.catalog.test_tasks import ROUTINES, TUNED

pytestmark = pytest.mark.each_task

Build = Callable[[str, ShippedKernel], ctypes.CDLL]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile a shipped kernel once, and load it."""
    target_folder, built = tmp_path_factory.mktemp("built"), dict[tuple[str, str], ctypes.CDLL]()

    def compiled(name: str, kernel: ShippedKernel) -> ctypes.CDLL:
        key = (name, kernel.path)
        if key not in built:
            target = target_folder / f"{name}-{Path(kernel.path).stem}.so"
            source = folder(name) / kernel.path
            done = compile_kernel(source, target, task(name).c_signature)
            assert done.returncode == 0, done.stderr
            built[key] = ctypes.CDLL(str(target))
        return built[key]

    return compiled


def kernels(name: str) -> list[ShippedKernel]:
    return [kernel for kernel in task(name).kernels if kernel.language is Language.CPP]


RUNS = [
    pytest.param(case, kernel, id=f"{case}-{kernel.agent}")
    for case in cases(*ROUTINES)
    for kernel in kernels(case.name)
]


@pytest.mark.sampled(30)
@pytest.mark.parametrize(("case", "kernel"), RUNS)
def test_a_shipped_kernel_is_right(case: Case, kernel: ShippedKernel, build: Build) -> None:
    for seed in range(2):
        assert_right(case, build(case.name, kernel), seed)


DRAWS = 3
SHIPPED = [
    pytest.param(name, kernel, id=f"{name}-{kernel.agent}")
    for name in ROUTINES
    for kernel in kernels(name)
]


@pytest.mark.parametrize(("name", "kernel"), SHIPPED)
def test_a_shipped_kernel_is_right_as_an_audit_asks_it(
    name: str, kernel: ShippedKernel, build: Build
) -> None:
    """On new calls in each run, also with other values than a workload's own.

    `python -m tests.bench.families` makes a thousand.
    """
    seed = random.SystemRandom().getrandbits(62)
    rng, places = random.Random(seed), Places(name, Direction.FORWARD)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse tensors are in beta
        for _ in range(DRAWS):
            call = places.call(rng)
            case = Case(name, call.workload, call.direction)
            written = written_by(case, build(name, kernel), call.drawn, call.eager)
            failed, _, where = call.explain(tuple(inner for _, inner in written))
            assert not failed, f"{call.workload.name} ({call.workload.values}) {where}, {seed=}"


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
