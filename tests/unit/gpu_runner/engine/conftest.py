"""Fixtures: the support library, and evaluations whose processes end with the test."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from gpu_runner.data.task import Task
from tests.unit.gpu_runner.engine.stub import REPOSITORY, Evaluation, OracleProcess

Start = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def support(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of cache flush, clock and wake-up."""
    compiler = shutil.which("g++")
    assert compiler is not None, "the tests need g++"
    target = tmp_path_factory.mktemp("support") / "support.so"
    source = REPOSITORY / "gpu_runner/native/support.cpp"
    flags = ["-std=c++17", "-Wall", "-Werror", "-O2", "-fPIC", "-shared"]
    subprocess.run([compiler, *flags, str(source), "-o", str(target)], check=True)
    return target


@pytest.fixture(scope="module")
def oracles() -> Iterator[list[OracleProcess]]:
    """Oracles that tests share, for one takes seconds to start; each must outlive all of them."""
    running: list[OracleProcess] = []
    yield running
    assert [oracle.close() for oracle in running] == [0] * len(running)


@pytest.fixture
def start(oracles: list[OracleProcess]) -> Start:
    """Starts an `Evaluation`; another one in the same test gets another oracle."""
    used = 0

    def begin(task: Task, device: str = "cpu") -> Evaluation:
        nonlocal used
        if used == len(oracles):
            oracles.append(OracleProcess())
        used += 1
        return Evaluation(task, oracles[used - 1], device)

    return begin


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Both devices; CUDA only where there is one."""
    name: str = request.param
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return name
