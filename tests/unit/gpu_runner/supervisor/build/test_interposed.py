"""Launches that fail are noticed, also where a kernel has asked for the error and so cleared it.

Without a GPU every launch fails, and with one `<<<1, 1500>>>` does; CUDA's compiler must be here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build import build
from gpu_runner.supervisor.build.declaration import NATIVE_FOLDER
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = [
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
    pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}"),
]

LAUNCHES = """
#include <cuda_runtime.h>
__global__ void k(float* p, int n) { p[0] = n; }
extern "C" int plain() { k<<<1, 1500>>>(nullptr, 3); return cudaGetLastError(); }
extern "C" int function() {
  float* p = nullptr; int n = 3; void* arguments[] = {&p, &n};
  cudaLaunchKernel((const void*)k, dim3(1), dim3(1500), arguments, 0, nullptr);
  return cudaGetLastError();
}
extern "C" int cooperative() {
  float* p = nullptr; int n = 3; void* arguments[] = {&p, &n};
  cudaLaunchCooperativeKernel((const void*)k, dim3(1), dim3(1500), arguments);
  return cudaGetLastError();
}
extern "C" int extended() {
  cudaLaunchConfig_t config{}; config.gridDim = 1; config.blockDim = 1500;
  cudaLaunchKernelEx(&config, k, (float*)nullptr, 3);
  return cudaGetLastError();
}
"""
NAMES = ("plain", "function", "cooperative", "extended")
PROGRAM = """
#include <cstdio>
#include <dlfcn.h>
#include "interposed.h"
__global__ void own() {}
int main(int, char** words) {
  own<<<1, 1>>>();
  interposed::take_launch_failure();
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  int status = reinterpret_cast<int (*)()>(dlsym(library, words[2]))();
  int found = interposed::take_launch_failure(), again = interposed::take_launch_failure();
  printf("%d %d %d", status, found, again);
}
"""
SCRIPT = """
import ctypes, sys
interposed, runtime, library, name = sys.argv[1:]
ctypes.CDLL(interposed, mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)  # as PyTorch loads it
from gpu_runner.engine.device import cuda_runtime
cuda_runtime.check_launches()
status = getattr(ctypes.CDLL(library), name)()
try:
    cuda_runtime.check_launches()
except RuntimeError as error:
    print(status, error)
cuda_runtime.check_launches()
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    folder = tmp_path_factory.mktemp("cache")
    return SupervisorConfig(kind=DeviceKind.CUDA, device="a-gpu", cache_folder=folder)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("launches"), LAUNCHES, "-shared", "-Xcompiler=-fPIC")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = (*build._EXPORTING, f"-I{NATIVE_FOLDER}", "-ldl")
    return compiled(tmp_path_factory.mktemp("program"), PROGRAM, *flags)


def compiled(folder: Path, source: str, *flags: str) -> Path:
    (folder / "source.cu").write_text(source)
    made = folder / "made"
    command = ["nvcc", "-std=c++17", "-arch=sm_90", *toolchain.shared_cuda_runtime(), *flags]
    subprocess.run([*command, str(folder / "source.cu"), "-o", str(made)], check=True)
    return made


def runtime_library() -> Path:
    folders = (flag.rpartition("=")[2] for flag in toolchain.shared_cuda_runtime())
    found = [path for folder in folders for path in sorted(Path(folder).glob("libcudart.so.*"))]
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_notes_the_failed_launch_of_a_library(
    name: str, program: Path, library: Path
) -> None:
    command = [str(program), str(library), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, found, again = map(int, done.stdout.split())
    assert status != 0, "the launch was to fail"
    assert (found, again) == (status, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_process_with_the_library_says_cudas_words(
    name: str, config: SupervisorConfig, library: Path
) -> None:
    interposed = build.build_interposed(config)
    command = [sys.executable, "-c", SCRIPT, str(interposed), str(runtime_library())]
    done = subprocess.run(
        [*command, str(library), name], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(
        r"[1-9]\d* CUDA error: a kernel was not launched: cudaError\w+: \w.*\n", done.stdout
    )


def test_the_runner_exports_what_a_submission_is_to_find(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "cuda_architecture", lambda index: "sm_90")
    runner = build.build_runner(config)
    command = ["nm", "-D", "--defined-only", str(runner)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    assert {"cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchKernelExC"} <= exported
    assert {"cudaLaunchCooperativeKernel", "cudaGraphLaunch", "__cudaGetKernel"} <= exported


def test_a_cpu_needs_no_such_library(config: SupervisorConfig) -> None:
    assert build.build_interposed(SupervisorConfig(cache_folder=config.cache_folder)) is None
